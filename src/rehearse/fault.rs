//! `--fail STEP`: what a failure looks like, and how the rerun goes on.
//!
//! A step that changes something has one of its writes refused; a merge has the deployer's apply
//! refused; a client does not ship. Once, then it is put right.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use super::ACTOR;
use crate::{
    apply::Event,
    embedded::{Interception, RequestRecord, Server},
    runbook::{Runbook, StepId, Task},
};

/// Which call is refused: the server asks before and after it carries a request out, so this is before
/// the second write of a step. Not the first one, so that there is something to keep.
const NTH: usize = 3;

pub(super) struct Fault {
    server: Server,
    step: Mutex<Option<StepId>>,
}

impl Fault {
    pub(super) fn new(server: Server, step: Option<StepId>) -> Self {
        Self { server, step: Mutex::new(step) }
    }

    /// Arms the fault when its step begins.
    pub(super) fn watch(&self, event: &Event, runbook: &Runbook) {
        let Event::StepBegan { id, .. } = event else { return };
        let mine = self.step.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(id);
        let Some(step) = runbook.steps.iter().find(|step| mine && step.id == *id) else { return };
        let merge = matches!(step.task, Task::Merge(_));
        let deployer = runbook.upgrade.deployer.clone().unwrap_or_default();
        let writes = AtomicUsize::new(0);
        let name = id.to_string();
        self.server.intercept(Some(Arc::new(move |request: &RequestRecord| {
            let hit = if merge {
                request.apply && !request.dry_run && request.field_manager == deployer
            } else {
                request.user == ACTOR
                    && request.writes()
                    && request.resource != "leases"
                    && !request.group.ends_with("authorization.k8s.io")
                    && writes.fetch_add(1, Ordering::Relaxed) + 1 == NTH
            };
            hit.then(|| Interception {
                code: 403,
                reason: "Forbidden",
                message: format!("{} \"{}\" is forbidden: played by --fail {name}", request.resource, request.name),
                retry_after: None,
                after: false,
            })
        })));
    }

    /// Whether this gate is the fault: then nobody opens it yet.
    pub(super) fn keeps_closed(&self, id: &StepId) -> bool {
        self.step.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(id)
    }

    /// Puts it right; whether there was a fault.
    pub(super) fn mend(&self) -> bool {
        self.server.intercept(None);
        self.step.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}
