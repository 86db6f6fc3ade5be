//! Values against the schema, with ratcheting: what an update does not change is not judged again.

use regex::Regex;
use serde_json::Value;

use super::super::json::items;
use super::super::status::Cause;
use super::preserves;

/// The stored object that an update starts from; none for a create.
type Ratchet<'a> = Option<&'a Value>;

/// What is wrong with a field of an object, `spec` for instance, or with the object itself when `field` is empty.
pub(in crate::embedded) fn validate(
    schema: &Value,
    object: &Value,
    old: Ratchet<'_>,
    only: Option<&str>,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(field) = only {
        if let (Some(schema), Some(value)) = (schema["properties"].get(field), object.get(field)) {
            check(schema, value, old.and_then(|old| old.get(field)), field, &mut causes);
        }
        return causes;
    }
    check(schema, object, old, "", &mut causes);
    causes
}

fn check(schema: &Value, value: &Value, old: Ratchet<'_>, path: &str, causes: &mut Vec<Cause>) {
    if old == Some(value) || (value.is_null() && schema["nullable"] == true) {
        return;
    }
    if let Some(expected) = wrong_type(schema, value) {
        let found = type_of(value);
        let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
        causes.push(Cause::wrong_type(path, found, &detail));
        return;
    }
    let allowed = items(schema, "/enum");
    if !allowed.is_empty() && !allowed.contains(value) {
        causes.push(Cause::unsupported(path, value, allowed));
    }
    match value {
        Value::Object(map) => {
            for name in items(schema, "/required").iter().filter_map(Value::as_str) {
                if !map.contains_key(name) {
                    causes.push(Cause::required(joined(path, name), ""));
                }
            }
            for (key, child) in map {
                let known = schema["properties"].get(key);
                let additional = schema.get("additionalProperties").filter(|additional| additional.is_object());
                if path.is_empty() && super::is_object_metadata(key) {
                    continue;
                }
                if let Some(schema) = known.or(additional) {
                    check(schema, child, old.and_then(|old| old.get(key)), &joined(path, key), causes);
                }
            }
        }
        Value::Array(elements) => list(schema, elements, old, path, causes),
        Value::String(text) => string(schema, text, path, causes),
        Value::Number(number) => bounds(schema, number.as_f64().unwrap_or_default(), value, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
}

fn list(schema: &Value, elements: &[Value], old: Ratchet<'_>, path: &str, causes: &mut Vec<Cause>) {
    let count = elements.len() as u64;
    if let Some(least) = schema["minItems"].as_u64().filter(|least| count < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        causes.push(Cause::invalid(path, &count.into(), &detail));
    }
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| count > *most) {
        let body = format!("Too many: {count}: must have at most {most} items");
        causes.push(Cause { reason: "FieldValueTooMany", field: path.into(), body });
    }
    let keys = |element: &Value| -> Value {
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => element.clone(),
            Some("map") => items(schema, "/x-kubernetes-list-map-keys")
                .iter()
                .filter_map(|key| Some((key.as_str()?.to_owned(), element.get(key.as_str()?)?.clone())))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            _ => Value::Null,
        }
    };
    let old = old.and_then(Value::as_array);
    for (index, element) in elements.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let key = keys(element);
        if !key.is_null() && elements[..index].iter().any(|earlier| keys(earlier) == key) {
            causes.push(Cause::duplicate(&*path, &key));
        }
        let before = if key.is_object() {
            old.and_then(|old| old.iter().find(|candidate| keys(candidate) == key))
        } else {
            None
        };
        check(&schema["items"], element, before, &path, causes);
    }
}

fn string(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    let value = Value::from(text);
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        causes.push(Cause::invalid(path, &value, &format!("{path} in body should be at least {least} chars long")));
    }
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        causes.push(Cause::too_long(path, most));
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        // A pattern that this engine cannot read judges nothing.
        if Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text)) {
            causes.push(Cause::invalid(path, &value, &format!("{path} in body should match '{pattern}'")));
        }
    }
    if schema["format"] == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
        let detail = format!("{path} in body must be of type date-time: {value}");
        causes.push(Cause::invalid(path, &value, &detail));
    }
}

fn bounds(schema: &Value, number: f64, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (bound, exclusive, broken, words) in [
        ("minimum", "exclusiveMinimum", number < limit(schema, "minimum"), "greater than"),
        ("maximum", "exclusiveMaximum", number > limit(schema, "maximum"), "less than"),
    ] {
        let Some(limit) = schema[bound].as_f64() else { continue };
        let strict = schema[exclusive] == true;
        // Equal is wrong only at an exclusive bound; the server compares the same doubles.
        if broken || (strict && (number - limit).abs() < f64::EPSILON) {
            let or_equal = if strict { "" } else { " or equal to" };
            let detail = format!("{path} in body should be {words}{or_equal} {}", schema[bound]);
            causes.push(Cause::invalid(path, value, &detail));
        }
    }
}

fn limit(schema: &Value, bound: &str) -> f64 {
    schema[bound].as_f64().unwrap_or(f64::NAN)
}

/// The type that was expected, when the value has another.
fn wrong_type<'a>(schema: &'a Value, value: &Value) -> Option<&'a str> {
    if schema["x-kubernetes-int-or-string"] == true {
        return (!value.is_string() && !value.is_i64() && !value.is_u64()).then_some("integer,string");
    }
    let expected = schema["type"].as_str()?;
    if value.is_null() && preserves(schema) {
        return None;
    }
    let fits = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    (!fits).then_some(expected)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
        validate(schema, new, old, None).iter().map(Cause::text).collect()
    }

    #[test]
    fn a_value_is_judged_by_its_schema() {
        let schema = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
        for (spec, value, cause) in [
            (
                json!({"type": "string"}),
                json!(1),
                r#"spec: Invalid value: "integer": spec in body must be of type string: "integer""#,
            ),
            (
                json!({"type": "integer"}),
                json!(1.5),
                r#"spec: Invalid value: "number": spec in body must be of type integer: "number""#,
            ),
            (
                json!({"type": "integer", "maximum": 5}),
                json!(9),
                "spec: Invalid value: 9: spec in body should be less than or equal to 5",
            ),
            (
                json!({"type": "integer", "minimum": 0}),
                json!(-1),
                "spec: Invalid value: -1: spec in body should be greater than or equal to 0",
            ),
            (json!({"enum": ["a", "b"]}), json!("c"), r#"spec: Unsupported value: "c": supported values: "a", "b""#),
            (json!({"maxLength": 2}), json!("abc"), "spec: Too long: may not be more than 2 bytes"),
            (json!({"pattern": "^a+$"}), json!("b"), r#"spec: Invalid value: "b": spec in body should match '^a+$'"#),
            (json!({"type": "object", "required": ["a"]}), json!({}), "spec.a: Required value"),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {}}),
                json!([{"n": 1}, {"n": 1}]),
                r#"spec[1]: Duplicate value: {"n":1}"#,
            ),
        ] {
            let schema = schema(spec);
            assert_eq!(wrong(&schema, &json!({"spec": value}), None), [cause], "{schema}");
        }
    }

    #[test]
    fn what_an_update_leaves_alone_is_not_judged_again() {
        let schema = json!({"properties": {"spec": {
            "type": "object", "required": ["new"], "properties": {"size": {"type": "integer", "maximum": 5}},
        }}});
        let old = json!({"metadata": {}, "spec": {"size": 9}});
        let stamped = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"size": 9}});
        assert!(wrong(&schema, &stamped, Some(&old)).is_empty());
        let changed = json!({"spec": {"size": 9, "note": "x"}});
        assert_eq!(wrong(&schema, &changed, Some(&old)), ["spec.new: Required value"]);
    }
}
