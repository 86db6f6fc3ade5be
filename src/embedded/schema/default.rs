//! Missing fields get the defaults of the schema.

use serde_json::Value;

/// Fills in the defaults of a whole object.
pub(in crate::embedded) fn default(object: &mut Value, schema: Option<&Value>) {
    if let Some(schema) = schema {
        fill(object, schema);
    }
}

fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                let missing = map.get(key).is_none_or(|child| child.is_null() && property["nullable"] != true);
                if let Some(default) = property.get("default").filter(|_| missing) {
                    map.insert(key.clone(), default.clone());
                }
                if let Some(child) = map.get_mut(key) {
                    fill(child, property);
                }
            }
            let additional = &schema["additionalProperties"];
            if additional.is_object() {
                let known = |key: &str| schema["properties"].get(key).is_some();
                map.iter_mut().filter(|(key, _)| !known(key)).for_each(|(_, child)| fill(child, additional));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, &schema["items"])),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_missing_is_filled_in() {
        let schema = json!({"properties": {"spec": {"properties": {
            "mode": {"default": "Running"},
            "size": {"nullable": true, "default": 3},
            "note": {"type": "string"},
            "list": {"items": {"properties": {"protocol": {"default": "TCP"}}}},
        }}}});
        for (spec, filled) in [
            (json!({}), json!({"mode": "Running", "size": 3})),
            (json!({"mode": "Off", "size": null}), json!({"mode": "Off", "size": null})),
            (json!({"mode": null, "size": 1, "note": null}), json!({"mode": "Running", "size": 1, "note": null})),
            (
                json!({"mode": "", "size": 1, "list": [{}, {"protocol": "UDP"}]}),
                json!({"mode": "", "size": 1, "list": [{"protocol": "TCP"}, {"protocol": "UDP"}]}),
            ),
        ] {
            let mut object = json!({"spec": spec});
            default(&mut object, Some(&schema));
            assert_eq!(object["spec"], filled, "{spec}");
        }
        let mut object = json!({"metadata": {}});
        default(&mut object, Some(&schema));
        assert_eq!(object, json!({"metadata": {}}), "an absent object is not made");
    }
}
