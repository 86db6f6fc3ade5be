//! Rules for the metadata of every object.

use serde_json::Value;

use super::convert::ANNOTATIONS;
use super::json::{items, metadata, text};
use super::state::Release;
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

/// Drops what is no metadata, and names it in `unknown`; drops what is empty where the server writes nothing.
pub(super) fn coerce(object: &mut Value, unknown: &mut Vec<String>) {
    metadata(object).retain(|key, value| {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let known = FIELDS.contains(&key.as_str());
        if !known {
            unknown.push(format!("metadata.{key}"));
        }
        known && !empty
    });
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                         and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                         validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn is_subdomain(name: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 253
        && name.split('.').all(|part| {
            part.starts_with(alphanumeric)
                && part.ends_with(alphanumeric)
                && part.chars().all(|c| alphanumeric(c) || c == '-')
        })
}

/// What the annotations hold in all.
pub(super) fn annotations_size(object: &Value) -> u64 {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    annotations.into_iter().flatten().map(size).sum::<usize>() as u64
}

/// What is wrong with the metadata of an object that is written.
pub(super) fn check(release: &Release, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, "/metadata/name");
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if old.is_none() && !is_subdomain(name) && !text(object, "/apiVersion").starts_with("rbac.") {
        causes.push(Cause::invalid("metadata.name", &name.into(), SUBDOMAIN));
    }
    if annotations_size(object) > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    for (index, reference) in items(object, "/metadata/ownerReferences").iter().enumerate() {
        let numbered = release.minor >= Release::CHECKS_OWNERS_ONCE;
        let place = if numbered { format!("[{index}]") } else { String::new() };
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(reference, &format!("/{key}")).is_empty() {
                let detail = if key == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                let field = format!("metadata.ownerReferences{place}.{key}");
                causes.push(if numbered {
                    Cause::required(field, detail)
                } else {
                    Cause::invalid(field, &"".into(), detail)
                });
            }
        }
    }
    let Some(old) = old else { return causes };
    for key in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
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
