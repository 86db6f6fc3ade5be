//! Delete named objects, or those that match a condition and did so when the backup was taken.
//!
//! Never what a conversion still needs: while any CRD's webhook goes through a Service, neither
//! that Service nor a Secret beside it may go (C14). Never a CRD, never a Namespace.

mod observe;
mod run;

use std::collections::BTreeSet;

pub use observe::{observe, target};
pub use run::run;
use serde_json::Value;

use super::{Decision, Seen as AnySeen, UndoBy, World, access::access, backup, well_known::known};
use crate::{
    cluster::Access,
    crd::WebhookService,
    object::{Object, ObjectRef, Resource},
    plan::{Change, Finding, Operation},
    runbook::{Delete, DeleteTarget, Step, StepId, Task},
};

/// What there is to delete, and what speaks against it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Objects that are there and named, or match.
    pub targets: Vec<Target>,
    /// What could not be looked at, with the server's words.
    pub unreadable: Vec<String>,
    /// uids that matched when the backup was taken; none before there is one.
    pub scope: Option<BTreeSet<String>>,
    /// CRDs of the upgrade whose conversion goes through a Service, by name.
    pub conversions: Vec<(String, WebhookService)>,
    /// The same of CRDs that the runbook does not upgrade: no merge takes theirs away.
    pub foreign_conversions: Vec<(String, WebhookService)>,
    /// Why CRDs outside the upgrade could not be looked at.
    pub conversions_unread: Option<String>,
    /// Secrets that stay as they are, each with the reason: somebody else's, or in use.
    pub spared: Vec<(ObjectRef, String)>,
    /// Workloads that run with a Secret that is to go: the Secret, the workload.
    pub mounted: Vec<(ObjectRef, ObjectRef)>,
    /// Why workloads could not be looked at.
    pub mounted_unread: Option<String>,
}

/// One object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its resource.
    pub resource: Resource,
    /// Which object.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// Whether deletion has begun.
    pub deleting: bool,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

impl Target {
    fn is_core(&self, kind: &str) -> bool {
        self.resource.group.is_empty() && self.resource.kind == kind
    }
}

impl Seen {
    /// Objects that this step may take and that are not on their way out yet.
    ///
    /// What is spared is settled: it is said, and nothing is left to do about it.
    fn due(&self, task: &Delete) -> Vec<&Target> {
        let spared = |target: &Target| self.spared.iter().any(|(object, _)| *object == target.object);
        self.in_scope(task).filter(|target| !target.deleting && !spared(target)).collect()
    }

    fn in_scope(&self, task: &Delete) -> impl Iterator<Item = &Target> {
        // Whoever names an object means whatever has the name; a condition could begin to match
        // anything later.
        let scope = self.scope.as_ref().filter(|_| matches!(task.target, DeleteTarget::Matching { .. }));
        self.targets.iter().filter(move |target| scope.is_none_or(|scope| scope.contains(&target.uid)))
    }
}

/// Whether an object's status carries the condition; always for named objects.
fn matches(task: &Delete, object: &Object) -> bool {
    let DeleteTarget::Matching { condition_type, status, reason, .. } = &task.target else { return true };
    let agrees = |condition: &Value, key: &str, wanted: Option<&String>| {
        wanted.is_none_or(|wanted| condition.get(key).and_then(Value::as_str) == Some(wanted))
    };
    object.items("/status/conditions").iter().any(|condition| {
        agrees(condition, "type", Some(condition_type))
            && agrees(condition, "status", status.as_ref())
            && agrees(condition, "reason", reason.as_ref())
    })
}

/// CRDs whose conversion needs an object: their webhook's Service, or a Secret beside it.
fn needed_by<'a>(target: &Target, conversions: &'a [(String, WebhookService)]) -> Vec<&'a str> {
    let needs = |service: &WebhookService| {
        let beside = target.object.namespace.as_ref() == Some(&service.namespace);
        beside && (target.is_core("Secret") || (target.is_core("Service") && target.object.name == service.name))
    };
    conversions.iter().filter(|(_, service)| needs(service)).map(|(crd, _)| crd.as_str()).collect()
}

/// Whether a resource is one that this program never deletes.
fn is_sacred(resource: &Resource) -> bool {
    let name = resource.name();
    name == "namespaces" || name == "customresourcedefinitions.apiextensions.k8s.io"
}

/// Settled when nothing that it may take is left.
pub fn decide(step: &Step, task: &Delete, seen: &Seen, world: &World<'_>) -> Decision {
    let decision = judge(task, seen, world.point_of_no_return_before(&step.id));
    let by_condition = matches!(task.target, DeleteTarget::Matching { .. });
    // Until a backup says what matched, only one that is still to be taken can.
    let unguarded = by_condition && !decision.settled && seen.scope.is_none() && !backup_to_come(step, world);
    decision.with(unguarded.then(|| {
        Finding::blocker("no backup says which objects matched, and a delete by condition takes only those")
            .hint("let this step need a `backup` step")
    }))
}

/// Whether a backup is still to be taken before a step.
fn backup_to_come(step: &Step, world: &World<'_>) -> bool {
    let steps = world.runbook.steps.iter();
    let mut before = steps.filter(|other| world.graph.reaches(&step.id, &other.id));
    before.any(|other| match (&other.task, world.situation.seen.get(&other.id)) {
        (Task::Backup(task), Some(AnySeen::Backup(seen))) => !backup::decide(task, seen, world).settled,
        _ => false,
    })
}

/// `merge`: the step before this one after which no conversion is left.
fn judge(task: &Delete, seen: &Seen, merge: Option<&StepId>) -> Decision {
    let due = seen.due(task);
    let decision = if !due.is_empty() {
        Decision::pending(summary(task, &due)).undo(UndoBy::Backup)
    } else if !seen.unreadable.is_empty() {
        Decision::pending("what there is to delete could not be looked at")
    } else {
        Decision::settled(match &task.target {
            DeleteTarget::Objects(_) if !seen.spared.is_empty() => "nothing that may go is there".to_owned(),
            DeleteTarget::Objects(objects) if objects.len() == 1 => "it is not there".to_owned(),
            DeleteTarget::Objects(objects) => format!("none of {} is there", objects.len()),
            DeleteTarget::Matching { resource, .. } => format!("no {resource}{} to delete", place(task)),
        })
    };
    let changes = due.iter().map(|target| Change {
        operation: Operation::Delete,
        object: target.object.clone(),
        fields: Vec::new(),
    });
    decision.changing(changes).with(findings(task, seen, &due, merge))
}

fn summary(task: &Delete, due: &[&Target]) -> String {
    if let (DeleteTarget::Matching { .. }, [first, rest @ ..]) = (&task.target, due) {
        let kind = if rest.is_empty() { first.object.kind.clone() } else { plural(&first.object.kind) };
        return format!("delete {} {kind}{}", due.len(), place(task));
    }
    let names: Vec<String> = due.iter().map(|target| target.object.to_string()).collect();
    format!("delete {}", names.join(", "))
}

fn place(task: &Delete) -> String {
    task.namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"))
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

fn findings(task: &Delete, seen: &Seen, due: &[&Target], merge: Option<&StepId>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = seen.unreadable.iter().map(Finding::not_checked).collect();
    if let Some(text) = too_many(task, due) {
        findings.push(Finding::blocker(text).hint("look at each of them; if all are meant, raise at-most"));
    }
    for target in due {
        findings.extend(about(target, seen, merge));
    }
    for (object, why) in &seen.spared {
        let finding = Finding::warning(format!("not deleted: {why}")).about(object.clone());
        findings.push(finding.hint("if it is to go, delete it by hand"));
    }
    let in_scope: BTreeSet<&str> = seen.in_scope(task).map(|target| target.uid.as_str()).collect();
    for target in &seen.targets {
        if !in_scope.contains(target.uid.as_str()) {
            let text = "not deleted: it began to match after the backup was taken";
            findings.push(Finding::note(text).about(target.object.clone()));
        } else if target.deleting {
            let held = held_by(&target.finalizers);
            findings.push(Finding::warning(format!("its deletion has begun{held}")).about(target.object.clone()));
        }
    }
    if due.iter().any(|target| target.is_core("Secret") || target.is_core("Service")) {
        if let Some(words) = &seen.conversions_unread {
            let text = format!("whether CRDs outside the upgrade convert through it could not be looked at: {words}");
            findings.push(Finding::not_checked(text));
        }
        if let Some(words) = &seen.mounted_unread {
            findings.push(Finding::not_checked(format!("whether a workload uses it could not be looked at: {words}")));
        }
    }
    findings
}

/// What speaks against deleting one object.
fn about(target: &Target, seen: &Seen, merge: Option<&StepId>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_sacred(&target.resource) {
        findings.push(Finding::blocker("sbx never deletes a CustomResourceDefinition or a Namespace"));
    }
    let crds = needed_by(target, &seen.conversions);
    if !crds.is_empty() {
        let text = format!("the conversion of {} still needs it", crds.join(", "));
        let finding = Finding::blocker(text).resolved_by(merge);
        findings.push(finding.hint("it may go once these CRDs have strategy None: after the merge"));
    }
    let crds = needed_by(target, &seen.foreign_conversions);
    if !crds.is_empty() {
        let text =
            format!("the conversion of {} still needs it, and this runbook does not upgrade them", crds.join(", "));
        findings.push(Finding::blocker(text).hint("it must stay while they convert; take it out of this step"));
    }
    for (_, workload) in seen.mounted.iter().filter(|(secret, _)| *secret == target.object) {
        findings.push(Finding::warning(format!("{workload} runs with it")));
    }
    if !target.finalizers.is_empty() {
        findings.push(Finding::note(format!("it will stay for a while{}", held_by(&target.finalizers))));
    }
    findings.into_iter().map(|finding| finding.about(target.object.clone())).collect()
}

/// More objects than the runbook allows.
fn too_many(task: &Delete, due: &[&Target]) -> Option<String> {
    match task.target {
        DeleteTarget::Matching { at_most, .. } if due.len() > at_most => {
            Some(format!("{} objects match, and at-most says {at_most}", due.len()))
        }
        _ => None,
    }
}

fn held_by(finalizers: &[String]) -> String {
    if finalizers.is_empty() { String::new() } else { format!(", held by finalizers {}", finalizers.join(", ")) }
}

/// Reads and deletes by name, or lists, reads and deletes of the resource in the namespace.
pub fn rights(task: &Delete) -> Vec<Access> {
    let namespace = task.namespace.as_deref();
    match &task.target {
        DeleteTarget::Objects(objects) => objects
            .iter()
            .filter_map(|named| known(named).map(|resource| (named, resource)))
            .flat_map(|(named, resource)| {
                ["get", "delete"]
                    .map(|verb| access(verb, &resource.group, &resource.plural, namespace, Some(&named.name)))
            })
            .collect(),
        DeleteTarget::Matching { resource, .. } => {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            ["list", "get", "delete"].map(|verb| access(verb, group, plural, namespace, None)).into()
        }
    }
}

#[cfg(test)]
mod tests;
