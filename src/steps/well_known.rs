//! From `Kind/name` as an operator writes it to a resource the server serves.

use crate::{cluster::Reader, object::Resource, runbook::NamedObject};

/// Kinds that a runbook may name without a group: (kind, group, version, plural, namespaced).
const KINDS: [(&str, &str, &str, &str, bool); 18] = [
    ("Service", "", "v1", "services", true),
    ("Secret", "", "v1", "secrets", true),
    ("ConfigMap", "", "v1", "configmaps", true),
    ("ServiceAccount", "", "v1", "serviceaccounts", true),
    ("Pod", "", "v1", "pods", true),
    ("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", true),
    ("Namespace", "", "v1", "namespaces", false),
    ("Deployment", "apps", "v1", "deployments", true),
    ("StatefulSet", "apps", "v1", "statefulsets", true),
    ("DaemonSet", "apps", "v1", "daemonsets", true),
    ("Job", "batch", "v1", "jobs", true),
    ("CronJob", "batch", "v1", "cronjobs", true),
    ("Role", "rbac.authorization.k8s.io", "v1", "roles", true),
    ("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings", true),
    ("ClusterRole", "rbac.authorization.k8s.io", "v1", "clusterroles", false),
    ("ClusterRoleBinding", "rbac.authorization.k8s.io", "v1", "clusterrolebindings", false),
    ("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies", true),
    ("Ingress", "networking.k8s.io", "v1", "ingresses", true),
];

/// The resource of a kind known by heart; none for any other.
pub fn known(named: &NamedObject) -> Option<Resource> {
    KINDS
        .iter()
        .find(|(kind, group, ..)| *kind == named.kind && named.group.as_deref().is_none_or(|asked| asked == *group))
        .map(|(kind, group, version, plural, namespaced)| Resource::new(group, version, plural, kind, *namespaced))
}

/// The resource of a kind, asked from discovery where it is not known by heart.
///
/// None: no such kind is served. An error: discovery could not tell, in the server's words.
pub async fn resolve(named: &NamedObject, reader: &Reader) -> Result<Option<Resource>, String> {
    if let Some(resource) = known(named) {
        return Ok(Some(resource));
    }
    let found = reader.discover().await.map_err(|error| error.words())?;
    let is_it = |resource: &&Resource| {
        resource.kind == named.kind && named.group.as_deref().is_none_or(|group| group == resource.group)
    };
    if let Some(resource) = found.resources.iter().find(is_it) {
        return Ok(Some(resource.clone()));
    }
    match found.unreachable.first() {
        Some((group, words)) => Err(format!("API group {group} does not answer: {words}")),
        None => Ok(None),
    }
}
