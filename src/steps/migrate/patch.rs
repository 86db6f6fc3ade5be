//! The patch that rewrites or proves one record. Pure.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::relabel::relabel;
use crate::{
    crd::Crd,
    object::{Object, api_version},
    runbook::{Migrate, Upgrade},
};

/// The patch for a record, from its newest metadata. An empty one rewrites a record stored at
/// `from`, and leaves any other untouched: that is the proof (design, fact 1).
///
/// `now`: the stamp's value, where one is due.
pub(super) fn patch(task: &Migrate, upgrade: &Upgrade, crd: &Crd, object: &Object, now: &str) -> Value {
    let (from, to) = (api_version(&crd.group, &upgrade.from), api_version(&crd.group, &upgrade.to));
    let mut metadata = Map::new();
    if let Some(entries) = relabel(object.managed_fields(), &from, &to, task.managed_fields) {
        metadata.insert("managedFields".into(), entries.into());
    }
    if let Some(stamp) = task.stamp.as_ref().filter(|_| crd.declares(&upgrade.from))
        && !is_stamped(object.annotation(stamp), crd)
    {
        metadata.insert("annotations".into(), json!({stamp: now}));
    }
    json!({"metadata": metadata})
}

/// Whether a stamp is newer than the last change of the CRD's spec.
pub(super) fn is_stamped(stamp: Option<&str>, crd: &Crd) -> bool {
    let stamp: Option<Timestamp> = stamp.and_then(|stamp| stamp.parse().ok());
    stamp.is_some_and(|stamp| crd.spec_changed_at().is_none_or(|anchor| stamp > anchor))
}
