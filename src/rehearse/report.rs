//! What a rehearsal comes to: what will happen to the cluster, and what was not simulated.

use std::collections::{BTreeMap, BTreeSet};

use super::ACTOR;
use crate::{
    apply::{Ending, Event},
    embedded::RequestRecord,
    object::ObjectRef,
    plan::{Operation, Plan},
    runbook::StepId,
    steps::{Outcome, Progress},
};

/// What no rehearsal can show: said every time, so that nobody takes it for more than it is.
const NOT_SIMULATED: [&str; 6] = [
    "the conversion webhook's own code: recorded conversions are replayed",
    "controllers: nothing reconciles, so nothing they would do on a new generation shows",
    "admission webhooks and policies",
    "several API servers, and the seconds in which one of them lags behind",
    "the deployer beyond its apply, prune and status",
    "time: waits are skipped",
];

/// What a rehearsal comes to.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether the last plan said `No changes`.
    pub settled: bool,
    /// How each run of apply ended, in order.
    pub endings: Vec<Ending>,
    /// What steps did to objects, by operation and kind.
    pub changed: BTreeMap<(Operation, String), Changed>,
    /// Successful writes by verb and resource, leases aside.
    pub writes: BTreeMap<(String, String), usize>,
}

/// Objects of one kind to which the same was done, each once, whoever did it how often.
#[derive(Debug, Default)]
pub struct Changed {
    /// Which objects.
    pub objects: BTreeSet<ObjectRef>,
    /// The steps that did it, in the order they ran.
    pub steps: Vec<StepId>,
}

impl Report {
    /// Takes in what happened to an object.
    pub(super) fn watch(&mut self, event: &Event) {
        let Event::Step { id, progress: Progress::Object { object, outcome, .. } } = event else { return };
        let operation = match outcome {
            Outcome::Created => Operation::Create,
            Outcome::Updated => Operation::Update,
            Outcome::Deleted => Operation::Delete,
            Outcome::Unchanged | Outcome::Gone | Outcome::Failed(_) => return,
        };
        let changed = self.changed.entry((operation, object.kind.clone())).or_default();
        changed.objects.insert(object.clone());
        if !changed.steps.contains(id) {
            changed.steps.push(id.clone());
        }
    }

    pub(super) fn ended(&mut self, ending: Ending) {
        self.endings.push(ending);
    }

    pub(super) fn finish(&mut self, plan: &Plan, requests: &[RequestRecord]) {
        self.settled = plan.is_settled();
        let done = requests.iter().filter(|request| {
            request.user == ACTOR
                && request.writes()
                && request.code < 300
                && request.resource != "leases"
                && !request.resource.starts_with("selfsubject")
        });
        for request in done {
            *self.writes.entry((request.verb.clone(), request.resource.clone())).or_default() += 1;
        }
    }

    /// What was not simulated, a line each.
    pub fn not_simulated(&self) -> &'static [&'static str] {
        &NOT_SIMULATED
    }
}
