//! An error as text: what was attempted, why it failed, what to do.

use std::error::Error;

use super::{View, escape::visible_lines, styles::Role, wrap::hang};

/// What failed, its causes one a line, then its hints.
///
/// ```text
/// error: read runbook `x.toml`
///   caused by: No such file or directory (os error 2)
/// hint: `sbx init` drafts one
/// ```
pub fn error_text(error: &(dyn Error + 'static), hints: &[String], view: &View) -> String {
    let mut lines = said("error", Role::Blocker, &error.to_string(), view);
    let mut above = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors repeat their cause in their own text.
        if !above.ends_with(&text) {
            lines.extend(said("  caused by", Role::Quiet, &text, view));
        }
        above = text;
        cause = error.source();
    }
    for hint in hints {
        lines.extend(said("hint", Role::Heading, hint, view));
    }
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// `word: text`, further lines below the text.
pub(super) fn said(word: &str, role: Role, text: &str, view: &View) -> Vec<String> {
    let indent = word.len() - word.trim_start().len() + 2;
    let mut lines = Vec::new();
    for (index, line) in visible_lines(text).enumerate() {
        let head = if index == 0 { format!("{word}: ") } else { " ".repeat(indent) };
        lines.extend(hang(&head, &line, indent, view.width));
    }
    if let Some(first) = lines.first_mut() {
        let rest = first[word.len()..].to_owned();
        let word = view.styles.paint(role, word.trim_start());
        *first = format!("{}{word}{rest}", " ".repeat(indent - 2));
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Above(&'static str, #[source] io::Error);

    fn check(error: &(dyn Error + 'static), hints: &[&str], expected: &str) {
        let hints: Vec<String> = hints.iter().map(|hint| (*hint).to_owned()).collect();
        assert_eq!(error_text(error, &hints, &View::plain(40)), expected);
    }

    #[test]
    fn what_then_why_then_what_to_do() {
        let error = Above("read runbook `x.toml`", io::Error::other("no such file"));
        check(
            &error,
            &["`sbx init` drafts one", "see README"],
            "error: read runbook `x.toml`\n  caused by: no such file\nhint: `sbx init` drafts one\nhint: see README\n",
        );
    }

    #[test]
    fn a_cause_that_is_said_already_is_not_said_again() {
        check(&Above("read x: denied", io::Error::other("denied")), &[], "error: read x: denied\n");
    }

    #[test]
    fn long_and_many_lines_hang_below_and_nothing_acts() {
        let error = Above("one two three four five six seven eight", io::Error::other("a\u{1b}[2J\nb"));
        check(&error, &[], "error: one two three four five six seven\n  eight\n  caused by: a\\u{1b}[2J\n    b\n");
    }
}
