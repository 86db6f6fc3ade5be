//! The plan on a terminal: a table of all steps, then what there is to know of each, the counts
//! last, and the command that comes next.

use super::{
    View, diff,
    escape::{visible, visible_lines},
    fold,
    styles::{Role, width},
    words::{self, Tally},
    wrap::{hang, pad, wrap, wrap_after},
};
use crate::plan::{FieldChange, Finding, Grade, Operation, Plan, PlannedStep, State};

/// Narrower than this, lines run over instead.
const NARROWEST: usize = 60;
/// Names shown of objects that change alike.
const FEW: usize = 3;
/// Names shown of objects that are deleted or that something is wrong with: a reader wants to see
/// every one of them.
const MANY: usize = 20;
/// Groups of changes shown of a step.
const GROUPS: usize = 12;
/// Lines shown of one field's diff.
const DIFF: usize = 40;

/// The plan for a terminal.
pub fn plan_text(plan: &Plan, view: &View) -> String {
    let mut page =
        Page { view: View { width: view.width.max(NARROWEST), ..*view }, plan, out: String::new(), folded: false };
    page.heading();
    page.table();
    page.findings_of_the_plan();
    for step in &plan.steps {
        page.step(step);
    }
    page.ending();
    page.out
}

struct Page<'a> {
    view: View,
    plan: &'a Plan,
    out: String,
    /// Whether a name was left out somewhere: then the page says where they all are.
    folded: bool,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn painted(&mut self, role: Role, lines: &[String]) {
        for line in lines.iter().map(|line| line.trim_end()) {
            let indent = line.len() - line.trim_start().len();
            let painted = self.view.styles.paint(role, &line[indent..]);
            self.line(&format!("{}{painted}", &line[..indent]));
        }
    }

    fn heading(&mut self) {
        let Plan { runbook, cluster, .. } = self.plan;
        let command = format!("sbx plan {}{}", words::runbook_path(self.plan), words::to_option(self.plan));
        let title = visible(&runbook.title);
        let command = pad(&command, 37);
        if width(&command) + 2 + width(&title) <= self.view.width {
            let title = self.view.styles.paint(Role::Heading, &title);
            self.line(&format!("{command}  {title}"));
        } else {
            self.line(&command);
            self.painted(Role::Heading, &wrap(&title, self.view.width));
        }
        let uid = cluster.uid.as_deref().map_or_else(|| "uid unknown".into(), short_uid);
        let mut parts = vec![
            format!("cluster {} ({uid})", visible(&cluster.context)),
            format!("server {}", visible(&cluster.server_version)),
        ];
        parts.extend(cluster.user.as_deref().map(|user| format!("user {}", visible(user))));
        parts.push(words::time(self.plan.at));
        for line in join_within(&parts, self.view.width) {
            self.line(&line);
        }
        self.line("");
    }

    /// Marker, number and step; state; what will happen, wrapped; the way back.
    fn table(&mut self) {
        let plan = self.plan;
        let longest = |cells: &mut dyn Iterator<Item = String>, head: &str| {
            cells.map(|cell| width(&cell)).max().unwrap_or_default().max(head.len())
        };
        let numbers = longest(&mut plan.steps.iter().map(|step| step.number.to_string()), " #");
        let ids = longest(&mut plan.steps.iter().map(|step| visible(&step.id.0).into_owned()), "STEP");
        let states = longest(&mut plan.steps.iter().map(|step| words::state(&step.state)), "STATE");
        let undos = longest(&mut plan.steps.iter().map(|step| words::undo(&step.undo)), "UNDO");
        let happens = "WHAT WILL HAPPEN";
        let start = 2 + numbers + 1 + ids + 2 + states + 2;
        let room = self.view.width.saturating_sub(start + 2 + undos).max(happens.len());
        let middle = longest(&mut plan.steps.iter().map(words::summary), happens).min(room);
        let head = format!(
            "  {:>numbers$} {}  {}  {}  UNDO",
            "#",
            pad("STEP", ids),
            pad("STATE", states),
            pad(happens, middle)
        );
        self.painted(Role::Quiet, &[head]);
        for step in &plan.steps {
            let undo = words::undo(&step.undo);
            let mut lines = wrap(&words::summary(step), middle).into_iter().peekable();
            let first = lines.next_if(|line| width(line) <= middle).unwrap_or_default();
            let marker = words::marker(step);
            let role = marker_role(marker);
            let paint = |role, text: &str| self.view.styles.paint(role, text);
            let row = format!(
                "{} {:>numbers$} {}  {}  {}  {}",
                paint(role, &marker.to_string()),
                step.number,
                paint(role, &pad(&visible(&step.id.0), ids)),
                paint(state_role(&step.state), &pad(&words::state(&step.state), states)),
                paint(if words::is_no_return(step) { Role::NoReturn } else { Role::Quiet }, &pad(&first, middle)),
                if undo == "NONE" { paint(Role::NoReturn, &undo) } else { undo },
            );
            self.line(&row);
            for line in lines {
                // A name too long for its column moves to the left before it runs over.
                let indent = start.min(self.view.width.saturating_sub(width(&line)));
                self.line(&format!("{}{line}", " ".repeat(indent)));
            }
        }
    }

    fn findings_of_the_plan(&mut self) {
        let plan = self.plan;
        if !plan.findings.is_empty() {
            self.line("");
            self.painted(Role::Heading, &["about no step in particular".into()]);
            self.findings(&plan.findings);
        }
    }

    fn step(&mut self, step: &PlannedStep) {
        let no_return = words::is_no_return(step);
        let silent = step.details.is_empty() && step.changes.is_empty() && step.findings.is_empty() && !no_return;
        // What is left out of the run is in the table and in the JSON form.
        if silent || step.state == State::NotSelected {
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
        for detail in &step.details {
            for line in visible_lines(detail) {
                for line in hang("    ", &line, 6, self.view.width) {
                    self.line(&line);
                }
            }
        }
        self.findings(&step.findings);
        self.changes(step);
    }

    fn findings(&mut self, findings: &[Finding]) {
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
            for hint in finding.hint.iter().flat_map(|hint| visible_lines(hint)) {
                for line in hang("      hint: ", &hint, 8, self.view.width) {
                    self.line(&line);
                }
            }
        }
    }

    fn changes(&mut self, step: &PlannedStep) {
        let groups = fold::changes(&step.changes);
        for group in groups.iter().take(GROUPS) {
            let few = if group.operation == Operation::Delete { MANY } else { FEW };
            self.folded |= fold::leaves_out(group.objects.len(), few);
            let role = operation_role(group.operation);
            let sign = words::sign(group.operation);
            let lines = hang(&format!("    {sign} "), &fold::of_kind(&group.objects, few), 6, self.view.width);
            self.painted(role, &lines);
            for field in group.fields {
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

    /// On one line where it fits, else the values below each other, and a longer text as a diff.
    fn field(&mut self, field: &FieldChange) {
        let path = visible(&field.path);
        let one_line = diff::one_line(field).map(|(before, after)| format!("        {path}: {before} -> {after}"));
        if let Some(line) = one_line.filter(|line| width(line) <= self.view.width) {
            self.line(&line);
            return;
        }
        self.line(&format!("        {path}"));
        let lines = diff::lines(field);
        for line in lines.iter().take(DIFF) {
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

    /// What makes apply refuse, once more: the end of a long page is what stays on the screen.
    fn blockers(&mut self) {
        let plan = self.plan;
        let selected = plan.steps.iter().filter(|step| step.state != State::NotSelected);
        let of_steps = selected.map(|step| (Some(&step.id), &step.findings));
        for (id, findings) in std::iter::once((None, &plan.findings)).chain(of_steps) {
            for group in fold::findings(findings.iter().filter(|finding| finding.blocks())) {
                let step = id.map(|id| format!("{}: ", words::step_name(plan, id))).unwrap_or_default();
                let object = fold::of_any_kind(&group.objects, MANY);
                let object = if object.is_empty() { object } else { format!("{object}: ") };
                let text = visible_lines(&group.finding.text).collect::<Vec<_>>().join(" ");
                let lines = hang("! ", &format!("{step}{object}{text}"), 4, self.view.width);
                self.painted(Role::Blocker, &lines);
            }
        }
    }

    fn ending(&mut self) {
        let tally = Tally::of(self.plan);
        let runbook = words::runbook_path(self.plan);
        self.line("");
        if self.folded {
            let text = format!("What is left out above is in: sbx plan {runbook} --format json");
            self.painted(Role::Quiet, &[text]);
        }
        if tally.no_changes() {
            self.painted(
                Role::Good,
                &wrap(&format!("No changes. {}", words::no_changes(self.plan, &tally)), self.view.width),
            );
            return;
        }
        let text = format!("Plan {}: {}.", self.plan.fingerprint(), tally.sentence());
        self.painted(Role::Heading, &wrap(&text, self.view.width));
        self.blockers();
        let next = if tally.blockers.is_empty() {
            format!("Next: {}", words::apply_command(self.plan))
        } else {
            format!("Apply refuses until no blocker is left. Next: sbx plan {runbook}{}", words::to_option(self.plan))
        };
        self.painted(Role::Command, &[next]);
    }
}

/// `7c1e..90af`: enough to tell clusters apart; the JSON form has it whole.
fn short_uid(uid: &str) -> String {
    let shown = visible(uid);
    match (shown.get(..4), shown.len().checked_sub(4).and_then(|at| shown.get(at..))) {
        (Some(start), Some(end)) if shown.len() > 10 => format!("{start}..{end}"),
        _ => shown.into_owned(),
    }
}

/// Parts two spaces apart, on as many lines as they need.
fn join_within(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(part) <= columns => line.extend(["  ", part]),
            _ => lines.push(part.clone()),
        }
    }
    lines
}

fn marker_role(marker: char) -> Role {
    match marker {
        '!' => Role::Blocker,
        '=' => Role::Good,
        '+' => Role::Create,
        '-' => Role::Remove,
        '?' => Role::Warning,
        '~' => Role::Change,
        _ => Role::Quiet,
    }
}

fn state_role(state: &State) -> Role {
    match state {
        State::Met | State::Done | State::NotNeeded => Role::Good,
        State::Waiting => Role::Warning,
        State::ToDo => Role::Heading,
        State::After(_) | State::NotSelected => Role::Quiet,
    }
}

fn operation_role(operation: Operation) -> Role {
    match operation {
        Operation::Create => Role::Create,
        Operation::Update => Role::Change,
        Operation::Delete => Role::Remove,
    }
}
