//! The smallest roles with which a runbook can be planned and applied (design, fact 17). Pure: no cluster is asked.
//!
//! Every step kind says the rights it cannot do without; beside them stand the reads without which a plan would say
//! `not checked`. Discovery and access reviews are every authenticated user's own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{
    access::{WRITING, access, lock_rights, needed, on_crds, on_kinds},
    migrate::migration_resources,
    well_known::known,
};
use crate::{
    cluster::{Access, full_name},
    runbook::{DeleteTarget, Manifests, NamedObject, Owners, Runbook, Task},
};

/// Kinds that are known to be owned by records of an upgrade (design, facts 5 and 16), where a runbook names none.
const CARRIERS: [(&str, &str); 5] = [
    ("", "pods"),
    ("", "services"),
    ("", "persistentvolumeclaims"),
    ("", "secrets"),
    ("networking.k8s.io", "networkpolicies"),
];

/// What a role is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A plan that sees everything and may write nothing.
    Plan,
    /// The whole upgrade.
    Apply,
}

/// The rights for one purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Rules by namespace; none: at the cluster scope.
    pub rules: BTreeMap<Option<String>, Vec<Rule>>,
    /// What a reader should know of them, a line each.
    pub notes: Vec<String>,
}

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API group; empty for the core group.
    pub group: String,
    /// Plurals, with subresource; none for a path.
    pub resources: Vec<String>,
    /// Names; none for all.
    pub names: Vec<String>,
    /// Paths that are no resource.
    pub paths: Vec<String>,
    /// What may be done.
    pub verbs: Vec<String>,
}

/// The roles of a runbook for a purpose.
pub fn roles(runbook: &Runbook, purpose: Purpose) -> Roles {
    let mut notes = Vec::new();
    let mut rights: BTreeSet<Access> = needed(runbook).into_keys().collect();
    rights.extend(on_crds(runbook, "get", ""));
    rights.extend(on_kinds(runbook, "list"));
    rights.insert(access("get", "", "namespaces", None, Some("kube-system")));
    for step in &runbook.steps {
        match &step.task {
            Task::Migrate(_) => {
                rights.extend(
                    migration_resources().iter().map(|kind| access("list", &kind.group, &kind.plural, None, None)),
                );
            }
            Task::Owners(task) => rights.extend(of_owners(task, purpose, &mut notes)),
            Task::Delete(task) => {
                // Whether another CRD converts through it, and whether a workload runs with it.
                let guarded = match &task.target {
                    DeleteTarget::Objects(objects) => {
                        objects.iter().any(|named| matches!(named.kind.as_str(), "Secret" | "Service"))
                    }
                    DeleteTarget::Matching { resource, .. } => matches!(resource.as_str(), "secrets" | "services"),
                };
                if guarded {
                    let namespace = task.namespace.as_deref();
                    rights.insert(access("list", "apiextensions.k8s.io", "customresourcedefinitions", None, None));
                    rights.insert(access("list", "apps", "deployments", namespace, None));
                }
            }
            Task::Manifests(task) => notes.extend(of_manifests(task)),
            _ => {}
        }
    }
    let locking = lock_rights(runbook);
    if purpose == Purpose::Plan {
        rights.retain(|access| !WRITING.contains(&access.verb.as_str()) && !locking.contains(access));
    }
    let mut rules = joined(&rights);
    if runbook.steps.iter().any(|step| matches!(step.task, Task::Writers(_))) {
        let metrics = Rule { paths: vec!["/metrics".into()], verbs: vec!["get".into()], ..Rule::default() };
        rules.entry(None).or_default().push(metrics);
    }
    Roles { rules, notes }
}

/// Where no kind is named every one is listed, and only the cluster knows which hold children.
fn of_owners(task: &Owners, purpose: Purpose, notes: &mut Vec<String>) -> Vec<Access> {
    if task.kinds.is_empty() {
        notes.push("owners looks at every kind, Secrets too: name `kinds` in its step, and this narrows".into());
        let all = access("list", "*", "*", None, None);
        if purpose == Purpose::Plan {
            return vec![all];
        }
        notes.push("children of other kinds than those to be patched here: the plan names the right that lacks".into());
        let patched = CARRIERS
            .iter()
            .flat_map(|(group, plural)| ["get", "patch"].map(|verb| access(verb, group, plural, None, None)));
        return patched.chain([all]).collect();
    }
    let unknown = task.kinds.iter().filter(|kind| known(&super::owners::kind_of(kind)).is_none());
    notes.extend(unknown.map(|kind| format!("{kind}: its plural is not known here; add list, get and patch by hand")));
    Vec::new()
}

fn of_manifests(task: &Manifests) -> Vec<String> {
    let (objects, _) = super::manifests::load(task);
    let named = |object: &crate::object::Object| {
        let reference = object.reference();
        NamedObject { kind: reference.kind, group: Some(reference.group), name: reference.name }
    };
    let is_crd = |named: &NamedObject| named.kind == "CustomResourceDefinition";
    let unknown = objects.iter().map(named).filter(|named| !is_crd(named) && known(named).is_none());
    let mut notes: Vec<String> = unknown
        .map(|named| format!("{}: its plural is not known here; add get and patch by hand", named.kind))
        .collect();
    notes.push("manifests that make new objects need `create` on their kinds as well".into());
    notes
}

impl Rule {
    /// Whether it grants a right, in the namespace of its role.
    pub(super) fn covers(&self, namespace: Option<&str>, access: &Access) -> bool {
        let named = |all: &[String]| access.name.as_ref().is_some_and(|name| all.contains(name));
        self.group == access.group
            && self.resources.contains(&access.resource)
            && self.verbs.contains(&access.verb)
            && (self.names.is_empty() || named(&self.names))
            && (namespace.is_none() || namespace == access.namespace.as_deref())
    }
}

/// `patch customresourcedefinitions/status (widgets.demo.test)`, `get, list sandboxes.agents.x-k8s.io`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources: Vec<String> = self.resources.iter().map(|resource| full_name(&self.group, resource)).collect();
        write!(f, "{} {}", self.verbs.join(", "), resources.join(", "))?;
        if self.names.is_empty() { Ok(()) } else { write!(f, " ({})", self.names.join(", ")) }
    }
}

/// Rights as few rules: verbs of one object or kind together, then names, then plurals of one group.
pub(super) fn joined(rights: &BTreeSet<Access>) -> BTreeMap<Option<String>, Vec<Rule>> {
    let is_implied = |access: &Access| {
        let wide = |namespace: &Option<String>| Access { namespace: namespace.clone(), name: None, ..access.clone() };
        let by_kind = access.name.is_some() && rights.contains(&wide(&access.namespace));
        let all = Access { verb: access.verb.clone(), ..super::access::access("", "*", "*", None, None) };
        let by_all = *access != all && rights.contains(&all);
        by_all || by_kind || access.namespace.is_some() && rights.contains(&wide(&None))
    };
    let verbs = grouped(
        rights
            .iter()
            .filter(|right| !is_implied(right))
            .map(|right| ((&right.namespace, &right.group, &right.resource, &right.name), right.verb.clone())),
    );
    let names = grouped(verbs.into_iter().map(|((namespace, group, resource, name), verbs)| {
        ((namespace, group, resource, name.is_some(), verbs), name.clone())
    }));
    let plurals = grouped(names.into_iter().map(|((namespace, group, resource, _, verbs), names)| {
        let names: Vec<String> = names.into_iter().flatten().collect();
        // A name belongs to one plural, and a reader looks for the two together.
        let apart = (!names.is_empty()).then_some(resource);
        ((namespace, group, names, verbs, apart), resource.clone())
    }));
    let rules = plurals.into_iter().map(|((namespace, group, names, verbs, _), resources)| {
        (namespace.clone(), Rule { group: group.clone(), resources, names, paths: Vec::new(), verbs })
    });
    grouped(rules).into_iter().collect()
}

/// Values by key, keys in order.
fn grouped<K: Ord, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: BTreeMap<K, Vec<V>> = BTreeMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups.into_iter().collect()
}
