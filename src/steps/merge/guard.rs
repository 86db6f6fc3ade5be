//! Whether the merge would work, asked anew each time.

use crate::{
    runbook::{ManagedFields, Task},
    steps::{Run, Stop, survey, targets::Targets, trial::Target},
};

/// Looks at every CRD that still declares `from`: its list is pruned, none of its records names
/// `from`, and the server accepts its target in a dry run.
///
/// # Errors
/// Exit 3 for an old client at work, which is named; exit 7 for a merge that would not work.
pub async fn ready(run: &Run<'_>) -> Result<(), Stop> {
    let (reader, runbook) = (run.writer.reader(), run.runbook);
    let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
    let survey = survey::observe(reader, runbook).await;
    let keeps = runbook
        .steps
        .iter()
        .any(|step| matches!(&step.task, Task::Migrate(migrate) if migrate.managed_fields == ManagedFields::Keep));
    let mut refused = Vec::new();
    let mut writers = Vec::new();
    let targets = Targets::load(runbook);
    for surveyed in &survey.crds {
        let crd = match &surveyed.crd {
            Ok(Some(crd)) => crd,
            Ok(None) => return Err(do_not_merge(&format!("CRD {} is gone", surveyed.name))),
            Err(error) => return Err(do_not_merge(&error.to_string())),
        };
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
            .hint("stop whoever deploys the old CRD, then run again: the records are proved anew"));
        }
        if let survey::Records::Unreadable { error, .. } = &surveyed.records {
            return Err(do_not_merge(&format!("records of {} cannot be listed: {error}", surveyed.name)));
        }
        for record in surveyed.records.listed().iter().filter(|record| !record.entries.is_empty() && !keeps) {
            let managers: Vec<&str> = record.entries.iter().map(|entry| entry.manager.as_str()).collect();
            writers.push(format!("{} by {}", record.object, managers.join(", ")));
        }
        match targets.trial(reader, runbook, crd).await {
            // The plan says that it could not be tried; whoever types the phrase has read it.
            Target::Accepted | Target::Applied | Target::Underivable(_) => {}
            Target::NotChecked(words) => {
                refused.push((Some(crd.object.reference()), format!("could not be asked: {words}")));
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
        )));
    }
    if refused.is_empty() {
        return Ok(());
    }
    Err(Stop::Failed {
        text: format!("do not merge: the apply of {} target CRDs would be refused", refused.len()),
        failures: refused,
        hint: Some("nothing is lost, and the old version goes on working; run again to release and ask anew".into()),
    })
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
