//! `status.storedVersions` to exactly `[to]`: a promise that nothing checks, so it is made last.

use std::time::Duration;

use serde_json::json;

use crate::{
    crd::{Crd, crd_resource},
    steps::{Outcome, Progress, Run, Stop},
};

/// Times a conflict is met by looking again.
const ATTEMPTS: u32 = 6;
/// Grows with the square of the attempts: half a minute in all.
const PAUSE: Duration = Duration::from_millis(500);

/// Prunes one CRD, after looking again that it is the one whose records were proved, and reads back.
///
/// # Errors
/// The CRD was re-created, stores another version now, or the patch was refused or without effect.
pub(super) async fn prune(run: &Run<'_>, proved: &Crd) -> Result<(), Stop> {
    let (name, to) = (proved.name(), &run.runbook.upgrade.to);
    let reader = run.writer.reader();
    let fail = |text: String| Stop::failed(format!("CRD {name}: {text}; its storedVersions were left alone"));
    for attempt in 0..ATTEMPTS {
        // Whoever writes at the same moment, or a server that restarts, gets a growing pause.
        run.writer.reader().clock().sleep(PAUSE * attempt * attempt).await;
        let now = match reader.get(&crd_resource(), None, name).await {
            Ok(Some(now)) => Crd::of(now),
            Ok(None) => return Err(fail("it is gone".into())),
            Err(error) => return Err(fail(error.to_string())),
        };
        if now.object.uid() != proved.object.uid() {
            return Err(fail("it was deleted and created again, and its objects with it".into())
                .hint("the backup holds them; do not go on before they are back"));
        }
        if now.storage_version() != Some(to) || now.object.generation() != proved.object.generation() {
            return Err(fail("its spec changed after the proof".into())
                .hint("stop whoever deploys it, then run again: it proves the records anew"));
        }
        if now.stored_versions == [to.clone()] {
            return Ok(());
        }
        let patch = json!({
            "metadata": {"uid": now.object.uid(), "resourceVersion": now.object.resource_version()},
            "status": {"storedVersions": [to]},
        });
        match run.writer.patch_status(&crd_resource(), None, name, patch).await {
            Ok(after) => {
                (run.report)(Progress::Object {
                    object: after.reference(),
                    outcome: Outcome::Updated,
                    resource_version: Some(after.resource_version().into()),
                });
            }
            // Read back: the next round finds it pruned, or tries again.
            Err(error) if error.is_conflict() || error.may_heal() => {}
            Err(error) => return Err(fail(error.to_string())),
        }
    }
    Err(fail(format!("still not pruned after {ATTEMPTS} attempts")))
}
