//! Who may do what.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json::text;
use super::status::{Named, Refusal};

/// Requests, as a rule of a role describes them. `*` stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// `get`, `list`, `patch`, …
    pub verbs: Vec<String>,
    /// API groups; empty text is the core group.
    pub groups: Vec<String>,
    /// Plurals, with subresource: `customresourcedefinitions/status`; paths that are no resource begin with `/`.
    pub resources: Vec<String>,
    /// Namespaces; none for any.
    pub namespaces: Vec<String>,
    /// Names; none for any.
    pub names: Vec<String>,
}

/// One question: may this be done?
#[derive(Clone, Debug)]
pub(super) struct Attempt<'a> {
    pub(super) verb: &'a str,
    pub(super) group: &'a str,
    /// With subresource.
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// The rights of every user. Who is not named may do everything.
#[derive(Debug, Default)]
pub(super) struct Access {
    granted: BTreeMap<String, Vec<Rule>>,
    denied: BTreeMap<String, Vec<Rule>>,
}

impl Rule {
    /// A rule over resources of one group.
    pub fn new(verbs: &[&str], group: &str, resources: &[&str]) -> Self {
        let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        Self { verbs: owned(verbs), groups: vec![group.into()], resources: owned(resources), ..Self::default() }
    }

    /// The same rule in one namespace only.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// The same rule for these names only.
    #[must_use]
    pub fn names(mut self, names: &[&str]) -> Self {
        self.names.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    fn covers(&self, attempt: &Attempt<'_>) -> bool {
        let any = |allowed: &[String], asked: &str| allowed.iter().any(|it| it == "*" || it == asked);
        let narrowed = |allowed: &[String], asked: &str| allowed.is_empty() || allowed.iter().any(|it| it == asked);
        any(&self.verbs, attempt.verb)
            && (attempt.resource.starts_with('/') || any(&self.groups, attempt.group))
            && any(&self.resources, attempt.resource)
            && narrowed(&self.namespaces, attempt.namespace)
            && narrowed(&self.names, attempt.name)
    }
}

impl Access {
    /// From now on this user may do only what the rules allow.
    pub(super) fn grant(&mut self, user: &str, rules: Vec<Rule>) {
        self.granted.insert(user.into(), rules);
    }

    /// From now on this user may not do what the rule describes.
    pub(super) fn deny(&mut self, user: &str, rule: Rule) {
        self.denied.entry(user.into()).or_default().push(rule);
    }

    pub(super) fn allows(&self, user: &str, attempt: &Attempt<'_>) -> bool {
        let covered = |rules: &Vec<Rule>| rules.iter().any(|rule| rule.covers(attempt));
        self.granted.get(user).is_none_or(covered) && !self.denied.get(user).is_some_and(covered)
    }

    /// Lets a request through, or says why not.
    pub(super) fn check(&self, user: &str, attempt: &Attempt<'_>) -> Result<(), Refusal> {
        if self.allows(user, attempt) {
            return Ok(());
        }
        let Attempt { verb, group, resource, namespace, name } = *attempt;
        if resource.starts_with('/') {
            let why = format!("User {user:?} cannot {verb} path {resource:?}");
            return Err(Refusal::forbidden_path(&why));
        }
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let why = format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}");
        let plural = resource.split('/').next().unwrap_or_default();
        Err(Refusal::forbidden(&Named::new(group, plural, name), &why))
    }

    /// Answers a `SelfSubjectAccessReview`.
    pub(super) fn review(&self, user: &str, review: &Value) -> Value {
        let attributes = &review["spec"]["resourceAttributes"];
        let part = |key: &str| text(attributes, &format!("/{key}"));
        let resource = match part("subresource") {
            "" => part("resource").to_owned(),
            subresource => format!("{}/{subresource}", part("resource")),
        };
        let (verb, resource) = match review.pointer("/spec/nonResourceAttributes") {
            Some(path) => (text(path, "/verb"), text(path, "/path").to_owned()),
            None => (part("verb"), resource),
        };
        let attempt = Attempt {
            verb,
            group: part("group"),
            resource: &resource,
            namespace: part("namespace"),
            name: part("name"),
        };
        let mut answer = review.clone();
        answer["status"] = json!({"allowed": self.allows(user, &attempt)});
        answer["metadata"] = json!({});
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_allow_and_deny() {
        let mut access = Access::default();
        let crds = "customresourcedefinitions";
        access.grant(
            "toucher",
            vec![
                Rule::new(&["get", "patch"], "demo.test", &["widgets"]).within("default"),
                Rule::new(&["*"], "apiextensions.k8s.io", &[crds]).names(&["widgets.demo.test"]),
            ],
        );
        access.deny("almost", Rule::new(&["patch"], "apiextensions.k8s.io", &["customresourcedefinitions/status"]));
        let status = "customresourcedefinitions/status";
        for (user, verb, group, resource, namespace, name, allowed) in [
            ("anyone", "delete", "", "secrets", "default", "a", true),
            ("toucher", "patch", "demo.test", "widgets", "default", "a", true),
            ("toucher", "list", "demo.test", "widgets", "default", "", false),
            ("toucher", "patch", "demo.test", "widgets", "other", "a", false),
            ("toucher", "patch", "demo.test", "widgets/status", "default", "a", false),
            ("toucher", "get", "apiextensions.k8s.io", crds, "", "widgets.demo.test", true),
            ("toucher", "get", "apiextensions.k8s.io", crds, "", "others.demo.test", false),
            ("almost", "patch", "apiextensions.k8s.io", status, "", "widgets.demo.test", false),
            ("almost", "patch", "apiextensions.k8s.io", crds, "", "widgets.demo.test", true),
        ] {
            let attempt = Attempt { verb, group, resource, namespace, name };
            assert_eq!(access.allows(user, &attempt), allowed, "{user}: {attempt:?}");
        }
    }
}
