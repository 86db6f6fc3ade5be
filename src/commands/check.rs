//! `sbx check`: text to graph, no cluster.

use super::select::select;
use crate::{cli::RunbookArgs, error::Error, exit_code::ExitCode, render, terminal::Terminal};

pub(super) fn run(args: RunbookArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, _) = select(args.runbook)?;
    terminal.out(&render::no_problems_text(&runbook));
    Ok(ExitCode::Success)
}
