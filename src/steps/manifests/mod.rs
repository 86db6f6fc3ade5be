//! Server-side apply of files, in our own name: for those whom no deployer serves.
//!
//! What it would change is what the server says of a dry run, compared with what is there. Files
//! that hold a CRD of the upgrade drop the old version as a merge does, so they pass the same guard.

mod observe;
mod run;

pub use observe::observe;
pub use run::run;

use super::{Decision, UndoBy, World, access::access, well_known::known};
use crate::{
    cluster::Access,
    crd::crd_resource,
    files::read_objects,
    object::{Object, ObjectRef, Resource},
    plan::{Change, FieldChange, Finding, Operation},
    runbook::{Manifests, NamedObject, Step, StepId},
};

/// What the server says of each object in the files.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// In the order in which they are applied.
    pub items: Vec<Item>,
    /// Files that cannot be read, with the reason.
    pub unreadable: Vec<String>,
}

/// One object of the files.
#[derive(Clone, Debug)]
pub struct Item {
    /// Which object.
    pub object: ObjectRef,
    /// What would become of it.
    pub verdict: Verdict,
}

/// What would become of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is as in the file.
    Same,
    /// It would be made.
    Create,
    /// These fields would change.
    Change(Vec<FieldChange>),
    /// Its kind or its namespace comes with these files, so it cannot be asked yet: which of them.
    Later(String),
    /// Other managers own fields that it sets: each manager and field, and what would change.
    Conflict(Vec<(String, String)>, Vec<FieldChange>),
    /// The server says no: each time the field, where it names one, and its words.
    Refused(Vec<(Option<String>, String)>),
    /// Could not be asked, in the server's words.
    NotChecked(String),
}

/// The objects of a runbook's files in the order in which they are applied, and what cannot be read.
pub(super) fn load(task: &Manifests) -> (Vec<Object>, Vec<String>) {
    let (mut objects, mut unreadable) = (Vec::new(), Vec::new());
    for file in &task.files {
        match read_objects(file) {
            Ok(read) => objects.extend(read),
            Err(words) => unreadable.push(words),
        }
    }
    // Stable: within a rank the author's order stands.
    objects.sort_by_key(|object| match object.kind() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        _ => 2,
    });
    (objects, unreadable)
}

/// Settled when every object is there as in the files.
pub fn decide(step: &Step, _task: &Manifests, seen: &Seen, world: &World<'_>) -> Decision {
    let before = |kind: &str| world.first_of_kind(kind).filter(|other| world.graph.reaches(&step.id, other));
    judge(seen, before("migrate"), before("release"))
}

/// `migrate` and `release`: the steps before this one that take refusals out of the way.
fn judge(seen: &Seen, migrate: Option<&StepId>, release: Option<&StepId>) -> Decision {
    let count = |what: fn(&Verdict) -> bool| seen.items.iter().filter(|item| what(&item.verdict)).count();
    let created = count(|verdict| matches!(verdict, Verdict::Create | Verdict::Later(_)));
    let changed = count(|verdict| matches!(verdict, Verdict::Change(_) | Verdict::Conflict(..)));
    let unknown = count(|verdict| matches!(verdict, Verdict::Refused(_) | Verdict::NotChecked(_)));
    let total = seen.items.len();
    let parts = [(created, "create"), (changed, "change"), (unknown, "not known of")];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} {count}")).collect();
    let decision = match (said.is_empty(), seen.unreadable.is_empty()) {
        (true, true) => Decision::settled(format!("{total} objects are as in the files")),
        (true, false) => Decision::pending("the files cannot be read"),
        (false, _) => Decision::pending(format!("{} of {total} objects", said.join(", "))).undo(UndoBy::NoWayBack),
    };
    let unreadable = seen.unreadable.iter().map(Finding::blocker);
    decision
        .changing(seen.items.iter().filter_map(change))
        .with(unreadable)
        .with(seen.items.iter().flat_map(|item| findings(item, migrate, release)))
}

fn change(item: &Item) -> Option<Change> {
    let (operation, fields) = match &item.verdict {
        Verdict::Create | Verdict::Later(_) => (Operation::Create, Vec::new()),
        Verdict::Change(fields) | Verdict::Conflict(_, fields) => (Operation::Update, fields.clone()),
        Verdict::Same | Verdict::Refused(_) | Verdict::NotChecked(_) => return None,
    };
    Some(Change { operation, object: item.object.clone(), fields })
}

fn findings(item: &Item, migrate: Option<&StepId>, release: Option<&StepId>) -> Vec<Finding> {
    let found = match &item.verdict {
        Verdict::Same | Verdict::Create | Verdict::Change(_) => Vec::new(),
        Verdict::Later(what) => vec![Finding::note(format!("can be asked only once {what} is applied"))],
        Verdict::NotChecked(words) => vec![Finding::not_checked(format!("its dry run could not be asked: {words}"))],
        Verdict::Conflict(owners, _) => {
            let owned: Vec<String> = owners.iter().map(|(manager, field)| format!("{field} of {manager}")).collect();
            let text = format!("would take fields over: {}", owned.join(", "));
            vec![Finding::blocker(text).hint("agree with their owners, or set `force = true` to take them over")]
        }
        Verdict::Refused(causes) => {
            let finding = |(field, words): &(Option<String>, String)| {
                // What migrate and release take out of the way is known by its field (design, fact 10).
                let by = match field.as_deref() {
                    Some(field) if field.starts_with("status.storedVersions") => migrate,
                    Some(field) if field.starts_with("spec.conversion") => release,
                    _ => None,
                };
                Finding::blocker(format!("would be refused: {words}")).resolved_by(by)
            };
            causes.iter().map(finding).collect()
        }
    };
    found.into_iter().map(|finding| finding.about(item.object.clone())).collect()
}

/// Reads and patches what the files name, as far as their kinds are known by heart: which resource
/// any other kind is, only discovery knows, and its dry run asks for the right.
pub fn rights(task: &Manifests) -> Vec<Access> {
    let (objects, _) = load(task);
    let resource = |object: &Object| -> Option<Resource> {
        let reference = object.reference();
        if reference.kind == "CustomResourceDefinition" {
            return Some(crd_resource());
        }
        known(&NamedObject { kind: reference.kind, group: Some(reference.group), name: reference.name })
    };
    let known = objects.iter().filter_map(|object| resource(object).map(|resource| (object, resource)));
    known
        .flat_map(|(object, resource)| {
            ["get", "patch"].map(|verb| {
                let namespace = object.namespace().filter(|_| resource.namespaced);
                access(verb, &resource.group, &resource.plural, namespace, Some(object.name()))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
