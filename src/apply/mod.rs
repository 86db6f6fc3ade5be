//! Plan, ask, do, report. There is no state file: every step decides from the live cluster whether
//! it is done, so resuming and finding nothing to do are one code path.
//!
//! In: a runbook and a [`Writer`]. Out: [`Event`]s while it runs, and an [`Ending`].

mod counted;
mod event;
mod journal;
mod lock;
mod outage;
mod walk;

use std::{collections::BTreeSet, path::Path};

use futures::future::BoxFuture;

pub use event::{Ending, Event};

use crate::{
    cluster::{ClusterError, Writer},
    graph::StepGraph,
    plan::{Plan, PlannedStep, State},
    runbook::{Runbook, StepId, Task},
    steps::{self, Interrupt},
};

/// What a run works with.
pub struct Session<'a> {
    /// The cluster, with the right to write.
    pub writer: &'a Writer,
    /// The runbook.
    pub runbook: &'a Runbook,
    /// Its order.
    pub graph: &'a StepGraph,
    /// Backups and journals go below it.
    pub working_dir: &'a Path,
    /// Set to stop after what is in flight.
    pub interrupt: &'a Interrupt,
    /// Where events go.
    pub events: &'a (dyn Fn(&Event) + Sync),
}

/// What the operator said beforehand.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Run this step and what it needs, nothing later.
    pub to: Option<StepId>,
    /// `--yes`: ordinary steps are approved.
    pub yes: bool,
    /// `--approve`: typed phrases given on the command line.
    pub approvals: BTreeSet<String>,
}

/// Whoever can be asked.
pub trait Ask {
    /// Asks a question; none when nobody can answer. A pipe is never consent.
    ///
    /// Who stops waiting for the answer drops the future.
    fn ask<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// What came of a question.
enum Answer {
    /// Nobody can be asked.
    Nobody,
    /// Somebody asked to stop instead.
    Interrupted,
    /// This was answered.
    Said(String),
}

impl Session<'_> {
    /// The plan as of now.
    ///
    /// # Errors
    /// The API server cannot be reached.
    pub async fn plan(&self, to: Option<&StepId>) -> Result<Plan, ClusterError> {
        let reader = self.writer.reader();
        let mut situation = steps::observe(reader, self.runbook, self.graph, self.working_dir, &[]).await?;
        // Who is about to apply is no mere reader: what is missing stops the run before it begins.
        situation.rights.writes = true;
        Ok(steps::plan(self.runbook, self.graph, &situation, to))
    }

    /// Carries out a plan that was just made and shown.
    ///
    /// # Errors
    /// The API server cannot be reached before anything was written.
    pub async fn apply(&self, plan: &Plan, options: &Options, ask: &mut dyn Ask) -> Result<Ending, ClusterError> {
        if plan.blockers().next().is_some() {
            return Ok(Ending::Blocked);
        }
        if plan.is_settled() {
            return Ok(Ending::NoChanges);
        }
        if !plan.steps.iter().any(|step| self.can_begin(step)) {
            return Ok(Ending::Unmet(closed_gates(plan)));
        }
        let nothing_written = || Ok(Ending::Interrupted("before the first step: nothing was written".into()));
        let context = &self.runbook.cluster.context;
        // Whether the flag approves; none where there is nothing to approve.
        let by_flag = writes(plan).then_some(options.yes);
        if by_flag == Some(false) {
            match self.ask(ask, &format!("Run these steps on {context}? Type yes: ")).await {
                Answer::Nobody => return Ok(Ending::NeedsApproval("--yes".into())),
                Answer::Interrupted => return nothing_written(),
                Answer::Said(answer) if answer.trim() == "yes" => {}
                Answer::Said(_) => return Ok(Ending::Declined(format!("to run the steps on {context}"))),
            }
        } else if self.interrupt.is_set() {
            return nothing_written();
        }
        Ok(walk::Walk::begin(self, plan, options, by_flag).await?.run(ask).await)
    }

    /// Asks, and stops waiting for the answer when somebody asks to stop.
    async fn ask(&self, ask: &mut dyn Ask, question: &str) -> Answer {
        if self.interrupt.is_set() {
            return Answer::Interrupted;
        }
        tokio::select! {
            biased;
            () = self.interrupt.asked() => Answer::Interrupted,
            answer = ask.ask(question) => answer.map_or(Answer::Nobody, Answer::Said),
        }
    }

    /// Whether a step can begin now: something to do, a person to ask, or a gate that opens by itself
    /// after a change.
    fn can_begin(&self, step: &PlannedStep) -> bool {
        match step.state {
            State::ToDo => true,
            State::Waiting => self
                .runbook
                .steps
                .iter()
                .find(|known| known.id == step.id)
                .is_some_and(|known| matches!(known.task, Task::Confirm(_)) || self.comes_after_a_change(&known.id)),
            _ => false,
        }
    }

    /// Whether a gate stands behind a step that changes something: then apply waits for it. A gate
    /// in front of all changes is judged at once.
    fn comes_after_a_change(&self, id: &StepId) -> bool {
        self.runbook.steps.iter().any(|other| !other.task.is_gate() && self.graph.reaches(id, &other.id))
    }
}

/// Whether anything is to be changed, now or later in the run.
fn writes(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| !step.gate && matches!(step.state, State::ToDo | State::After(_)))
}

/// Every gate that is closed now, with what was found.
fn closed_gates(plan: &Plan) -> Vec<(StepId, String)> {
    let closed = plan.steps.iter().filter(|step| step.state == State::Waiting);
    closed.map(|step| (step.id.clone(), step.summary.clone())).collect()
}
