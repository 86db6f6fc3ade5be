//! The plan: one value, plain data, ordered as it will run.
//!
//! In: nothing but the types below, filled by [`crate::steps`]. Out: what the terminal, Markdown
//! and JSON views show; they compute nothing. Knows no cluster. Holds no Secret's data, no
//! environment value, no last-applied copy: what must not be shown does not enter.

mod fingerprint;

use std::path::PathBuf;

pub use fingerprint::Fingerprint;
use jiff::Timestamp;

use crate::{object::ObjectRef, runbook::StepId};

/// What the live cluster still lacks, step by step in run order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runbook it was made from.
    pub runbook: RunbookFacts,
    /// The cluster it was made for.
    pub cluster: ClusterFacts,
    /// When, by the server's clock, to the second.
    pub at: Timestamp,
    /// Steps in run order.
    pub steps: Vec<PlannedStep>,
    /// Findings about no step in particular.
    pub findings: Vec<Finding>,
    /// Hard facts: while they hold, the plan is not stale. Name and value, sorted.
    pub facts: Vec<(String, String)>,
}

/// What of the runbook a reader of the plan must know.
#[derive(Clone, Debug)]
pub struct RunbookFacts {
    /// Path as given.
    pub path: PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its title.
    pub title: String,
    /// Version that goes.
    pub from: String,
    /// Version that stays.
    pub to: String,
}

/// Which cluster answered, and as whom.
#[derive(Clone, Debug)]
pub struct ClusterFacts {
    /// kubeconfig context.
    pub context: String,
    /// uid of namespace `kube-system`, where it may be read.
    pub uid: Option<String>,
    /// `v1.36.1`.
    pub server_version: String,
    /// The user as the API server sees it.
    pub user: Option<String>,
}

/// One step and what it will do.
#[derive(Clone, Debug)]
pub struct PlannedStep {
    /// Place in the run order, from 1.
    pub number: usize,
    /// Id in the runbook.
    pub id: StepId,
    /// Kind: `migrate`.
    pub kind: &'static str,
    /// Whether it only looks.
    pub gate: bool,
    /// Numbers of the steps it needs.
    pub needs: Vec<usize>,
    /// Where it stands.
    pub state: State,
    /// What will happen, or what was found, in one line.
    pub summary: String,
    /// The way back.
    pub undo: Undo,
    /// The phrase that approves it, where it cannot be undone: `merge@admin@pitower`.
    pub point_of_no_return: Option<String>,
    /// Further lines of what a reader should know.
    pub details: Vec<String>,
    /// Every change it will make, as far as known now.
    pub changes: Vec<Change>,
    /// What was found about it.
    pub findings: Vec<Finding>,
}

/// Where a step stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A gate that is open.
    Met,
    /// Nothing left to do.
    Done,
    /// Ready to run.
    ToDo,
    /// A gate that is closed.
    Waiting,
    /// Something to do or to look at once these steps (by number) are settled.
    After(Vec<usize>),
    /// Everything that depends on it is done.
    NotNeeded,
    /// Left out by `--to`.
    NotSelected,
}

impl State {
    /// Whether steps that need this one may go on.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Met | Self::Done | Self::NotNeeded)
    }
}

/// The way back from a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It changes nothing.
    NothingToUndo,
    /// The backup of this step (by number) can be put back.
    Restore(usize),
    /// There is none.
    NoWayBack,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It is made.
    Create,
    /// Fields of it change.
    Update,
    /// It goes.
    Delete,
}

/// One object that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happens.
    pub operation: Operation,
    /// To which object.
    pub object: ObjectRef,
    /// Its fields that change; empty for a delete.
    pub fields: Vec<FieldChange>,
}

/// One field that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Path: `metadata.managedFields[argocd-controller].apiVersion`.
    pub path: String,
    /// Value before; none where the field is absent.
    pub before: Option<String>,
    /// Value after; none where the field goes.
    pub after: Option<String>,
}

impl FieldChange {
    /// A field by its path, from one value to another.
    pub fn new(path: impl Into<String>, before: Option<&str>, after: Option<&str>) -> Self {
        Self { path: path.into(), before: before.map(Into::into), after: after.map(Into::into) }
    }
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Apply refuses.
    Blocker,
    /// It does not stop, but somebody should look.
    Warning,
    /// Could not be looked at. Never counted as fine.
    NotChecked,
    /// Good to know.
    Note,
}

/// Something found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its weight.
    pub grade: Grade,
    /// About which object.
    pub object: Option<ObjectRef>,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The earlier step of this plan that removes it: then it does not block.
    pub resolved_by: Option<StepId>,
}

impl Finding {
    /// A finding about no object in particular.
    pub fn new(grade: Grade, text: impl Into<String>) -> Self {
        Self { grade, object: None, text: text.into(), hint: None, resolved_by: None }
    }

    /// Apply refuses.
    pub fn blocker(text: impl Into<String>) -> Self {
        Self::new(Grade::Blocker, text)
    }

    /// Somebody should look.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Grade::Warning, text)
    }

    /// Could not be looked at.
    pub fn not_checked(text: impl Into<String>) -> Self {
        Self::new(Grade::NotChecked, text)
    }

    /// Good to know.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Grade::Note, text)
    }

    /// Names the object.
    #[must_use]
    pub fn about(self, object: ObjectRef) -> Self {
        Self { object: Some(object), ..self }
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Names the step that removes it, if the runbook has one.
    #[must_use]
    pub fn resolved_by(self, step: Option<&StepId>) -> Self {
        Self { resolved_by: step.cloned(), ..self }
    }

    /// Whether apply must refuse.
    pub fn blocks(&self) -> bool {
        self.grade == Grade::Blocker && self.resolved_by.is_none()
    }
}

impl Plan {
    /// Findings that make apply refuse, each with its step's id where it has one.
    pub fn blockers(&self) -> impl Iterator<Item = (Option<&StepId>, &Finding)> {
        let of_steps = self
            .steps
            .iter()
            .filter(|step| step.state != State::NotSelected)
            .flat_map(|step| step.findings.iter().map(move |finding| (Some(&step.id), finding)));
        self.findings.iter().map(|finding| (None, finding)).chain(of_steps).filter(|(_, finding)| finding.blocks())
    }

    /// Whether nothing is left to do or to wait for.
    pub fn is_settled(&self) -> bool {
        self.steps.iter().all(|step| step.state.is_settled() || step.state == State::NotSelected)
    }

    /// A step by its id.
    pub fn step(&self, id: &StepId) -> Option<&PlannedStep> {
        self.steps.iter().find(|step| step.id == *id)
    }

    /// A short code over the hard facts: the same while the plan still fits.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.facts)
    }
}
