//! `sbx check`: text to graph, no cluster.

use super::select::select;
use crate::{cli::RunbookArgs, error::Error, exit_code::ExitCode, terminal::Terminal};

pub(super) fn run(args: RunbookArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    terminal.out(&format!("{}: {} steps, no problems\n", runbook.path.display(), graph.order().len()));
    Ok(ExitCode::Success)
}
