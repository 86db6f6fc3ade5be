//! A rehearsal as it happens, and what it comes to.

use std::path::{Path, PathBuf};

use super::{
    RunLines, View, ending_text,
    escape::visible,
    plan_overview,
    styles::Role,
    words,
    wrap::{hang, wrap},
};
use crate::{
    apply::Ending,
    plan::Operation,
    rehearse::{Happening, Report},
};

/// Lays out happenings one after the other.
pub struct RehearsalPage {
    view: View,
    runbook: PathBuf,
    lines: RunLines,
}

impl RehearsalPage {
    /// For a runbook, on a page of this shape.
    pub fn new(runbook: &Path, view: View) -> Self {
        Self { view, runbook: runbook.into(), lines: RunLines::new(view) }
    }

    /// What a happening says, whole lines; often nothing.
    pub fn text(&mut self, happening: &Happening<'_>) -> String {
        match happening {
            Happening::Planned(plan) => format!("\n{}", plan_overview(plan, &self.view)),
            Happening::Played(what) => self.played("played", what),
            Happening::Applies => {
                let command = format!("sbx apply {}", visible(&self.runbook.to_string_lossy()));
                format!("\n{}\n", self.view.styles.paint(Role::Command, &command))
            }
            Happening::Event(event) => self.lines.lines(event).into_iter().map(|line| line + "\n").collect(),
            Happening::Asked(question, answer) => {
                let mut text: String = question.lines().map(|line| self.played("asked", line)).collect();
                text += &self.played("answered", answer);
                text
            }
            // The flag that gives an approval is one of apply.
            Happening::Ended(Ending::NeedsApproval(_)) => {
                let text = "Stopped: a question was not answered. Without --interactive the rehearsal answers.";
                format!("{}\n", self.view.styles.paint(Role::Warning, text))
            }
            Happening::Ended(ending) => ending_text(ending, &self.runbook, &self.view),
        }
    }

    fn played(&self, word: &str, what: &str) -> String {
        let head = format!("   ({word}) ");
        let lines = hang(&head, &visible(what), head.len(), self.view.width);
        lines.iter().map(|line| self.view.styles.paint(Role::Quiet, line.trim_end()) + "\n").collect()
    }
}

/// What a rehearsal comes to: what will happen to the cluster, what was not simulated.
pub fn report_text(report: &Report, view: &View) -> String {
    let heading = if report.settled { "What will happen to your cluster" } else { "What was done, as far as it got" };
    let mut lines = vec![String::new(), view.styles.paint(Role::Heading, heading)];
    for ((operation, kind), changed) in &report.changed {
        let verb = match operation {
            Operation::Create => "create",
            Operation::Update => "change",
            Operation::Delete => "delete",
        };
        let steps: Vec<_> = changed.steps.iter().map(|id| visible(&id.0)).collect();
        let text = format!("{verb} {} {} ({})", changed.objects.len(), visible(kind), steps.join(", "));
        lines.extend(hang("  ", &text, 4, view.width));
    }
    if report.changed.is_empty() {
        lines.push("  nothing: no step wrote anything".into());
    }
    let writes: Vec<String> = report
        .writes
        .iter()
        .map(|((verb, resource), count)| format!("{count} {} {}", visible(verb), visible(resource)))
        .collect();
    if !writes.is_empty() {
        lines.extend(hang("  requests that wrote: ", &writes.join(", "), 4, view.width));
    }
    lines.push(String::new());
    lines.push(view.styles.paint(Role::Heading, "What was not simulated"));
    for what in report.not_simulated() {
        lines.extend(hang("  - ", what, 4, view.width));
    }
    lines.push(String::new());
    let runs = words::plural(report.endings.len(), "run");
    let (role, text) = match (report.settled, report.endings.last()) {
        (true, _) => (Role::Good, format!("Rehearsed to the end in {runs} of apply.")),
        (false, None) => (Role::Blocker, "Not rehearsed: apply never began.".into()),
        (false, Some(Ending::Blocked)) => (Role::Blocker, "Not rehearsed: the plan has blockers.".into()),
        (false, _) => (Role::Blocker, format!("Not rehearsed to the end: {runs} of apply, and something is left.")),
    };
    lines.extend(wrap(&text, view.width).iter().map(|line| view.styles.paint(role, line)));
    lines.iter().map(|line| format!("{line}\n")).collect()
}
