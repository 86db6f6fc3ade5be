//! How far a rollout got: a pure question about one object's numbers.

use serde_json::Value;

use crate::object::Object;

/// The numbers of a Deployment, `StatefulSet` or `DaemonSet`, under one set of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// `metadata.generation`.
    pub generation: i64,
    /// Generation that its controller has acted on.
    pub observed: i64,
    /// Whether the rollout is paused.
    pub paused: bool,
    /// Replicas that should run.
    pub wanted: i64,
    /// Replicas that exist, old ones included.
    pub total: i64,
    /// Replicas of the newest template.
    pub updated: i64,
    /// Replicas that are not available, or not yet there.
    pub unavailable: i64,
    /// Why a Deployment's rollout makes no progress, in the controller's words.
    pub stuck: Option<String>,
}

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Every replica is of the newest template and available.
    Done,
    /// Nothing should run and nothing does.
    ScaledToZero,
    /// Somebody paused it.
    Paused,
    /// On its way: what is missing.
    Rolling(String),
}

impl Rollout {
    /// Reads the numbers by kind; what is absent reads as zero, as the API server leaves it out.
    pub fn of(workload: &Object) -> Self {
        let status = |key: &str| workload.int(&format!("/status/{key}")).unwrap_or(0);
        let common = Self {
            generation: workload.generation().unwrap_or(0),
            observed: status("observedGeneration"),
            paused: workload.0.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or(false),
            stuck: stuck(workload),
            ..Self::default()
        };
        if workload.kind() == "DaemonSet" {
            let wanted = status("desiredNumberScheduled");
            return Self {
                wanted,
                total: status("currentNumberScheduled"),
                updated: status("updatedNumberScheduled"),
                unavailable: status("numberUnavailable").max(wanted - status("numberAvailable")),
                ..common
            };
        }
        let wanted = workload.int("/spec/replicas").unwrap_or(1);
        Self {
            wanted,
            total: status("replicas"),
            updated: status("updatedReplicas"),
            unavailable: status("unavailableReplicas").max(wanted - status("availableReplicas")),
            ..common
        }
    }

    /// Where it stands.
    pub fn stage(&self) -> Stage {
        let Self { generation, observed, wanted, total, updated, unavailable, .. } = self;
        if self.paused {
            Stage::Paused
        } else if observed < generation {
            Stage::Rolling(format!("generation {generation} is not observed yet"))
        } else if updated < wanted {
            Stage::Rolling(format!("{updated} of {wanted} updated"))
        } else if total > updated {
            Stage::Rolling(format!("{} old still there", total - updated))
        } else if *unavailable > 0 {
            Stage::Rolling(format!("{unavailable} of {wanted} unavailable"))
        } else if *wanted == 0 {
            Stage::ScaledToZero
        } else {
            Stage::Done
        }
    }
}

fn stuck(workload: &Object) -> Option<String> {
    let text = |condition: &Value, key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let conditions = workload.items("/status/conditions").iter();
    conditions
        .filter(|condition| text(condition, "type") == "Progressing" && text(condition, "status") == "False")
        .map(|condition| text(condition, "message"))
        .next()
}
