//! The kinds that the server knows: those built in, and one for each established definition.

use serde_json::Value;

use super::json::{api_version, items, text};
use super::status::Named;

/// A resource, over all its versions.
#[expect(clippy::struct_field_names, reason = "the names of a kind, as the API has them")]
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) namespaced: bool,
    pub(super) versions: Vec<Version>,
    /// Of a custom resource.
    pub(super) definition: Option<Definition>,
}

/// One version of a resource.
#[expect(clippy::struct_excessive_bools, reason = "the flags of `spec.versions`, as the API has them")]
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    /// Whether `/status` is a subresource of its own.
    pub(super) status: bool,
    /// The structural schema of a custom resource.
    pub(super) schema: Option<Value>,
}

/// What a definition says beside its versions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) name: String,
    /// The webhook's address, where conversion goes through one.
    pub(super) webhook: Option<Webhook>,
    pub(super) terminating: bool,
}

/// Where a conversion webhook is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Webhook {
    /// Namespace and name of its Service, when it has one.
    pub(super) service: Option<(String, String)>,
    pub(super) url: String,
    pub(super) port: u64,
}

/// Group, version, plural, kind, whether it is namespaced, whether it has `/status`.
type BuiltIn = (&'static str, &'static str, &'static str, &'static str, bool, bool);

const BUILT_IN: &[BuiltIn] = &[
    ("", "v1", "configmaps", "ConfigMap", true, false),
    ("", "v1", "events", "Event", true, false),
    ("", "v1", "namespaces", "Namespace", false, true),
    ("", "v1", "nodes", "Node", false, true),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, true),
    ("", "v1", "pods", "Pod", true, true),
    ("", "v1", "secrets", "Secret", true, false),
    ("", "v1", "serviceaccounts", "ServiceAccount", true, false),
    ("", "v1", "services", "Service", true, true),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, true),
    ("apps", "v1", "daemonsets", "DaemonSet", true, true),
    ("apps", "v1", "deployments", "Deployment", true, true),
    ("apps", "v1", "replicasets", "ReplicaSet", true, true),
    ("apps", "v1", "statefulsets", "StatefulSet", true, true),
    ("batch", "v1", "cronjobs", "CronJob", true, true),
    ("batch", "v1", "jobs", "Job", true, true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", true, true),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true, false),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, true),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false, false),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false, false),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true, false),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", true, false),
];

/// Kinds whose spec the server counts in `metadata.generation`.
const COUNTED: &[&str] = &[
    "CustomResourceDefinition",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Ingress",
    "Job",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ReplicaSet",
    "StatefulSet",
];

/// The kinds every server has.
pub(super) fn built_in() -> impl Iterator<Item = Kind> {
    BUILT_IN.iter().map(|&(group, version, plural, kind, namespaced, status)| {
        without_schema(group, version, plural, kind, namespaced, status)
    })
}

/// A kind that some servers have beside those: what it holds is not known, so anything goes.
pub(super) fn foreign(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Kind {
    without_schema(group, version, plural, kind, namespaced, true)
}

fn without_schema(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool, status: bool) -> Kind {
    let version =
        Version { name: version.into(), served: true, storage: true, deprecated: false, status, schema: None };
    Kind {
        group: group.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        namespaced,
        versions: vec![version],
        definition: None,
    }
}

impl Kind {
    /// The kind that a definition defines.
    pub(super) fn defined(crd: &Value) -> Self {
        let names = &crd["spec"]["names"];
        let name = |key: &str| names[key].as_str().unwrap_or_default().to_owned();
        let versions = items(crd, "/spec/versions").iter().map(|version| {
            let flag = |key: &str| version[key].as_bool().unwrap_or(false);
            Version {
                name: text(version, "/name").into(),
                served: flag("served"),
                storage: flag("storage"),
                deprecated: flag("deprecated"),
                status: version.pointer("/subresources/status").is_some_and(|status| !status.is_null()),
                schema: version.pointer("/schema/openAPIV3Schema").cloned(),
            }
        });
        let webhook = (text(crd, "/spec/conversion/strategy") == "Webhook").then(|| Webhook::of(crd));
        Self {
            group: text(crd, "/spec/group").into(),
            plural: name("plural"),
            singular: name("singular"),
            short_names: items(names, "/shortNames").iter().filter_map(Value::as_str).map(Into::into).collect(),
            kind: name("kind"),
            list_kind: name("listKind"),
            namespaced: text(crd, "/spec/scope") != "Cluster",
            versions: versions.collect(),
            definition: Some(Definition {
                name: text(crd, "/metadata/name").into(),
                webhook,
                terminating: crd.pointer("/metadata/deletionTimestamp").is_some(),
            }),
        }
    }

    /// Where its records are kept.
    pub(super) fn table(&self) -> (String, String) {
        (self.group.clone(), self.plural.clone())
    }

    /// `plural.group`, or the plural alone in the core group.
    pub(super) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version records are encoded at.
    pub(super) fn storage(&self) -> &str {
        self.versions.iter().find(|version| version.storage).map_or("", |version| &version.name)
    }

    pub(super) fn api_version(&self, version: &str) -> String {
        api_version(&self.group, version)
    }

    /// `group/version, Kind=Kind`, as the server writes it.
    pub(super) fn versioned(&self, api_version: &str) -> String {
        format!("{api_version}, Kind={}", self.kind)
    }

    /// An object of it, where the server names the resource.
    pub(super) fn named(&self, name: &str) -> Named {
        Named::new(&self.group, &self.plural, name)
    }

    /// An object of it, where the server names the kind.
    pub(super) fn kind_named(&self, name: &str) -> Named {
        Named::new(&self.group, &self.kind, name)
    }

    /// Whether a change of anything but metadata and status counts in `metadata.generation`.
    pub(super) fn counts_generation(&self) -> bool {
        self.definition.is_some() || COUNTED.contains(&self.kind.as_str())
    }

    pub(super) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// Whether this is the kind of definitions.
    pub(super) fn is_definitions(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }
}

impl Webhook {
    fn of(crd: &Value) -> Self {
        let config = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
        if let Some(url) = config["url"].as_str() {
            let host = url.split('/').nth(2).unwrap_or_default();
            let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(443);
            return Self { service: None, url: url.into(), port };
        }
        let service = &config["service"];
        let part = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (part("namespace"), part("name"));
        let port = service["port"].as_u64().unwrap_or(443);
        let url = format!("https://{name}.{namespace}.svc:{port}{}", part("path"));
        Self { service: Some((namespace, name)), url, port }
    }
}
