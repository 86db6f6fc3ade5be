//! `sbx schema`: the JSON Schema of a runbook.

use crate::{error::Error, exit_code::ExitCode, runbook, terminal::Terminal};

pub(super) fn run(terminal: &Terminal) -> Result<ExitCode, Error> {
    terminal.out(&runbook::schema());
    Ok(ExitCode::Success)
}
