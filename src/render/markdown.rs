//! The plan as a pull-request comment.
//!
//! The head, the caution, the blockers and the table are always there; the details of the steps
//! fold away below, and give way, the largest first, where the comment would grow too long.

mod details;

use details::{Details, Part, of_plan, of_step};

use super::{
    escape::{visible, visible_lines},
    fold, gfm,
    words::{self, Tally, plural},
};
use crate::plan::{Plan, PlannedStep, State};

/// A comment stays below this many bytes; GitHub refuses one of 65,536 characters.
pub const MARKDOWN_LIMIT: usize = 60_000;

/// How far what is never left out may go before it is shortened. All but the first are for plans
/// of hundreds of steps, where a comment that cannot be posted would be worse than a short one.
const BOUNDS: [Bounds; 4] = [
    Bounds { text: usize::MAX, rows: usize::MAX, names: usize::MAX },
    Bounds { text: 600, rows: usize::MAX, names: 20 },
    Bounds { text: 200, rows: 100, names: 5 },
    Bounds { text: 24, rows: 40, names: 1 },
];

#[derive(Clone, Copy)]
struct Bounds {
    /// Bytes of one text.
    text: usize,
    /// Rows of the table, and of the list of blockers.
    rows: usize,
    /// Names of objects in one blocker.
    names: usize,
}

/// The plan as Markdown, in fewer than [`MARKDOWN_LIMIT`] bytes.
pub fn plan_markdown(plan: &Plan) -> String {
    let mut comment = String::new();
    for bounds in BOUNDS {
        comment = Page { plan, tally: Tally::of(plan), bounds }.comment();
        if comment.len() < MARKDOWN_LIMIT {
            break;
        }
    }
    comment
}

struct Page<'a> {
    plan: &'a Plan,
    tally: Tally<'a>,
    bounds: Bounds,
}

impl Page<'_> {
    /// All of it, details left out until it is short enough or none is left.
    fn comment(&self) -> String {
        let head = self.head();
        let foot = self.foot();
        let steps = self.plan.steps.iter().take(self.bounds.rows);
        let mut details: Vec<Details> =
            of_plan(self).into_iter().chain(steps.filter_map(|step| of_step(self, step))).collect();
        let command = format!("sbx plan {} --format json", words::runbook_path(self.plan));
        let rest = format!("What is left out is in {}.\n\n", gfm::code(&command));
        let mut size = head.len() + rest.len() + foot.len();
        size += details.iter().map(|details| details.to_string().len()).sum::<usize>();
        let mut parts: Vec<&mut Part> = details.iter_mut().flat_map(|details| &mut details.parts).collect();
        // The largest last, to be taken first; of equal ones the later step's.
        parts.sort_by_key(|part| part.body.len());
        let mut left_out = false;
        while size >= MARKDOWN_LIMIT
            && let Some(largest) = parts.pop()
        {
            size -= largest.to_string().len();
            largest.left_out = true;
            size += largest.to_string().len();
            left_out = true;
        }
        let mut blocks = vec![head];
        blocks.extend(details.iter().map(ToString::to_string));
        blocks.extend(left_out.then_some(rest));
        blocks.push(foot);
        blocks.concat()
    }

    fn head(&self) -> String {
        let Plan { runbook, cluster, .. } = self.plan;
        let said = if self.tally.no_changes() {
            format!("**No changes.** {}", self.text(&words::no_changes(self.plan, &self.tally)))
        } else {
            format!("**{}**", self.text(&self.tally.sentence()))
        };
        let blocks = [
            format!(
                "<!-- sbx:plan runbook={} cluster={} -->\n",
                gfm::comment_value(&self.bounded(&runbook.path.to_string_lossy())),
                gfm::comment_value(&self.bounded(&cluster.context)),
            ),
            format!("## sbx plan: {} on {}\n\n", self.text(&runbook.title), self.code(&cluster.context)),
            format!(
                "{said} · plan {} · server {} · {}\n\n",
                self.code(&self.plan.fingerprint().to_string()),
                self.code(&cluster.server_version),
                words::time(self.plan.at),
            ),
            self.caution(),
            self.blockers(),
            self.table(),
        ];
        blocks.concat()
    }

    fn caution(&self) -> String {
        let steps = self.plan.steps.iter().take(self.bounds.rows).filter(|step| words::is_no_return(step));
        let cautions: Vec<String> = steps
            .map(|step| {
                format!(
                    "> Step {} {} cannot be undone. Approving this pull request does not approve it: apply asks for \
                     it alone, by the phrase {}.\n",
                    step.number,
                    self.code(&step.id.0),
                    self.code(step.point_of_no_return.as_deref().unwrap_or_default()),
                )
            })
            .collect();
        if cautions.is_empty() { String::new() } else { format!("> [!CAUTION]\n{}\n", cautions.join(">\n")) }
    }

    fn blockers(&self) -> String {
        let count = self.tally.blockers.len();
        if count == 0 {
            return String::new();
        }
        let selected = self.plan.steps.iter().filter(|step| step.state != State::NotSelected);
        let of_steps = selected.map(|step| (Some(step), step.findings.as_slice()));
        let mut items = Vec::new();
        let mut listed = 0;
        for (step, findings) in std::iter::once((None, self.plan.findings.as_slice())).chain(of_steps) {
            for group in fold::findings(findings.iter().filter(|finding| finding.blocks())) {
                if items.len() < self.bounds.rows {
                    let step = step.map(|step| format!("{} {}: ", step.number, self.code(&step.id.0)));
                    items.push(format!("- {}{}", step.unwrap_or_default(), self.said(&group, self.bounds.names)));
                    listed += group.objects.len().max(1);
                }
            }
        }
        if listed < count {
            items.push(format!("- and {} more", count - listed));
        }
        let title = format!("**{}: apply refuses until none is left.**", plural(count, "blocker"));
        format!("> [!WARNING]\n> {title}\n> {}\n\n", items.join("\n> "))
    }

    fn table(&self) -> String {
        let mut lines =
            vec!["| # | Step | State | What will happen | Undo |".to_owned(), "|--:|---|---|---|---|".to_owned()];
        lines.extend(self.plan.steps.iter().take(self.bounds.rows).map(|step| self.row(step)));
        let left = self.plan.steps.len().saturating_sub(self.bounds.rows);
        if left > 0 {
            lines.push(format!("\n{} not shown.", plural(left, "more step")));
        }
        format!("{}\n\n", lines.join("\n"))
    }

    fn row(&self, step: &PlannedStep) -> String {
        let state = self.bounded(&words::state(&step.state));
        let state = if step.state == State::Waiting { format!("**{state}**") } else { state };
        let blocked = if words::marker(step) == '!' { ", **BLOCKED**" } else { "" };
        let undo = words::undo(&step.undo);
        let cells = [
            step.number.to_string(),
            self.code(&step.id.0),
            format!("{state}{blocked}"),
            self.text(&words::summary(step)),
            if undo == "NONE" { "**NONE**".into() } else { undo },
        ];
        let cells: Vec<String> = cells.iter().map(|cell| gfm::cell(cell)).collect();
        format!("| {} |", cells.join(" | "))
    }

    fn foot(&self) -> String {
        if self.tally.no_changes() {
            return String::new();
        }
        if !self.tally.blockers.is_empty() {
            let command = format!("sbx plan {}", words::runbook_path(self.plan));
            return format!("Apply refuses. Once no blocker is left: {}\n", gfm::code(&command));
        }
        format!("Apply: {}\n", gfm::code(&words::apply_command(self.plan)))
    }

    /// Object, text and hint of a finding, on one line of Markdown.
    fn said(&self, group: &fold::Findings<'_>, names: usize) -> String {
        let object = fold::of_any_kind(&group.objects, names);
        let object = if object.is_empty() { object } else { format!("{}: ", self.text(&object)) };
        let hint = group.hint.map(|hint| format!("<br>hint: {}", self.lines(hint)));
        format!("{object}{}{}", self.lines(&group.finding.text), hint.unwrap_or_default())
    }

    /// Text of several lines on one line of Markdown.
    fn lines(&self, text: &str) -> String {
        let text = if text.len() > self.bounds.text { self.bounded(text) } else { text.to_owned() };
        visible_lines(&text).map(|line| gfm::text(&line)).collect::<Vec<_>>().join("<br>")
    }

    fn text(&self, text: &str) -> String {
        gfm::text(&self.bounded(text))
    }

    fn code(&self, text: &str) -> String {
        gfm::code(&self.bounded(text))
    }

    /// The text on one line, cut where there is no room for more.
    fn bounded(&self, text: &str) -> String {
        let text = visible(text);
        if text.len() <= self.bounds.text {
            return text.into_owned();
        }
        let end = (0..=self.bounds.text).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        format!("{} ... ({} more bytes)", &text[..end], text.len() - end)
    }
}
