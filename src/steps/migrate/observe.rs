//! What migrate looks at beyond the survey: other migrators, and names that lead nowhere.

use std::collections::BTreeSet;

use super::migration_resources;
use crate::{
    cluster::Content,
    object::{Object, ObjectRef},
    plan::Finding,
    runbook::{Migrate, Reference},
    steps::{Look, survey::Surveyed},
};

/// What was seen beyond the survey.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Migrations of the upgrade's kinds by somebody else that have not ended, by name.
    pub running: Vec<String>,
    /// Objects whose reference names nothing: the object, the field, the name.
    pub dangling: Vec<(ObjectRef, Reference, String)>,
    /// References that could not be looked at, in the server's words.
    pub unchecked: Vec<String>,
}

/// Looks for other migrators and for names that lead nowhere.
pub async fn observe(_task: &Migrate, look: &Look<'_>) -> Seen {
    let mut seen = Seen::default();
    for resource in migration_resources() {
        let mut pages = look.reader.pages(&resource, None, Content::Full);
        while let Ok(Some(page)) = pages.next().await {
            seen.running.extend(page.iter().filter(|object| runs_on(object, look)).map(|object| object.name().to_owned()));
        }
    }
    for reference in &look.runbook.upgrade.references {
        check(reference, look, &mut seen).await;
    }
    seen
}

/// Whether a StorageVersionMigration is about one of the upgrade's kinds and has not ended.
fn runs_on(object: &Object, look: &Look<'_>) -> bool {
    let ended = object.items("/status/conditions").iter().any(|condition| {
        let text = |key: &str| condition.get(key).and_then(serde_json::Value::as_str);
        matches!(text("type"), Some("Succeeded" | "Failed")) && text("status") == Some("True")
    });
    let name = format!(
        "{}.{}",
        object.str("/spec/resource/resource").unwrap_or_default(),
        object.str("/spec/resource/group").unwrap_or_default()
    );
    !ended && look.runbook.upgrade.crds.contains(&name)
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
        running.chain(dangling).chain(unchecked).collect()
    }
}
