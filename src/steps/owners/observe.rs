//! Metadata-only lists of every kind, reduced page by page to the children.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::{StreamExt, stream};
use serde_json::Value;

use super::{Child, Renames, Seen, kind_of, text};
use crate::{
    cluster::{ClusterError, Content, Reader},
    object::{Object, ObjectRef, Resource},
    runbook::{Owners, Runbook},
    steps::{Look, Survey, access::access, survey::Records, well_known::resolve},
};

/// Lists in flight at once.
const CONCURRENCY: usize = 8;
/// A broken aggregated API among many kinds must not cost its full bound (C40).
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks for children of the upgrade's objects.
pub async fn observe(task: &Owners, look: &Look<'_>) -> Seen {
    let mut seen = find(task, look.reader, look.runbook, look.survey).await;
    let kinds: BTreeSet<&Resource> = seen.children.iter().map(|child| &child.resource).collect();
    let mut denied = Vec::new();
    for resource in kinds {
        for verb in ["get", "patch"] {
            let access = access(verb, &resource.group, &resource.plural, None, None);
            // A review that fails is said once for all steps; here it leaves the right open.
            if matches!(look.reader.may(&access).await, Ok(false)) {
                denied.push(access);
            }
        }
    }
    seen.denied = denied;
    seen
}

/// The children as they are now.
pub(super) async fn find(task: &Owners, reader: &Reader, runbook: &Runbook, survey: &Survey) -> Seen {
    let mut seen = Seen::default();
    let resources = match resources(task, reader, &mut seen).await {
        Ok(resources) => resources,
        Err(words) => {
            seen.blind = Some(words);
            return seen;
        }
    };
    for surveyed in &survey.crds {
        if let Err(error) = &surveyed.crd {
            seen.unread.push((surveyed.name.clone(), error.words()));
        }
    }
    let renames = Renames::of(survey, runbook);
    let alive = alive(survey);
    let quick = reader.patient(PATIENCE);
    let (quick, renames, alive) = (&quick, &renames, &alive);
    let mut lists = stream::iter(resources.into_iter().map(|resource| at_survivor(resource, runbook, survey)))
        .map(|resource| async move { (list(quick, &resource, renames, alive).await, resource) })
        .buffer_unordered(CONCURRENCY);
    // The same object is served by several groups, or comes twice when a token expires.
    let mut children: BTreeMap<String, Child> = BTreeMap::new();
    while let Some((listed, resource)) = lists.next().await {
        match listed {
            Ok(found) => {
                seen.listed += 1;
                children.extend(found.children.into_iter().map(|child| (child.uid.clone(), child)));
                seen.orphans.extend(found.orphans);
            }
            // It went away since discovery, or it can only be watched.
            Err(error) if matches!(error.code(), 404 | 405) => {}
            Err(error) if error.is_forbidden() => seen.forbidden.push(resource.name()),
            Err(error) => seen.unlisted.push((resource.name(), error.words())),
        }
    }
    drop(lists);
    seen.children = children.into_values().collect();
    seen.children.sort_by(|one, other| one.object.cmp(&other.object));
    seen.orphans.sort();
    seen.orphans.dedup();
    seen.forbidden.sort();
    seen.unlisted.sort();
    seen
}

/// The kinds to list, or why they are not known.
async fn resources(task: &Owners, reader: &Reader, seen: &mut Seen) -> Result<Vec<Resource>, String> {
    if task.kinds.is_empty() {
        let found = reader.discover().await.map_err(|error| error.words())?;
        seen.unlisted.extend(found.unreachable.into_iter().map(|(group, words)| (format!("API group {group}"), words)));
        // Events are never owned, and there are many.
        return Ok(found.resources.into_iter().filter(|resource| resource.plural != "events").collect());
    }
    let mut resources = Vec::new();
    for kind in &task.kinds {
        match resolve(&kind_of(kind), reader).await {
            Ok(Some(resource)) => resources.push(resource),
            Ok(None) => seen.unknown.push(kind.clone()),
            Err(words) => seen.unlisted.push((kind.clone(), words)),
        }
    }
    Ok(resources)
}

/// A kind of the upgrade is read and written at the version that stays, whatever discovery prefers.
fn at_survivor(resource: Resource, runbook: &Runbook, survey: &Survey) -> Resource {
    let to = &runbook.upgrade.to;
    let upgraded =
        survey.installed().any(|crd| crd.group == resource.group && crd.plural == resource.plural && crd.serves(to));
    if upgraded { resource.at(to) } else { resource }
}

/// uids of the owners that exist, by kind and group; a kind that could not be listed is left out.
fn alive(survey: &Survey) -> BTreeMap<(String, String), BTreeSet<String>> {
    let listed = survey.crds.iter().filter_map(|surveyed| match (&surveyed.crd, &surveyed.records) {
        (Ok(Some(crd)), Records::Listed(records)) => {
            let uids = records.iter().map(|record| record.uid.clone()).collect();
            Some(((crd.group.clone(), crd.kind.clone()), uids))
        }
        _ => None,
    });
    listed.collect()
}

/// What one kind's list came to.
#[derive(Default)]
struct Listed {
    children: Vec<Child>,
    orphans: Vec<(ObjectRef, String)>,
}

async fn list(
    reader: &Reader,
    resource: &Resource,
    renames: &Renames,
    alive: &BTreeMap<(String, String), BTreeSet<String>>,
) -> Result<Listed, ClusterError> {
    let mut found = Listed::default();
    let mut pages = reader.pages(resource, None, Content::Metadata);
    while let Some(page) = pages.next().await? {
        for object in page {
            let (child, orphans) = child(&object, resource, renames, alive);
            found.children.extend(child);
            found.orphans.extend(orphans);
        }
    }
    Ok(found)
}

/// What of an object is meant, and what is not because its owner no longer exists.
fn child(
    object: &Object,
    resource: &Resource,
    renames: &Renames,
    alive: &BTreeMap<(String, String), BTreeSet<String>>,
) -> (Option<Child>, Vec<(ObjectRef, String)>) {
    let references = object.owner_references();
    let is_dead = |reference: &&Value| {
        let group = crate::object::split_api_version(text(reference, "apiVersion")).0;
        let owners = alive.get(&(group.to_owned(), text(reference, "kind").to_owned()));
        owners.is_some_and(|uids| !uids.contains(text(reference, "uid")))
    };
    let meant = references.iter().filter(|reference| renames.after(reference).is_some());
    let (dead, living): (Vec<&Value>, Vec<&Value>) = meant.partition(is_dead);
    let name = |owner: &&Value| (object.reference(), format!("{} {}", text(owner, "kind"), text(owner, "name")));
    let orphans = dead.iter().map(name).collect();
    let child = (!living.is_empty()).then(|| Child {
        resource: resource.clone(),
        object: object.reference(),
        uid: object.uid().into(),
        resource_version: object.resource_version().into(),
        owner_references: references.to_vec(),
        dead: dead.iter().map(|owner| text(owner, "uid").to_owned()).collect(),
    });
    (child, orphans)
}
