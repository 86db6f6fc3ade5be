//! A `CustomResourceDefinition`, as far as a version's removal is about it. Pure: JSON in, facts out.

use jiff::Timestamp;
use serde_json::Value;

use crate::object::{Object, Resource};

/// What matters of a CRD.
#[derive(Clone, Debug)]
pub struct Crd {
    /// The whole object.
    pub object: Object,
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// `spec.versions`, in order.
    pub versions: Vec<Version>,
    /// `status.storedVersions`.
    pub stored_versions: Vec<String>,
    /// Service of the conversion webhook; none with strategy None or a URL.
    pub webhook: Option<WebhookService>,
    /// Whether `spec.conversion.strategy` is Webhook.
    pub converts_by_webhook: bool,
}

/// One of a CRD's versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether requests at it are answered.
    pub served: bool,
    /// Whether records are written at it.
    pub storage: bool,
}

/// Where a conversion webhook is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookService {
    /// Namespace of the Service.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: i64,
}

/// The CRD resource itself.
pub fn crd_resource() -> Resource {
    Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false)
}

impl Crd {
    /// Reads a CRD; what is absent reads as empty.
    pub fn of(object: Object) -> Self {
        let text = |pointer: &str| object.str(pointer).unwrap_or_default().to_owned();
        let flag = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool).unwrap_or(false);
        let service = "/spec/conversion/webhook/clientConfig/service";
        Self {
            group: text("/spec/group"),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            namespaced: object.str("/spec/scope") == Some("Namespaced"),
            versions: object
                .items("/spec/versions")
                .iter()
                .map(|version| Version {
                    name: version.get("name").and_then(Value::as_str).unwrap_or_default().into(),
                    served: flag(version, "served"),
                    storage: flag(version, "storage"),
                })
                .collect(),
            stored_versions: object
                .items("/status/storedVersions")
                .iter()
                .filter_map(|version| version.as_str().map(Into::into))
                .collect(),
            webhook: object.str(&format!("{service}/name")).map(|name| WebhookService {
                namespace: text(&format!("{service}/namespace")),
                name: name.into(),
                port: object.int(&format!("{service}/port")).unwrap_or(443),
            }),
            converts_by_webhook: object.str("/spec/conversion/strategy") == Some("Webhook"),
            object,
        }
    }

    /// `plural.group`.
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// The version records are written at.
    pub fn storage_version(&self) -> Option<&str> {
        self.versions.iter().find(|version| version.storage).map(|version| version.name.as_str())
    }

    /// Whether a version stands in `spec.versions`, served or not.
    pub fn declares(&self, version: &str) -> bool {
        self.versions.iter().any(|known| known.name == version)
    }

    /// Whether a version is declared and served.
    pub fn serves(&self, version: &str) -> bool {
        self.versions.iter().any(|known| known.name == version && known.served)
    }

    /// Its objects at a version.
    pub fn resource(&self, version: &str) -> Resource {
        Resource::new(&self.group, version, &self.plural, &self.kind, self.namespaced)
    }

    /// When its spec last changed: the newest time among the managedFields entries that hold
    /// `f:spec`. None when no such entry has a time.
    pub fn spec_changed_at(&self) -> Option<Timestamp> {
        self.object
            .managed_fields()
            .iter()
            .filter(|entry| entry.pointer("/fieldsV1/f:spec").is_some())
            .filter_map(|entry| entry.get("time")?.as_str()?.parse().ok())
            .max()
    }

    /// The condition of a type whose status is `True`.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        self.object.items("/status/conditions").iter().find(|condition| {
            condition.get("type").and_then(Value::as_str) == Some(kind)
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    }
}
