//! What folds away: for each step its details, its findings and its changes as a diff.

use std::fmt;

use super::Page;
use crate::{
    plan::{Change, FieldChange, Finding, Grade, Operation, PlannedStep, State},
    render::{
        diff,
        escape::visible,
        fold, gfm,
        words::{self, plural},
    },
};

/// Names shown of objects that change alike.
const FEW: usize = 20;
/// Lines shown of one field's diff.
const DIFF: usize = 60;

/// What folds away under one heading.
pub(super) struct Details {
    heading: String,
    pub(super) parts: Vec<Part>,
}

/// A piece of it that is there as a whole or not at all.
pub(super) struct Part {
    what: &'static str,
    pub(super) body: String,
    pub(super) left_out: bool,
}

impl Part {
    fn new(what: &'static str, body: String) -> Self {
        Self { what, body, left_out: false }
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<details><summary>{}</summary>\n\n", self.heading)?;
        for part in &self.parts {
            write!(f, "{part}")?;
        }
        f.write_str("</details>\n\n")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out {
            writeln!(f, "{}: {} left out.\n", self.what, plural(self.body.lines().count(), "line"))
        } else {
            writeln!(f, "{}", self.body)
        }
    }
}

/// Findings about no step in particular.
pub(super) fn of_plan(page: &Page<'_>) -> Option<Details> {
    let findings = &page.plan.findings;
    let heading = format!("about no step in particular: {}", counted(&[], findings));
    let part = Part::new("Findings", list(&found(page, findings)));
    (!findings.is_empty()).then(|| Details { heading, parts: vec![part] })
}

/// What there is to know of a step beside its row in the table.
pub(super) fn of_step(page: &Page<'_>, step: &PlannedStep) -> Option<Details> {
    let mut notes: Vec<String> = step.details.iter().map(|detail| format!("- {}", page.lines(detail))).collect();
    notes.extend(found(page, &step.findings));
    let mut parts = Vec::new();
    if !notes.is_empty() {
        parts.push(Part::new("Details and findings", list(&notes)));
    }
    if !step.changes.is_empty() {
        parts.push(Part::new("Changes", gfm::fenced("diff", &changes(step))));
    }
    let counts = counted(&step.changes, &step.findings);
    let counts = if counts.is_empty() { counts } else { format!(": {counts}") };
    let heading = format!("{} <code>{}</code>{counts}", step.number, gfm::html(&page.bounded(&step.id.0)));
    (!parts.is_empty() && step.state != State::NotSelected).then_some(Details { heading, parts })
}

fn found(page: &Page<'_>, findings: &[Finding]) -> Vec<String> {
    let said = |group: fold::Findings<'_>| {
        let resolved = group.finding.resolved_by.as_ref();
        let resolved = resolved.map(|by| format!(" (resolved by {})", page.text(&words::step_name(page.plan, by))));
        let grade = words::grade(group.finding.grade);
        format!("- **{grade}**{}: {}", resolved.unwrap_or_default(), page.said(&group, FEW))
    };
    fold::findings(findings).into_iter().map(said).collect()
}

fn list(items: &[String]) -> String {
    format!("{}\n", items.join("\n"))
}

/// `41 objects changed, 1 warning`: what is not zero.
fn counted(changes: &[Change], findings: &[Finding]) -> String {
    let operation = |operation| changes.iter().filter(|change| change.operation == operation).count();
    let resolved = findings.iter().filter(|finding| finding.resolved_by.is_some()).count();
    let open = |grade| findings.iter().filter(|found| found.grade == grade && found.resolved_by.is_none()).count();
    let parts = [
        (operation(Operation::Create), "object", " created"),
        (operation(Operation::Update), "object", " changed"),
        (operation(Operation::Delete), "object", " deleted"),
        (open(Grade::Blocker), "blocker", ""),
        (resolved, "finding", " resolved by an earlier step"),
        (open(Grade::Warning), "warning", ""),
        (open(Grade::NotChecked), "finding", " not checked"),
        (open(Grade::Note), "note", ""),
    ];
    let said = parts.iter().filter(|(number, ..)| *number > 0);
    said.map(|(number, word, what)| format!("{}{what}", plural(*number, word))).collect::<Vec<_>>().join(", ")
}

/// The changes of a step as the lines of a diff.
fn changes(step: &PlannedStep) -> String {
    let mut lines = Vec::new();
    for group in fold::same(&step.changes) {
        let objects = fold::of_kind(&group.objects, FEW);
        lines.push(match group.operation {
            Operation::Create => format!("+ {objects}"),
            Operation::Update => format!("@@ {objects} @@"),
            Operation::Delete => format!("- {objects}"),
        });
        for change in &*group.fields {
            field(change, &mut lines);
        }
        if group.fields.is_empty() && group.operation == Operation::Update {
            lines.push(" written again, no field changes".into());
        }
    }
    lines.join("\n")
}

/// Before and after each on a line behind the path, or a longer text as a diff below it.
fn field(field: &FieldChange, lines: &mut Vec<String>) {
    let path = visible(&field.path);
    let shown = diff::lines(field);
    if shown.len() <= 2 && shown.iter().all(|line| "-+".contains(line.sign)) {
        lines.extend(shown.iter().map(|line| format!("{}{path}: {}", line.sign, line.text)));
        return;
    }
    lines.push(format!(" {path}:"));
    lines.extend(shown.iter().take(DIFF).map(|line| match line.sign {
        '@' => format!("  ({})", line.text),
        sign => format!("{sign}  {}", line.text),
    }));
    if shown.len() > DIFF {
        lines.push(format!("  ({} more)", plural(shown.len() - DIFF, "line")));
    }
}
