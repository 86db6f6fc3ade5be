//! What a rewrite may change in an object's spec: fields that only `to` has, at the default its
//! schema declares. Pure.
//!
//! A record stored at `from` reads without them (a conversion's result is not defaulted) and any
//! write sets them, `kubectl annotate` included: the real `SandboxTemplate` of agent-sandbox v0.5.6
//! gains `volumeClaimTemplatesPolicy` and a generation. Everything else that a rewrite changes is
//! the conversion's doing, and stops the run.

use serde_json::Value;

use crate::{crd::Crd, object::Object, plan::FieldChange};

/// The schema of a CRD's objects at a version; null where it has none.
pub(super) fn schema<'a>(crd: &'a Crd, version: &str) -> &'a Value {
    crd.object
        .items("/spec/versions")
        .iter()
        .find(|known| known.get("name").and_then(Value::as_str) == Some(version))
        .and_then(|known| known.pointer("/schema/openAPIV3Schema"))
        .unwrap_or(&Value::Null)
}

/// What a rewrite sets by default in an object, metadata and status aside.
///
/// # Errors
/// The paths of what else it changes.
pub(super) fn defaults_set(before: &Object, after: &Object, schema: &Value) -> Result<Vec<FieldChange>, Vec<String>> {
    let mut found = Found::default();
    for key in ["spec", "data"] {
        let (before, after) = (before.0.get(key), after.0.get(key));
        found.compare(before, after, &schema["properties"][key], key);
    }
    if found.other.is_empty() { Ok(found.defaults) } else { Err(found.other) }
}

#[derive(Default)]
struct Found {
    defaults: Vec<FieldChange>,
    other: Vec<String>,
}

impl Found {
    fn compare(&mut self, before: Option<&Value>, after: Option<&Value>, schema: &Value, path: &str) {
        match (before, after) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
                    let below = match &schema["properties"][key] {
                        Value::Null => &schema["additionalProperties"],
                        below => below,
                    };
                    self.compare(before.get(key), after.get(key), below, &format!("{path}.{key}"));
                }
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    self.compare(Some(before), Some(after), &schema["items"], &format!("{path}[{index}]"));
                }
            }
            (None, Some(after)) if is_default(after, schema) => {
                self.defaults.push(FieldChange::new(path, None, Some(&after.to_string())));
            }
            (before, after) if before != after => self.other.push(path.to_owned()),
            _ => {}
        }
    }
}

/// Whether a value is what its schema's defaults make of an absent field.
fn is_default(value: &Value, schema: &Value) -> bool {
    let Some(default) = schema.get("default") else { return false };
    match (value, default) {
        // Defaults below a defaulted object fill it further.
        (Value::Object(value), Value::Object(default)) => {
            default.iter().all(|(key, default)| value.get(key) == Some(default))
                && value
                    .iter()
                    .all(|(key, value)| default.contains_key(key) || is_default(value, &schema["properties"][key]))
        }
        (value, default) => value == default,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(before: Value, after: Value) -> Result<Vec<String>, Vec<String>> {
        let schema = json!({"properties": {"spec": {"properties": {
            "policy": {"default": "Off"},
            "nested": {"default": {}, "properties": {"deep": {"default": 1}}},
            "list": {"items": {"properties": {"kind": {"default": "A"}}}},
        }}}});
        let object = |spec| Object(json!({"spec": spec}));
        defaults_set(&object(before), &object(after), &schema)
            .map(|changes| changes.into_iter().map(|change| change.path).collect())
    }

    #[test]
    fn defaults_pass_and_nothing_else_does() {
        let ok = |paths: &[&str]| Ok(paths.iter().map(|path| (*path).to_owned()).collect());
        let stop = |paths: &[&str]| Err(paths.iter().map(|path| (*path).to_owned()).collect());
        let table = [
            (json!({}), json!({}), ok(&[])),
            (json!({}), json!({"policy": "Off"}), ok(&["spec.policy"])),
            (json!({}), json!({"nested": {"deep": 1}}), ok(&["spec.nested"])),
            (json!({"list": [{}]}), json!({"list": [{"kind": "A"}]}), ok(&["spec.list[0].kind"])),
            (json!({}), json!({"policy": "On"}), stop(&["spec.policy"])),
            (json!({"policy": "On"}), json!({"policy": "Off"}), stop(&["spec.policy"])),
            (json!({"size": 3}), json!({}), stop(&["spec.size"])),
            (json!({}), json!({"unknown": 1}), stop(&["spec.unknown"])),
            (json!({"list": [{}]}), json!({"list": []}), stop(&["spec.list"])),
        ];
        for (before, after, wanted) in table {
            assert_eq!(check(before.clone(), after.clone()), wanted, "{before} -> {after}");
        }
    }
}
