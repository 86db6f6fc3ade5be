//! How fields are owned: which lists are keyed, which values are owned whole, which maps key by key.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) enum Type<'a> {
    /// A whole custom resource; its metadata is as everywhere.
    Root(&'a Value),
    /// By a structural schema.
    Schema(&'a Value),
    /// A whole object of a built-in kind.
    BuiltInRoot,
    /// A field of a built-in kind, by the name it has.
    BuiltIn(&'a str),
    /// Nothing is known: maps key by key, everything else whole.
    Deduced,
}

/// How a value of a type is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Owned as a whole.
    Leaf,
    /// Owned field by field.
    Map,
    /// Owned element by element.
    List,
}

/// The metadata of every kind.
static OBJECT_META: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text,
        "creationTimestamp": text, "deletionTimestamp": text, "deletionGracePeriodSeconds": {"type": "integer"},
        "generation": {"type": "integer"}, "selfLink": text,
        "labels": map, "annotations": map,
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
        "managedFields": {"type": "array", "items": {"type": "object"}},
    }})
});

/// Keyed lists of built-in kinds, by the name of the field; its keys, with the default of a key where it has one.
const KEYED: &[(&str, &[&str])] = &[
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ports", &["containerPort", "port", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];

/// Maps of built-in kinds whose keys are the user's.
const OPEN: &[&str] = &["annotations", "labels", "data", "stringData", "binaryData", "limits", "requests"];

/// Values of built-in kinds that are owned whole although they are maps.
const WHOLE: &[&str] = &["matchLabels", "nodeSelector", "selector", "roleRef", "podSelector", "resourceFieldRef"];

impl<'a> Type<'a> {
    pub(super) fn shape(self, value: &Value) -> Shape {
        let by_value = || if value.is_object() { Shape::Map } else { Shape::Leaf };
        match self {
            Self::Root(_) | Self::BuiltInRoot => Shape::Map,
            Self::Deduced => by_value(),
            Self::BuiltIn(name) => match value {
                Value::Object(_) if WHOLE.contains(&name) => Shape::Leaf,
                Value::Array(_) if KEYED.iter().any(|(keyed, _)| *keyed == name) => Shape::List,
                _ => by_value(),
            },
            Self::Schema(schema) => match value {
                Value::Array(_) if matches!(schema["x-kubernetes-list-type"].as_str(), Some("map" | "set")) => {
                    Shape::List
                }
                Value::Object(_) if schema["x-kubernetes-map-type"] != "atomic" => Shape::Map,
                // Absent and null values of a granular type are walked too, as empty ones.
                Value::Null => match (schema["type"].as_str(), schema["x-kubernetes-list-type"].as_str()) {
                    (Some("array"), Some("map" | "set")) => Shape::List,
                    (Some("object"), _) if schema["x-kubernetes-map-type"] != "atomic" => Shape::Map,
                    _ => Shape::Leaf,
                },
                _ => Shape::Leaf,
            },
        }
    }

    /// What is wrong with a value that is of another type than its schema says.
    pub(super) fn mismatch(self, value: &Value) -> Option<String> {
        let (Self::Schema(schema) | Self::Root(schema)) = self else { return None };
        if value.is_null() || schema["x-kubernetes-int-or-string"] == true {
            return None;
        }
        let plain = value.as_str().map_or_else(|| value.to_string(), Into::into);
        match schema["type"].as_str()? {
            "object" if !value.is_object() => Some(format!("expected map, got &{{{plain}}}")),
            "array" if !value.is_array() => Some(format!("expected list, got &{{{plain}}}")),
            "string" if !value.is_string() => {
                Some(format!("expected string, got &value.valueUnstructured{{Value:{plain}}}"))
            }
            "integer" | "number" if !value.is_number() => {
                let found = if value.is_string() { "string".to_owned() } else { plain };
                Some(format!("expected numeric (int or float), got {found}"))
            }
            "boolean" if !value.is_boolean() => Some(format!("expected boolean, got {plain}")),
            _ => None,
        }
    }

    /// Whether a schema says that a list or a map is owned as one.
    pub(super) fn is_whole(self) -> bool {
        let Self::Schema(schema) = self else { return false };
        match schema["type"].as_str() {
            Some("array") => !matches!(schema["x-kubernetes-list-type"].as_str(), Some("map" | "set")),
            Some("object") => schema["x-kubernetes-map-type"] == "atomic",
            _ => false,
        }
    }

    /// The type under a key of a map, and whether the key is a declared field. None: no such field.
    pub(super) fn field(self, key: &'a str) -> Option<(Self, bool)> {
        Some(match self {
            Self::Root(_) | Self::BuiltInRoot if key == "metadata" => (Self::Schema(&OBJECT_META), true),
            Self::Root(_) | Self::BuiltInRoot if matches!(key, "apiVersion" | "kind") => (Self::Deduced, true),
            Self::Deduced => (Self::Deduced, false),
            Self::BuiltInRoot => (Self::BuiltIn(key), true),
            Self::BuiltIn(name) => (Self::BuiltIn(key), !OPEN.contains(&name)),
            Self::Root(schema) | Self::Schema(schema) => {
                if let Some(property) = schema["properties"].get(key) {
                    return Some((Self::of(property), true));
                }
                match &schema["additionalProperties"] {
                    additional @ Value::Object(_) => (Self::of(additional), false),
                    Value::Bool(true) => (Self::Deduced, false),
                    _ if schema["x-kubernetes-preserve-unknown-fields"] == true => (Self::Deduced, false),
                    _ => return None,
                }
            }
        })
    }

    fn of(schema: &'a Value) -> Self {
        let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
        let described = schema.get("properties").is_some() || schema.get("additionalProperties").is_some();
        if open && !described && schema["x-kubernetes-map-type"] != "atomic" && schema.get("items").is_none() {
            Self::Deduced
        } else {
            Self::Schema(schema)
        }
    }

    /// The type of the elements of a list.
    pub(super) fn items(self) -> Self {
        match self {
            Self::Schema(schema) => Self::of(&schema["items"]),
            Self::BuiltIn(_) => Self::BuiltIn(""),
            other => other,
        }
    }

    /// The type under a path element, and whether it is a declared field.
    pub(super) fn element(self, element: &'a str) -> (Self, bool) {
        match element.strip_prefix("f:") {
            Some(key) => self.field(key).unwrap_or((Self::Deduced, false)),
            None => (self.items(), false),
        }
    }

    /// The keys of a keyed list.
    pub(super) fn keys(self) -> Vec<&'a str> {
        match self {
            Self::Schema(schema) => {
                let keys = super::super::json::items(schema, "/x-kubernetes-list-map-keys");
                keys.iter().filter_map(Value::as_str).collect()
            }
            Self::BuiltIn(name) => {
                let keyed = KEYED.iter().find(|(keyed, _)| *keyed == name);
                keyed.map_or_else(Vec::new, |(_, keys)| keys.to_vec())
            }
            _ => Vec::new(),
        }
    }

    /// The path element of an element of a list of this type.
    pub(super) fn list_element(self, value: &Value) -> String {
        let keyed = |keys: &mut dyn Iterator<Item = (&str, Option<&Value>)>| {
            let keys: Map<String, Value> =
                keys.filter_map(|(key, value)| Some((key.to_owned(), value?.clone()))).collect();
            format!("k:{}", Value::Object(keys))
        };
        match self {
            Self::Schema(schema) if schema["x-kubernetes-list-type"] == "map" => {
                let properties = &schema["items"]["properties"];
                keyed(&mut self.keys().into_iter().map(|key| {
                    (key, value.get(key).or_else(|| properties.get(key).and_then(|property| property.get("default"))))
                }))
            }
            Self::BuiltIn(_) => {
                let tcp = Value::from("TCP");
                let default = |key: &str| (key == "protocol").then_some(&tcp);
                keyed(&mut self.keys().into_iter().map(|key| (key, value.get(key).or_else(|| default(key)))))
            }
            _ => format!("v:{value}"),
        }
    }
}
