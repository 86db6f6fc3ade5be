//! Two objects side by side: merged, compared, or one of them as a set of fields.

use serde_json::{Map, Value};

use super::super::json::blank;
use super::FieldSet;
use super::set::written;
use super::types::{Shape, Type};

/// How one object differs from another.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// The difference outside some fields.
    pub(super) fn outside(&self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.outside(fields),
            modified: self.modified.outside(fields),
            removed: self.removed.outside(fields),
        }
    }
}

/// What changed from `old` to `new`.
pub(super) fn compare(of: Type<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    walk(of, Some(old), Some(new), &mut Vec::new(), &mut comparison);
    comparison
}

fn walk(of: Type<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<String>, into: &mut Comparison) {
    let shape = shape(of, old, new);
    if shape == Shape::Leaf || (blank(old) && blank(new)) {
        match (old, new) {
            (None, _) => into.added.insert(path),
            (_, None) => into.removed.insert(path),
            (Some(old), Some(new)) if old != new => into.modified.insert(path),
            _ => {}
        }
        return;
    }
    let mut descend = |element: String, of: Type<'_>, old: Option<&Value>, new: Option<&Value>| {
        path.push(element);
        walk(of, old, new, path, into);
        path.pop();
    };
    if shape == Shape::Map {
        let (old, new) = (map(old), map(new));
        for key in keys(old, new) {
            let (of, _) = of.field(key).unwrap_or((Type::Deduced, false));
            descend(format!("f:{key}"), of, old.and_then(|map| map.get(key)), new.and_then(|map| map.get(key)));
        }
    } else {
        let (old, new) = (elements(of, old), elements(of, new));
        for (element, value) in &old {
            descend(element.clone(), of.items(), Some(value), find(&new, element));
        }
        for (element, value) in new.iter().filter(|(element, _)| find(&old, element).is_none()) {
            descend(element.clone(), of.items(), None, Some(value));
        }
    }
    match (old, new) {
        (None, _) => into.added.insert(path),
        (_, None) => into.removed.insert(path),
        _ => {}
    }
}

/// The fields an object holds.
pub(super) fn fields(of: Type<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(of, value, &mut Vec::new(), &mut set);
    set
}

fn collect(of: Type<'_>, value: &Value, path: &mut Vec<String>, set: &mut FieldSet) {
    match (of.shape(value), value) {
        (Shape::Map, Value::Object(map)) => {
            for (key, child) in map {
                let (of, declared) = of.field(key).unwrap_or((Type::Deduced, false));
                path.push(format!("f:{key}"));
                collect(of, child, path, set);
                if !declared || child.is_null() || child.as_object().is_some_and(Map::is_empty) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Shape::List, Value::Array(items)) => {
            for item in items {
                path.push(of.list_element(item));
                collect(of.items(), item, path, set);
                set.insert(path);
                path.pop();
            }
        }
        (Shape::Leaf, _) => set.insert(path),
        _ => {}
    }
}

/// `new` laid over `old`: fields and keyed elements that only `old` has stay.
pub(super) fn merge(of: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Option<Value> {
    let shape = shape(of, old, new);
    if shape == Shape::Leaf || (blank(old) && blank(new)) {
        return new.or(old).cloned();
    }
    if shape == Shape::Map {
        let (old, new) = (map(old), map(new));
        let merged: Map<_, _> = keys(old, new)
            .into_iter()
            .filter_map(|key| {
                let (of, _) = of.field(key).unwrap_or((Type::Deduced, false));
                let merged = merge(of, old.and_then(|map| map.get(key)), new.and_then(|map| map.get(key)))?;
                Some((key.clone(), merged))
            })
            .collect();
        return (!merged.is_empty()).then_some(Value::Object(merged));
    }
    let (old, new) = (elements(of, old), elements(of, new));
    let merged: Vec<_> = order(&old, &new)
        .into_iter()
        .filter_map(|element| merge(of.items(), find(&old, element), find(&new, element)))
        .collect();
    (!merged.is_empty()).then_some(Value::Array(merged))
}

/// Elements in the order of `new`; those of `old` alone where the server's own walk over both lists comes by them:
/// after the last shared element that both lists agree on.
fn order<'a>(old: &'a [(String, &Value)], new: &'a [(String, &Value)]) -> Vec<&'a str> {
    let is_new = |element: &str| find(new, element).is_some();
    let mut shared = new.iter().map(|(element, _)| element.as_str()).filter(|element| find(old, element).is_some());
    let mut next = shared.next();
    let mut order: Vec<&str> = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < old.len() || right < new.len() {
        let (ours, theirs) = (old.get(left), new.get(right));
        if let (Some((ours, _)), Some((theirs, _))) = (ours, theirs) {
            if ours == theirs {
                order.push(theirs);
                (left, right, next) = (left + 1, right + 1, shared.next());
                continue;
            }
            if is_new(ours) && next.is_some_and(|next| next != ours) {
                left += 1;
                continue;
            }
        }
        if let Some((ours, _)) = ours {
            if !is_new(ours) {
                order.push(ours);
                left += 1;
                continue;
            }
            if order.contains(&ours.as_str()) {
                left += 1;
            }
        }
        if let Some((theirs, _)) = theirs {
            order.push(theirs);
            right += 1;
            if next == Some(theirs) {
                next = shared.next();
            }
        }
    }
    order
}

/// The object without the fields of a set.
pub(super) fn remove(of: Type<'_>, value: &Value, set: &FieldSet) -> Option<Value> {
    match (of.shape(value), value) {
        (Shape::Map, Value::Object(map)) => {
            let kept: Map<_, _> = map
                .iter()
                .filter_map(|(key, child)| {
                    let Some(below) = set.child(&format!("f:{key}")) else {
                        return Some((key.clone(), child.clone()));
                    };
                    if below.owns() {
                        return None;
                    }
                    let (of, _) = of.field(key).unwrap_or((Type::Deduced, false));
                    // As on the server, an emptied value that somebody else owns stays as a null.
                    Some((key.clone(), remove(of, child, below).unwrap_or(Value::Null)))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (Shape::List, Value::Array(items)) => {
            let kept: Vec<_> = items
                .iter()
                .filter_map(|item| match set.child(&of.list_element(item)) {
                    None => Some(item.clone()),
                    Some(below) if below.owns() => None,
                    Some(below) => remove(of.items(), item, below),
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        // A value owned whole that has paths below it in the set: the server removes all of it.
        _ => None,
    }
}

/// Whether a keyed list may name a key twice: live objects may, what is applied may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// What about an object does not fit its type, in the server's words.
pub(super) fn misfit(of: Type<'_>, value: &Value, duplicates: Duplicates) -> Option<String> {
    unfit(of, value, duplicates, "")
}

fn unfit(of: Type<'_>, value: &Value, duplicates: Duplicates, path: &str) -> Option<String> {
    if let Some(expected) = of.mismatch(value) {
        return Some(format!("{path}: {expected}"));
    }
    match (of.shape(value), value) {
        (Shape::Map, Value::Object(map)) => map.iter().find_map(|(key, child)| {
            let path = format!("{path}.{key}");
            match of.field(key) {
                None => Some(format!("{path}: field not declared in schema")),
                Some((of, _)) => unfit(of, child, duplicates, &path),
            }
        }),
        (Shape::List, Value::Array(_)) => {
            let elements = elements(of, Some(value));
            elements.iter().enumerate().find_map(|(index, (element, item))| {
                let written = written(element);
                if element == "k:{}" {
                    let keys: Vec<_> = of.keys().iter().map(|key| format!("{key:?}")).collect();
                    let keys = keys.join(" ");
                    return Some(format!(
                        "{path}: element {index}: associative list with keys has an element that omits all key fields \
                         [{keys}] (and doesn't have default values for any key fields)"
                    ));
                }
                if duplicates == Duplicates::Refused && elements[..index].iter().any(|(earlier, _)| earlier == element)
                {
                    return Some(format!("{path}: duplicate entries for key {written}"));
                }
                unfit(of.items(), item, duplicates, &format!("{path}{written}"))
            })
        }
        _ => None,
    }
}

fn shape(of: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Shape {
    let value = new.filter(|value| !value.is_null()).or(old).or(new).unwrap_or(&Value::Null);
    of.shape(value)
}

fn map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn keys<'a>(old: Option<&'a Map<String, Value>>, new: Option<&'a Map<String, Value>>) -> Vec<&'a String> {
    let mut keys: Vec<_> = old.into_iter().chain(new).flat_map(Map::keys).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn elements<'a>(of: Type<'_>, list: Option<&'a Value>) -> Vec<(String, &'a Value)> {
    let items = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    items.iter().map(|item| (of.list_element(item), item)).collect()
}

fn find<'a>(elements: &[(String, &'a Value)], element: &str) -> Option<&'a Value> {
    elements.iter().find(|(candidate, _)| candidate == element).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string"},
            "whole": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "properties": {"n": {"type": "string"}, "x": {"type": "integer"}}},
            },
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}}})
    }

    #[test]
    fn an_object_holds_fields_by_the_kinds_of_its_lists_and_maps() {
        for (spec, held) in [
            (json!({"a": "1"}), json!({"f:a": {}})),
            (json!({"whole": ["x"]}), json!({"f:whole": {}})),
            (json!({"set": ["x", "y"]}), json!({"f:set": {"v:\"x\"": {}, "v:\"y\"": {}}})),
            (
                json!({"list": [{"n": "1", "x": 2}]}),
                json!({"f:list": {"k:{\"n\":\"1\"}": {".": {}, "f:n": {}, "f:x": {}}}}),
            ),
            (json!({"atom": {"k": "v"}}), json!({"f:atom": {}})),
            (json!({"map": {"k": "v"}}), json!({"f:map": {"f:k": {}}})),
            (json!({"open": {"k": {"l": [1]}}}), json!({"f:open": {"f:k": {".": {}, "f:l": {}}}})),
        ] {
            let schema = schema();
            let found = fields(Type::Root(&schema), &json!({"spec": spec})).to_json();
            assert_eq!(found, json!({"f:spec": held}), "{spec}");
        }
    }

    #[test]
    fn merging_keeps_what_only_the_live_object_has() {
        for (live, applied, merged) in [
            (json!({"a": "1"}), json!({"b": "2"}), json!({"a": "1", "b": "2"})),
            (json!({"whole": ["x"]}), json!({"whole": ["y"]}), json!({"whole": ["y"]})),
            (json!({"atom": {"k": "v"}}), json!({"atom": {"l": "w"}}), json!({"atom": {"l": "w"}})),
            (json!({"map": {"k": "v"}}), json!({"map": {"l": "w"}}), json!({"map": {"k": "v", "l": "w"}})),
            (json!({"set": ["x", "y"]}), json!({"set": ["y", "z"]}), json!({"set": ["x", "y", "z"]})),
            (
                json!({"list": [{"n": "1", "x": 1}, {"n": "2"}]}),
                json!({"list": [{"n": "2", "x": 2}, {"n": "3"}]}),
                json!({"list": [{"n": "1", "x": 1}, {"n": "2", "x": 2}, {"n": "3"}]}),
            ),
        ] {
            let schema = schema();
            let found = merge(Type::Root(&schema), Some(&json!({"spec": live})), Some(&json!({"spec": applied})));
            assert_eq!(found, Some(json!({"spec": merged})), "{live} and {applied}");
        }
    }

    #[test]
    fn a_comparison_names_each_field_once() {
        let schema = schema();
        let old = json!({"spec": {"a": "1", "set": ["x"], "map": {"k": "v"}}});
        let new = json!({"spec": {"a": "2", "b": "3", "set": ["y"], "list": [{"n": "1"}]}});
        let found = compare(Type::Root(&schema), &old, &new);
        assert_eq!(found.modified.paths(), [".spec.a"]);
        assert_eq!(found.removed.paths(), [".spec.map", ".spec.map.k", ".spec.set[=\"x\"]"]);
        assert_eq!(
            found.added.paths(),
            [".spec.b", ".spec.list", ".spec.list[n=\"1\"]", ".spec.list[n=\"1\"].n", ".spec.set[=\"y\"]"]
        );
    }

    #[test]
    fn what_does_not_fit_the_type_is_found() {
        let schema = schema();
        for (spec, found) in [
            (json!({"a": "1", "open": {"x": 1}, "map": {"x": "1"}}), None),
            (json!({"zz": 1}), Some(".spec.zz: field not declared in schema")),
            (json!({"list": [{"n": "1", "zz": 1}]}), Some(".spec.list[n=\"1\"].zz: field not declared in schema")),
            (json!({"list": [{"n": "1"}, {"n": "1"}]}), Some(".spec.list: duplicate entries for key [n=\"1\"]")),
        ] {
            let object = json!({"spec": spec});
            assert_eq!(misfit(Type::Root(&schema), &object, Duplicates::Refused).as_deref(), found);
        }
    }
}
