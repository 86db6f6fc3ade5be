//! Gate: a person says yes. The cluster cannot tell, so it is asked in every run until all that
//! depends on it is done; `--yes` never answers it, only `--approve ID@CONTEXT` does.

use super::Decision;
use crate::runbook::Confirm;

/// Always open to question.
pub fn decide(task: &Confirm) -> Decision {
    Decision::pending(format!("asks: {}", task.question))
}
