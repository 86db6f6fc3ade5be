//! `sbx rbac`: the smallest roles for plan and for apply.

use super::select::select;
use crate::{
    cli::{RbacArgs, RbacPurpose},
    error::Error,
    exit_code::ExitCode,
    render,
    steps::roles::{Purpose, roles},
    terminal::Terminal,
};

pub(super) fn run(args: RbacArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, _) = select(args.runbook)?;
    let purposes = match args.purpose {
        None => vec![Purpose::Plan, Purpose::Apply],
        Some(RbacPurpose::Plan) => vec![Purpose::Plan],
        Some(RbacPurpose::Apply) => vec![Purpose::Apply],
    };
    let texts = purposes.into_iter().map(|purpose| render::roles_text(&roles(&runbook, purpose), purpose, &runbook));
    terminal.out(&texts.collect::<Vec<_>>().join("---\n"));
    Ok(ExitCode::Success)
}
