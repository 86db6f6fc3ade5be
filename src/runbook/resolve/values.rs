//! Single values: what a text means, or what is wrong with it. Places are added by the caller.

use std::time::Duration;

use jiff::fmt::friendly::SpanParser;
use semver::VersionReq;

use super::super::{ManagedFields, NamedObject, Problem};
use crate::suggest::{either, nearest};

/// What a text means, or a problem whose place the caller knows.
pub(super) type Meaning<T> = Result<T, Problem>;

/// Workloads whose rollout can be judged.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Kinds that live in namespaces, among those a runbook usually names.
const NAMESPACED: [&str; 17] = [
    "ConfigMap",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Endpoints",
    "Ingress",
    "Job",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
];

fn wrong<T>(problem: Problem) -> Meaning<T> {
    Err(problem)
}

fn says(message: String) -> Problem {
    Problem::new(0..0, message)
}

/// A step's id.
pub(super) fn id(text: &str) -> Meaning<String> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.chars().all(valid) {
        return Ok(text.into());
    }
    let near: String = text.to_lowercase().chars().map(|c| if valid(c) { c } else { '-' }).collect();
    wrong(
        says(format!("`{text}` is no step id"))
            .did_you_mean(Some(&near))
            .hint("an id holds lower-case letters, digits and dashes"),
    )
}

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

/// A JSON pointer to a field.
pub(super) fn pointer(text: &str) -> Meaning<String> {
    if text.starts_with('/') && text.len() > 1 {
        return Ok(text.into());
    }
    let near = format!("/{}", text.trim_start_matches('.').replace('.', "/"));
    wrong(says(format!("`{text}` is no JSON pointer")).did_you_mean(Some(&near)))
}

/// The uid of an object.
pub(super) fn uid(text: &str) -> Meaning<String> {
    let hex = |part: &str, length: usize| part.len() == length && part.chars().all(|c| c.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, length)| hex(part, length)) {
        return Ok(text.to_lowercase());
    }
    wrong(says(format!("`{text}` is no uid")).hint(
        "the uid of a cluster is that of its namespace kube-system:\n\
         kubectl get namespace kube-system -o jsonpath='{.metadata.uid}'",
    ))
}

/// The name of a namespace.
pub(super) fn namespace(text: &str) -> Meaning<String> {
    if is_label(text) && text.len() < 64 {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no namespace name")).hint("a namespace is one, without a wildcard or a list"))
}

/// A duration.
pub(super) fn duration(text: &str) -> Meaning<Duration> {
    const HINT: &str = "a duration is like `90s`, `30m` or `1h30m`";
    if let Ok(duration) = SpanParser::new().parse_unsigned_duration(text.trim()) {
        return Ok(duration);
    }
    let problem = says(format!("`{text}` is no duration"));
    let trimmed = text.trim();
    if !trimmed.is_empty() && trimmed.chars().all(|c| c.is_ascii_digit()) {
        return wrong(problem.label("it lacks a unit").hint(HINT));
    }
    let days = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    match days.parse::<u32>() {
        Ok(days) if trimmed[days.to_string().len().min(trimmed.len())..].trim().starts_with('d') => {
            wrong(problem.did_you_mean(Some(&format!("{}h", u64::from(days) * 24))).hint(HINT))
        }
        _ => wrong(problem.hint(HINT)),
    }
}

/// A duration that is not nothing.
pub(super) fn some_duration(text: &str) -> Meaning<Duration> {
    match duration(text)? {
        Duration::ZERO => wrong(says(format!("`{text}` leaves no time at all"))),
        duration => Ok(duration),
    }
}

/// A range of image tags.
pub(super) fn image(text: &str) -> Meaning<VersionReq> {
    let error = match text.trim().parse::<VersionReq>() {
        Ok(range) => return Ok(range),
        Err(error) => error,
    };
    let bare = text.replace('v', "");
    let near = Some(bare).filter(|bare| bare != text && bare.parse::<VersionReq>().is_ok());
    wrong(
        says(format!("`{text}` is no range of versions: {error}"))
            .did_you_mean(near.as_deref())
            .hint("a range is like `>=0.15.0` or `>=1.0.0, <2.0.0`"),
    )
}

/// The digest of an image.
pub(super) fn digest(text: &str) -> Meaning<String> {
    let hex = |hash: &str| hash.len() == 64 && hash.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    if text.strip_prefix("sha256:").is_some_and(hex) {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no digest")).hint("a digest is `sha256:` and 64 hexadecimal digits"))
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
    object.group.as_deref().is_none_or(|group| !group.contains('.') || group.ends_with(".k8s.io"))
        && NAMESPACED.contains(&object.kind.as_str())
}

/// Kind and group, or the nearest kind there is.
fn kind(text: &str) -> Result<(String, Option<String>), Option<String>> {
    let (kind, group) = match text.split_once('.') {
        Some((kind, group)) => (kind, Some(group)),
        None => (text, None),
    };
    let camel = kind.starts_with(|c: char| c.is_ascii_uppercase()) && kind.chars().all(|c| c.is_ascii_alphanumeric());
    let group_fits = group.is_none_or(|group| group.split('.').all(is_label));
    if camel && group_fits {
        return Ok((kind.into(), group.map(Into::into)));
    }
    Err(nearest(kind, NAMESPACED).filter(|_| group_fits).map(|near| match group {
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

/// What happens to managedFields entries that name `from`.
pub(super) fn managed_fields(text: &str) -> Meaning<ManagedFields> {
    const NAMES: [&str; 3] = ["relabel", "drop", "keep"];
    match text {
        "relabel" => Ok(ManagedFields::Relabel),
        "drop" => Ok(ManagedFields::Drop),
        "keep" => Ok(ManagedFields::Keep),
        _ => wrong(
            says(format!("unknown value `{text}` of `managed-fields`"))
                .did_you_mean(nearest(text, NAMES))
                .hint(format!("it is {}", either(NAMES))),
        ),
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

/// The address of a pull request.
pub(super) fn address(text: &str) -> Meaning<String> {
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(text.into());
    }
    wrong(says(format!("`{text}` is no address")).hint("it starts with `https://`"))
}

/// The folder of a backup.
pub(super) fn backup_folder(text: &str) -> Meaning<String> {
    let left = text.replace("{run}", "");
    if let Some(start) = left.find(['{', '}']) {
        let found = &left[start..left[start..].find('}').map_or(left.len(), |end| start + end + 1)];
        return wrong(
            says(format!("unknown placeholder `{found}` in `to`"))
                .label("the only placeholder is `{run}`, the run's id"),
        );
    }
    Ok(text.into())
}

/// The status of a condition.
pub(super) fn condition_status(text: &str) -> Meaning<String> {
    const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
    if STATUSES.contains(&text) {
        return Ok(text.into());
    }
    wrong(
        says(format!("unknown value `{text}` of `status`"))
            .did_you_mean(nearest(text, STATUSES))
            .hint(format!("the status of a condition is {}", either(STATUSES))),
    )
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
