//! An Argo CD Application as far as a sync is concerned. Pure.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    object::{Object, Resource},
    plan::Finding,
};

/// What matters of an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// `namespace/name`.
    pub name: String,
    /// `Synced`, `OutOfSync`, `Unknown`.
    pub sync: String,
    /// `Healthy`, `Progressing`, `Degraded`, …
    pub health: String,
    /// Commit that was compared.
    pub revision: String,
    /// Phase of the last operation: `Running`, `Succeeded`, `Failed`, `Error`; empty without one.
    pub phase: String,
    /// Argo CD's own words about it.
    pub message: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Whether syncs are automatic, and then whether they prune and heal.
    pub automated: Option<(bool, bool)>,
    /// `ServerSideApply=true`, …
    pub options: Vec<String>,
}

/// Where Applications are served.
pub fn applications() -> Resource {
    Resource::new("argoproj.io", "v1alpha1", "applications", "Application", true)
}

impl Application {
    /// Reads an Application; what is absent reads as empty.
    pub(super) fn of(object: &Object) -> Self {
        let text = |pointer: &str| object.str(pointer).unwrap_or_default().to_owned();
        let flag = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
        let automated = object.0.pointer("/spec/syncPolicy/automated").filter(|automated| !automated.is_null());
        // `enabled: false` switches it off without taking it away.
        let automated = automated.filter(|automated| automated.get("enabled").and_then(Value::as_bool).unwrap_or(true));
        Self {
            name: format!("{}/{}", object.namespace().unwrap_or_default(), object.name()),
            sync: text("/status/sync/status"),
            health: text("/status/health/status"),
            revision: text("/status/sync/revision"),
            phase: text("/status/operationState/phase"),
            message: text("/status/operationState/message"),
            started_at: object.str("/status/operationState/startedAt").and_then(|time| time.parse().ok()),
            automated: automated.map(|automated| (flag(automated, "prune"), flag(automated, "selfHeal"))),
            options: object
                .items("/spec/syncPolicy/syncOptions")
                .iter()
                .filter_map(|option| option.as_str().map(Into::into))
                .collect(),
        }
    }

    /// Whether the last operation failed.
    pub(super) fn failed(&self) -> bool {
        matches!(self.phase.as_str(), "Failed" | "Error")
    }

    /// The command that syncs it again; after a failed one Argo CD waits for a new commit.
    pub(super) fn sync_command(&self) -> String {
        format!("argocd app sync {}", self.name)
    }

    /// What it will do with a merge, in one line.
    pub(super) fn will_do(&self) -> String {
        let how = match self.automated {
            Some((prune, heal)) => format!(
                "syncs by itself, prune {}, selfHeal {}",
                if prune { "on" } else { "off" },
                if heal { "on" } else { "off" }
            ),
            None => format!("does not sync by itself: {}", self.sync_command()),
        };
        let options = if self.options.is_empty() { String::new() } else { format!(", {}", self.options.join(", ")) };
        format!("Argo CD {} {how}{options}; now {} and {}", self.name, self.sync, self.health)
    }

    /// What one line can say of a sync under way.
    pub(super) fn seen(&self) -> String {
        let revision: String = self.revision.chars().take(12).collect();
        format!("{}: {} {}, operation {}, revision {revision}", self.name, self.sync, self.health, self.phase)
    }

    /// Whether its syncs have an option, such as `Replace=true`.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }

    /// A failure left behind.
    pub(super) fn finding(&self) -> Option<Finding> {
        let text = || format!("the last operation of {} {}: {}", self.name, self.phase, self.message);
        let hint = || format!("Argo CD does not sync the same commit again by itself: {}", self.sync_command());
        self.failed().then(|| Finding::warning(text()).hint(hint()))
    }
}
