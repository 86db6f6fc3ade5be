//! Whether the merge would work, asked anew each time.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{
    crd::Crd,
    runbook::{ManagedFields, Task},
    steps::{
        Progress, Run, Stop, identity, release,
        survey::{self, Records, Surveyed},
        targets::Targets,
        trial::Target,
    },
};

/// What should heal, such as a server that restarts or a webhook that the deployer has just pruned, is
/// held for so long before anybody is told not to merge.
const HOLD: SignedDuration = SignedDuration::from_secs(120);
/// Between two looks meanwhile.
const POLL: Duration = Duration::from_secs(2);

/// Looks at every CRD that still declares `from`: its list is pruned, none of its records names
/// `from`, and the server accepts its target in a dry run.
///
/// # Errors
/// Exit 3 for an old client at work, which is named; exit 7 for a merge that would not work.
pub async fn ready(run: &Run<'_>) -> Result<(), Stop> {
    let clock = run.writer.reader().clock();
    let until = clock.now().checked_add(HOLD).unwrap_or(jiff::Timestamp::MAX);
    let mut said = false;
    loop {
        let stop = match look(run).await {
            Ok(()) => return Ok(()),
            Err(Refusal::Final(stop)) => return Err(stop),
            Err(Refusal::MayHeal(stop)) if clock.now() >= until => return Err(stop),
            Err(Refusal::MayHeal(stop)) => stop,
        };
        if !said && let Stop::Failed { text, failures, .. } = stop {
            let words = failures.into_iter().next().map_or(text, |(_, words)| words);
            (run.report)(Progress::Waiting { what: format!("the API server: {words}"), until });
            said = true;
        }
        tokio::select! {
            () = clock.sleep(POLL) => {}
            () = run.interrupt.asked() => {
                return Err(Stop::Interrupted("was asking whether the merge would work; nothing is under way here".into()));
            }
        }
    }
}

/// Why not to merge.
enum Refusal {
    /// Looking again changes nothing.
    Final(Stop),
    /// The server could not say; soon it may.
    MayHeal(Stop),
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        Self::Final(stop)
    }
}

/// The CRD and its list, if the server tells.
fn read(surveyed: &Surveyed) -> Result<&Crd, Refusal> {
    let unread = |error: &crate::cluster::ClusterError, text: &str| {
        let stop = do_not_merge(text);
        if error.may_heal() { Refusal::MayHeal(stop) } else { Refusal::Final(stop) }
    };
    let crd = match &surveyed.crd {
        Ok(Some(crd)) => crd,
        Ok(None) => return Err(do_not_merge(&format!("CRD {} is gone", surveyed.name)).into()),
        Err(error) => return Err(unread(error, &error.to_string())),
    };
    match &surveyed.records {
        Records::Unreadable { error, .. } => {
            Err(unread(error, &format!("records of {} cannot be listed: {error}", surveyed.name)))
        }
        _ => Ok(crd),
    }
}

async fn look(run: &Run<'_>) -> Result<(), Refusal> {
    let (reader, runbook) = (run.writer.reader(), run.runbook);
    let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
    let survey = survey::observe(reader, runbook).await;
    let keeps = runbook
        .steps
        .iter()
        .any(|step| matches!(&step.task, Task::Migrate(migrate) if migrate.managed_fields == ManagedFields::Keep));
    let (mut refused, mut unasked) = (Vec::new(), Vec::new());
    let mut writers = Vec::new();
    let targets = Targets::load(runbook);
    for surveyed in &survey.crds {
        let crd = read(surveyed)?;
        identity::unchanged(crd, &run.situation.survey)?;
        if !crd.declares(from) {
            continue;
        }
        if crd.stored_versions != [to.clone()] {
            let stored = crd.stored_versions.join(", ");
            return Err(do_not_merge(&format!(
                "storedVersions of CRD {} is {stored} again; {} changed its spec last",
                surveyed.name,
                last_spec_writer(crd)
            ))
            .hint("stop whoever deploys the old CRD, then run again: the records are proved anew")
            .into());
        }
        for record in surveyed.records.listed().iter().filter(|record| !record.entries.is_empty() && !keeps) {
            let managers: Vec<&str> = record.entries.iter().map(|entry| entry.manager.as_str()).collect();
            writers.push(format!("{} by {}", record.object, managers.join(", ")));
        }
        match targets.trial(reader, runbook, crd).await {
            Target::Accepted | Target::Applied => {}
            // The plan says that it could not be tried, and whoever types the phrase has read it; but a
            // webhook that others own is known to outlive whatever is applied.
            Target::Underivable(words) => {
                let held = release::held(crd, runbook);
                if let Some((manager, leaf)) = held.first().filter(|_| crd.converts_by_webhook) {
                    refused.push((
                        Some(crd.object.reference()),
                        format!("{manager} owns {leaf}, and whether the deployer's apply passes is not known: {words}"),
                    ));
                }
            }
            Target::NotChecked(words) => {
                unasked.push((Some(crd.object.reference()), format!("could not be asked: {words}")));
            }
            Target::Unpruned => refused.push((Some(crd.object.reference()), "its storedVersions is not pruned".into())),
            Target::ConversionStays => {
                refused.push((Some(crd.object.reference()), "its conversion would outlive the merge".into()));
            }
            Target::Conversion(words) | Target::Refused(words) => {
                refused.push((Some(crd.object.reference()), words));
            }
        }
    }
    if !writers.is_empty() {
        return Err(Stop::Unmet(format!(
            "an old client is still at work: {} written at {from} after the migration: {}. Do not merge. Ship the \
             client, then run again: it waits at the gates and relabels what was written",
            writers.len(),
            writers.join("; ")
        ))
        .into());
    }
    if !refused.is_empty() {
        return Err(Refusal::Final(Stop::Failed {
            text: format!("do not merge: the apply of {} target CRDs would be refused", refused.len()),
            failures: refused,
            hint: Some(
                "nothing is lost, and the old version goes on working; run again to release and ask anew".into(),
            ),
        }));
    }
    if !unasked.is_empty() {
        return Err(Refusal::MayHeal(Stop::Failed {
            text: format!("do not merge: whether the apply of {} target CRDs would pass is not known", unasked.len()),
            failures: unasked,
            hint: Some(
                "nothing is lost, and the old version goes on working; run again once the server answers".into(),
            ),
        }));
    }
    Ok(())
}

fn do_not_merge(text: &str) -> Stop {
    Stop::failed(format!("do not merge: {text}"))
}

fn last_spec_writer(crd: &crate::crd::Crd) -> String {
    let entries = crd.object.managed_fields().iter();
    entries
        .filter(|entry| entry.pointer("/fieldsV1/f:spec").is_some())
        .max_by_key(|entry| entry.get("time").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned())
        .and_then(|entry| entry.get("manager")?.as_str().map(ToOwned::to_owned))
        .unwrap_or_else(|| "nobody known".into())
}
