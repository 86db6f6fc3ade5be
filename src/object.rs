//! Shared identity: what kind of thing, which one, and a lossless view of its JSON.
//!
//! Everything that names an object prints it through the one [`Display`](fmt::Display) of
//! [`ObjectRef`]. Nothing here knows a cluster.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A resource as the API server serves it: what is needed to form a URL and to name an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version asked for.
    pub version: String,
    /// Plural, lower case: `sandboxes`.
    pub plural: String,
    /// Kind: `Sandbox`.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A namespaced or cluster-scoped resource by its parts.
    pub fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        Self { group: group.into(), version: version.into(), plural: plural.into(), kind: kind.into(), namespaced }
    }

    /// `group/version`, or `version` alone in the core group: the `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The same resource at another version.
    #[must_use]
    pub fn at(&self, version: &str) -> Self {
        Self { version: version.into(), ..self.clone() }
    }

    /// `plural.group`, or `plural` in the core group: how kubectl and RBAC name it.
    pub fn name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// URL path of its collection, over all namespaces or in one, or of one object in it.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut parts =
            if self.group.is_empty() { vec!["/api", &self.version] } else { vec!["/apis", &self.group, &self.version] };
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            parts.extend(["namespaces", namespace]);
        }
        parts.push(&self.plural);
        parts.extend(name);
        parts.join("/")
    }

    /// Reference to one of its objects.
    pub fn object(&self, namespace: Option<&str>, name: &str) -> ObjectRef {
        ObjectRef {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name(), self.version)
    }
}

/// `group/version`, or `version` alone when the group is empty.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.into() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion` into group and version; the core group is empty.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Which object: stable over versions, so no version in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; none for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// `Kind namespace/name`, or `Kind name` for a cluster-scoped object.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// An object as the server sent it, nothing lost: typed metadata would drop what it does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(pub Value);

impl Object {
    /// The string at a JSON pointer, if there is one.
    pub fn str(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer).and_then(Value::as_str)
    }

    /// The array at a JSON pointer; empty when absent.
    pub fn items(&self, pointer: &str) -> &[Value] {
        self.0.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The integer at a JSON pointer, if there is one.
    pub fn int(&self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer).and_then(Value::as_i64)
    }

    /// `metadata.name`; empty when the server sent none.
    pub fn name(&self) -> &str {
        self.str("/metadata/name").unwrap_or_default()
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> Option<&str> {
        self.str("/metadata/namespace")
    }

    /// `metadata.uid`; empty when the server sent none.
    pub fn uid(&self) -> &str {
        self.str("/metadata/uid").unwrap_or_default()
    }

    /// `metadata.resourceVersion`; empty when the server sent none.
    pub fn resource_version(&self) -> &str {
        self.str("/metadata/resourceVersion").unwrap_or_default()
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> Option<i64> {
        self.int("/metadata/generation")
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.str("/apiVersion").unwrap_or_default()
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.str("/kind").unwrap_or_default()
    }

    /// Whether deletion has begun.
    pub fn deleting(&self) -> bool {
        self.str("/metadata/deletionTimestamp").is_some()
    }

    /// An annotation's value.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.0.get("metadata")?.get("annotations")?.get(name)?.as_str()
    }

    /// `metadata.managedFields`, in the server's order.
    pub fn managed_fields(&self) -> &[Value] {
        self.items("/metadata/managedFields")
    }

    /// `metadata.ownerReferences`, in the server's order.
    pub fn owner_references(&self) -> &[Value] {
        self.items("/metadata/ownerReferences")
    }

    /// Reference to this object, by its own `apiVersion` and `kind`.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            group: split_api_version(self.api_version()).0.into(),
            kind: self.kind().into(),
            namespace: self.namespace().map(Into::into),
            name: self.name().into(),
        }
    }
}

/// One entry of `metadata.managedFields` that names a given `apiVersion`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManagerEntry {
    /// Field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// Subresource it wrote through; empty for the main resource.
    pub subresource: String,
    /// When it last wrote; none counts as just written.
    pub time: Option<Timestamp>,
}

/// The managedFields entries of `object` that name `api_version`.
pub fn entries_naming(object: &Object, api_version: &str) -> Vec<ManagerEntry> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    object
        .managed_fields()
        .iter()
        .filter(|entry| entry.get("apiVersion").and_then(Value::as_str) == Some(api_version))
        .map(|entry| ManagerEntry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            subresource: text(entry, "subresource"),
            time: entry.get("time").and_then(Value::as_str).and_then(|time| time.parse().ok()),
        })
        .collect()
}
