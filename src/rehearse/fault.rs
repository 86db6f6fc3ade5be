//! `--fail STEP`: what a failure of that very step looks like, and how the rerun goes on.
//!
//! | kind | what goes wrong, once |
//! |---|---|
//! | a step that writes | one of its writes is refused, the second where it makes several: something is kept |
//! | `backup` | the last kind it reads is refused, so the files are never finished |
//! | `merge` | the deployer's apply is refused |
//! | `client`, `gone` | nobody ships, nobody prunes: the gate stays closed |
//! | `writers` | an old client writes once more |
//! | `confirm` | a person says no |

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use super::{ACTOR, player::deployer};
use crate::{
    apply::Event,
    embedded::{Interception, RequestRecord, Server},
    plan::{Plan, PlannedStep, State},
    runbook::{Runbook, Step, StepId, Task},
};

pub(super) struct Fault {
    server: Server,
    /// The step that goes wrong, until it is put right.
    step: Mutex<Option<StepId>>,
}

impl Fault {
    pub(super) fn new(server: Server, step: Option<StepId>) -> Self {
        Self { server, step: Mutex::new(step) }
    }

    /// Arms the fault when its step begins, and takes it away when that ends: no other step is meant.
    pub(super) fn watch(&self, event: &Event, runbook: &Runbook, plan: Option<&Plan>) {
        match event {
            Event::StepBegan { id, .. } if self.is(id) => {
                let step = runbook.steps.iter().find(|step| step.id == *id);
                let planned = plan.and_then(|plan| plan.step(id));
                if let Some(step) = step {
                    self.arm(step, planned, runbook);
                }
            }
            Event::StepEnded { id, .. } if self.is(id) => self.server.intercept(None),
            _ => {}
        }
    }

    fn arm(&self, step: &Step, planned: Option<&PlannedStep>, runbook: &Runbook) {
        let is_hit = hit(&step.task, planned, runbook);
        let name = step.id.to_string();
        self.server.intercept(Some(Arc::new(move |request: &RequestRecord| {
            is_hit(request).then(|| Interception {
                code: 403,
                reason: "Forbidden",
                message: format!("{} \"{}\" is forbidden: played by --fail {name}", request.resource, request.name),
                retry_after: None,
                after: false,
            })
        })));
    }

    /// Whether this is the step that goes wrong.
    pub(super) fn is(&self, id: &StepId) -> bool {
        self.step.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(id)
    }

    /// The step that goes wrong, while nothing was put right.
    pub(super) fn step(&self) -> Option<StepId> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts it right; whether there was a fault.
    pub(super) fn mend(&self) -> bool {
        self.server.intercept(None);
        self.step.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

/// Which requests are refused.
fn hit(
    task: &Task,
    planned: Option<&PlannedStep>,
    runbook: &Runbook,
) -> Box<dyn Fn(&RequestRecord) -> bool + Send + Sync> {
    match task {
        Task::Merge(_) => {
            let deployer = deployer(runbook).to_owned();
            Box::new(move |request| request.apply && !request.dry_run && request.field_manager == deployer)
        }
        Task::Backup(_) => {
            let last = runbook.upgrade.crds.last().and_then(|crd| crd.split_once('.'));
            let (plural, group) = last.map(|(plural, group)| (plural.to_owned(), group.to_owned())).unwrap_or_default();
            Box::new(move |request| {
                (&request.verb, &request.resource, &request.group) == (&"list".to_owned(), &plural, &group)
                    && request.user == ACTOR
            })
        }
        _ => {
            // Asked before and after each write: the third time is before the second one.
            let nth = if planned.is_some_and(|step| step.changes.len() > 1) { 3 } else { 1 };
            let asked = AtomicUsize::new(0);
            Box::new(move |request| {
                request.user == ACTOR
                    && request.writes()
                    && request.resource != "leases"
                    && !request.group.ends_with("authorization.k8s.io")
                    && asked.fetch_add(1, Ordering::Relaxed) + 1 == nth
            })
        }
    }
}

/// The steps of a plan that can go wrong: those with something to do, and gates that are still closed.
pub(super) fn can_fail(plan: &Plan, runbook: &Runbook) -> Vec<StepId> {
    let can = |step: &&PlannedStep| {
        let task = runbook.steps.iter().find(|known| known.id == step.id).map(|known| &known.task);
        match task {
            // An old client can always come back while something is to do.
            Some(Task::Writers(_)) => step.state != State::NotNeeded,
            Some(Task::Client(_) | Task::Gone(_) | Task::Confirm(_) | Task::Backup(_) | Task::Merge(_)) => {
                !step.state.is_settled()
            }
            _ => !step.state.is_settled() && !step.changes.is_empty(),
        }
    };
    plan.steps.iter().filter(can).map(|step| step.id.clone()).collect()
}
