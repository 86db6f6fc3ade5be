//! Sets of field paths, in the shape of `fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of paths as a tree. Path elements are written as `fieldsV1` writes them: `f:name`, `k:{"name":"a"}`, `v:1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::embedded) struct FieldSet {
    /// Whether the path to this node is itself in the set.
    own: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// The set of whole top-level fields.
    pub(in crate::embedded) fn of_fields(fields: &[&str]) -> Self {
        let mut set = Self::default();
        for field in fields {
            set.insert(&[format!("f:{field}")]);
        }
        set
    }

    /// Reads `fieldsV1`.
    pub(super) fn from_json(fields: &Value) -> Result<Self, String> {
        let Value::Object(map) = fields else {
            return Err(format!("fieldsV1 is no object: {fields}"));
        };
        let mut set = Self { own: map.is_empty(), ..Self::default() };
        for (key, child) in map {
            if key == "." {
                set.own = true;
            } else if matches!(key.split_once(':'), Some(("f" | "k" | "v" | "i", _))) {
                set.children.insert(key.clone(), Self::from_json(child)?);
            } else {
                return Err(format!("unknown path element {key:?}"));
            }
        }
        Ok(set)
    }

    /// Reads the root of `fieldsV1`, which is no field itself.
    pub(super) fn root_from_json(fields: &Value) -> Result<Self, String> {
        Ok(Self { own: false, ..Self::from_json(fields)? })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.own && !self.children.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        map.extend(self.children.iter().map(|(element, child)| (element.clone(), child.to_json())));
        Value::Object(map)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.own && self.children.values().all(Self::is_empty)
    }

    pub(super) fn insert(&mut self, path: &[String]) {
        match path {
            [] => self.own = true,
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Whether the path to this node is in the set.
    pub(super) fn owns(&self) -> bool {
        self.own
    }

    pub(super) fn child(&self, element: &str) -> Option<&Self> {
        self.children.get(element)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.own |= other.own;
        for (element, child) in &other.children {
            let merged = union.children.get(element).map_or_else(|| child.clone(), |mine| mine.union(child));
            union.children.insert(element.clone(), merged);
        }
        union
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let both = self
            .children
            .iter()
            .filter_map(|(element, child)| Some((element.clone(), child.intersection(other.children.get(element)?))));
        Self { own: self.own && other.own, children: both.filter(|(_, child)| !child.is_empty()).collect() }
    }

    /// The paths of this set that are not in the other, path by path.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.without(other, false)
    }

    /// The paths of this set that are neither in the other nor below one of its paths.
    pub(super) fn outside(&self, other: &Self) -> Self {
        self.without(other, true)
    }

    fn without(&self, other: &Self, below: bool) -> Self {
        if below && other.own {
            return Self::default();
        }
        let children = self.children.iter().map(|(element, child)| {
            let rest = other.children.get(element).map_or_else(|| child.clone(), |other| child.without(other, below));
            (element.clone(), rest)
        });
        Self { own: self.own && !other.own, children: children.filter(|(_, child)| !child.is_empty()).collect() }
    }

    /// The same set with every declared field on the way to one of its paths.
    pub(super) fn with_declared_parents(&self, of: super::Type<'_>) -> Self {
        let mut set = self.clone();
        for (element, child) in &mut set.children {
            let (of, declared) = of.element(element);
            *child = child.with_declared_parents(of);
            child.own |= declared;
        }
        set
    }

    /// The same set with nothing below a field that is owned whole.
    pub(super) fn reconciled(&self, of: super::Type<'_>) -> Self {
        if of.is_whole() && !self.children.is_empty() {
            return Self { own: true, ..Self::default() };
        }
        let children = self.children.iter().map(|(element, child)| {
            let (of, _) = of.element(element);
            (element.clone(), child.reconciled(of))
        });
        Self { own: self.own, children: children.collect() }
    }

    /// Every path as the server writes it in a conflict, `.spec.list[name="a"].size`, and in its order.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, prefix: &str, paths: &mut Vec<String>) {
        let children = || self.children.iter().map(|(element, child)| (format!("{prefix}{}", written(element)), child));
        paths.extend(children().filter(|(_, child)| child.own).map(|(path, _)| path));
        for (path, child) in children() {
            child.collect(&path, paths);
        }
    }
}

/// A path element as the server writes it: `.name`, `[name="a"]`.
pub(super) fn written(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("v", value)) => format!("[={value}]"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<_> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        _ => format!("[{}]", element.trim_start_matches("i:")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::root_from_json(fields).unwrap_or_else(|error| panic!("{fields}: {error}"))
    }

    #[test]
    fn sets_are_written_as_they_were_read() {
        let fields =
            json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"k:{\"n\":\"x\"}": {".": {}, "f:d": {}}, "v:\"y\"": {}}});
        assert_eq!(set(&fields).to_json(), fields);
        assert_eq!(set(&fields).paths(), [".a", ".a.b", ".c[n=\"x\"]", ".c[=\"y\"]", ".c[n=\"x\"].d"]);
        assert!(FieldSet::from_json(&json!({"a": {}})).is_err());
    }

    #[test]
    fn sets_combine_path_by_path() {
        let left = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let right = set(&json!({"f:a": {}, "f:d": {}}));
        assert_eq!(left.union(&right).to_json(), json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}, "f:d": {}}));
        assert_eq!(left.intersection(&right).to_json(), json!({"f:a": {}}));
        assert_eq!(left.difference(&right).to_json(), json!({"f:a": {"f:b": {}}, "f:c": {}}));
        assert_eq!(left.outside(&right).to_json(), json!({"f:c": {}}));
        assert!(left.difference(&left).is_empty());
    }
}
