//! Rewrite every record, prove each one, then prune `status.storedVersions`: one step, so that no
//! runbook can prune unproved.
//!
//! ```text
//! settle -> touch (stamp, relabel) -> prove until a pass changes nothing -> prune -> read back
//! ```
//!
//! A pruned list proves nothing (design, fact 2). Done is: the CRD declares `to` alone, its list
//! succeeds, and no managedFields entry names `from`.

mod defaults;
mod observe;
mod patch;
mod prune;
mod relabel;
mod run;
mod told;

pub use observe::{Seen, observe};
pub use run::run;

use super::{
    Decision, Survey, UndoBy, World,
    access::{on_crds, on_kinds},
    identity,
    survey::{Record, Records, Surveyed},
};
use crate::{
    cluster::{Access, ClusterError},
    crd::Crd,
    object::{ObjectRef, Resource},
    plan::Finding,
    runbook::{ManagedFields, Migrate, Runbook},
};

/// What is left of one CRD's migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Left {
    rewrite: usize,
    prove: usize,
    relabel: usize,
    prune: bool,
}

/// Adds up what is left of every CRD.
pub fn decide(task: &Migrate, seen: &Seen, world: &World<'_>) -> Decision {
    let mut total = Left::default();
    let (mut pruned, mut blocked) = (0, 0);
    let mut decision = Decision::pending(String::new()).undo(UndoBy::Backup);
    for surveyed in &world.situation.survey.crds {
        match same_crd(surveyed, &world.situation.survey).and_then(|()| left_of(task, surveyed, world.runbook)) {
            Ok(left) => {
                if let Ok(Some(crd)) = &surveyed.crd {
                    decision.changes.extend(told::changes(
                        task,
                        seen,
                        crd,
                        surveyed.records.listed(),
                        &left,
                        world.runbook,
                    ));
                    let stored = crd.stored_versions.join(", ");
                    let records = surveyed.records.listed().len();
                    decision.details.push(format!("{}: {records} records, storedVersions {stored}", surveyed.name));
                }
                total.rewrite += left.rewrite;
                total.prove += left.prove;
                total.relabel += left.relabel;
                pruned += usize::from(left.prune);
            }
            Err(finding) => {
                blocked += 1;
                decision.findings.push(*finding);
            }
        }
        decision.findings.extend(told::findings(task, surveyed, world.runbook, world.situation.now));
    }
    let open = world.situation.survey.installed().any(|crd| crd.declares(&world.runbook.upgrade.from));
    decision.findings.extend(told::state_annotations(&world.situation.survey, open));
    decision.findings.extend(seen.findings());
    let parts = [
        (total.rewrite, "rewrite", "objects"),
        (total.prove, "prove", "objects"),
        (total.relabel, "relabel", "objects"),
        (pruned, "prune", "CRDs"),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(n, ..)| *n > 0).map(|(n, verb, what)| format!("{verb} {n} {what}")).collect();
    decision.settled = said.is_empty() && blocked == 0 && !open;
    decision.summary = match (said.is_empty(), blocked) {
        (false, _) => said.join(", "),
        (true, 0) if open => "nothing to rewrite".into(),
        (true, 0) => format!("every record is {}", world.runbook.upgrade.to),
        (true, n) => format!("{n} CRDs cannot be migrated as they are"),
    };
    if decision.settled {
        decision.details.clear();
    }
    decision
}

/// A CRD that was created again after the backup holds none of the objects that the backup does.
fn same_crd(surveyed: &Surveyed, survey: &Survey) -> Result<(), Box<Finding>> {
    match &surveyed.crd {
        Ok(Some(crd)) if identity::differs_from_backup(crd, survey) => {
            let text = format!(
                "CRD {} was deleted and created again after the backup was taken; the backup holds its objects",
                surveyed.name
            );
            let hint = "put them back before anything else; to go on with what is there now, move the backup away";
            Err(Box::new(Finding::blocker(text).hint(hint)))
        }
        _ => Ok(()),
    }
}

/// What is left of one CRD, or why nothing can be done about it.
fn left_of(task: &Migrate, surveyed: &Surveyed, runbook: &Runbook) -> Result<Left, Box<Finding>> {
    let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
    let name = &surveyed.name;
    let crd = match &surveyed.crd {
        Err(error) => return Err(Box::new(Finding::blocker(format!("CRD {name} cannot be read: {error}")))),
        Ok(None) => {
            return Err(Box::new(
                Finding::blocker(format!("CRD {name} is not installed")).hint("is this the right cluster?"),
            ));
        }
        Ok(Some(crd)) => crd,
    };
    if crd.object.deleting() {
        return Err(Box::new(
            Finding::blocker(format!("CRD {name} IS BEING DELETED, and every {} with it", crd.kind))
                .hint("take a copy of the objects first; what holds it are their finalizers"),
        ));
    }
    if !crd.declares(to) {
        return Err(Box::new(
            Finding::blocker(format!("CRD {name} has no version {to}"))
                .hint(format!("install the release that serves both {from} and {to} first")),
        ));
    }
    let records = match &surveyed.records {
        Records::Listed(records) => records,
        Records::Unreadable { error, culprits, readable } => {
            return Err(Box::new(unreadable(crd, runbook, error, culprits, *readable)));
        }
        Records::NotAsked => return Err(Box::new(Finding::blocker(format!("CRD {name} does not serve {to}")))),
    };
    let named = records.iter().filter(|record| !record.entries.is_empty()).count();
    let relabel = if task.managed_fields == ManagedFields::Keep { 0 } else { named };
    if !crd.declares(from) {
        return Ok(Left { relabel, ..Left::default() });
    }
    if crd.storage_version() != Some(to) {
        let storage = crd.storage_version().unwrap_or("none");
        return Err(Box::new(
            Finding::blocker(format!("CRD {name} still stores {storage}"))
                .hint(format!("the release that stores {to} must be installed before records can move")),
        ));
    }
    let pruned = crd.stored_versions == [to.clone()];
    let stamped = |record: &Record| is_stamped(task, record, crd);
    if pruned && named == 0 && records.iter().all(stamped) {
        return Ok(Left { prove: records.len(), ..Left::default() });
    }
    Ok(Left { rewrite: records.len(), prove: 0, relabel, prune: !pruned })
}

/// Whether a record needs no stamp any more; true where the runbook sets none.
fn is_stamped(task: &Migrate, record: &Record, crd: &Crd) -> bool {
    task.stamp.is_none() || patch::is_stamped(record.stamp.as_deref(), crd)
}

/// The list failed: the way out depends on whether the old version is still there (design, facts 3 and 19).
fn unreadable(
    crd: &Crd,
    runbook: &Runbook,
    error: &ClusterError,
    culprits: &[(ObjectRef, String)],
    readable: usize,
) -> Finding {
    let from = &runbook.upgrade.from;
    let named: Vec<String> = culprits.iter().map(|(object, words)| format!("{object} ({words})")).collect();
    let text = if named.is_empty() {
        format!("{} cannot be listed: {error}", crd.plural)
    } else {
        let all = culprits.len() + readable;
        format!("{} of {all} {} cannot be converted: {}", named.len(), crd.plural, named.join("; "))
    };
    // A cache that cannot start is a record that cannot be converted (design, fact 3).
    let conversion = error.is_conversion() || error.is_initializing() || !culprits.is_empty();
    let hint = if !conversion {
        format!("this says nothing about the {}; mend what the server says, then plan again", crd.plural)
    } else if crd.declares(from) {
        let service = crd.webhook.as_ref().map_or_else(String::new, |service| {
            format!(" (Service {}/{}, port {})", service.namespace, service.name, service.port)
        });
        format!(
            "the records are healthy, their conversion is not: put the webhook{service} and the controller that \
             answers it back, then plan again; never set strategy None, and delete nothing"
        )
    } else {
        format!(
            "a record at {from} is left and nobody can read it: put {from} back into spec.versions, unserved is \
             enough, with the webhook where the schemas differ; then plan again. Nothing is lost, delete nothing"
        )
    };
    Finding::blocker(text).hint(hint)
}

/// Reads and patches records, and the `/status` of each CRD.
pub fn rights(_task: &Migrate, runbook: &Runbook) -> Vec<Access> {
    let mut rights = on_crds(runbook, "get", "");
    rights.extend(on_crds(runbook, "patch", "/status"));
    for verb in ["get", "list", "patch"] {
        rights.extend(on_kinds(runbook, verb));
    }
    rights
}

/// The API at which another migrator may be at work on a resource.
pub fn migration_resources() -> [Resource; 4] {
    let in_tree = |version| {
        Resource::new("storagemigration.k8s.io", version, "storageversionmigrations", "StorageVersionMigration", false)
    };
    let outside =
        Resource::new("migration.k8s.io", "v1alpha1", "storageversionmigrations", "StorageVersionMigration", false);
    [in_tree("v1"), in_tree("v1beta1"), in_tree("v1alpha1"), outside]
}
