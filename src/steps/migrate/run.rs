//! Settle, touch, prove, prune, one CRD after the other.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures::{StreamExt, stream};

use super::{
    defaults::{defaults_set, schema},
    observe::others_at_work,
    patch::patch,
    prune::prune,
};
use crate::{
    cluster::{ClusterError, Content, Pages},
    crd::{Crd, crd_resource},
    object::{Object, ObjectRef, Resource},
    runbook::{Migrate, Task},
    steps::{
        Outcome, Progress, Run, Seen, Stop, backup, identity,
        pace::{Hold, WIDTH},
        survey::{self, Records},
        touch::{Touched, touch},
    },
};

/// How long another migrator is waited for.
const OTHERS: Duration = Duration::from_secs(600);
/// Between two looks at it.
const POLL: Duration = Duration::from_secs(2);
/// Passes over one CRD before somebody must look: each may find objects that others wrote meanwhile.
const PASSES: usize = 20;

/// Migrates every CRD of the upgrade, in the runbook's order.
///
/// # Errors
/// An object cannot be rewritten or proved (then nothing of its CRD is pruned), the CRD changed
/// under the run, or somebody asked to stop.
pub async fn run(task: &Migrate, run: &Run<'_>) -> Result<(), Stop> {
    let crds = &run.runbook.upgrade.crds;
    for (index, name) in crds.iter().enumerate() {
        let migration = Migration { task, run, name };
        migration.run().await.map_err(|stop| match stop {
            Stop::Interrupted(text) => Stop::Interrupted(format!("{text}; {index} of {} CRDs migrated", crds.len())),
            other => other,
        })?;
    }
    Ok(())
}

/// One CRD's way through the step.
struct Migration<'a> {
    task: &'a Migrate,
    run: &'a Run<'a>,
    name: &'a str,
}

impl Migration<'_> {
    async fn run(&self) -> Result<(), Stop> {
        loop {
            self.alone().await?;
            let crd = self.settled().await?;
            self.prove(&crd).await?;
            let now = self.crd().await?;
            if now.object.generation() == crd.object.generation() {
                return if now.declares(&self.run.runbook.upgrade.from) { prune(self.run, &crd).await } else { Ok(()) };
            }
            // A rotated certificate changes the spec as a flipped storage flag does: what was
            // proved before the change is not proved after it.
            self.say(format!("the spec of CRD {} changed meanwhile; proving its records again", self.name));
        }
    }

    fn say(&self, text: String) {
        (self.run.report)(Progress::Said(text));
    }

    /// The CRD as it is now, if it is still the one that was planned for.
    async fn crd(&self) -> Result<Crd, Stop> {
        let reader = self.run.writer.reader();
        match reader.get(&crd_resource(), None, self.name).await {
            Ok(Some(crd)) => {
                let crd = Crd::of(crd);
                identity::unchanged(&crd, &self.run.situation.survey).map(|()| crd)
            }
            Ok(None) => Err(Stop::failed(format!("CRD {} is gone", self.name))),
            Err(error) => Err(Stop::failed(error.to_string())),
        }
    }

    /// The CRD once its spec has been at rest for long enough: right after a storage flag flips, an
    /// API server may still write the old version (design, fact 6).
    async fn settled(&self) -> Result<Crd, Stop> {
        let (run, to) = (self.run, &self.run.runbook.upgrade.to);
        let clock = run.writer.reader().clock();
        let first_seen = clock.now();
        loop {
            let crd = self.crd().await?;
            if crd.storage_version() != Some(to) {
                let storage = crd.storage_version().unwrap_or("none");
                return Err(Stop::failed(format!("CRD {} stores {storage}, not {to}", self.name)));
            }
            let settle = self.task.settle;
            let anchor = crd.spec_changed_at().unwrap_or(first_seen);
            let until = anchor.checked_add(settle).unwrap_or(anchor);
            let now = clock.now();
            if now >= until || !crd.declares(&run.runbook.upgrade.from) {
                return Ok(crd);
            }
            let what = format!("the spec of CRD {} to settle (changed {anchor:.0})", self.name);
            (run.report)(Progress::Waiting { what, until });
            let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
            tokio::select! {
                () = clock.sleep(left) => {}
                () = run.interrupt.asked() => return Err(self.interrupted(0, 0)),
            }
        }
    }

    /// Waits until no other migrator is at work on this CRD; Kubernetes has its own from 1.37 on,
    /// which prunes too (design, fact 9).
    async fn alone(&self) -> Result<(), Stop> {
        let run = self.run;
        let clock = run.writer.reader().clock();
        let until = clock.now().checked_add(OTHERS).unwrap_or(jiff::Timestamp::MAX);
        let mut said = false;
        loop {
            // The plan has said what it could not look at.
            let (mut others, _) = others_at_work(run.writer.reader(), &[self.name.to_owned()]).await;
            if self.crd().await?.condition("StorageMigrating").is_some() {
                others.push("the API server's own".into());
            }
            if others.is_empty() {
                return Ok(());
            }
            if clock.now() >= until {
                let others = others.join(", ");
                return Err(Stop::Unmet(format!("{} is still being migrated by others: {others}", self.name)));
            }
            if !said {
                let what = format!("another migration of {} to end: {}", self.name, others.join(", "));
                (run.report)(Progress::Waiting { what, until });
                said = true;
            }
            tokio::select! {
                () = clock.sleep(POLL) => {}
                () = run.interrupt.asked() => return Err(self.interrupted(0, 0)),
            }
        }
    }

    fn interrupted(&self, proved: usize, total: usize) -> Stop {
        Stop::Interrupted(format!("{}: {proved} of {total} records proved, not pruned; safe to run again", self.name))
    }

    /// Touches every record until each was left unchanged by a touch: then it is proved (fact 1).
    async fn prove(&self, crd: &Crd) -> Result<(), Stop> {
        let mut proved = BTreeSet::new();
        for pass in 1..=PASSES {
            let seen = self.pass(crd, pass, &mut proved).await?;
            let report = Progress::Pass { over: self.name.into(), pass, done: proved.len(), rewritten: seen.rewritten };
            (self.run.report)(report);
            if seen.rewritten == 0 && seen.uncovered == 0 && seen.moved == 0 {
                return Ok(());
            }
            if seen.uncovered > 0 {
                self.cover().await?;
            }
        }
        Err(Stop::failed(format!("records of {} still change after {PASSES} passes; nothing was pruned", self.name))
            .hint("find out who writes them all the time, then run again"))
    }

    /// Appends objects born since the backup: nothing is touched that it does not hold.
    async fn cover(&self) -> Result<(), Stop> {
        match self.run.runbook.steps.iter().find_map(|step| match &step.task {
            Task::Backup(task) => Some(task),
            _ => None,
        }) {
            Some(task) => backup::run(task, self.run).await,
            None => Err(Stop::failed("the runbook has no backup step")),
        }
    }

    async fn pass(&self, crd: &Crd, pass: usize, proved: &mut BTreeSet<String>) -> Result<PassSeen, Stop> {
        let run = self.run;
        let resource = crd.resource(&run.runbook.upgrade.to);
        let covered = backup::covered(run, self.name);
        let mut seen = PassSeen::default();
        let mut failures: Vec<(Option<ObjectRef>, String)> = Vec::new();
        let reader = run.writer.reader();
        let careful = self.sets_defaults(crd);
        let content = if careful { Content::Full } else { Content::Metadata };
        let mut pages = reader.pages(&resource, None, content);
        let stamp = format!("{:.0}", reader.clock().now());
        while let Some(page) = self.next_page(&mut pages).await? {
            let (ready, unready): (Vec<Object>, Vec<Object>) = page
                .into_iter()
                .filter(|object| !proved.contains(object.uid()))
                .partition(|object| covered.contains(object.uid()));
            seen.uncovered += unready.len();
            let build = |object: &Object| Some(patch(self.task, &run.runbook.upgrade, crd, object, &stamp));
            // Set by the first record that must not be altered further: what is in flight ends, nothing new starts.
            let halted = AtomicBool::new(false);
            let going_on = || !run.interrupt.is_set() && !halted.load(Ordering::Relaxed);
            let mut stop = None;
            let mut touches = stream::iter(ready.into_iter().take_while(|_| going_on()))
                .map(async |object| {
                    let tried = careful && self.try_first(&object, crd, &resource, &stamp).await?;
                    Ok((touch(run, &resource, object, &build).await, tried))
                })
                .buffer_unordered(WIDTH);
            while let Some(touched) = touches.next().await {
                let (touched, tried) = match touched {
                    Ok(touched) => touched,
                    Err(refused) => {
                        halted.store(true, Ordering::Relaxed);
                        stop.get_or_insert(refused);
                        continue;
                    }
                };
                // A dry run that passed has told what changes; without one nothing may.
                if let Some(altered) = altered(&touched, &resource).filter(|_| !tried) {
                    halted.store(true, Ordering::Relaxed);
                    stop.get_or_insert(altered);
                }
                match &touched.outcome {
                    Outcome::Unchanged => {
                        proved.insert(touched.uid.clone());
                    }
                    Outcome::Updated | Outcome::Created => seen.rewritten += 1,
                    Outcome::Gone | Outcome::Deleted => seen.moved += usize::from(touched.recreated),
                    Outcome::Failed(words) => failures.push((Some(touched.object.clone()), words.clone())),
                }
                if touched.outcome != Outcome::Unchanged {
                    (run.report)(touched.progress());
                }
            }
            drop(touches);
            if let Some(stop) = stop {
                return Err(stop);
            }
            // What was in flight has ended; nothing new was started.
            if run.interrupt.is_set() {
                return Err(self.interrupted(proved.len(), proved.len() + seen.rewritten));
            }
        }
        if failures.is_empty() {
            return Ok(seen);
        }
        Err(Stop::Failed {
            text: format!(
                "{}: pass {pass} rewrote {}, {} failed; nothing of it was pruned",
                self.name,
                seen.rewritten,
                failures.len()
            ),
            failures,
            hint: Some("mend what the server says, then run again: it does the rest".into()),
        })
    }

    /// The next page; what should heal, such as a webhook that rotates its certificate, is held for.
    async fn next_page(&self, pages: &mut Pages<'_>) -> Result<Option<Vec<Object>>, Stop> {
        let mut hold = Hold::default();
        loop {
            match pages.next().await {
                Err(error) if error.may_heal() && hold.wait(&error, self.run).await => {}
                Err(error) if self.run.interrupt.is_set() => {
                    return Err(Stop::Interrupted(format!("{}: {error}", self.name)));
                }
                Err(error) => {
                    return Err(Stop::Failed {
                        text: format!("{}: {}; nothing of it was pruned", self.name, Hold::words(&error)),
                        failures: self.culprits(&error).await,
                        hint: Some("mend what the server says, then run again: it does the rest".into()),
                    });
                }
                Ok(page) => return Ok(page),
            }
        }
    }

    /// The records that make the whole list fail, each asked for by name.
    async fn culprits(&self, error: &ClusterError) -> Vec<(Option<ObjectRef>, String)> {
        if !error.is_conversion() && !error.is_initializing() {
            return Vec::new();
        }
        let surveyed = survey::observe_crd(self.run.writer.reader(), self.run.runbook, self.name).await;
        match surveyed.records {
            Records::Unreadable { culprits, .. } => {
                culprits.into_iter().map(|(object, words)| (Some(object), words)).collect()
            }
            Records::Listed(_) | Records::NotAsked => Vec::new(),
        }
    }

    /// Whether the dry run before this step saw that rewriting this kind sets defaults.
    fn sets_defaults(&self, crd: &Crd) -> bool {
        self.run
            .situation
            .seen
            .values()
            .any(|seen| matches!(seen, Seen::Migrate(seen) if seen.sets_defaults(&crd.kind)))
    }

    /// A dry run of the very patch, for a kind whose rewrite changes the spec: it may set defaults
    /// and nothing else.
    ///
    /// False: the server did not say; then the write itself must change nothing of the spec.
    async fn try_first(&self, object: &Object, crd: &Crd, resource: &Resource, stamp: &str) -> Result<bool, Stop> {
        let upgrade = &self.run.runbook.upgrade;
        let mut patch = patch(self.task, upgrade, crd, object, stamp);
        patch["metadata"]["uid"] = object.uid().into();
        patch["metadata"]["resourceVersion"] = object.resource_version().into();
        let reader = self.run.writer.reader();
        // Any error shows again in the write itself, where it has its rules.
        let Ok(after) = reader.dry_run_patch(resource, object.namespace(), object.name(), patch).await else {
            return Ok(false);
        };
        defaults_set(object, &after, schema(crd, &upgrade.to)).map(|_| true).map_err(|paths| {
            Stop::failed(format!(
                "rewriting {} would change {}; it was left alone",
                object.reference(),
                paths.join(", ")
            ))
            .hint("the conversion alters it; mend the conversion, then run again")
        })
    }
}

/// What one pass came across.
#[derive(Default)]
struct PassSeen {
    /// Records that changed, so that they are not proved yet.
    rewritten: usize,
    /// Records that no backup covers, left alone.
    uncovered: usize,
    /// Records that were created again under the same name.
    moved: usize,
}

/// A touch that changes `metadata.generation` changed the object's spec: conversion or defaulting
/// alters it, and going on would alter every object.
fn altered(touched: &Touched, resource: &Resource) -> Option<Stop> {
    let (before, after) = (touched.before.as_ref()?, touched.after.as_ref()?);
    if before.uid() != after.uid() || before.generation().is_none() || before.generation() == after.generation() {
        return None;
    }
    // Its owner may have changed the spec between the read and the patch; the precondition rules that out.
    Some(
        Stop::failed(format!(
            "rewriting {} changed its spec: conversion or defaulting at {} alters it (generation {:?} -> {:?}); \
             stopped after this one object",
            touched.object,
            resource.version,
            before.generation().unwrap_or_default(),
            after.generation().unwrap_or_default()
        ))
        .hint("compare it with the backup before anything else is touched"),
    )
}
