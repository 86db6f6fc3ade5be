//! Gate: objects that somebody else removes are gone.
//!
//! Only looks. Apply waits for it when it comes after a change.

use super::{Decision, Look, World, access::access, well_known::resolve};
use crate::{
    cluster::{Access, Content},
    object::ObjectRef,
    plan::Finding,
    runbook::{Gone, NamedObject},
};

/// What is left of the objects.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Those still there, with whether deletion has begun.
    pub present: Vec<(ObjectRef, bool)>,
    /// Those that could not be looked at, with the reason.
    pub unreadable: Vec<(NamedObject, String)>,
}

/// Looks for each object by name.
pub async fn observe(task: &Gone, look: &Look<'_>) -> Seen {
    let mut seen = Seen { present: Vec::new(), unreadable: Vec::new() };
    for named in &task.objects {
        let resource = match resolve(named, look.reader).await {
            Ok(Some(resource)) => resource,
            // A kind that is not served has no objects.
            Ok(None) => continue,
            Err(words) => {
                seen.unreadable.push((named.clone(), words));
                continue;
            }
        };
        match look.reader.look_for(&resource, task.namespace.as_deref(), &named.name, Content::Metadata).await {
            Ok(Some(object)) => seen.present.push((object.reference(), object.deleting())),
            Ok(None) => {}
            Err(error) => seen.unreadable.push((named.clone(), error.words())),
        }
    }
    seen
}

/// Open when nothing is left and everything could be looked at.
pub fn decide(task: &Gone, seen: &Seen, _world: &World<'_>) -> Decision {
    let unreadable = seen.unreadable.iter().map(|(named, words)| {
        Finding::not_checked(format!("{}/{} could not be looked at: {words}", named.kind, named.name))
    });
    let total = task.objects.len();
    let decision = if !seen.present.is_empty() {
        let names: Vec<String> = seen
            .present
            .iter()
            .map(|(object, deleting)| format!("{object}{}", if *deleting { " (being deleted)" } else { "" }))
            .collect();
        Decision::pending(format!("{} of {total} still there: {}", names.len(), names.join(", ")))
    } else if seen.unreadable.is_empty() {
        Decision::settled(format!("{total} of {total} gone"))
    } else {
        Decision::pending(format!("{} of {total} could not be looked at", seen.unreadable.len()))
    };
    decision.with(unreadable)
}

/// Reads each object by name.
pub fn rights(task: &Gone) -> Vec<Access> {
    let known = task.objects.iter().filter_map(|named| super::well_known::known(named).map(|known| (named, known)));
    known
        .map(|(named, resource)| {
            access("get", &resource.group, &resource.plural, task.namespace.as_deref(), Some(&named.name))
        })
        .collect()
}
