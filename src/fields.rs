//! Field ownership: what a managedFields entry owns of an object. Pure.
//!
//! `FieldsV1` is a tree of `f:name`, `k:{keys}`, `v:value` and `i:index`; an empty set is a leaf,
//! which owns the whole value, and `.` owns the parent itself.

use serde_json::{Map, Value, json};

use crate::object::Object;

/// What `fields` owns of `live`: the object that its manager would have applied.
pub fn extract(fields: &Value, live: &Value) -> Value {
    let Some(set) = fields.as_object().filter(|set| set.keys().any(|key| key != ".")) else {
        return live.clone();
    };
    match live {
        Value::Object(live) => {
            let owned = set.iter().filter_map(|(key, below)| {
                let name = key.strip_prefix("f:")?;
                Some((name.to_owned(), extract(below, live.get(name)?)))
            });
            Value::Object(owned.collect())
        }
        Value::Array(live) => {
            let owned = live.iter().enumerate().filter_map(|(index, item)| {
                let (_, below) = set.iter().find(|(key, _)| selects(key, index, item))?;
                let mut owned = extract(below, item);
                add_keys(&mut owned, set, item);
                Some(owned)
            });
            Value::Array(owned.collect())
        }
        scalar => scalar.clone(),
    }
}

fn selects(key: &str, index: usize, item: &Value) -> bool {
    if let Some(keys) = key.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Map<String, Value>>(keys).ok()) {
        return keys.iter().all(|(name, value)| item.get(name) == Some(value));
    }
    if let Some(value) = key.strip_prefix("v:").and_then(|value| serde_json::from_str::<Value>(value).ok()) {
        return value == *item;
    }
    key.strip_prefix("i:").and_then(|wanted| wanted.parse().ok()) == Some(index)
}

/// An item of a keyed list is applied with its keys, owned or not.
fn add_keys(owned: &mut Value, set: &Map<String, Value>, item: &Value) {
    let keys = set.keys().filter_map(|key| serde_json::from_str::<Map<String, Value>>(key.strip_prefix("k:")?).ok());
    let Some(owned) = owned.as_object_mut() else { return };
    for (name, value) in keys.filter(|keys| keys.iter().all(|(name, value)| item.get(name) == Some(value))).flatten() {
        owned.entry(name).or_insert(value);
    }
}

/// The fields that a manager owns by server-side apply of the main resource; none when it never applied.
pub fn applied_by<'a>(object: &'a Object, manager: &str) -> Option<&'a Value> {
    object.managed_fields().iter().find(|entry| is_apply_of(entry, manager)).and_then(|entry| entry.get("fieldsV1"))
}

/// Whether an entry is a manager's server-side apply of the main resource.
pub fn is_apply_of(entry: &Value, manager: &str) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    text("manager") == manager && text("operation") == "Apply" && text("subresource").is_empty()
}

/// Takes `spec.<field>` out of an entry, and the parents that this leaves empty: an empty set would
/// still own its field. True when there was something to take.
pub fn disown(entry: &mut Value, field: &str) -> bool {
    let Some(fields) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else { return false };
    let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut) else { return false };
    let taken = spec.remove(&format!("f:{field}")).is_some();
    if taken && spec.is_empty() {
        fields.remove("f:spec");
    }
    taken
}

/// Paths of the leaves below a field set: `spec.conversion.webhook.clientConfig.caBundle`.
pub fn leaves(fields: &Value, at: &str) -> Vec<String> {
    let below = fields.as_object().into_iter().flatten().filter(|(key, _)| *key != ".");
    let paths: Vec<String> = below
        .flat_map(|(key, below)| leaves(below, &format!("{at}.{}", key.strip_prefix("f:").unwrap_or(key))))
        .collect();
    if paths.is_empty() { vec![at.to_owned()] } else { paths }
}

/// An entry without fields owns nothing.
pub fn owns_nothing(entry: &Value) -> bool {
    entry.get("fieldsV1").is_none_or(|fields| *fields == json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_fields_items_and_whole_values() {
        let live = json!({"a": 1, "b": {"c": 2, "d": 3}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]});
        let fields = json!({"f:b": {".": {}, "f:c": {}}, "f:list": {"k:{\"name\":\"y\"}": {"f:v": {}}}});
        assert_eq!(extract(&fields, &live), json!({"b": {"c": 2}, "list": [{"name": "y", "v": 2}]}));
        assert_eq!(extract(&json!({"f:b": {}}), &live), json!({"b": {"c": 2, "d": 3}}));
    }

    #[test]
    fn disowning_leaves_no_empty_parent() {
        let mut entry = json!({"fieldsV1": {"f:spec": {"f:conversion": {"f:webhook": {}}}}});
        assert!(disown(&mut entry, "conversion"));
        assert!(owns_nothing(&entry));
        assert!(!disown(&mut entry, "conversion"));
    }

    #[test]
    fn names_the_leaves() {
        let fields = json!({"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}});
        assert_eq!(leaves(&fields, "spec.conversion"), ["spec.conversion.webhook.clientConfig.caBundle"]);
    }
}
