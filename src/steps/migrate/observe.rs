//! What migrate looks at beyond the survey: other migrators, and names that lead nowhere.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};

use super::{
    defaults::{defaults_set, schema},
    migration_resources,
    patch::patch,
};
use crate::{
    cluster::{Content, Reader},
    crd::Crd,
    object::{Object, ObjectRef},
    plan::{FieldChange, Finding},
    runbook::{Migrate, Reference},
    steps::{
        Look,
        pace::WIDTH,
        survey::{Records, Surveyed},
    },
};

/// The way out of a conversion that fails.
const PUT_BACK: &str = "the record is healthy, its conversion is not: put the webhook and the controller that answers \
                        it back, or mend them, then plan again; never set strategy None, and delete nothing";
/// Records of each kind whose rewrite is tried in a dry run.
const REHEARSED: u32 = 50;

/// What was seen beyond the survey.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Migrations of the upgrade's kinds by somebody else that have not ended, by name.
    pub running: Vec<String>,
    /// Objects whose reference names nothing: the object, the field, the name.
    pub dangling: Vec<(ObjectRef, Reference, String)>,
    /// What could not be looked at, in the server's words.
    pub unchecked: Vec<String>,
    /// Records whose rewrite sets fields that only `to` has, at their defaults.
    pub defaulted: Vec<(ObjectRef, Vec<FieldChange>)>,
    /// Records whose rewrite the server refused in a dry run, or whose spec it would change.
    pub refused: Vec<Refused>,
}

/// A record whose rewrite the server refused in a dry run, or whose spec it would change.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which one.
    pub object: ObjectRef,
    /// Why, in the server's words.
    pub words: String,
    /// Whether its conversion failed, which says nothing about the record.
    pub conversion: bool,
}

/// Looks for other migrators and for names that lead nowhere.
pub async fn observe(task: &Migrate, look: &Look<'_>) -> Seen {
    let (running, unchecked) = others_at_work(look.reader, &look.runbook.upgrade.crds).await;
    let mut seen = Seen { running, unchecked, ..Seen::default() };
    for surveyed in &look.survey.crds {
        if let (Ok(Some(crd)), Records::Listed(_)) = (&surveyed.crd, &surveyed.records) {
            rehearse(task, crd, look, &mut seen).await;
        }
    }
    for reference in &look.runbook.upgrade.references {
        check(reference, look, &mut seen).await;
    }
    seen
}

/// Dry-runs the very patch on the first records: admission, size and a changed spec show before
/// anything is written. It cannot prove a record (design, fact 1).
async fn rehearse(task: &Migrate, crd: &Crd, look: &Look<'_>, seen: &mut Seen) {
    let (reader, upgrade) = (look.reader, &look.runbook.upgrade);
    if crd.object.deleting() || !crd.declares(&upgrade.from) {
        return;
    }
    let resource = crd.resource(&upgrade.to);
    let stamp = format!("{:.0}", reader.clock().now());
    let Ok(Some(page)) = reader.pages(&resource, None, Content::Metadata).at_most(REHEARSED).next().await else {
        return;
    };
    let trials = page.into_iter().map(|object| {
        let mut patch = patch(task, upgrade, crd, &object, &stamp);
        patch["metadata"]["uid"] = object.uid().into();
        patch["metadata"]["resourceVersion"] = object.resource_version().into();
        let resource = &resource;
        async move {
            let answer = reader.dry_run_patch(resource, object.namespace(), object.name(), patch).await;
            (object, answer)
        }
    });
    let mut answers = stream::iter(trials).buffered(WIDTH);
    let mut unasked = None;
    while let Some((object, answer)) = answers.next().await {
        match answer {
            Ok(after) if object.generation().is_some() && after.generation() != object.generation() => {
                let Ok(Some(before)) = reader.get(&resource, object.namespace(), object.name()).await else { continue };
                match defaults_set(&before, &after, schema(crd, &upgrade.to)) {
                    Ok(changes) => seen.defaulted.push((object.reference(), changes)),
                    Err(paths) => {
                        let words = format!("the rewrite would change {}", paths.join(", "));
                        seen.refused.push(Refused { object: object.reference(), words, conversion: false });
                    }
                }
            }
            Ok(_) => {}
            // Changed or gone since the list: the run reads again.
            Err(error) if error.is_conflict() || error.is_not_found() || error.is_recreated() => {}
            // A server that is busy or restarts says nothing about the record.
            Err(error) if error.is_forbidden() || (error.may_heal() && !error.is_conversion()) => {
                // The first in the list's order: the same cluster gives the same words.
                unasked.get_or_insert_with(|| error.words());
            }
            Err(error) => seen.refused.push(Refused {
                object: object.reference(),
                words: error.words(),
                conversion: error.is_conversion(),
            }),
        }
    }
    seen.unchecked.extend(unasked.map(|words| format!("a dry run of the rewrite of {}: {words}", crd.plural)));
}

/// `StorageVersionMigration`s of these CRDs that have not ended, by name. An API that is absent has none.
///
/// The second list: what could not be looked at.
pub(super) async fn others_at_work(reader: &Reader, crds: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut running, mut unchecked) = (Vec::new(), Vec::new());
    for resource in migration_resources() {
        let mut pages = reader.pages(&resource, None, Content::Full);
        loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    let those = page.iter().filter(|object| runs_on(object, crds));
                    running.extend(those.map(|object| object.name().to_owned()));
                }
                Ok(None) => break,
                Err(error) if error.is_not_found() => break,
                // Whoever may not list is refused before it is known whether there is such an API.
                Err(error) => {
                    if !matches!(reader.resources_of(&resource.api_version()).await, Ok(None)) {
                        unchecked.push(format!("whether another migrator is at work: {error}"));
                    }
                    break;
                }
            }
        }
    }
    (running, unchecked)
}

fn runs_on(object: &Object, crds: &[String]) -> bool {
    let ended = object.items("/status/conditions").iter().any(|condition| {
        let text = |key: &str| condition.get(key).and_then(serde_json::Value::as_str);
        matches!(text("type"), Some("Succeeded" | "Failed")) && text("status") == Some("True")
    });
    let part = |key: &str| object.str(&format!("/spec/resource/{key}")).unwrap_or_default();
    !ended && crds.contains(&format!("{}.{}", part("resource"), part("group")))
}

async fn check(reference: &Reference, look: &Look<'_>, seen: &mut Seen) {
    let of = |name: &str| look.survey.crds.iter().find(|surveyed| surveyed.name == name);
    let (Some(Surveyed { crd: Ok(Some(crd)), .. }), Some(target)) = (of(&reference.from), of(&reference.to)) else {
        return;
    };
    let records = target.records.listed();
    let known: BTreeSet<(Option<&str>, &str)> =
        records.iter().map(|record| (record.object.namespace.as_deref(), record.object.name.as_str())).collect();
    let mut pages = look.reader.pages(&crd.resource(&look.runbook.upgrade.to), None, Content::Full);
    loop {
        match pages.next().await {
            Ok(Some(page)) => {
                for object in page {
                    let Some(name) = object.str(&reference.field) else { continue };
                    if !known.contains(&(object.namespace(), name)) {
                        seen.dangling.push((object.reference(), reference.clone(), name.to_owned()));
                    }
                }
            }
            Ok(None) => return,
            Err(error) => {
                seen.unchecked.push(format!("{} of {}: {error}", reference.field, reference.from));
                return;
            }
        }
    }
}

impl Seen {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let running = self.running.iter().map(|name| {
            Finding::warning(format!("StorageVersionMigration {name} has not ended"))
                .hint("it prunes storedVersions itself; every record is proved all the same")
        });
        let dangling = self.dangling.iter().map(|(object, reference, name)| {
            let kind = reference.to.split('.').next().unwrap_or(&reference.to);
            Finding::warning(format!("names `{name}` in {}, which is not among the {kind}", reference.field))
                .about(object.clone())
        });
        let unchecked = self.unchecked.iter().map(|words| Finding::not_checked(words.clone()));
        let refused = self.refused.iter().map(|Refused { object, words, conversion }| {
            let finding = Finding::blocker(format!("its rewrite does not pass a dry run: {words}"));
            let finding = if *conversion { finding.hint(PUT_BACK) } else { finding };
            finding.about(object.clone())
        });
        running.chain(dangling).chain(unchecked).chain(refused).chain(self.defaulting()).collect()
    }

    /// One warning a kind and field: a new generation makes its controller look again.
    fn defaulting(&self) -> Vec<Finding> {
        let mut counts: BTreeMap<(&str, &str), (usize, &str)> = BTreeMap::new();
        for (object, changes) in &self.defaulted {
            for change in changes {
                let count = counts.entry((&object.kind, &change.path)).or_default();
                *count = (count.0 + 1, change.after.as_deref().unwrap_or_default());
            }
        }
        let warn = |((kind, path), (count, value)): (&(&str, &str), &(usize, &str))| {
            Finding::warning(format!(
                "the rewrite of {count} {kind} objects sets {path} to its default {value}, which their old version does \
                 not have; their generation goes up, and their controller looks at them again"
            ))
        };
        counts.iter().map(warn).collect()
    }

    /// Whether rewriting a kind sets defaults: then each of its records is tried before it is written.
    pub(super) fn sets_defaults(&self, kind: &str) -> bool {
        self.defaulted.iter().any(|(object, _)| object.kind == kind)
    }
}
