//! Field ownership that would make the deployer's apply of the target CRDs fail.
//!
//! A deployer that gives up `spec.conversion` removes what it owns alone. What another manager owns
//! of it (the controller's `caBundle`) stays, and what remains is invalid: the apply is refused.
//! Released means: nobody but the deployer owns anything below `spec.conversion`. The values stay,
//! so the webhook goes on working (design, fact 10).

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{
    Decision, Look, Outcome, Progress, Run, Stop, UndoBy, World,
    access::on_crds,
    targets::Targets,
    trial::{Current, Target, current},
};
use crate::{
    cluster::Access,
    crd::{Crd, crd_resource},
    fields::{applied_by, disown, is_apply_of, leaves, owns_nothing},
    plan::{Change, FieldChange, Finding, Operation},
    runbook::{Release, Runbook},
    suggest,
};

/// Times a conflict is met by looking again.
const ATTEMPTS: u32 = 6;
/// Grows with the square of the attempts: half a minute in all.
const PAUSE: Duration = Duration::from_millis(500);

/// What was seen of each CRD that still declares `from`.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// One entry a CRD.
    pub crds: Vec<SeenCrd>,
}

/// One CRD.
#[derive(Clone, Debug)]
pub struct SeenCrd {
    /// The CRD.
    pub crd: Crd,
    /// Who else owns what below `spec.conversion`: manager and field.
    pub held: Vec<(String, String)>,
    /// What the server says of the current manifests.
    pub current: Current,
}

/// Looks at ownership, and dry-runs the current manifests of each CRD.
pub async fn observe(_task: &Release, look: &Look<'_>) -> Seen {
    let declaring = look.survey.installed().filter(|crd| crd.declares(&look.runbook.upgrade.from));
    let crds = declaring.map(async |crd| SeenCrd {
        crd: crd.clone(),
        held: held(crd, look.runbook),
        current: current(look.reader, look.runbook, crd).await,
    });
    Seen { crds: join_all(crds).await }
}

/// Who but the deployer owns what below `spec.conversion`.
pub(super) fn held(crd: &Crd, runbook: &Runbook) -> Vec<(String, String)> {
    others(crd, runbook)
        .filter_map(|entry| {
            let fields = entry.pointer("/fieldsV1/f:spec/f:conversion")?;
            let manager = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
            Some(leaves(fields, "spec.conversion").into_iter().map(|leaf| (manager.to_owned(), leaf)))
        })
        .flatten()
        .collect()
}

/// Why nothing may be released: the deployer that the runbook names has never applied the CRD, so the
/// entry that would be emptied is the real deployer's.
fn stranger(crd: &Crd, runbook: &Runbook) -> Option<Finding> {
    let deployer = runbook.upgrade.deployer.as_deref().unwrap_or_default();
    if applied_by(&crd.object, deployer).is_some() {
        return None;
    }
    let mut managers: Vec<&str> = crd
        .object
        .managed_fields()
        .iter()
        .filter_map(|entry| entry.get("manager")?.as_str())
        .filter(|manager| applied_by(&crd.object, manager).is_some())
        .collect();
    managers.dedup();
    let by = if managers.is_empty() { "nobody".into() } else { suggest::both(managers.iter().copied()) };
    let text =
        format!("`{deployer}` has never server-side-applied it, {by} did; released, its real owner would lose it");
    let hint = match suggest::nearest(deployer, managers.iter().copied()) {
        Some(near) => format!("did you mean `deployer = \"{near}\"`?"),
        None => "set `deployer` in `[upgrade]` to the field manager of whoever applies the CRDs".into(),
    };
    Some(Finding::blocker(text).hint(hint).about(crd.object.reference()))
}

fn others<'a>(crd: &'a Crd, runbook: &'a Runbook) -> impl Iterator<Item = &'a Value> {
    let deployer = runbook.upgrade.deployer.as_deref().unwrap_or_default();
    crd.object.managed_fields().iter().filter(move |entry| !is_apply_of(entry, deployer))
}

/// Settled when nobody else owns a part of the conversion.
pub fn decide(_task: &Release, seen: &Seen, world: &World<'_>) -> Decision {
    let held: Vec<&SeenCrd> = seen.crds.iter().filter(|seen| !seen.held.is_empty()).collect();
    let unread = world.situation.survey.crds.iter().filter(|surveyed| !matches!(surveyed.crd, Ok(Some(_)))).count();
    let mut decision = if held.is_empty() && unread > 0 {
        // What could not be looked at is never fine.
        Decision::pending(format!("not known: {unread} CRDs cannot be read"))
    } else if held.is_empty() {
        Decision::settled(if seen.crds.is_empty() {
            format!("no CRD declares {}", world.runbook.upgrade.from)
        } else {
            format!("spec.conversion of {} CRDs: the deployer's alone", seen.crds.len())
        })
    } else {
        let mut managers: Vec<&str> = held.iter().flat_map(|seen| &seen.held).map(|(manager, _)| &**manager).collect();
        managers.sort_unstable();
        managers.dedup();
        let mut leaves: Vec<&str> =
            held.iter().flat_map(|seen| &seen.held).filter_map(|(_, leaf)| leaf.rsplit('.').next()).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let (leaves, managers) = (leaves.join(", "), managers.join(", "));
        Decision::pending(format!("{leaves} of {} CRDs: owned by {managers} -> nobody", held.len()))
            .undo(UndoBy::Backup)
    };
    for seen in &seen.crds {
        if !seen.held.is_empty() {
            decision.findings.extend(stranger(&seen.crd, world.runbook));
            let fields = seen.held.iter().map(|(manager, leaf)| {
                FieldChange::new(format!("metadata.managedFields[{manager}] {leaf}"), Some("owned"), None)
            });
            let object = seen.crd.object.reference();
            decision.changes.push(Change { operation: Operation::Update, object, fields: fields.collect() });
        }
        if let Current::Changes(paths) = &seen.current {
            let text = format!("a sync of the current manifests would change {}", paths.join(", "));
            decision.findings.push(
                Finding::warning(text)
                    .about(seen.crd.object.reference())
                    .hint("the live CRD has drifted from what the deployer applied last; find out who changed it"),
            );
        }
        if let Current::NotChecked(words) = &seen.current {
            let text = format!("whether a sync of the current manifests changes anything: {words}");
            decision.findings.push(Finding::not_checked(text).about(seen.crd.object.reference()));
        }
    }
    decision
}

/// Reads the CRDs, patches their metadata, and asks by dry run.
pub fn rights(_task: &Release, runbook: &Runbook) -> Vec<Access> {
    let mut rights = on_crds(runbook, "get", "");
    rights.extend(on_crds(runbook, "patch", ""));
    rights
}

/// Releases each CRD and asks the server again.
///
/// # Errors
/// A patch is refused, or the dry runs do not come out as they must.
pub async fn run(_task: &Release, run: &Run<'_>) -> Result<(), Stop> {
    let targets = Targets::load(run.runbook);
    for name in &run.runbook.upgrade.crds {
        let taken = release(name, run).await?;
        let crd = read(name, run).await?;
        // A CRD of which nobody else owned anything is as it was; the merge's guard asks about it.
        if !taken || !crd.declares(&run.runbook.upgrade.from) {
            continue;
        }
        let reader = run.writer.reader();
        came_out(name, &targets.trial(reader, run.runbook, &crd).await)?;
        match current(reader, run.runbook, &crd).await {
            Current::Unchanged => {}
            Current::Changes(paths) => {
                let text = format!("CRD {name}: a sync of the current manifests would now change {}", paths.join(", "));
                let hint = "do not let the deployer sync before this is understood; the backup holds the CRD as it was";
                return Err(Stop::failed(text).hint(hint));
            }
            Current::NotChecked(words) => {
                let text =
                    format!("CRD {name} is released, but what a sync of the current manifests would do is not known");
                return Err(Stop::failed(format!("{text}: {words}")).hint(AGAIN));
            }
        }
    }
    Ok(())
}

const AGAIN: &str = "the webhook goes on working; run `sbx plan` once the server answers";

/// What the server must say of the target of a CRD that was just released.
fn came_out(name: &str, target: &Target) -> Result<(), Stop> {
    let (what, hint) = match target {
        Target::Accepted | Target::Unpruned | Target::Applied => return Ok(()),
        Target::Conversion(words) | Target::Refused(words) => {
            (format!("yet its target would be refused: {words}"), None)
        }
        Target::ConversionStays => ("yet its conversion would outlive the merge".into(), Some(RESYNC)),
        Target::Underivable(words) | Target::NotChecked(words) => {
            (format!("but whether its target is accepted is not known: {words}"), Some(AGAIN))
        }
    };
    let stop = Stop::failed(format!("CRD {name} is released, {what}"));
    Err(if let Some(hint) = hint { stop.hint(hint) } else { stop })
}

/// What comes after a refusal.
const MEND: &str = "mend what the server says, then run again: it does the rest";

/// Nobody owns the conversion, so nobody's apply takes it away.
pub(super) const RESYNC: &str =
    "let the deployer sync the old manifests again, so that it owns the conversion and its next apply takes it away";

async fn read(name: &str, run: &Run<'_>) -> Result<Crd, Stop> {
    match run.writer.reader().get(&crd_resource(), None, name).await {
        Ok(Some(crd)) => Ok(Crd::of(crd)),
        Ok(None) => Err(Stop::failed(format!("CRD {name} is gone")).hint("plan again: it says what is there")),
        Err(error) => Err(Stop::failed(error.to_string()).hint(MEND)),
    }
}

/// Releases one CRD; whether there was anything to take.
async fn release(name: &str, run: &Run<'_>) -> Result<bool, Stop> {
    let mut released = false;
    for attempt in 0..ATTEMPTS {
        // Whoever writes at the same moment, or a server that restarts, gets a growing pause.
        run.writer.reader().clock().sleep(PAUSE * attempt * attempt).await;
        let crd = read(name, run).await?;
        let deployer = run.runbook.upgrade.deployer.as_deref().unwrap_or_default();
        let mut entries = crd.object.managed_fields().to_vec();
        let mut taken = false;
        for entry in entries.iter_mut().filter(|entry| !is_apply_of(entry, deployer)) {
            taken |= disown(entry, "conversion");
        }
        if !taken || !crd.declares(&run.runbook.upgrade.from) {
            return Ok(released);
        }
        if let Some(finding) = stranger(&crd, run.runbook) {
            let stop = Stop::failed(format!("CRD {name}: {}; it was left alone", finding.text));
            return Err(stop.hint(finding.hint.unwrap_or_default()));
        }
        released = true;
        entries.retain(|entry| !owns_nothing(entry));
        let patch = json!({"metadata": {
            "uid": crd.object.uid(), "resourceVersion": crd.object.resource_version(), "managedFields": entries,
        }});
        match run.writer.patch(&crd_resource(), None, name, patch).await {
            Ok(after) => (run.report)(Progress::Object {
                object: after.reference(),
                outcome: Outcome::Updated,
                resource_version: Some(after.resource_version().into()),
            }),
            // Looked at again: somebody wrote meanwhile, or the outcome is unknown.
            Err(error) if error.is_conflict() || error.may_heal() => {}
            Err(error) => return Err(Stop::failed(error.to_string()).hint(MEND)),
        }
    }
    Err(Stop::failed(format!("CRD {name}: others kept writing to it; not released after {ATTEMPTS} attempts"))
        .hint("its managedFields name who; once they are quiet, run again"))
}
