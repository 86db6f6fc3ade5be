//! One object after the other: read again, judged again, then deleted as it was read.

use std::time::Duration;

use super::{Target, is_sacred, matches, needed_by, observe, target, too_many};
use crate::{
    cluster::ClusterError,
    crd::{Crd, crd_resource},
    object::{Object, ObjectRef},
    runbook::{Delete, DeleteTarget, Step},
    steps::{Outcome, Progress, Run, Seen as AnySeen, Stop, backup, pace::Hold, touch::Verdict},
};

/// Tries against somebody who keeps writing the same object.
const CONFLICTS: u32 = 40;

/// Deletes what was seen right before, each with its uid and resourceVersion as preconditions.
///
/// # Errors
/// A conversion needs one of them, more match than may, a delete is refused (the others go on), or
/// somebody asked to stop.
pub async fn run(step: &Step, task: &Delete, run: &Run<'_>) -> Result<(), Stop> {
    let Some(AnySeen::Delete(seen)) = run.situation.seen.get(&step.id) else {
        return Err(Stop::failed("what there is to delete was not looked at"));
    };
    if let Some(words) = seen.unreadable.first() {
        return Err(Stop::failed(words));
    }
    let due = seen.due(task);
    if let Some(text) = too_many(task, &due) {
        return Err(Stop::failed(text));
    }
    if matches!(task.target, DeleteTarget::Matching { .. }) && seen.scope.is_none() {
        return Err(Stop::failed("no verified backup says which objects matched when it was taken")
            .hint("a `delete` by condition takes only those; run the backup step first"));
    }
    guard(&due, run).await?;
    if matches!(task.target, DeleteTarget::Objects(_)) {
        // A name means whatever has it now, which may have been made after the backup was taken.
        backup::cover(step, &due, run).await?;
    }
    let mut failures: Vec<(Option<ObjectRef>, String)> = Vec::new();
    for (done, target) in due.iter().enumerate() {
        if run.interrupt.is_set() {
            return Err(Stop::Interrupted(format!("deleted {done} of {}; safe to run again", due.len())));
        }
        let outcome = Deletion { task, run, target }.run().await;
        if let Outcome::Failed(words) = &outcome {
            failures.push((Some(target.object.clone()), words.clone()));
        }
        (run.report)(Progress::Object { object: target.object.clone(), outcome, resource_version: None });
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(Stop::Failed {
        text: format!("{} of {} objects could not be deleted", failures.len(), due.len()),
        failures,
        hint: Some("mend what the server says, then run again: it does the rest".into()),
    })
}

/// Nothing goes that a conversion still needs, as the CRDs are now.
async fn guard(due: &[&Target], run: &Run<'_>) -> Result<(), Stop> {
    if let Some(sacred) = due.iter().find(|target| is_sacred(&target.resource)) {
        return Err(Stop::failed(format!("sbx never deletes {}", sacred.object)));
    }
    if !due.iter().any(|target| target.is_core("Service") || target.is_core("Secret")) {
        return Ok(());
    }
    let reader = run.writer.reader();
    let mut crds = Vec::new();
    for name in &run.runbook.upgrade.crds {
        let crd = reader.get(&crd_resource(), None, name).await.map_err(|error| Stop::failed(error.to_string()))?;
        crds.extend(crd.map(Crd::of));
    }
    let mut conversions = observe::webhooks(crds.iter());
    // Without the right to list, the CRDs of the upgrade are all that can be known; plan said so.
    match observe::other_webhooks(reader, run.runbook).await {
        Ok(others) => conversions.extend(others),
        Err(error) if error.is_forbidden() => {}
        Err(error) => return Err(Stop::failed(error.to_string())),
    }
    for target in due {
        let crds = needed_by(target, &conversions);
        if !crds.is_empty() {
            return Err(Stop::failed(format!("the conversion of {} still needs {}", crds.join(", "), target.object))
                .hint("nothing was deleted; it may go once these CRDs have strategy None: after the merge"));
        }
    }
    Ok(())
}

struct Deletion<'a> {
    task: &'a Delete,
    run: &'a Run<'a>,
    target: &'a Target,
}

impl Deletion<'_> {
    async fn run(&self) -> Outcome {
        let mut hold = Hold::default();
        let mut conflicts = 0;
        // Set once an answer was lost: then an object that is gone may have gone by our hand.
        let mut unanswered = false;
        let gone = |unanswered| if unanswered { Outcome::Deleted } else { Outcome::Gone };
        loop {
            let object = match self.read().await {
                Ok(Some(object)) if object.uid() == self.target.uid => object,
                Ok(Some(_)) => {
                    self.say("was re-created under the same name; the new one was not touched");
                    return gone(unanswered);
                }
                Ok(None) => return gone(unanswered),
                Err(error) if error.may_heal() && hold.wait(&error, self.run).await => continue,
                Err(error) => return Outcome::Failed(Hold::words(&error)),
            };
            if object.deleting() {
                self.say(&format!(
                    "is being deleted{}",
                    super::held_by(&target(&self.target.resource, &object).finalizers)
                ));
                return if unanswered { Outcome::Deleted } else { Outcome::Unchanged };
            }
            if !matches(self.task, &object) {
                self.say("matches no longer and was kept");
                return Outcome::Unchanged;
            }
            let (namespace, name) = (self.target.object.namespace.as_deref(), &self.target.object.name);
            let (uid, version) = (object.uid(), object.resource_version());
            let Err(error) = self.run.writer.delete(&self.target.resource, namespace, name, uid, version).await else {
                self.run.pace.went_well();
                self.report_leftover().await;
                return Outcome::Deleted;
            };
            match Verdict::of(&error) {
                Verdict::Gone => return gone(unanswered),
                Verdict::Recreated | Verdict::Reread if conflicts < CONFLICTS => {
                    conflicts += 1;
                    let clock = self.run.writer.reader().clock();
                    clock.sleep(Duration::from_millis(conflicts.into())).await;
                }
                Verdict::Busy if hold.wait(&error, self.run).await => {}
                Verdict::Unknown if hold.wait(&error, self.run).await => unanswered = true,
                _ => return Outcome::Failed(Hold::words(&error)),
            }
        }
    }

    /// The object as it is now: whole where its condition matters, else its metadata alone.
    async fn read(&self) -> Result<Option<Object>, ClusterError> {
        let reader = self.run.writer.reader().patient(Duration::ZERO);
        let (namespace, name) = (self.target.object.namespace.as_deref(), &self.target.object.name);
        match self.task.target {
            DeleteTarget::Objects(_) => reader.get_metadata(&self.target.resource, namespace, name).await,
            DeleteTarget::Matching { .. } => reader.get(&self.target.resource, namespace, name).await,
        }
    }

    async fn report_leftover(&self) {
        if let Ok(Some(left)) = self.read().await {
            let left = target(&self.target.resource, &left);
            if left.uid == self.target.uid && !left.finalizers.is_empty() {
                self.say(&format!("will go when it is let go{}", super::held_by(&left.finalizers)));
            }
        }
    }

    fn say(&self, what: &str) {
        (self.run.report)(Progress::Said(format!("{} {what}", self.target.object)));
    }
}
