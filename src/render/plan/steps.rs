//! What there is to know of each step beside its row: details, findings, changes.

use super::{MANY, Page};
use crate::{
    plan::{FieldChange, Finding, Grade, Operation, PlannedStep, State},
    render::{
        diff,
        escape::{visible, visible_lines},
        fold,
        styles::{Role, width},
        words,
        wrap::{hang, wrap, wrap_after},
    },
};

/// Names shown of objects that change alike.
const FEW: usize = 3;
/// Groups of changes shown of a step.
const GROUPS: usize = 12;
/// Lines shown of one field's diff.
const DIFF: usize = 40;

impl Page<'_> {
    pub(super) fn findings_of_the_plan(&mut self) {
        let plan = self.plan;
        if !plan.findings.is_empty() {
            self.line("");
            self.painted(Role::Heading, &["about no step in particular".into()]);
            self.findings(&plan.findings);
        }
    }

    pub(super) fn step(&mut self, step: &PlannedStep) {
        let no_return = words::is_no_return(step);
        let silent = step.details.is_empty() && step.changes.is_empty() && step.findings.is_empty();
        // What is left out of the run is in the table and in the JSON form.
        if step.state == State::NotSelected || silent && !no_return && !self.cut_rows.contains(&step.number) {
            return;
        }
        self.line("");
        let heading = format!("{} {}", step.number, visible(&step.id.0));
        let heading = self.view.styles.paint(Role::Heading, &heading);
        let warning =
            if no_return { self.view.styles.paint(Role::NoReturn, "   POINT OF NO RETURN") } else { String::new() };
        self.line(&format!("{heading}{warning}"));
        if let Some(phrase) = step.point_of_no_return.as_deref().filter(|_| no_return) {
            let phrase = visible(phrase);
            let text = format!(
                "Nothing takes this step back. Apply asks for it alone, right before it, and goes on only when \
                 {phrase} is typed (or given as --approve {phrase}); --yes does not cover it."
            );
            let lines = hang("    ", &text, 4, self.view.width);
            self.painted(Role::NoReturn, &lines);
        }
        // A summary that is too long for its row.
        let summary = self.cut_rows.contains(&step.number).then_some(&step.summary);
        for detail in summary.into_iter().chain(&step.details) {
            for line in visible_lines(detail) {
                for line in hang("    ", &line, 6, self.view.width) {
                    self.line(&line);
                }
            }
        }
        self.findings(&step.findings);
        self.changes(step);
    }

    pub(super) fn findings(&mut self, findings: &[Finding]) {
        for group in fold::findings(findings) {
            let finding = group.finding;
            let resolved = finding.resolved_by.as_ref().map(|by| words::step_name(self.plan, by));
            let grade = match &resolved {
                Some(by) => format!("{} (resolved by {by})", words::grade(finding.grade)),
                None => words::grade(finding.grade).to_owned(),
            };
            let few = if finding.grade == Grade::Note { FEW } else { MANY };
            self.folded |= fold::leaves_out(group.objects.len(), few);
            let object = fold::of_any_kind(&group.objects, few);
            let object = if object.is_empty() { object } else { format!("{object}: ") };
            let role = match finding.grade {
                Grade::Blocker if resolved.is_none() => Role::Blocker,
                Grade::Blocker | Grade::Warning | Grade::NotChecked => Role::Warning,
                Grade::Note => Role::Quiet,
            };
            let mut texts = visible_lines(&finding.text);
            let first = format!("{object}{}", texts.next().unwrap_or_default());
            let head = format!("    {grade}: ");
            let room = self.view.width.saturating_sub(6);
            let mut lines = wrap_after(&first, self.view.width.saturating_sub(width(&head)), room).into_iter();
            let head = format!("    {}", self.view.styles.paint(role, &head[4..]));
            self.line(&format!("{head}{}", lines.next().unwrap_or_default()));
            let texts: Vec<String> = texts.map(Into::into).collect();
            for line in lines.chain(texts.iter().flat_map(|text| wrap(text, room))) {
                self.line(&format!("      {line}"));
            }
            for hint in group.hint.into_iter().flat_map(visible_lines) {
                for line in hang("      hint: ", &hint, 8, self.view.width) {
                    self.line(&line);
                }
            }
        }
    }

    fn changes(&mut self, step: &PlannedStep) {
        let groups = fold::alike(&step.changes);
        for group in groups.iter().take(GROUPS) {
            let few = if group.operation == Operation::Delete { MANY } else { FEW };
            self.folded |= fold::leaves_out(group.objects.len(), few) || group.joined;
            let role = operation_role(group.operation);
            let sign = words::sign(group.operation);
            let lines = hang(&format!("    {sign} "), &fold::of_kind(&group.objects, few), 6, self.view.width);
            self.painted(role, &lines);
            for field in &*group.fields {
                self.field(field);
            }
            if group.fields.is_empty() && group.operation == Operation::Update {
                self.line("        written again, no field changes");
            }
        }
        if groups.len() > GROUPS {
            self.folded = true;
            let left: usize = groups[GROUPS..].iter().map(|group| group.objects.len()).sum();
            self.line(&format!("    and changes to {}", words::plural(left, "more object")));
        }
    }

    /// On one line where it fits, else the values below the path, and a longer text as a diff.
    fn field(&mut self, field: &FieldChange) {
        let path = visible(&field.path);
        let values = diff::one_line(field).map(|(before, after)| format!("{before} -> {after}"));
        let fits = |line: &String| width(line) <= self.view.width;
        if let Some(line) = values.as_ref().map(|values| format!("        {path}: {values}")).filter(fits) {
            self.line(&line);
            return;
        }
        let below = values.map(|values| format!("          {values}")).filter(fits);
        for line in hang("        ", &path, 10, self.view.width) {
            self.line(&line);
        }
        if let Some(line) = below {
            self.line(&line);
            return;
        }
        let lines = diff::lines(field);
        for line in lines.iter().take(DIFF) {
            self.folded |= !line.whole;
            let role = match line.sign {
                '-' => Role::Remove,
                '+' => Role::Create,
                _ => Role::Quiet,
            };
            let text =
                if line.sign == '@' { format!("({})", line.text) } else { format!("{} {}", line.sign, line.text) };
            self.painted(role, &[format!("          {text}")]);
        }
        if lines.len() > DIFF {
            self.folded = true;
            self.line(&format!("          ({} more)", words::plural(lines.len() - DIFF, "line")));
        }
    }
}

fn operation_role(operation: Operation) -> Role {
    match operation {
        Operation::Create => Role::Create,
        Operation::Update => Role::Change,
        Operation::Delete => Role::Remove,
    }
}
