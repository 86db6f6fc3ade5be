//! The plan on a terminal: a table of all steps, then what there is to know of each, the counts
//! last, and the command that comes next.

mod steps;
mod table;

use std::collections::BTreeSet;

use super::{
    View,
    escape::{visible, visible_lines},
    fold,
    styles::{Role, width},
    words::{self, Tally},
    wrap::{cut, hang, pad, wrap},
};
use crate::plan::{Finding, Grade, Plan, State};

/// Narrower than this, lines run over instead.
const NARROWEST: usize = 60;
/// Names shown of objects that are deleted or that something is wrong with: a reader wants to see
/// every one of them.
const MANY: usize = 20;
/// Characters of a blocker's text where it is said once more.
const LAST: usize = 200;

/// The plan for a terminal.
pub fn plan_text(plan: &Plan, view: &View) -> String {
    let mut page = Page::new(plan, view);
    page.heading();
    page.table();
    page.findings_of_the_plan();
    for step in &plan.steps {
        page.step(step);
    }
    page.ending();
    page.out
}

/// The table of a plan, what was found, and the counts: for who sees the changes being made.
pub fn plan_overview(plan: &Plan, view: &View) -> String {
    let mut page = Page::new(plan, view);
    page.heading();
    page.table();
    page.findings_of_the_plan();
    for step in plan.steps.iter().filter(|step| step.state != State::NotSelected) {
        let counted: Vec<Finding> =
            step.findings.iter().filter(|finding| finding.grade != Grade::Note).cloned().collect();
        if !counted.is_empty() {
            page.line("");
            page.line(&words::step_name(plan, &step.id));
            page.findings(&counted);
        }
    }
    page.folded = false;
    page.ending();
    page.out
}

struct Page<'a> {
    view: View,
    plan: &'a Plan,
    out: String,
    /// Steps whose row has no room for the whole summary.
    cut_rows: BTreeSet<usize>,
    /// Whether a name was left out somewhere: then the page says where they all are.
    folded: bool,
}

impl<'a> Page<'a> {
    fn new(plan: &'a Plan, view: &View) -> Self {
        Self {
            view: View { width: view.width.max(NARROWEST), ..*view },
            plan,
            out: String::new(),
            cut_rows: BTreeSet::new(),
            folded: false,
        }
    }

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
        let command = format!("sbx plan {}", words::runbook_path(self.plan));
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

    /// What makes apply refuse, once more: the end of a long page is what stays on the screen.
    fn blockers(&mut self, tally: &Tally<'_>) {
        let plan = self.plan;
        let few = tally.blockers.len() <= MANY;
        let selected = plan.steps.iter().filter(|step| step.state != State::NotSelected);
        let of_steps = selected.map(|step| (Some(&step.id), &step.findings));
        for (id, findings) in std::iter::once((None, &plan.findings)).chain(of_steps) {
            let step = id.map(|id| format!("{}: ", words::step_name(plan, id))).unwrap_or_default();
            let blockers = fold::findings(findings.iter().filter(|finding| finding.blocks()));
            for group in blockers.iter().take(if few { usize::MAX } else { 1 }) {
                let count = findings.iter().filter(|finding| finding.blocks()).count();
                let all = if few || count == 1 { String::new() } else { format!("{count} blockers, first: ") };
                let object = fold::of_any_kind(&group.objects, MANY);
                let object = if object.is_empty() { object } else { format!("{object}: ") };
                let text = visible_lines(&group.finding.text).collect::<Vec<_>>().join(" ");
                let text = format!("{step}{all}{object}{}", cut(&text, LAST));
                let lines = hang("! ", &text, 4, self.view.width);
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
        self.blockers(&tally);
        if tally.blockers.is_empty() {
            self.painted(Role::Command, &[format!("Next: {}", words::apply_command(self.plan))]);
            return;
        }
        self.painted(Role::Heading, &["Apply refuses until no blocker is left.".into()]);
        // Another plan alone would say the same: what comes next is what takes the blocker away.
        if let Some(hint) = tally.blockers.iter().find_map(|(_, finding)| finding.hint.as_deref()) {
            let hint = visible_lines(hint).collect::<Vec<_>>().join(" ");
            let lines = hang("Next: ", &hint, 6, self.view.width);
            self.painted(Role::Command, &lines);
        }
        self.painted(Role::Command, &[format!("Once they are gone: sbx plan {runbook}")]);
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
