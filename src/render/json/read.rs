//! A saved plan, back from its wire form.

use serde_json::Value;

use super::{
    SCHEMA, VERSION,
    document::{
        ChangeDocument, FindingDocument, GradeWord, ObjectDocument, OperationWord, PlanDocument, StateWord,
        StepDocument, UndoWord,
    },
};
use crate::{
    object::ObjectRef,
    plan::{
        Change, ClusterFacts, FieldChange, Finding, Grade, Operation, Plan, PlannedStep, RunbookFacts, State, Undo,
    },
    runbook::{KINDS, StepId},
};

/// Why a text is no plan that can be shown or applied.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// It does not parse, or a key is missing or of another type.
    #[error("it is not a plan as `sbx plan --format json` writes it")]
    Malformed(#[source] serde_json::Error),
    /// JSON, but something else.
    #[error("it is JSON, but its `schema` is not \"{SCHEMA}\"")]
    NotAPlan,
    /// A form that this program does not read.
    #[error("its form is version {0}, and this program reads {VERSION}: plan again")]
    Version(String),
    /// The facts give another fingerprint than the one it carries.
    #[error("it was altered: it says fingerprint {said}, its facts give {found}")]
    Altered {
        /// What it says.
        said: String,
        /// What its facts give.
        found: String,
    },
    /// A step kind that this program does not have.
    #[error("its step `{id}` is of the unknown kind `{kind}`")]
    UnknownKind {
        /// The step.
        id: String,
        /// Its kind.
        kind: String,
    },
    /// A time that is none.
    #[error("its `created_at` is not a time")]
    Time(#[source] jiff::Error),
}

/// A plan from the text that [`json_text`](super::json_text) gave.
///
/// # Errors
/// Why it cannot be shown or applied; a newer minor version is read, what is new in it passed over.
pub fn read_plan(text: &str) -> Result<Plan, SavedPlanError> {
    let value: Value = serde_json::from_str(text).map_err(SavedPlanError::Malformed)?;
    if value.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(SavedPlanError::NotAPlan);
    }
    let version = value.get("schema_version").and_then(Value::as_str).unwrap_or_default();
    if version.split('.').next() != VERSION.split('.').next() {
        return Err(SavedPlanError::Version(version.to_owned()));
    }
    let document: PlanDocument = serde_json::from_value(value).map_err(SavedPlanError::Malformed)?;
    let plan = Plan {
        runbook: RunbookFacts {
            path: document.runbook.path.into(),
            sha256: document.runbook.sha256,
            title: document.runbook.title,
            from: document.runbook.from,
            to: document.runbook.to,
        },
        cluster: ClusterFacts {
            context: document.target.context,
            uid: document.target.cluster_uid,
            server_version: document.target.server_version,
            user: document.target.user,
        },
        at: document.created_at.parse().map_err(SavedPlanError::Time)?,
        steps: document.steps.into_iter().map(step).collect::<Result<_, _>>()?,
        findings: document.diagnostics.into_iter().map(finding).collect(),
        facts: document.facts.into_iter().map(|fact| (fact.name, fact.value)).collect(),
    };
    let found = plan.fingerprint().to_string();
    if found != document.fingerprint {
        return Err(SavedPlanError::Altered { said: document.fingerprint, found });
    }
    Ok(plan)
}

fn step(step: StepDocument) -> Result<PlannedStep, SavedPlanError> {
    // A plan holds the program's own words for a kind.
    let Some(kind) = KINDS.into_iter().find(|kind| *kind == step.kind) else {
        return Err(SavedPlanError::UnknownKind { id: step.id, kind: step.kind });
    };
    Ok(PlannedStep {
        number: step.number,
        id: StepId(step.id),
        kind,
        gate: step.gate,
        needs: step.needs,
        state: match step.state {
            StateWord::Met => State::Met,
            StateWord::Done => State::Done,
            StateWord::ToDo => State::ToDo,
            StateWord::After => State::After(step.after),
            StateWord::Waiting => State::Waiting,
            StateWord::NotNeeded => State::NotNeeded,
            StateWord::NotSelected => State::NotSelected,
        },
        summary: step.summary,
        undo: match (step.undo, step.undo_step) {
            (UndoWord::NothingToUndo, _) => Undo::NothingToUndo,
            (UndoWord::Restore, Some(backup)) => Undo::Restore(backup),
            // A restore from nowhere is none.
            (UndoWord::Restore, None) | (UndoWord::None, _) => Undo::NoWayBack,
        },
        point_of_no_return: step.point_of_no_return,
        details: step.details,
        changes: step.changes.into_iter().map(change).collect(),
        findings: step.findings.into_iter().map(finding).collect(),
    })
}

fn change(change: ChangeDocument) -> Change {
    Change {
        operation: match change.operation {
            OperationWord::Create => Operation::Create,
            OperationWord::Update => Operation::Update,
            OperationWord::Delete => Operation::Delete,
        },
        object: object(change.object),
        fields: change
            .fields
            .into_iter()
            .map(|field| FieldChange { path: field.path, before: field.before, after: field.after })
            .collect(),
    }
}

fn object(object: ObjectDocument) -> ObjectRef {
    let ObjectDocument { group, kind, namespace, name } = object;
    ObjectRef { group, kind, namespace, name }
}

fn finding(finding: FindingDocument) -> Finding {
    Finding {
        grade: match finding.grade {
            GradeWord::Blocker => Grade::Blocker,
            GradeWord::Warning => Grade::Warning,
            GradeWord::NotChecked => Grade::NotChecked,
            GradeWord::Note => Grade::Note,
        },
        object: finding.object.map(object),
        text: finding.text,
        hint: finding.hint,
        resolved_by: finding.resolved_by.map(StepId),
    }
}
