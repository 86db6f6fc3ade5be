//! Rules for the metadata of every object.

use serde_json::Value;

use super::convert::ANNOTATIONS;
use super::json::{items, metadata, text};
use super::status::Cause;

const FIELDS: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Drops what is no metadata, and what is empty where the server writes nothing.
pub(super) fn coerce(object: &mut Value) {
    metadata(object).retain(|key, value| {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty() && key != "managedFields",
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        FIELDS.contains(&key.as_str()) && !empty
    });
}

/// What the annotations hold in all.
pub(super) fn annotations_size(object: &Value) -> u64 {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    annotations.into_iter().flatten().map(size).sum::<usize>() as u64
}

/// What is wrong with the metadata of an object that is written.
pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if text(object, "/metadata/name").is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    }
    if annotations_size(object) > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    for reference in items(object, "/metadata/ownerReferences") {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(reference, &format!("/{key}")).is_empty() {
                let detail = if key == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{key}"), &"".into(), detail));
            }
        }
    }
    let Some(old) = old else { return causes };
    for key in ["name", "namespace", "uid"] {
        let pointer = format!("/metadata/{key}");
        if text(object, &pointer) != text(old, &pointer) {
            let value = text(object, &pointer).into();
            causes.push(Cause::invalid(format!("metadata.{key}"), &value, "field is immutable"));
        }
    }
    if text(old, "/metadata/deletionTimestamp").is_empty() {
        return causes;
    }
    let before = items(old, "/metadata/finalizers");
    let added: Vec<_> = items(object, "/metadata/finalizers").iter().filter(|it| !before.contains(it)).collect();
    if !added.is_empty() {
        let names: Vec<_> = added.iter().map(ToString::to_string).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            names.join(", ")
        );
        causes.push(Cause::forbidden("metadata.finalizers", &detail));
    }
    causes
}
