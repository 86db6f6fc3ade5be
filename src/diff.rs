//! What differs between two objects, as field paths. Pure.
//!
//! Lists of named items are compared by name, numbers by value, null as absent. What must not be
//! shown (Secret data, environment values, copies of whole objects in annotations) becomes a
//! numbered placeholder: the same number is the same value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::plan::FieldChange;

/// Keys by which items of a list are told apart, in the order in which they are tried.
const ITEM_KEYS: [&str; 6] = ["name", "type", "key", "containerPort", "port", "mountPath"];
/// A value longer than this is cut; its length is shown instead.
const SHOWN: usize = 200;

/// Numbers for what must not be shown.
#[derive(Clone, Debug, Default)]
pub struct Masks(BTreeMap<String, usize>);

impl Masks {
    fn placeholder(&mut self, value: &Value) -> String {
        let next = self.0.len() + 1;
        format!("<masked {}>", self.0.entry(value.to_string()).or_insert(next))
    }
}

/// Every field that differs, in the order of the fields' names.
pub fn changes(before: &Value, after: &Value, masks: &mut Masks) -> Vec<FieldChange> {
    let is_secret = [before, after].iter().any(|object| object.get("kind").and_then(Value::as_str) == Some("Secret"));
    let mut walk = Walk { masks, is_secret, found: Vec::new() };
    walk.compare(&mut Vec::new(), before, after);
    walk.found
}

/// One step of a path: a field, or an item of a list.
#[derive(Clone)]
enum Step {
    Field(String),
    Item(String),
}

struct Walk<'a> {
    masks: &'a mut Masks,
    is_secret: bool,
    found: Vec<FieldChange>,
}

impl Walk<'_> {
    fn compare(&mut self, path: &mut Vec<Step>, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(one), Value::Object(other)) if !self.is_masked(path) => {
                let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
                for name in names {
                    let (one, other) = (one.get(name).unwrap_or(&Value::Null), other.get(name).unwrap_or(&Value::Null));
                    self.below(path, Step::Field(name.clone()), one, other);
                }
            }
            (Value::Array(one), Value::Array(other)) if !self.is_masked(path) => self.compare_lists(path, one, other),
            (one, other) if is_same(one, other) => {}
            (one, other) => self.push(path, one, other),
        }
    }

    fn below(&mut self, path: &mut Vec<Step>, step: Step, before: &Value, after: &Value) {
        path.push(step);
        self.compare(path, before, after);
        path.pop();
    }

    fn compare_lists(&mut self, path: &mut Vec<Step>, one: &[Value], other: &[Value]) {
        if let Some(key) = ITEM_KEYS.iter().find(|key| names_each(key, one) && names_each(key, other)) {
            let named = |items: &[Value]| -> BTreeMap<String, Value> {
                items.iter().map(|item| (plain(&item[*key]), item.clone())).collect()
            };
            let (one, other) = (named(one), named(other));
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let (one, other) = (one.get(name).unwrap_or(&Value::Null), other.get(name).unwrap_or(&Value::Null));
                self.below(path, Step::Item(name.clone()), one, other);
            }
        } else if one.len() == other.len() && one.iter().chain(other).all(Value::is_object) {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                self.below(path, Step::Item(index.to_string()), one, other);
            }
        } else {
            let (one, other) = (Value::from(one.to_vec()), Value::from(other.to_vec()));
            if !is_same(&one, &other) {
                self.push(path, &one, &other);
            }
        }
    }

    fn push(&mut self, path: &[Step], before: &Value, after: &Value) {
        let (mut one, mut other) = (self.shown(path, before), self.shown(path, after));
        if one == other {
            // "1" and 1: only their JSON tells them apart.
            (one, other) = (Some(before.to_string()), Some(after.to_string()));
        }
        self.found.push(FieldChange { path: text(path), before: one, after: other });
    }

    /// A value as it may be shown; none when it is absent.
    fn shown(&mut self, path: &[Step], value: &Value) -> Option<String> {
        if value.is_null() {
            return None;
        }
        let text = plain(&self.masked(&mut path.to_vec(), value));
        if text.len() <= SHOWN {
            return Some(text);
        }
        let cut: String = text.chars().take(SHOWN).collect();
        Some(format!("{cut}… ({} bytes)", text.len()))
    }

    /// A copy with placeholders for what must not be shown.
    fn masked(&mut self, path: &mut Vec<Step>, value: &Value) -> Value {
        if self.is_masked(path) {
            return self.masks.placeholder(value).into();
        }
        let mut below = |step: Step, value: &Value| {
            path.push(step);
            let masked = self.masked(path, value);
            path.pop();
            masked
        };
        match value {
            Value::Object(fields) => {
                let masked = fields.iter().map(|(name, value)| (name.clone(), below(Step::Field(name.clone()), value)));
                Value::Object(masked.collect())
            }
            Value::Array(items) => {
                let masked = items.iter().enumerate().map(|(index, item)| below(Step::Item(index.to_string()), item));
                Value::Array(masked.collect())
            }
            scalar => scalar.clone(),
        }
    }

    /// Whether what is at a path must not be shown.
    fn is_masked(&self, path: &[Step]) -> bool {
        match path {
            [Step::Field(top), Step::Field(_)] if self.is_secret && (top == "data" || top == "stringData") => true,
            [.., Step::Field(env), Step::Item(_), Step::Field(value)] => env == "env" && value == "value",
            [.., Step::Field(annotations), Step::Field(name)] => {
                let copies = name == "kubectl.kubernetes.io/last-applied-configuration" || name.ends_with("-state");
                annotations == "annotations" && copies
            }
            _ => false,
        }
    }
}

/// Whether every item of a list has this key, each another value.
fn names_each(key: &str, items: &[Value]) -> bool {
    let values: BTreeSet<String> = items
        .iter()
        .filter_map(|item| item.get(key))
        .filter(|value| value.is_string() || value.is_number())
        .map(plain)
        .collect();
    values.len() == items.len()
}

/// Equal as the API server sees it: 1 is 1.0, and null is absent.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            names
                .into_iter()
                .all(|name| is_same(one.get(name).unwrap_or(&Value::Null), other.get(name).unwrap_or(&Value::Null)))
        }
        (one, other) => one == other,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Field(name) | Step::Item(name) => text = format!("{text}[{name}]"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One line a change: `path: before -> after`.
    fn check(before: &Value, after: &Value, wanted: &[&str]) {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".into());
        let found: Vec<String> = changes(before, after, &mut Masks::default())
            .iter()
            .map(|change| format!("{}: {} -> {}", change.path, side(&change.before), side(&change.after)))
            .collect();
        assert_eq!(found, wanted, "{before} {after}");
    }

    #[test]
    fn fields_are_named_by_their_path() {
        check(&json!({"a": 1}), &json!({"a": 1}), &[]);
        check(&json!({"a": {"b": "x"}}), &json!({"a": {"b": "y"}}), &["a.b: x -> y"]);
        check(&json!({}), &json!({"a": {"b": true}}), &["a: - -> {\"b\":true}"]);
        check(&json!({"a": [1, 2]}), &json!({"a": [1]}), &["a: [1,2] -> [1]"]);
        check(
            &json!({"metadata": {"annotations": {"a.b/c": "x"}}}),
            &json!({"metadata": {"annotations": {}}}),
            &["metadata.annotations[a.b/c]: x -> -"],
        );
        check(&json!("1"), &json!(1), &[": \"1\" -> 1"]);
    }

    #[test]
    fn lists_are_compared_by_name_where_items_have_one() {
        let before = json!({"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]});
        let after = json!({"containers": [{"name": "b", "image": "y:2"}, {"name": "a", "image": "x:1"}]});
        check(&before, &after, &["containers[b].image: y:1 -> y:2"]);
        let gone = json!({"containers": [{"name": "a", "image": "x:1"}]});
        check(&before, &gone, &["containers[b]: {\"image\":\"y:1\",\"name\":\"b\"} -> -"]);
        let twins = json!({"l": [{"name": "a", "x": 1}, {"name": "a", "x": 2}]});
        check(&twins, &json!({"l": [{"name": "a", "x": 1}, {"name": "a", "x": 3}]}), &["l[1].x: 2 -> 3"]);
    }

    #[test]
    fn what_the_server_takes_as_equal_is_equal() {
        check(&json!({"a": 1000}), &json!({"a": 1e3}), &[]);
        check(&json!({"a": null}), &json!({}), &[]);
        check(&json!({"l": [[1, {"a": null}]]}), &json!({"l": [[1.0, {}]]}), &[]);
    }

    #[test]
    fn what_must_not_be_shown_is_numbered() {
        let secret = |data: Value| json!({"kind": "Secret", "data": data, "type": "Opaque"});
        check(
            &secret(json!({"a": "canary", "b": "canary2"})),
            &secret(json!({"a": "canary2", "c": "canary"})),
            &["data.a: <masked 1> -> <masked 2>", "data.b: <masked 2> -> -", "data.c: - -> <masked 1>"],
        );
        // A whole Secret that comes, and a whole container.
        check(
            &Value::Null,
            &secret(json!({"a": "canary"})),
            &[": - -> {\"data\":{\"a\":\"<masked 1>\"},\"kind\":\"Secret\",\"type\":\"Opaque\"}"],
        );
        let pod = |env: Value| json!({"containers": [{"name": "a", "env": env}]});
        check(
            &pod(json!([{"name": "T", "value": "canary"}])),
            &pod(json!([{"name": "T", "value": "x"}])),
            &["containers[a].env[T].value: <masked 1> -> <masked 2>"],
        );
        check(
            &json!({}),
            &pod(json!([{"name": "T", "value": "canary"}])),
            &["containers: - -> [{\"env\":[{\"name\":\"T\",\"value\":\"<masked 1>\"}],\"name\":\"a\"}]"],
        );
        let annotated = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
        for name in ["kubectl.kubernetes.io/last-applied-configuration", "api.agents.x-k8s.io/v1alpha1-sandbox-state"] {
            let wanted = format!("metadata.annotations[{name}]: <masked 1> -> <masked 2>");
            check(&annotated(name, "canary"), &annotated(name, "other"), &[&wanted]);
        }
    }

    #[test]
    fn long_values_are_cut() {
        let found = changes(&json!({"a": "x".repeat(500)}), &json!({}), &mut Masks::default());
        assert_eq!(found[0].before, Some(format!("{}… (500 bytes)", "x".repeat(200))));
    }
}
