//! What is wrong with a runbook: each problem with file, line, column, the text and a caret.

use std::{borrow::Cow, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{
    View,
    escape::{is_hidden, visible, visible_lines},
    styles::Role,
    words::plural,
    wrap::wrap,
};
use crate::runbook::{Problem, Runbook};

/// More than this at once helps nobody: a file that is no runbook has thousands.
const SHOWN: usize = 50;

/// Text quoted from a runbook is cut at this length; the caret shows where the rest is.
const QUOTED: usize = 400;

/// What stands left of a hint: room for a line number, and `= help: `.
const GUTTER: usize = 14;

/// Every problem with the text of a runbook, in its order, and how many there are.
///
/// ```text
/// error: unknown key `quite-for` in `[step.writers]`
///   --> runbooks/v1.0.0.toml:65:1
///    |
/// 65 | quite-for = "30m"
///    | ^^^^^^^^^ did you mean `quiet-for`?
/// ```
pub fn problems_text(path: &str, text: &str, problems: &[Problem], view: &View) -> String {
    let text = &in_place(text);
    let renderer = if view.styles == super::Styles::plain() { Renderer::plain() } else { Renderer::styled() };
    // Below this nothing of the text would be left beside the line numbers.
    let renderer = renderer.term_width(view.width.max(40));
    let mut page = String::new();
    for problem in problems.iter().take(SHOWN) {
        page.push_str(&renderer.render(&[group(path, text, problem, view.width)]));
        page.push_str("\n\n");
    }
    let cut = if problems.len() > SHOWN { format!(", the first {SHOWN} shown") } else { String::new() };
    let summary = format!("{}: {}{cut}", visible(path), plural(problems.len(), "problem"));
    page.push_str(&view.styles.paint(Role::Blocker, &summary));
    page.push('\n');
    page
}

/// That there is nothing to say.
pub fn no_problems_text(runbook: &Runbook) -> String {
    let path = runbook.path.to_string_lossy();
    format!("{}: {}, no problems\n", visible(&path), plural(runbook.steps.len(), "step"))
}

fn group<'a>(path: &'a str, text: &'a str, problem: &'a Problem, width: usize) -> Group<'a> {
    let annotation = |kind: AnnotationKind, span: &Range<usize>, label: &'a str| {
        kind.span(within(text, span)).label((!label.is_empty()).then(|| quoted(label)))
    };
    let snippet = Snippet::source(text)
        .path(visible(path))
        .annotation(annotation(AnnotationKind::Primary, &problem.span, &problem.label))
        .annotations(problem.also.iter().map(|(span, label)| annotation(AnnotationKind::Context, span, label)));
    let mut group = Level::ERROR.primary_title(quoted(&problem.message)).element(snippet);
    for hint in &problem.hints {
        let mut lines = visible_lines(hint);
        // The first line is words; those below are there to be copied.
        let mut shown = wrap(&lines.next().unwrap_or_default(), width.saturating_sub(GUTTER));
        shown.extend(lines.map(Cow::into_owned));
        group = group.element(Level::HELP.message(shown.join("\n")));
    }
    group
}

/// A span that lies in the text and between characters, whatever it was; an empty one takes the next
/// character of its line in, so that there is something to point at.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let boundary = |index: usize| (0..=index.min(text.len())).rev().find(|index| text.is_char_boundary(*index));
    let start = boundary(span.start).unwrap_or_default();
    let end = boundary(span.end).unwrap_or_default().max(start);
    match text[start..].chars().next() {
        Some(next) if start == end && !['\n', '\r'].contains(&next) => start..start + next.len_utf8(),
        _ => start..end,
    }
}

/// The text with every character that would act on the page replaced by one of its length, so that
/// the spans still fit. Those of one byte the renderer replaces itself.
fn in_place(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.len_utf8() > 1 && is_hidden(c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let standing = |c: char| match c.len_utf8() {
        2 => '\u{b7}',
        3 => char::REPLACEMENT_CHARACTER,
        _ => '\u{1f6ab}',
    };
    Cow::Owned(text.chars().map(|c| if acts(c) { standing(c) } else { c }).collect())
}

fn quoted(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    match shown.char_indices().nth(QUOTED) {
        Some((end, _)) => Cow::Owned(format!("{}...", &shown[..end])),
        None => shown,
    }
}
