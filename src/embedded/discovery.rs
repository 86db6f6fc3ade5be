//! What the server serves, told to those who ask.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json::{api_version, split_api_version};
use super::kinds::Kind;
use super::state::State;
use super::status::Refusal;

const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Resources that can only be created: questions about the user.
const QUESTIONS: &[(&str, &str, &str)] = &[
    ("authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview"),
    ("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
];

impl State {
    /// `/api`.
    pub(super) fn core_versions() -> Value {
        json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    }

    /// `/apis`.
    pub(super) fn groups(&self) -> Value {
        let groups: Vec<_> = self.served().iter().map(|(group, versions)| group_of(group, versions)).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/GROUP`.
    pub(super) fn group(&self, group: &str) -> Result<Value, Refusal> {
        let served = self.served();
        let versions = served.get(group).ok_or_else(Refusal::page_not_found)?;
        let mut answer = group_of(group, versions);
        answer["kind"] = "APIGroup".into();
        answer["apiVersion"] = "v1".into();
        Ok(answer)
    }

    /// `/apis/GROUP/VERSION` and `/api/v1`.
    pub(super) fn resources(&self, group_version: &str) -> Result<Value, Refusal> {
        let (group, version) = split_api_version(group_version);
        let mut resources = Vec::new();
        for kind in self.kinds.values().filter(|kind| kind.group == group) {
            let Some(version) = kind.version(version).filter(|version| version.served) else { continue };
            resources.push(resource(kind));
            if version.status {
                resources.push(json!({
                    "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                    "kind": kind.kind, "verbs": ["get", "patch", "update"],
                }));
            }
        }
        for (_, plural, kind) in QUESTIONS.iter().filter(|(of, ..)| *of == group_version) {
            let singular = kind.to_lowercase();
            resources.push(json!({
                "name": plural, "singularName": singular, "namespaced": false, "kind": kind, "verbs": ["create"],
            }));
        }
        if resources.is_empty() {
            return Err(Refusal::page_not_found());
        }
        Ok(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
        }))
    }

    /// `/version`.
    pub(super) fn version(&self) -> Value {
        json!({
            "major": "1", "minor": self.release.minor.to_string(), "gitVersion": self.release.git_version,
            "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "go1.26",
            "compiler": "gc", "platform": "linux/amd64",
        })
    }

    /// Served versions by group, the preferred one first.
    fn served(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for kind in self.kinds.values().filter(|kind| !kind.group.is_empty()) {
            for version in kind.versions.iter().filter(|version| version.served) {
                let versions = groups.entry(&kind.group).or_default();
                if !versions.contains(&version.name.as_str()) {
                    versions.push(&version.name);
                }
            }
        }
        for (of, ..) in QUESTIONS {
            let (group, version) = split_api_version(of);
            groups.entry(group).or_default().push(version);
        }
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        }
        groups
    }
}

fn group_of(group: &str, versions: &[&str]) -> Value {
    let version = |name: &&str| json!({"groupVersion": api_version(group, name), "version": name});
    json!({
        "name": group, "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

fn resource(kind: &Kind) -> Value {
    let mut resource = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
        "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = kind.short_names.clone().into();
    }
    resource
}

/// Kubernetes' order of versions: v2 before v1 before v1beta2 before v1alpha1 before any other name.
fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let number = |text: &str| text.parse::<u64>().ok();
    let name = std::cmp::Reverse(version.to_owned());
    let parts = version.strip_prefix('v').and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((number(&rest[..end])?, &rest[end..]))
    });
    match parts {
        Some((major, "")) => (3, major, 0, name),
        Some((major, rest)) => {
            let stage = [(2, "beta"), (1, "alpha")];
            let found = stage.iter().find_map(|(rank, word)| Some((*rank, number(rest.strip_prefix(word)?)?)));
            found.map_or((0, 0, 0, name.clone()), |(rank, minor)| (rank, major, minor, name))
        }
        None => (0, 0, 0, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_maturity() {
        let mut versions = ["foo", "v1alpha1", "v1beta1", "v2alpha1", "v1", "v1beta2", "v10"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v1", "v1beta2", "v1beta1", "v2alpha1", "v1alpha1", "foo"]);
    }
}
