//! Waiting for the merge and for what the deployer makes of it.

use std::time::Duration;

use jiff::Timestamp;

use super::{Application, SeenApplication, guard::ready, look_at_application};
use crate::{
    crd::{Crd, crd_resource},
    runbook::Merge,
    steps::{Progress, Run, Stop, identity},
};

/// Between two looks.
const POLL: Duration = Duration::from_secs(2);
/// Looks between two repetitions of the dry run.
const GUARD_EVERY: u32 = 5;

/// Watches until no CRD declares `from` and the Application, where there is one, is through.
///
/// # Errors
/// Exit 7: the merge would not work any more, or the deployer's apply failed, in its own words.
/// Exit 3: time is up, or an old client is at work.
pub async fn run(task: &Merge, run: &Run<'_>) -> Result<(), Stop> {
    ready(run).await?;
    let reader = run.writer.reader();
    let clock = reader.clock();
    let began = clock.now();
    let until = began.checked_add(task.timeout).unwrap_or(began);
    let what = match &task.pull_request {
        Some(pull_request) => format!("{pull_request} to be merged: merge it now"),
        None => "the pull request to be merged: merge it now".into(),
    };
    (run.report)(Progress::Waiting { what, until });
    // A failure from before this watch is not the merge's: Argo CD keeps it until the next sync.
    let mut before = look_at_application(task, reader).await;
    if let SeenApplication::Found(application) = &before
        && application.failed()
    {
        (run.report)(Progress::Said(format!(
            "the last operation of {} {}: {}; if the merge is already in, sync it again: {}",
            application.name,
            application.phase,
            application.message,
            application.sync_command()
        )));
    }
    let mut said = String::new();
    let mut since_guard = 0;
    loop {
        let left = still_declaring(run).await?;
        let application = look_at_application(task, reader).await;
        if is_from_before(&application, &before, began) {
            before = application.clone();
        }
        let seen = describe(&left, &application, run);
        if let SeenApplication::Found(application) = &application
            && application.failed()
            && is_newer(application, &before)
        {
            return Err(failure(application, left.len()));
        }
        if left.is_empty() && is_through(&application, task.revision.as_deref()) {
            return Ok(());
        }
        if seen != said {
            let waited = Duration::try_from(clock.now().duration_since(began)).unwrap_or_default();
            (run.report)(Progress::StillWaiting { seen: seen.clone(), waited });
            said = seen;
        }
        if clock.now() >= until {
            return Err(Stop::Unmet(format!("the merge was not seen within {} s: {said}", task.timeout.as_secs())));
        }
        since_guard += 1;
        if since_guard >= GUARD_EVERY && !left.is_empty() {
            ready(run).await?;
            since_guard = 0;
        }
        tokio::select! {
            () = clock.sleep(POLL) => {}
            () = run.interrupt.asked() => {
                return Err(Stop::Interrupted("was waiting for the merge; nothing is under way here".into()));
            }
        }
    }
}

/// CRDs that still declare `from`. One that was deleted is the disaster the backup is for.
async fn still_declaring(run: &Run<'_>) -> Result<Vec<String>, Stop> {
    let mut left = Vec::new();
    for name in &run.runbook.upgrade.crds {
        match run.writer.reader().get(&crd_resource(), None, name).await {
            Ok(Some(crd)) => {
                let crd = Crd::of(crd);
                identity::unchanged(&crd, &run.situation.survey)?;
                if crd.declares(&run.runbook.upgrade.from) {
                    left.push(name.clone());
                }
            }
            Ok(None) => {
                return Err(Stop::failed(format!("CRD {name} is gone, and its objects with it"))
                    .hint("stop the deployer and put the backup back before anything else"));
            }
            // An API server that restarts meanwhile is waited out.
            Err(error) if error.may_heal() => left.push(name.clone()),
            Err(error) => return Err(Stop::failed(error.to_string())),
        }
    }
    Ok(left)
}

fn describe(left: &[String], application: &SeenApplication, run: &Run<'_>) -> String {
    let total = run.runbook.upgrade.crds.len();
    let crds = format!("{} of {total} CRDs without {}", total - left.len(), run.runbook.upgrade.from);
    match application {
        SeenApplication::NotAsked => crds,
        SeenApplication::Found(application) => format!("{crds}; {}", application.seen()),
        SeenApplication::Missing(name) => format!("{crds}; Application {name} not found"),
        SeenApplication::Unreadable(words) => format!("{crds}; the Application cannot be read: {words}"),
    }
}

/// Whether the first look that succeeded, after one that failed, shows what was there before the watch:
/// an operation that began earlier is not the merge's.
fn is_from_before(seen: &SeenApplication, before: &SeenApplication, began: Timestamp) -> bool {
    match (before, seen) {
        (SeenApplication::Unreadable(_), SeenApplication::Found(application)) => {
            application.started_at.is_none_or(|started| started < began)
        }
        _ => false,
    }
}

fn is_newer(application: &Application, before: &SeenApplication) -> bool {
    match before {
        SeenApplication::Found(before) => {
            !before.failed() || application.started_at != before.started_at || application.message != before.message
        }
        _ => true,
    }
}

fn is_through(application: &SeenApplication, revision: Option<&str>) -> bool {
    match application {
        SeenApplication::Found(application) => {
            application.sync == "Synced"
                && matches!(application.health.as_str(), "Healthy" | "")
                && matches!(application.phase.as_str(), "Succeeded" | "")
                && revision.is_none_or(|revision| application.revision.starts_with(revision))
        }
        // The CRDs alone decide.
        SeenApplication::NotAsked => true,
        SeenApplication::Missing(_) | SeenApplication::Unreadable(_) => false,
    }
}

fn failure(application: &Application, left: usize) -> Stop {
    Stop::failed(format!("{} {}: {}", application.name, application.phase, application.message)).hint(format!(
        "{left} CRDs still declare the old version. Argo CD does not sync the same commit again by itself: run `sbx \
         plan` to see what stands in the way, then {}",
        application.sync_command()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Object;

    const BEGAN: &str = "2026-12-01T14:00:00Z";

    fn failed(started: &str) -> SeenApplication {
        let state = json!({"phase": "Failed", "message": "one or more objects failed", "startedAt": started});
        let object = json!({"metadata": {"namespace": "argocd", "name": "a"}, "status": {"operationState": state}});
        SeenApplication::Found(Box::new(Application::of(&Object(object))))
    }

    /// Whether a failure that is seen ends the watch, after what was seen when it began.
    fn ends(first: &SeenApplication, seen: &SeenApplication) -> bool {
        let began = BEGAN.parse().expect("a time");
        let before = if is_from_before(seen, first, began) { seen } else { first };
        let SeenApplication::Found(application) = seen else { return false };
        application.failed() && is_newer(application, before)
    }

    #[test]
    fn only_a_failure_of_this_watch_ends_it() {
        let (old, new) = (failed("2026-12-01T13:00:00Z"), failed("2026-12-01T14:00:05Z"));
        let unreadable = SeenApplication::Unreadable("503".into());
        for (first, seen, wanted) in [
            (&old, &old, false),
            (&old, &new, true),
            (&unreadable, &old, false),
            (&unreadable, &new, true),
            (&unreadable, &failed("never"), false),
        ] {
            assert_eq!(ends(first, seen), wanted, "{first:?} then {seen:?}");
        }
    }
}
