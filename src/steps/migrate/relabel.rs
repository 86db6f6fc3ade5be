//! managedFields that no longer name the version that goes. Pure.
//!
//! Server-side apply converts an object to the version of every entry; one that names a dropped
//! version fails it for ever (design, fact 4). Relabelled in the same patch as the rewrite, every
//! owner keeps its fields.

use serde_json::{Map, Value, json};

use crate::runbook::ManagedFields;

/// The entries as they should be; none when nothing names `from`.
///
/// `from` and `to` are full `apiVersion`s.
pub(super) fn relabel(entries: &[Value], from: &str, to: &str, mode: ManagedFields) -> Option<Vec<Value>> {
    let names = |entry: &Value| entry.get("apiVersion").and_then(Value::as_str) == Some(from);
    if mode == ManagedFields::Keep || !entries.iter().any(names) {
        return None;
    }
    let mut kept: Vec<Value> = Vec::new();
    for entry in entries {
        if !names(entry) {
            fold(&mut kept, entry.clone());
        } else if mode == ManagedFields::Relabel {
            let mut entry = entry.clone();
            entry["apiVersion"] = to.into();
            fold(&mut kept, entry);
        }
    }
    // An empty list would be ignored; one empty entry clears it.
    Some(if kept.is_empty() { vec![json!({})] } else { kept })
}

/// Adds an entry, or its fields to the one that is the same manager now: of two entries with one
/// identity the server keeps only the last.
fn fold(kept: &mut Vec<Value>, entry: Value) {
    let same = |a: &Value, b: &Value| {
        ["manager", "operation", "subresource", "apiVersion"].iter().all(|key| a.get(*key) == b.get(*key))
    };
    let Some(earlier) = kept.iter_mut().find(|earlier| same(earlier, &entry)) else {
        kept.push(entry);
        return;
    };
    if let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) {
        let mut union = earlier.get("fieldsV1").and_then(Value::as_object).cloned().unwrap_or_default();
        unite(&mut union, fields);
        earlier["fieldsV1"] = union.into();
    }
    // RFC 3339 in UTC sorts as text.
    if entry.get("time").and_then(Value::as_str) > earlier.get("time").and_then(Value::as_str) {
        earlier["time"] = entry["time"].clone();
    }
}

fn unite(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
            (Some(into), Some(from)) => unite(into, from),
            _ => {
                into.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "demo.test/v1alpha1";
    const NEW: &str = "demo.test/v1beta1";

    fn entry(manager: &str, operation: &str, version: &str, field: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
               "fieldsV1": {"f:spec": {field: {}}}})
    }

    #[test]
    fn every_owner_keeps_its_fields() {
        let entries = [entry("argocd", "Apply", OLD, "f:a"), entry("kubectl", "Update", NEW, "f:b")];
        let wanted = vec![entry("argocd", "Apply", NEW, "f:a"), entry("kubectl", "Update", NEW, "f:b")];
        assert_eq!(relabel(&entries, OLD, NEW, ManagedFields::Relabel), Some(wanted));
    }

    #[test]
    fn two_entries_of_one_owner_become_one() {
        let entries = [entry("argocd", "Apply", OLD, "f:a"), entry("argocd", "Apply", NEW, "f:b")];
        let mut wanted = entry("argocd", "Apply", NEW, "f:a");
        wanted["fieldsV1"]["f:spec"]["f:b"] = json!({});
        assert_eq!(relabel(&entries, OLD, NEW, ManagedFields::Relabel), Some(vec![wanted]));
    }

    #[test]
    fn dropping_the_last_entry_leaves_an_empty_one() {
        let entries = [entry("argocd", "Apply", OLD, "f:a")];
        assert_eq!(relabel(&entries, OLD, NEW, ManagedFields::Drop), Some(vec![json!({})]));
    }

    #[test]
    fn nothing_to_do_is_no_patch() {
        let new = [entry("argocd", "Apply", NEW, "f:a")];
        let old = [entry("argocd", "Apply", OLD, "f:a")];
        assert_eq!(relabel(&new, OLD, NEW, ManagedFields::Relabel), None);
        assert_eq!(relabel(&old, OLD, NEW, ManagedFields::Keep), None);
    }
}
