//! Unknown fields are dropped without a word.

use serde_json::Value;

use super::{embedded, is_object_metadata, preserves};

/// Drops the fields of a whole object that its schema does not know, and answers their paths; drops nulls that it
/// neither allows nor has a default for. Without a schema nothing but metadata stays.
pub(in crate::embedded) fn prune(object: &mut Value, schema: Option<&Value>) -> Vec<String> {
    let schema = schema.unwrap_or(&Value::Null);
    let mut dropped = Vec::new();
    fields(object, schema, "", &mut dropped);
    nulls(object, schema);
    dropped
}

fn fields(value: &mut Value, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    let keep = preserves(schema);
    let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.retain(|key, child| {
            if (path.is_empty() || embedded(schema)) && is_object_metadata(key) {
                return true;
            }
            if let Some(property) = schema["properties"].get(key.as_str()) {
                fields(child, property, &at(key), dropped);
                return true;
            }
            match &schema["additionalProperties"] {
                Value::Bool(true) => true,
                additional @ Value::Object(_) => {
                    fields(child, additional, &at(key), dropped);
                    true
                }
                _ => {
                    if !keep {
                        dropped.push(at(key));
                    }
                    keep
                }
            }
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if keep && schema["items"].is_null() {
                    continue;
                }
                fields(item, &schema["items"], &format!("{path}[{index}]"), dropped);
            }
        }
        _ => {}
    }
}

fn nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => map.retain(|key, child| {
            let known = schema["properties"].get(key.as_str());
            let Some(child_schema) = known.or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()))
            else {
                return true;
            };
            let null = child.is_null() && child_schema["nullable"] != true && child_schema.get("default").is_none();
            if null && known.is_some() {
                return false;
            }
            nulls(child, child_schema);
            true
        }),
        Value::Array(items) => {
            for item in items {
                nulls(item, &schema["items"]);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_schema_does_not_know_goes() {
        let whole = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": {"a": {"b": 1}, "c": [{"d": 1}], "n": null}});
        for (schema, spec) in [
            (json!({"properties": {"spec": {}}}), json!({})),
            (json!({"properties": {"spec": {"properties": {"a": {}}}}}), json!({"a": {}})),
            (json!({"properties": {"spec": {"additionalProperties": true}}}), whole["spec"].clone()),
            (json!({"properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true}}}), whole["spec"].clone()),
            (
                json!({"properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}}}}),
                json!({"a": {}, "c": [{"d": 1}], "n": null}),
            ),
            (json!({"properties": {"spec": {"properties": {"n": {"type": "string"}}}}}), json!({})),
            (json!({"properties": {"spec": {"properties": {"n": {"nullable": true}}}}}), json!({"n": null})),
            (json!({"properties": {"spec": {"properties": {"n": {"default": 1}}}}}), json!({"n": null})),
            (
                json!({"properties": {"spec": {"properties": {"c": {"items": {"properties": {"d": {}}}}}}}}),
                json!({"c": [{"d": 1}]}),
            ),
        ] {
            let mut object = whole.clone();
            let dropped = prune(&mut object, Some(&schema));
            assert_eq!(dropped.is_empty(), object["spec"] == whole["spec"], "{dropped:?}");
            assert_eq!(object["spec"], spec, "{schema}");
            assert_eq!(object["metadata"], whole["metadata"]);
        }
        let mut object = whole;
        assert_eq!(prune(&mut object, None), ["spec"]);
        assert_eq!(object, json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}}));
    }
}
