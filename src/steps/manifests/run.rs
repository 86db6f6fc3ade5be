//! Everything is dry-run once more before anything is applied; then one object after the other.

use std::time::Duration;

use jiff::SignedDuration;

use super::{
    Verdict, load,
    observe::{ask, resource_of},
};
use crate::{
    crd::{Crd, crd_resource},
    object::{Object, ObjectRef},
    runbook::Manifests,
    steps::{Outcome, Progress, Run, Stop, merge, pace::Hold},
};

/// A CRD is served by then, or something is wrong with it.
const ESTABLISHED_WITHIN: SignedDuration = SignedDuration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);

/// Applies what differs, CRDs first.
///
/// # Errors
/// The merge's guard is closed, a dry run is refused (then nothing was applied), an apply is (then
/// nothing after it was), or somebody asked to stop.
pub async fn run(task: &Manifests, run: &Run<'_>) -> Result<(), Stop> {
    let (objects, unreadable) = load(task);
    if let Some(words) = unreadable.into_iter().next() {
        return Err(Stop::failed(words).hint("nothing was applied"));
    }
    // Files can change after the runbook was read; no phrase was typed for what they held then.
    let upgraded = |object: &&Object| {
        object.kind() == "CustomResourceDefinition" && run.runbook.upgrade.crds.iter().any(|crd| crd == object.name())
    };
    if let Some(crd) = objects.iter().find(upgraded).filter(|_| !task.holds_upgraded_crd) {
        let text = format!("the files now hold CRD {}, which `[upgrade]` names", crd.name());
        return Err(Stop::failed(text).hint("nothing was applied; plan again: it is a point of no return now"));
    }
    let items = ask(task, &objects, run.writer.reader()).await;
    let failures: Vec<(Option<ObjectRef>, String)> =
        items.iter().filter_map(|item| Some((Some(item.object.clone()), refusal(&item.verdict)?))).collect();
    if !failures.is_empty() {
        let text = format!("{} of {} objects would be refused; nothing was applied", failures.len(), items.len());
        return Err(Stop::Failed { text, failures, hint: Some("mend what the server says, then run again".into()) });
    }
    // A CRD of the upgrade drops the old version: the same guard as before a merge, at this moment.
    if task.holds_upgraded_crd {
        merge::ready(run).await?;
    }
    let due = items.iter().zip(&objects).filter(|(item, _)| item.verdict != Verdict::Same);
    for (done, (item, object)) in due.enumerate() {
        if run.interrupt.is_set() {
            return Err(Stop::Interrupted(format!("applied {done} objects; safe to run again")));
        }
        let existed = !matches!(item.verdict, Verdict::Create | Verdict::Later(_));
        apply(object, existed, task.force, run).await.map_err(|words| Stop::Failed {
            text: format!("applied {done} objects, then one was refused; nothing after it was applied"),
            failures: vec![(Some(object.reference()), words)],
            hint: Some("mend what the server says, then run again: it does the rest".into()),
        })?;
    }
    Ok(())
}

/// Why an object must not be applied.
fn refusal(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Same | Verdict::Create | Verdict::Change(_) | Verdict::Later(_) => None,
        Verdict::Conflict(owners, _) => {
            let owned: Vec<String> = owners.iter().map(|(manager, field)| format!("{field} of {manager}")).collect();
            Some(format!("would take fields over: {}", owned.join(", ")))
        }
        Verdict::Refused(causes) => Some(causes.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("; ")),
        Verdict::NotChecked(words) => Some(format!("its dry run could not be asked: {words}")),
    }
}

async fn apply(object: &Object, existed: bool, force: bool, run: &Run<'_>) -> Result<(), String> {
    let mut hold = Hold::default();
    let reader = run.writer.reader();
    let after = loop {
        // Asked anew: its kind may have come with a CRD just now.
        let resource = match reader.resources_of(object.api_version()).await {
            Ok(served) => resource_of(object, served.as_deref()),
            Err(error) if error.may_heal() && hold.wait(&error, run).await => continue,
            Err(error) => return Err(Hold::words(&error)),
        };
        let Some(resource) = resource else {
            return Err(format!("the server serves no {} in {}", object.kind(), object.api_version()));
        };
        match run.writer.apply(&resource, object, force).await {
            Ok(after) => break after,
            // The same apply twice is one apply, so an unknown outcome may be tried again.
            Err(error) if error.may_heal() && hold.wait(&error, run).await => {}
            Err(error) => return Err(Hold::words(&error)),
        }
    };
    run.pace.went_well();
    (run.report)(Progress::Object {
        object: object.reference(),
        outcome: if existed { Outcome::Updated } else { Outcome::Created },
        resource_version: Some(after.resource_version().into()),
    });
    if object.kind() == "CustomResourceDefinition" { established(object.name(), run).await } else { Ok(()) }
}

/// Waits until a CRD is served, so that its objects can follow.
async fn established(name: &str, run: &Run<'_>) -> Result<(), String> {
    let reader = run.writer.reader();
    let began = reader.clock().now();
    loop {
        let crd = reader.get(&crd_resource(), None, name).await.map_err(|error| error.words())?;
        let crd = crd.map(Crd::of).ok_or("it is gone again")?;
        if crd.condition("Established").is_some() {
            return Ok(());
        }
        if reader.clock().now().duration_since(began) > ESTABLISHED_WITHIN || run.interrupt.is_set() {
            return Err(format!("applied, but not established within {} s", ESTABLISHED_WITHIN.as_secs()));
        }
        reader.clock().sleep(POLL).await;
    }
}
