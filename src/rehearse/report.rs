//! What a rehearsal comes to: what will happen to the cluster, and what was not simulated.

use std::collections::BTreeMap;

use super::ACTOR;
use crate::{
    apply::Ending,
    embedded::RequestRecord,
    plan::{Operation, Plan},
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
    /// Objects that changed by operation and kind, from the first plan.
    pub planned: BTreeMap<(Operation, String), usize>,
    /// Successful writes by verb and resource, leases aside.
    pub writes: BTreeMap<(String, String), usize>,
}

impl Report {
    pub(super) fn began(&mut self, plan: &Plan) {
        for change in plan.steps.iter().flat_map(|step| &step.changes) {
            *self.planned.entry((change.operation, change.object.kind.clone())).or_default() += 1;
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
