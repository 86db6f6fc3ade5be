//! Exit codes: one table, and every way out of the program is in it.

/// How the program ends. The numbers are a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Plan made; apply finished; no changes.
    Success = 0,
    /// An error before any change: runbook, cluster, permission; an unresolved blocker.
    Error = 1,
    /// `plan --detailed-exitcode` only: something to do or to wait for, and no blocker.
    Pending = 2,
    /// Stopped cleanly at an unmet gate, or one that timed out.
    Unmet = 3,
    /// The plan given no longer fits, or another cluster answers.
    Stale = 4,
    /// An approval is needed and nobody can be asked.
    NeedsApproval = 5,
    /// A person declined.
    Declined = 6,
    /// A step failed part-way, or the deployer's apply failed; what is done is kept.
    Failed = 7,
    /// Another apply holds the lock.
    Locked = 8,
    /// Wrong usage.
    Usage = 64,
    /// SIGHUP, after a clean stop.
    Hangup = 129,
    /// SIGINT, after a clean stop.
    Interrupted = 130,
    /// SIGTERM, after a clean stop.
    Terminated = 143,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
