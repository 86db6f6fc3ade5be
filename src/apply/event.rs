//! What apply reports: typed facts; the terminal and the journal choose the words.

use std::time::Duration;

use crate::{
    runbook::StepId,
    steps::{Progress, Stop},
};

/// One thing that happened in a run.
#[derive(Clone, Debug)]
pub enum Event {
    /// The run begins to write: the lock is taken.
    Began {
        /// The run's id.
        run: String,
        /// kubeconfig context.
        context: String,
        /// The user as the API server sees it.
        user: Option<String>,
        /// Fingerprint of the plan it began with.
        fingerprint: String,
        /// The Lease that keeps a second apply out.
        lock: String,
    },
    /// Somebody approved.
    Approved {
        /// `yes`, or the typed phrase.
        phrase: String,
        /// Whether it came from the command line rather than a prompt.
        by_flag: bool,
    },
    /// A step was looked at and has nothing left to do.
    Settled {
        /// Place in the run order.
        number: usize,
        /// Its id.
        id: StepId,
        /// What was found.
        summary: String,
    },
    /// A gate is closed.
    Closed {
        /// Place in the run order.
        number: usize,
        /// Its id.
        id: StepId,
        /// What was found.
        summary: String,
    },
    /// A step begins.
    StepBegan {
        /// Place in the run order.
        number: usize,
        /// Its id.
        id: StepId,
        /// What it will do.
        summary: String,
    },
    /// Something inside a step.
    Step {
        /// The step.
        id: StepId,
        /// What happened.
        progress: Progress,
    },
    /// A step ended.
    StepEnded {
        /// Place in the run order.
        number: usize,
        /// Its id.
        id: StepId,
        /// How long it took, by the run's clock.
        took: Duration,
        /// Why it did not finish, if it did not.
        stop: Option<Stop>,
    },
    /// The run is over: the last event of every journal.
    Ended {
        /// How.
        ending: Ending,
    },
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Nothing was to do; nothing was written or asked.
    NoChanges,
    /// Every selected step is settled.
    Finished,
    /// The plan has blockers.
    Blocked,
    /// Gates are closed or a wait timed out: each with what was found. Nothing after them ran.
    Unmet(Vec<(StepId, String)>),
    /// An approval is needed and nobody can be asked: the flag that gives it.
    NeedsApproval(String),
    /// A person said no to this question.
    Declined(String),
    /// A step failed part-way.
    Failed(StepId, Stop),
    /// Another apply holds the lock: who, and since when.
    Locked(String),
    /// Stopped by a signal: how far it got.
    Interrupted(String),
    /// The lock was lost while the run was under way.
    LockLost {
        /// How it was lost.
        why: String,
        /// How far the run got.
        how_far: String,
    },
}
