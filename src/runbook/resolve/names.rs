//! Names of the field: versions, CRDs, workloads, objects, annotations. Places are added by the caller.

use super::{
    super::NamedObject,
    values::{Meaning, says, wrong},
};
use crate::{
    object::Object,
    suggest::{either, mistyped, nearest},
};

/// Workloads whose rollout can be judged.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Kinds that a runbook usually names, and whether they live in namespaces.
const KINDS: [(&str, bool); 22] = [
    ("ClusterRole", false),
    ("ClusterRoleBinding", false),
    ("ConfigMap", true),
    ("CronJob", true),
    ("CustomResourceDefinition", false),
    ("DaemonSet", true),
    ("Deployment", true),
    ("Ingress", true),
    ("Job", true),
    ("MutatingWebhookConfiguration", false),
    ("Namespace", false),
    ("NetworkPolicy", true),
    ("PersistentVolumeClaim", true),
    ("Pod", true),
    ("PodDisruptionBudget", true),
    ("Role", true),
    ("RoleBinding", true),
    ("Secret", true),
    ("Service", true),
    ("ServiceAccount", true),
    ("StatefulSet", true),
    ("ValidatingWebhookConfiguration", false),
];

/// An API version.
pub(super) fn version(text: &str) -> Meaning<String> {
    let problem = says(format!("`{text}` is no API version"));
    if !is_label(text) {
        return wrong(problem.hint("a version stands alone, as in `v1alpha1`"));
    }
    // Kubernetes takes other names too, but nobody who writes v and a digit means one of them; and a
    // version that no object names would look like work already done.
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) else {
        return Ok(text.into());
    };
    let major: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let stage = &rest[major.len()..];
    let known = ["alpha", "beta"].iter().any(|name| stage.strip_prefix(name).is_some_and(digits));
    if stage.is_empty() || known {
        return Ok(text.into());
    }
    let minor: String = stage.chars().filter(char::is_ascii_digit).collect();
    let name: String = stage.chars().filter(|c| !c.is_ascii_digit()).collect();
    let near = nearest(&name, ["alpha", "beta"]).map(|stage| format!("v{major}{stage}{minor}"));
    wrong(problem.did_you_mean(near.as_deref()).hint("a version is like `v1`, `v1beta1` or `v2alpha3`"))
}

/// The name of a CRD.
pub(super) fn crd(text: &str) -> Meaning<String> {
    let labels: Vec<&str> = text.split('.').collect();
    if labels.len() > 2 && labels.iter().all(|label| is_label(label)) {
        return Ok(text.into());
    }
    let problem = says(format!("`{text}` is no CRD name"));
    let name = text.split('/').find(|part| part.contains('.')).map(str::to_lowercase);
    wrong(
        problem
            .did_you_mean(name.as_deref().filter(|name| *name != text && crd(name).is_ok()))
            .hint("a CRD is named `plural.group`, as in `sandboxes.agents.x-k8s.io`"),
    )
}

/// One of the CRDs of `[upgrade]`.
pub(super) fn one_of_crds(text: &str, crds: &[String]) -> Meaning<String> {
    if crds.iter().any(|crd| crd == text) {
        return Ok(text.into());
    }
    wrong(
        says(format!("`{text}` is not in `crds` of `[upgrade]`"))
            .did_you_mean(nearest(text, crds.iter().map(String::as_str))),
    )
}

/// The name of a namespace.
pub(super) fn namespace(text: &str) -> Meaning<String> {
    if is_label(text) && text.len() < 64 {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no namespace name")).hint("a namespace is one, without a wildcard or a list"))
}

/// A workload as `Kind/name`.
pub(super) fn workload(text: &str) -> Meaning<(String, String)> {
    let problem = says(format!("`{text}` is no workload"));
    let hint = format!("a workload is `Kind/name`, where Kind is {}", either(WORKLOADS));
    let Some((kind, name)) = text.split_once('/') else {
        let near = Some(format!("Deployment/{text}")).filter(|_| is_name(text));
        return wrong(problem.did_you_mean(near.as_deref()).hint(hint));
    };
    if !WORKLOADS.contains(&kind) {
        let near = nearest(kind, WORKLOADS).map(|kind| format!("{kind}/{name}"));
        return wrong(problem.did_you_mean(near.as_deref()).hint(hint));
    }
    if !is_name(name) {
        return wrong(problem.hint(hint));
    }
    Ok((kind.into(), name.into()))
}

/// An object as `Kind/name` or `Kind.group/name`.
pub(super) fn object(text: &str) -> Meaning<NamedObject> {
    let problem = says(format!("`{text}` names no object"));
    let hint = "an object is `Kind/name`, or `Kind.group/name` where the kind alone does not say enough";
    let Some((kind, name)) = text.split_once('/') else { return wrong(problem.hint(hint)) };
    if !is_name(name) {
        return wrong(problem.hint(hint));
    }
    let (kind, group) = self::kind(kind).map_err(|near| {
        let near = near.map(|kind| format!("{kind}/{name}"));
        problem.did_you_mean(near.as_deref()).hint(hint)
    })?;
    Ok(NamedObject { kind, group, name: name.into() })
}

/// A kind as `Kind` or `Kind.group`.
pub(super) fn kind_name(text: &str) -> Meaning<String> {
    match kind(text) {
        Ok(_) => Ok(text.into()),
        Err(near) => wrong(
            says(format!("`{text}` is no kind"))
                .did_you_mean(near.as_deref())
                .hint("a kind is `Kind` or `Kind.group`, as in `Pod` or `Sandbox.agents.x-k8s.io`"),
        ),
    }
}

/// Whether a kind is known to live in namespaces.
pub(super) fn is_namespaced(object: &NamedObject) -> bool {
    let built_in = object.group.as_deref().is_none_or(|group| !group.contains('.') || group.ends_with(".k8s.io"));
    built_in && KINDS.contains(&(object.kind.as_str(), true))
}

/// Kind and group, or the nearest kind there is.
fn kind(text: &str) -> Result<(String, Option<String>), Option<String>> {
    let (kind, group) = match text.split_once('.') {
        Some((kind, group)) => (kind, Some(group)),
        None => (text, None),
    };
    let camel = kind.starts_with(|c: char| c.is_ascii_uppercase()) && kind.chars().all(|c| c.is_ascii_alphanumeric());
    let group_fits = group.is_none_or(|group| group.split('.').all(is_label));
    let known = KINDS.map(|(kind, _)| kind);
    // A kind of one's own may be named like `Secrets`; with its group it is taken at its word.
    let meant = if group.is_none() { mistyped(kind, known) } else { None };
    if camel && group_fits && meant.is_none() {
        return Ok((kind.into(), group.map(Into::into)));
    }
    Err(nearest(kind, known).filter(|_| group_fits).map(|near| match group {
        Some(group) => format!("{near}.{group}"),
        None => near.into(),
    }))
}

/// An Argo CD Application as `namespace/name`.
pub(super) fn application(text: &str) -> Meaning<(String, String)> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_name(name) => Ok((namespace.into(), name.into())),
        None if is_name(text) => wrong(
            says(format!("`{text}` lacks the Application's namespace")).did_you_mean(Some(&format!("argocd/{text}"))),
        ),
        _ => wrong(says(format!("`{text}` is no Application")).hint("an Application is `namespace/name`")),
    }
}

/// The name of an annotation.
pub(super) fn annotation(text: &str) -> Meaning<String> {
    let part = |name: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let edge = |c: char| c.is_ascii_alphanumeric();
        name.len() < 64 && name.starts_with(edge) && name.ends_with(edge) && name.chars().all(inner)
    };
    let valid = match text.split_once('/') {
        Some((prefix, name)) => prefix.len() < 254 && prefix.split('.').all(is_label) && part(name),
        None => part(text),
    };
    if valid {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no annotation name")).hint("an annotation is `prefix/name`, without its value"))
}

/// The name of an annotation, or its beginning and a `*`.
pub(super) fn annotations(text: &str) -> Meaning<String> {
    let Some(beginning) = text.strip_suffix('*') else { return annotation(text) };
    if beginning.is_empty() {
        return wrong(
            says("`*` would remove every annotation".into()).hint("write the beginning of the names to remove"),
        );
    }
    // Whatever the names end in, a letter fits.
    annotation(&format!("{beginning}x")).map(|_| text.into()).map_err(|_| {
        says(format!("`{text}` matches no annotation name")).hint("a `*` stands at the end, and for any ending")
    })
}

/// The name of a resource.
pub(super) fn resource(text: &str) -> Meaning<String> {
    if text.split('.').all(is_label) {
        return Ok(text.into());
    }
    wrong(
        says(format!("`{text}` is no resource"))
            .hint("a resource is `plural.group`, as in `sandboxclaims.extensions.agents.x-k8s.io`"),
    )
}

/// A label as in DNS: lower-case letters, digits, dashes inside.
fn is_label(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() < 64 && text.starts_with(edge) && text.ends_with(edge) && text.chars().all(|c| edge(c) || c == '-')
}

/// The name of an object. RBAC takes almost any, colons included.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() < 254 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c))
}

/// Whether an object is a CRD.
pub(super) fn is_crd(object: &Object) -> bool {
    object.kind() == "CustomResourceDefinition" && object.api_version().starts_with("apiextensions.k8s.io/")
}
