//! The plan for programs: everything, by stable names.
//!
//! The wire types are apart from the plan's own, so that the program can change without its
//! readers noticing. A minor version adds keys, and readers pass over keys they do not know;
//! another major version is refused.

mod document;
mod read;

use document::{
    ChangeCounts, ChangeDocument, FactDocument, FieldDocument, FindingCounts, FindingDocument, GradeWord,
    ObjectDocument, OperationWord, PlanDocument, RunbookDocument, StateWord, StatesDocument, StepDocument, StepList,
    SummaryDocument, TargetDocument, UndoWord,
};
pub use read::{SavedPlanError, read_plan};
use serde_json::Value;

use super::{
    escape::is_hidden,
    words::{self, Tally},
};
use crate::{
    object::ObjectRef,
    plan::{Change, FieldChange, Finding, Grade, Operation, Plan, PlannedStep, State, Undo},
    runbook::StepId,
};

const SCHEMA: &str = "sbx.plan";
const VERSION: &str = "1.0";

/// The plan as JSON, nothing left out or cut. Print it with [`json_text`].
pub fn plan_json(plan: &Plan) -> Value {
    // The document holds strings, numbers and lists of them: nothing that JSON cannot say.
    serde_json::to_value(document(plan)).unwrap_or_default()
}

/// The JSON Schema of [`plan_json`].
pub fn plan_schema() -> Value {
    schemars::schema_for!(PlanDocument).to_value()
}

fn document(plan: &Plan) -> PlanDocument {
    let Plan { runbook, cluster, at, steps, findings, facts } = plan;
    let tally = Tally::of(plan);
    PlanDocument {
        schema: SCHEMA.into(),
        schema_version: VERSION.into(),
        created_at: words::time(*at),
        fingerprint: plan.fingerprint().to_string(),
        runbook: RunbookDocument {
            path: runbook.path.to_string_lossy().into_owned(),
            sha256: runbook.sha256.clone(),
            title: runbook.title.clone(),
            from: runbook.from.clone(),
            to: runbook.to.clone(),
        },
        target: TargetDocument {
            context: cluster.context.clone(),
            cluster_uid: cluster.uid.clone(),
            server_version: cluster.server_version.clone(),
            user: cluster.user.clone(),
        },
        complete: tally.not_selected.is_empty() && tally.not_checked == 0,
        applyable: tally.blockers.is_empty() && !plan.is_settled(),
        summary: summary(plan, &tally),
        steps: steps.iter().map(step).collect(),
        facts: facts.iter().map(|(name, value)| FactDocument { name: name.clone(), value: value.clone() }).collect(),
        diagnostics: findings.iter().map(finding).collect(),
    }
}

fn summary(plan: &Plan, tally: &Tally<'_>) -> SummaryDocument {
    let mut changes = ChangeCounts::default();
    let selected = plan.steps.iter().filter(|step| step.state != State::NotSelected);
    for change in selected.flat_map(|step| &step.changes) {
        match change.operation {
            Operation::Create => changes.create += 1,
            Operation::Update => changes.update += 1,
            Operation::Delete => changes.delete += 1,
        }
    }
    SummaryDocument {
        states: StatesDocument {
            met: list(&tally.met),
            done: list(&tally.done),
            to_do: list(&tally.to_do),
            after: list(&tally.after),
            waiting: list(&tally.waiting),
            not_needed: list(&tally.not_needed),
            not_selected: list(&tally.not_selected),
        },
        no_return: ids(&tally.no_return),
        changes,
        findings: FindingCounts {
            blockers: tally.blockers.len(),
            resolved: tally.resolved,
            warnings: tally.warnings,
            not_checked: tally.not_checked,
            notes: tally.notes,
        },
        blocked: ids(&tally.blocked_steps()),
    }
}

fn list(steps: &[&StepId]) -> StepList {
    StepList { count: steps.len(), steps: ids(steps) }
}

fn ids(steps: &[&StepId]) -> Vec<String> {
    steps.iter().map(|id| id.0.clone()).collect()
}

fn step(step: &PlannedStep) -> StepDocument {
    StepDocument {
        number: step.number,
        id: step.id.0.clone(),
        kind: step.kind.into(),
        gate: step.gate,
        needs: step.needs.clone(),
        state: match step.state {
            State::Met => StateWord::Met,
            State::Done => StateWord::Done,
            State::ToDo => StateWord::ToDo,
            State::Waiting => StateWord::Waiting,
            State::After(_) => StateWord::After,
            State::NotNeeded => StateWord::NotNeeded,
            State::NotSelected => StateWord::NotSelected,
        },
        after: if let State::After(steps) = &step.state { steps.clone() } else { Vec::new() },
        summary: step.summary.clone(),
        undo: match step.undo {
            Undo::NothingToUndo => UndoWord::NothingToUndo,
            Undo::Restore(_) => UndoWord::Restore,
            Undo::NoWayBack => UndoWord::None,
        },
        undo_step: if let Undo::Restore(step) = step.undo { Some(step) } else { None },
        point_of_no_return: step.point_of_no_return.clone(),
        details: step.details.clone(),
        changes: step.changes.iter().map(change).collect(),
        findings: step.findings.iter().map(finding).collect(),
    }
}

fn change(change: &Change) -> ChangeDocument {
    ChangeDocument {
        operation: match change.operation {
            Operation::Create => OperationWord::Create,
            Operation::Update => OperationWord::Update,
            Operation::Delete => OperationWord::Delete,
        },
        object: object(&change.object),
        fields: change
            .fields
            .iter()
            .map(|FieldChange { path, before, after }| FieldDocument {
                path: path.clone(),
                before: before.clone(),
                after: after.clone(),
            })
            .collect(),
    }
}

fn object(object: &ObjectRef) -> ObjectDocument {
    let ObjectRef { group, kind, namespace, name } = object.clone();
    ObjectDocument { group, kind, namespace, name }
}

fn finding(finding: &Finding) -> FindingDocument {
    FindingDocument {
        grade: match finding.grade {
            Grade::Blocker => GradeWord::Blocker,
            Grade::Warning => GradeWord::Warning,
            Grade::NotChecked => GradeWord::NotChecked,
            Grade::Note => GradeWord::Note,
        },
        blocks: finding.blocks(),
        object: finding.object.as_ref().map(object),
        text: finding.text.clone(),
        hint: finding.hint.clone(),
        resolved_by: finding.resolved_by.as_ref().map(|id| id.0.clone()),
    }
}

/// Any JSON as indented text with a line end, every hidden character as an escape: JSON itself
/// lets bidirectional overrides and the control characters from U+007F on through.
pub fn json_text(value: &Value) -> String {
    let pretty = format!("{value:#}");
    let mut text = String::with_capacity(pretty.len() + 1);
    for c in pretty.chars() {
        // Outside of strings the only such characters are the line ends of the layout.
        if c == '\n' || !is_hidden(c) {
            text.push(c);
        } else {
            text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text.push('\n');
    text
}
