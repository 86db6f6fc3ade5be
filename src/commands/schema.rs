//! `sbx schema`: the JSON Schema of a runbook.

use crate::{exit_code::ExitCode, runbook, terminal::Terminal};

pub(super) fn run(terminal: &Terminal) -> ExitCode {
    terminal.out(&runbook::schema());
    ExitCode::Success
}
