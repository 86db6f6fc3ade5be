//! What the views say alike: the words for a state, an undo, a grade, and the counts.

use jiff::Timestamp;

use super::escape::{shell_word, visible};
use crate::{
    plan::{Finding, Grade, Operation, Plan, PlannedStep, State, Undo},
    runbook::StepId,
};

/// What column 0 says of a step, so that a plan can be read down its edge.
pub(super) fn marker(step: &PlannedStep) -> char {
    let only = |operation| !step.changes.is_empty() && step.changes.iter().all(|change| change.operation == operation);
    match &step.state {
        State::NotSelected => ' ',
        _ if step.findings.iter().any(Finding::blocks) => '!',
        state if state.is_settled() => '=',
        _ if step.gate || step.point_of_no_return.is_some() => '?',
        _ if step.kind == "backup" || only(Operation::Create) => '+',
        _ if step.kind == "delete" || only(Operation::Delete) => '-',
        _ => '~',
    }
}

/// What stands before an object that changes.
pub(super) fn sign(operation: Operation) -> char {
    match operation {
        Operation::Create => '+',
        Operation::Update => '~',
        Operation::Delete => '-',
    }
}

/// The word for a state. Never merged: `met` looks, `done` wrote, `not needed` is over.
pub(super) fn state(state: &State) -> String {
    match state {
        State::Met => "met".into(),
        State::Done => "done".into(),
        State::ToDo => "to do".into(),
        State::Waiting => "WAITING".into(),
        State::After(steps) => {
            format!("after {}", steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        State::NotNeeded => "not needed".into(),
        State::NotSelected => "not selected".into(),
    }
}

/// The word for the way back.
pub(super) fn undo(undo: &Undo) -> String {
    match undo {
        Undo::NothingToUndo => "-".into(),
        Undo::Restore(step) => format!("restore ({step})"),
        Undo::NoWayBack => "NONE".into(),
    }
}

/// The word for a grade.
pub(super) fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Blocker => "blocker",
        Grade::Warning => "warning",
        Grade::NotChecked => "not checked",
        Grade::Note => "note",
    }
}

/// `7 release`, or the id alone when no step of the plan has it.
pub(super) fn step_name(plan: &Plan, id: &StepId) -> String {
    match plan.step(id) {
        Some(step) => format!("{} {}", step.number, visible(&id.0)),
        None => visible(&id.0).into_owned(),
    }
}

/// One line: what will happen, led by what cannot be taken back.
pub(super) fn summary(step: &PlannedStep) -> String {
    let summary = visible(&step.summary);
    if is_no_return(step) { format!("POINT OF NO RETURN: {summary}") } else { summary.into_owned() }
}

/// Whether a step that is still to come cannot be taken back.
pub(super) fn is_no_return(step: &PlannedStep) -> bool {
    step.point_of_no_return.is_some() && !step.state.is_settled() && step.state != State::NotSelected
}

/// To the second, in UTC.
pub(super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The path of the runbook as it was given, for a command line.
pub(super) fn runbook_path(plan: &Plan) -> String {
    shell_word(&plan.runbook.path.to_string_lossy())
}

/// The command that carries the plan out; with `--to` for a plan that was made for a part, whose
/// every selected step comes before that one.
pub(super) fn apply_command(plan: &Plan) -> String {
    let partial = plan.steps.iter().any(|step| step.state == State::NotSelected);
    let last = plan.steps.iter().rev().find(|step| step.state != State::NotSelected);
    let to = last.filter(|_| partial).map(|step| format!(" --to {}", shell_word(&step.id.0)));
    format!("sbx apply {}{}", runbook_path(plan), to.unwrap_or_default())
}

/// Steps by state, and findings by weight: the counts of every view.
#[derive(Debug, Default)]
pub(super) struct Tally<'a> {
    /// Gates that are open.
    pub(super) met: Vec<&'a StepId>,
    /// Steps with nothing left to do.
    pub(super) done: Vec<&'a StepId>,
    /// Steps ready to run.
    pub(super) to_do: Vec<&'a StepId>,
    /// Steps that others come before.
    pub(super) after: Vec<&'a StepId>,
    /// Gates that are closed.
    pub(super) waiting: Vec<&'a StepId>,
    /// Steps that are over.
    pub(super) not_needed: Vec<&'a StepId>,
    /// Steps left out.
    pub(super) not_selected: Vec<&'a StepId>,
    /// Steps to come that have no way back.
    pub(super) no_return: Vec<&'a StepId>,
    /// What makes apply refuse.
    pub(super) blockers: Vec<(Option<&'a StepId>, &'a Finding)>,
    /// Blockers that an earlier step removes.
    pub(super) resolved: usize,
    /// Warnings.
    pub(super) warnings: usize,
    /// What could not be looked at.
    pub(super) not_checked: usize,
    /// Notes.
    pub(super) notes: usize,
}

impl<'a> Tally<'a> {
    /// Counts a plan. What is not selected counts as that alone.
    pub(super) fn of(plan: &'a Plan) -> Self {
        let mut tally = Self { blockers: plan.blockers().collect(), ..Self::default() };
        for step in &plan.steps {
            let list = match step.state {
                State::Met => &mut tally.met,
                State::Done => &mut tally.done,
                State::ToDo => &mut tally.to_do,
                State::After(_) => &mut tally.after,
                State::Waiting => &mut tally.waiting,
                State::NotNeeded => &mut tally.not_needed,
                State::NotSelected => &mut tally.not_selected,
            };
            list.push(&step.id);
            if is_no_return(step) {
                tally.no_return.push(&step.id);
            }
        }
        let selected = plan.steps.iter().filter(|step| step.state != State::NotSelected);
        for finding in plan.findings.iter().chain(selected.flat_map(|step| &step.findings)) {
            match finding.grade {
                Grade::Blocker if finding.resolved_by.is_some() => tally.resolved += 1,
                Grade::Blocker => {}
                Grade::Warning => tally.warnings += 1,
                Grade::NotChecked => tally.not_checked += 1,
                Grade::Note => tally.notes += 1,
            }
        }
        tally
    }

    /// Steps with a blocker, each once.
    pub(super) fn blocked_steps(&self) -> Vec<&'a StepId> {
        let mut steps: Vec<&StepId> = self.blockers.iter().filter_map(|(id, _)| *id).collect();
        // Findings of one step stand together.
        steps.dedup();
        steps
    }

    /// Whether there is nothing to do, to wait for or to refuse.
    pub(super) fn no_changes(&self) -> bool {
        self.to_do.is_empty() && self.after.is_empty() && self.waiting.is_empty() && self.blockers.is_empty()
    }

    /// Steps that are settled.
    pub(super) fn settled(&self) -> usize {
        self.met.len() + self.done.len() + self.not_needed.len()
    }

    /// The counts that are not zero, in words, joined by commas.
    pub(super) fn sentence(&self) -> String {
        let parts = [
            count(self.met.len(), "met", "met", &[]),
            count(self.done.len(), "done", "done", &[]),
            count(self.not_needed.len(), "not needed", "not needed", &[]),
            count(self.to_do.len() + self.after.len(), "to do", "to do", &[]),
            count(self.waiting.len(), "WAITING", "WAITING", &self.waiting),
            count(self.not_selected.len(), "not selected", "not selected", &[]),
            count(self.no_return.len(), "POINT OF NO RETURN", "POINTS OF NO RETURN", &self.no_return),
            count(self.blockers.len(), "BLOCKER", "BLOCKERS", &self.blocked_steps()),
            count(self.warnings, "warning", "warnings", &[]),
            count(self.not_checked, "not checked", "not checked", &[]),
        ];
        let said: Vec<String> = parts.into_iter().flatten().collect();
        if said.is_empty() { "no steps".into() } else { said.join(", ") }
    }
}

/// What a plan says after `No changes.`
pub(super) fn no_changes(plan: &Plan, tally: &Tally<'_>) -> String {
    let selected = plan.steps.len() - tally.not_selected.len();
    let matches = [
        Some(format!("{} of {selected} done", tally.settled())),
        count(tally.not_selected.len(), "not selected", "not selected", &[]),
    ];
    let said = [
        Some(format!(
            "{} matches {} ({})",
            visible(&plan.cluster.context),
            runbook_path(plan),
            matches.into_iter().flatten().collect::<Vec<_>>().join(", "),
        )),
        count(tally.warnings, "warning", "warnings", &[]),
        count(tally.not_checked, "not checked", "not checked", &[]),
    ];
    format!("{}.", said.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// `2 BLOCKERS (merge, delete)`; nothing for none.
fn count(number: usize, one: &str, many: &str, names: &[&StepId]) -> Option<String> {
    let word = if number == 1 { one } else { many };
    let names: Vec<_> = names.iter().map(|id| visible(&id.0)).collect();
    match number {
        0 => None,
        _ if names.is_empty() => Some(format!("{number} {word}")),
        _ => Some(format!("{number} {word} ({})", names.join(", "))),
    }
}

/// `1 object`, `2 objects`.
pub(super) fn plural(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}
