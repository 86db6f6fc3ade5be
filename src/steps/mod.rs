//! One file per step kind, each the same shape:
//!
//! ```text
//! observe (Reader) -> Seen -> decide (pure) -> Decision        what plan shows
//!                                run (Writer) -> Result        what apply does
//! ```
//!
//! `observe` never fails: what could not be seen is part of what was seen. `decide` computes
//! nothing but from what was seen. `run` looks again before it writes. A gate has no `run`.

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;

use crate::{
    cluster::{Access, Reader, ServerFacts, Writer},
    graph::StepGraph,
    object::ObjectRef,
    plan::{Change, Finding, Undo},
    runbook::{Runbook, Step, StepId, Task},
};

mod access;
mod assemble;
pub mod backup;
mod certificate;
pub mod client;
pub mod confirm;
pub mod delete;
pub mod gone;
mod identity;
pub mod interrupt;
pub mod manifests;
pub mod merge;
pub mod migrate;
pub mod owners;
pub mod pace;
pub mod progress;
pub mod release;
pub mod roles;
pub mod strip;
pub mod survey;
pub mod targets;
pub mod touch;
pub mod trial;
pub mod well_known;
pub mod writers;

pub use access::{Rights, lock_name, needed};
pub use assemble::{is_over, plan};
pub use interrupt::Interrupt;
pub use pace::Pace;
pub use progress::{Outcome, Progress};
pub use survey::Survey;

/// What every observe gets.
pub struct Look<'a> {
    /// The cluster, read-only.
    pub reader: &'a Reader,
    /// The runbook.
    pub runbook: &'a Runbook,
    /// Its order.
    pub graph: &'a StepGraph,
    /// uid of namespace `kube-system`, where it may be read.
    pub cluster_uid: Option<&'a str>,
    /// The CRDs of the upgrade and their records.
    pub survey: &'a Survey,
    /// What the server says of each CRD's target, where a step asks for it.
    pub targets: &'a [(ObjectRef, trial::Target)],
    /// Where outputs go: backups and journals are below it.
    pub working_dir: &'a Path,
}

/// What was seen for one step.
#[derive(Clone, Debug)]
pub enum Seen {
    /// See [`client`].
    Client(client::Seen),
    /// See [`writers`].
    Writers(writers::Seen),
    /// See [`backup`].
    Backup(backup::Seen),
    /// See [`migrate`].
    Migrate(migrate::Seen),
    /// See [`owners`].
    Owners(owners::Seen),
    /// See [`release`].
    Release(release::Seen),
    /// See [`merge`].
    Merge(merge::Seen),
    /// See [`gone`].
    Gone(gone::Seen),
    /// See [`delete`].
    Delete(delete::Seen),
    /// A person is asked in the run; the cluster cannot say.
    Confirm,
    /// See [`strip`].
    Strip(strip::Seen),
    /// See [`manifests`].
    Manifests(manifests::Seen),
}

/// Everything observed at one moment.
#[derive(Clone, Debug)]
pub struct Situation {
    /// Who answers, and who asks.
    pub server: ServerFacts,
    /// When, by the server's clock.
    pub now: Timestamp,
    /// The CRDs of the upgrade and their records.
    pub survey: Survey,
    /// By step.
    pub seen: BTreeMap<StepId, Seen>,
    /// What the user may not do of what the steps need.
    pub rights: Rights,
}

/// What every decide gets beside its own task and what was seen for it.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The runbook.
    pub runbook: &'a Runbook,
    /// Its order.
    pub graph: &'a StepGraph,
    /// Everything observed.
    pub situation: &'a Situation,
}

impl World<'_> {
    /// The first step of a kind, in run order.
    pub fn first_of_kind(&self, kind: &str) -> Option<&StepId> {
        self.graph
            .order()
            .iter()
            .map(|&index| &self.runbook.steps[index])
            .find(|step| step.task.kind() == kind)
            .map(|step| &step.id)
    }

    /// The point of no return that a step comes after.
    pub fn point_of_no_return_before(&self, step: &StepId) -> Option<&StepId> {
        let steps = self.graph.order().iter().map(|&index| &self.runbook.steps[index]);
        steps
            .filter(|other| other.task.is_point_of_no_return() && self.graph.reaches(step, &other.id))
            .map(|other| &other.id)
            .next()
    }
}

/// What decide says about a step, before its neighbours are known.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Nothing is left to do, or the gate is open.
    pub settled: bool,
    /// One line: what will happen, or what was found.
    pub summary: String,
    /// Further lines.
    pub details: Vec<String>,
    /// Every change, as far as known.
    pub changes: Vec<Change>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Whether there is a way back by the backup ([`Undo::Restore`] is filled in when the plan is put together).
    pub undo: UndoBy,
}

/// The way back that a kind of step has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoBy {
    /// It changes nothing.
    Nothing,
    /// The nearest backup before it.
    Backup,
    /// There is none.
    NoWayBack,
}

impl Decision {
    /// A step that is settled.
    pub fn settled(summary: impl Into<String>) -> Self {
        Self::new(true, summary)
    }

    /// A step with something left.
    pub fn pending(summary: impl Into<String>) -> Self {
        Self::new(false, summary)
    }

    fn new(settled: bool, summary: impl Into<String>) -> Self {
        Self {
            settled,
            summary: summary.into(),
            details: Vec::new(),
            changes: Vec::new(),
            findings: Vec::new(),
            undo: UndoBy::Nothing,
        }
    }

    /// Sets the way back.
    #[must_use]
    pub fn undo(self, undo: UndoBy) -> Self {
        Self { undo, ..self }
    }

    /// Adds findings.
    #[must_use]
    pub fn with(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// Adds changes.
    #[must_use]
    pub fn changing(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes.extend(changes);
        self
    }
}

/// What every run gets.
pub struct Run<'a> {
    /// The cluster, with the right to write.
    pub writer: &'a Writer,
    /// The runbook.
    pub runbook: &'a Runbook,
    /// Its order.
    pub graph: &'a StepGraph,
    /// What was seen right before this step.
    pub situation: &'a Situation,
    /// Where outputs go.
    pub working_dir: &'a Path,
    /// The run's id: `20261201-140211-5d`.
    pub run_id: &'a str,
    /// How many writes may be in flight, and how long an outage is sat out.
    pub pace: &'a pace::Pace,
    /// Where progress goes.
    pub report: &'a (dyn Fn(Progress) + Sync),
    /// Set by the first Ctrl-C: finish what is in flight, start nothing new.
    pub interrupt: &'a Interrupt,
}

/// Why a step did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Something was refused or went wrong; what is done is kept. Exit 7.
    Failed {
        /// What happened, as one sentence.
        text: String,
        /// Each object it happened to, with the server's own words.
        failures: Vec<(Option<ObjectRef>, String)>,
        /// What to do next.
        hint: Option<String>,
    },
    /// A gate is closed, or a wait timed out. Exit 3.
    Unmet(String),
    /// Ctrl-C or a signal; the text says how far it got.
    Interrupted(String),
}

impl Stop {
    /// A failure in one sentence.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed { text: text.into(), failures: Vec::new(), hint: None }
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(self, next: impl Into<String>) -> Self {
        match self {
            Self::Failed { text, failures, .. } => Self::Failed { text, failures, hint: Some(next.into()) },
            other => other,
        }
    }
}

/// Observes the upgrade's CRDs and the steps named (all when `only` is empty).
///
/// # Errors
/// The API server cannot be reached at all. What else cannot be seen is part of the situation.
pub async fn observe(
    reader: &Reader,
    runbook: &Runbook,
    graph: &StepGraph,
    working_dir: &Path,
    only: &[StepId],
) -> Result<Situation, crate::cluster::ClusterError> {
    let server = reader.server_facts().await?;
    let cluster_uid = server.cluster_uid.as_deref();
    let mut survey = survey::observe(reader, runbook).await;
    survey.backed_up = backup::crds_held(cluster_uid, runbook, working_dir);
    let wanted = |step: &&Step| only.is_empty() || only.contains(&step.id);
    let asks = runbook.steps.iter().filter(wanted).any(|step| step.task.is_point_of_no_return());
    let targets = if asks { targets::trials(reader, runbook, &survey).await } else { Vec::new() };
    let look = Look { reader, runbook, graph, cluster_uid, survey: &survey, targets: &targets, working_dir };
    let mut seen = BTreeMap::new();
    for step in runbook.steps.iter().filter(wanted) {
        seen.insert(step.id.clone(), observe_step(step, &look).await);
    }
    let rights = if only.is_empty() { access::observe(&look).await } else { Rights::default() };
    let now = reader.clock().now();
    Ok(Situation { server, now, survey, seen, rights })
}

async fn observe_step(step: &Step, look: &Look<'_>) -> Seen {
    match &step.task {
        Task::Client(task) => Seen::Client(client::observe(task, look).await),
        Task::Writers(task) => Seen::Writers(writers::observe(task, look).await),
        Task::Backup(task) => Seen::Backup(backup::observe(task, look)),
        Task::Migrate(task) => Seen::Migrate(migrate::observe(task, look).await),
        Task::Owners(task) => Seen::Owners(owners::observe(task, look).await),
        Task::Release(task) => Seen::Release(release::observe(task, look).await),
        Task::Merge(task) => Seen::Merge(merge::observe(task, look).await),
        Task::Gone(task) => Seen::Gone(gone::observe(task, look).await),
        Task::Delete(task) => Seen::Delete(delete::observe(step, task, look).await),
        Task::Confirm(_) => Seen::Confirm,
        Task::Strip(task) => Seen::Strip(strip::observe(task, look).await),
        Task::Manifests(task) => Seen::Manifests(manifests::observe(task, look).await),
    }
}

/// What a step comes to, from what was seen for it; none when it was not observed.
pub fn decide(step: &Step, world: &World<'_>) -> Option<Decision> {
    let seen = world.situation.seen.get(&step.id)?;
    Some(match (&step.task, seen) {
        (Task::Client(task), Seen::Client(seen)) => client::decide(step, task, seen, world),
        (Task::Writers(task), Seen::Writers(seen)) => writers::decide(task, seen, world),
        (Task::Backup(task), Seen::Backup(seen)) => backup::decide(task, seen, world),
        (Task::Migrate(task), Seen::Migrate(seen)) => migrate::decide(task, seen, world),
        (Task::Owners(task), Seen::Owners(seen)) => owners::decide(task, seen, world),
        (Task::Release(task), Seen::Release(seen)) => release::decide(task, seen, world),
        (Task::Merge(task), Seen::Merge(seen)) => merge::decide(task, seen, world),
        (Task::Gone(task), Seen::Gone(seen)) => gone::decide(task, seen, world),
        (Task::Delete(task), Seen::Delete(seen)) => delete::decide(step, task, seen, world),
        (Task::Confirm(task), Seen::Confirm) => confirm::decide(task),
        (Task::Strip(task), Seen::Strip(seen)) => strip::decide(step, task, seen, world),
        (Task::Manifests(task), Seen::Manifests(seen)) => manifests::decide(step, task, seen, world),
        // observe_step pairs them; another pairing is a step that was not observed.
        _ => return None,
    })
}

/// Runs a step that changes something. A gate has nothing to run.
///
/// # Errors
/// Why it did not finish.
pub async fn run(step: &Step, run: &Run<'_>) -> Result<(), Stop> {
    match &step.task {
        Task::Backup(task) => backup::run(task, run).await,
        Task::Migrate(task) => migrate::run(task, run).await,
        Task::Owners(task) => owners::run(task, run).await,
        Task::Release(task) => release::run(task, run).await,
        Task::Merge(task) => merge::run(task, run).await,
        Task::Delete(task) => delete::run(step, task, run).await,
        Task::Strip(task) => strip::run(task, run).await,
        Task::Manifests(task) => manifests::run(task, run).await,
        Task::Client(_) | Task::Writers(_) | Task::Gone(_) | Task::Confirm(_) => Ok(()),
    }
}

/// What a step needs the right to do.
pub fn rights(step: &Step, runbook: &Runbook) -> Vec<Access> {
    match &step.task {
        Task::Client(task) => client::rights(task),
        Task::Writers(_) | Task::Confirm(_) => Vec::new(),
        Task::Backup(task) => backup::rights(task, runbook),
        Task::Migrate(task) => migrate::rights(task, runbook),
        Task::Owners(task) => owners::rights(task, runbook),
        Task::Release(task) => release::rights(task, runbook),
        Task::Merge(task) => merge::rights(task, runbook),
        Task::Gone(task) => gone::rights(task),
        Task::Delete(task) => delete::rights(task),
        Task::Strip(task) => strip::rights(task, runbook),
        Task::Manifests(task) => manifests::rights(task),
    }
}

/// The way back, once it is known which backup comes before.
fn undo(by: UndoBy, backup: Option<usize>) -> Undo {
    match (by, backup) {
        (UndoBy::Nothing, _) => Undo::NothingToUndo,
        (UndoBy::Backup, Some(number)) => Undo::Restore(number),
        (UndoBy::Backup, None) | (UndoBy::NoWayBack, _) => Undo::NoWayBack,
    }
}
