//! The wire form of a plan: its keys and words, and nothing of how the program sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A plan.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct PlanDocument {
    /// Always `sbx.plan`.
    pub(super) schema: String,
    /// Major and minor version of this form.
    pub(super) schema_version: String,
    /// When it was made, by the server's clock.
    pub(super) created_at: String,
    /// A short code over the facts: the same while the plan still fits.
    pub(super) fingerprint: String,
    /// The runbook it was made from.
    pub(super) runbook: RunbookDocument,
    /// The cluster it was made for.
    pub(super) target: TargetDocument,
    /// Whether every step is selected and everything could be looked at.
    pub(super) complete: bool,
    /// Whether something is to do or to wait for, and nothing makes apply refuse.
    pub(super) applyable: bool,
    /// Counts and names.
    pub(super) summary: SummaryDocument,
    /// Steps in run order.
    pub(super) steps: Vec<StepDocument>,
    /// Hard facts: while they hold, the plan is not stale. Sorted by name.
    pub(super) facts: Vec<FactDocument>,
    /// Findings about no step in particular.
    pub(super) diagnostics: Vec<FindingDocument>,
}

/// Where a plan comes from.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct RunbookDocument {
    /// Path as given.
    pub(super) path: String,
    /// SHA-256 of its bytes.
    pub(super) sha256: String,
    /// Its title.
    pub(super) title: String,
    /// Version that goes.
    pub(super) from: String,
    /// Version that stays.
    pub(super) to: String,
}

/// Where a plan belongs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct TargetDocument {
    /// kubeconfig context.
    pub(super) context: String,
    /// uid of namespace `kube-system`; null where it may not be read.
    pub(super) cluster_uid: Option<String>,
    /// Version of the API server.
    pub(super) server_version: String,
    /// The user as the API server sees it; null where it does not say.
    pub(super) user: Option<String>,
}

/// The plan in numbers and names.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct SummaryDocument {
    /// Steps by state.
    pub(super) states: StatesDocument,
    /// Steps to come that cannot be undone.
    pub(super) no_return: Vec<String>,
    /// Objects that change in the selected steps.
    pub(super) changes: ChangeCounts,
    /// Findings of the selected steps and of the plan.
    pub(super) findings: FindingCounts,
    /// Steps with a blocker that no earlier step removes.
    pub(super) blocked: Vec<String>,
}

/// Steps by state.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct StatesDocument {
    /// Gates that are open.
    pub(super) met: StepList,
    /// Nothing left to do.
    pub(super) done: StepList,
    /// Ready to run.
    pub(super) to_do: StepList,
    /// Other steps come first.
    pub(super) after: StepList,
    /// Gates that are closed.
    pub(super) waiting: StepList,
    /// All that depends on them is done.
    pub(super) not_needed: StepList,
    /// Left out.
    pub(super) not_selected: StepList,
}

/// How many steps, and which.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct StepList {
    /// How many.
    pub(super) count: usize,
    /// Their ids, in run order.
    pub(super) steps: Vec<String>,
}

/// How many objects change.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct ChangeCounts {
    /// Made.
    pub(super) create: usize,
    /// Changed.
    pub(super) update: usize,
    /// Deleted.
    pub(super) delete: usize,
}

/// How many findings of each weight.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct FindingCounts {
    /// Apply refuses.
    pub(super) blockers: usize,
    /// Blockers that an earlier step removes.
    pub(super) resolved: usize,
    /// Somebody should look.
    pub(super) warnings: usize,
    /// Could not be looked at.
    pub(super) not_checked: usize,
    /// Good to know.
    pub(super) notes: usize,
}

/// One step.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct StepDocument {
    /// Place in the run order, from 1.
    pub(super) number: usize,
    /// Id in the runbook.
    pub(super) id: String,
    /// Kind: `migrate`.
    pub(super) kind: String,
    /// Whether it only looks.
    pub(super) gate: bool,
    /// Numbers of the steps it needs.
    pub(super) needs: Vec<usize>,
    /// Where it stands.
    pub(super) state: StateWord,
    /// With state `after`: the numbers of the steps that come first.
    pub(super) after: Vec<usize>,
    /// What will happen, or what was found, in one line.
    pub(super) summary: String,
    /// The way back.
    pub(super) undo: UndoWord,
    /// With undo `restore`: the number of the backup step.
    pub(super) undo_step: Option<usize>,
    /// The phrase that approves it, where it cannot be undone.
    pub(super) point_of_no_return: Option<String>,
    /// Further lines of what a reader should know.
    pub(super) details: Vec<String>,
    /// Every change, as far as known.
    pub(super) changes: Vec<ChangeDocument>,
    /// What was found about it.
    pub(super) findings: Vec<FindingDocument>,
}

/// Where a step stands.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateWord {
    /// A gate that is open.
    Met,
    /// Nothing left to do.
    Done,
    /// Ready to run.
    ToDo,
    /// Other steps come first.
    After,
    /// A gate that is closed.
    Waiting,
    /// All that depends on it is done.
    NotNeeded,
    /// Left out.
    NotSelected,
}

/// The way back.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UndoWord {
    /// It changes nothing.
    NothingToUndo,
    /// A backup can be put back.
    Restore,
    /// There is no way back.
    None,
}

/// One object that changes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct ChangeDocument {
    /// What happens.
    pub(super) operation: OperationWord,
    /// To which object.
    pub(super) object: ObjectDocument,
    /// Its fields that change.
    pub(super) fields: Vec<FieldDocument>,
}

/// What happens to an object.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperationWord {
    /// It is made.
    Create,
    /// Fields of it change.
    Update,
    /// It goes.
    Delete,
}

/// An object.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct ObjectDocument {
    /// API group; empty for the core group.
    pub(super) group: String,
    /// Kind.
    pub(super) kind: String,
    /// Namespace; null for cluster-scoped objects.
    pub(super) namespace: Option<String>,
    /// Name.
    pub(super) name: String,
}

/// One field that changes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct FieldDocument {
    /// Path.
    pub(super) path: String,
    /// Value before; null where the field is absent.
    pub(super) before: Option<String>,
    /// Value after; null where the field goes.
    pub(super) after: Option<String>,
}

/// Something found.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct FindingDocument {
    /// Its weight.
    pub(super) grade: GradeWord,
    /// Whether apply refuses because of it.
    pub(super) blocks: bool,
    /// About which object; null for none in particular.
    pub(super) object: Option<ObjectDocument>,
    /// What was found.
    pub(super) text: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
    /// The earlier step of this plan that removes it.
    pub(super) resolved_by: Option<String>,
}

/// How much a finding weighs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GradeWord {
    /// Apply refuses.
    Blocker,
    /// Somebody should look.
    Warning,
    /// Could not be looked at.
    NotChecked,
    /// Good to know.
    Note,
}

/// What must still hold.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct FactDocument {
    /// What.
    pub(super) name: String,
    /// Its value.
    pub(super) value: String,
}
