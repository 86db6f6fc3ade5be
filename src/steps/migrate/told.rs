//! What the plan says about a migration beyond how much is left: findings and changes. Pure.

use jiff::Timestamp;

use super::{Left, Seen, is_stamped};
use crate::{
    crd::Crd,
    object::api_version,
    plan::{Change, FieldChange, Finding, Operation},
    runbook::{ManagedFields, Migrate, Runbook},
    steps::{
        Survey, certificate,
        survey::{Record, Surveyed},
    },
};

/// Bytes that all annotations of an object may have together.
const ANNOTATION_LIMIT: usize = 262_144;
/// Bytes of an RFC 3339 time in UTC.
const STAMP_LENGTH: usize = 20;

/// One finding for all records that carry what a conversion left: the whole old object (design, fact 14).
pub(super) fn state_annotations(survey: &Survey, open: bool) -> Option<Finding> {
    let carrying: Vec<String> = survey
        .crds
        .iter()
        .map(|surveyed| {
            let records = surveyed.records.listed().iter();
            (records.filter(|record| !record.state_annotations.is_empty()).count(), &surveyed.name)
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {}", name.split('.').next().unwrap_or(name)))
        .collect();
    if carrying.is_empty() {
        return None;
    }
    let fate = if open { "the first rewrite keeps them for ever" } else { "they stay for ever" };
    let text = format!(
        "annotations of the conversion hold the whole old object, environment values included, and {fate}: {}",
        carrying.join(", ")
    );
    Some(Finding::warning(text).hint("a `strip` step after the merge removes them"))
}

pub(super) fn findings(task: &Migrate, surveyed: &Surveyed, runbook: &Runbook, now: Timestamp) -> Vec<Finding> {
    let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
    let mut findings = Vec::new();
    let Ok(Some(crd)) = &surveyed.crd else { return findings };
    let records = surveyed.records.listed();
    let expected = crd.stored_versions == [to.clone()]
        || (task.stamp.is_some() && records.iter().all(|record| is_stamped(task, record, crd)));
    if crd.declares(from) {
        findings.extend(certificate::finding(crd, now, expected));
    }
    if let Some(Err(error)) = &surveyed.reads_at_from {
        let service = crd.webhook.as_ref().map_or_else(String::new, |service| {
            format!(" (Service {}/{}, port {})", service.namespace, service.name, service.port)
        });
        let text = format!("the conversion of {}{service} does not work: {error}", crd.plural);
        findings.push(if expected {
            Finding::warning(text).hint(format!(
                "its records are expected to be {to} already; each is proved without a conversion, and one that is \
                 not stops the run before anything is pruned"
            ))
        } else {
            Finding::blocker(text).hint("put the webhook and the controller that answers it back, then plan again")
        });
    }
    if let Some(condition) = crd.condition("StorageMigrating") {
        let words = condition.get("message").and_then(serde_json::Value::as_str).unwrap_or_default();
        findings.push(Finding::warning(format!("{} is being migrated by another migrator: {words}", surveyed.name)));
    }
    for record in records.iter().filter(|record| record.deleting) {
        findings
            .push(Finding::note("is being deleted; its record is rewritten all the same").about(record.object.clone()));
    }
    if let Some(stamp) = &task.stamp {
        let room = ANNOTATION_LIMIT.saturating_sub(stamp.len() + STAMP_LENGTH);
        for record in records.iter().filter(|record| record.stamp.is_none() && record.annotation_bytes > room) {
            let text = format!("its annotations have {} bytes; the stamp would exceed 262144", record.annotation_bytes);
            findings
                .push(Finding::blocker(text).hint("leave out `stamp`, or shorten them").about(record.object.clone()));
        }
    }
    if task.managed_fields == ManagedFields::Keep && records.iter().any(|record| !record.entries.is_empty()) {
        findings.push(Finding::warning(format!(
            "managedFields of {} that name {from} are kept: no server-side apply of these objects works after the drop",
            crd.plural
        )));
    }
    findings
}

pub(super) fn changes(
    task: &Migrate,
    seen: &Seen,
    crd: &Crd,
    records: &[Record],
    left: &Left,
    runbook: &Runbook,
) -> Vec<Change> {
    let (old, new) = (api_version(&crd.group, &runbook.upgrade.from), api_version(&crd.group, &runbook.upgrade.to));
    let mut changes = Vec::new();
    for record in records {
        let mut fields = Vec::new();
        if left.relabel > 0 {
            for entry in &record.entries {
                let through = if entry.subresource.is_empty() { "" } else { " " };
                let path = format!(
                    "metadata.managedFields[{} {}{through}{}].apiVersion",
                    entry.manager, entry.operation, entry.subresource
                );
                let after = (task.managed_fields == ManagedFields::Relabel).then_some(new.as_str());
                fields.push(FieldChange::new(path, Some(&old), after));
            }
        }
        if let Some(stamp) = task.stamp.as_ref().filter(|_| !is_stamped(task, record, crd))
            && left.rewrite > 0
        {
            let path = format!("metadata.annotations[{stamp}]");
            fields.push(FieldChange::new(path, record.stamp.as_deref(), Some("<time of the rewrite>")));
        }
        if let Some((_, defaults)) = seen.defaulted.iter().find(|(object, _)| *object == record.object) {
            fields.extend(defaults.iter().cloned());
        }
        if !fields.is_empty() || left.rewrite > 0 {
            changes.push(Change { operation: Operation::Update, object: record.object.clone(), fields });
        }
    }
    if left.prune {
        let before = crd.stored_versions.join(", ");
        changes.push(Change {
            operation: Operation::Update,
            object: crd.object.reference(),
            fields: vec![FieldChange::new("status.storedVersions", Some(&before), Some(&runbook.upgrade.to))],
        });
    }
    changes
}
