//! Text that is no TOML: what to say of it, and what can still be said of the rest.
//!
//! The parser goes on after an error as well as it can. So several errors are found at once, but
//! some of them only follow from an earlier one, and so may what the rest of the text seems to lack.

use toml::de::Error;

use super::Problem;

/// What swallows the rest of the text and finds fault with every line of it: the error at its end,
/// and what the errors inside it speak of.
const SWALLOWERS: [(&str, &str); 2] = [("unclosed array,", "array element"), ("unclosed inline table", "inline table")];

/// One error, at its place.
pub(super) fn problem(error: &Error, text: &str) -> Problem {
    let span = error.span().unwrap_or(text.len()..text.len());
    Problem::new(span, error.message().trim())
}

/// The errors, without those that only follow from an earlier one.
pub(super) fn problems(errors: &[Error], text: &str) -> Vec<Problem> {
    let mut errors: Vec<Problem> = errors.iter().map(|error| problem(error, text)).collect();
    errors.sort_by_key(|error| error.span.start);
    for (unclosed, inside) in SWALLOWERS {
        let Some(end) = errors.iter().position(|error| error.message.starts_with(unclosed)) else { continue };
        let message = errors[end].message.clone();
        if let Some(first) = errors.iter().position(|error| error.message.contains(inside)) {
            errors.truncate(first + 1);
            errors[first].message = message;
        }
    }
    let mut broken_header = false;
    let mut last_line = None;
    errors.retain(|error| {
        let line = line_of(error, text);
        let first_of_line = last_line.replace(line) != Some(line);
        // Without its name the next header looks like this one again.
        let follows = broken_header && error.message == "duplicate key";
        broken_header |= text.lines().nth(line).is_some_and(is_header);
        first_of_line && !follows
    });
    errors
}

/// What else is wrong, whatever the lines that cannot be read were meant to say: nothing on such a
/// line, nothing below such a header, nothing that is swallowed, and nothing that is not there.
pub(super) fn beside(mut found: Vec<Problem>, errors: &[Problem], text: &str) -> Vec<Problem> {
    if errors.is_empty() {
        return found;
    }
    let swallows = |error: &&Problem| SWALLOWERS.iter().any(|(unclosed, _)| error.message.starts_with(unclosed));
    let end = errors.iter().find(swallows).map_or(text.len(), |error| error.span.start);
    let broken: Vec<usize> = errors.iter().map(|error| line_of(error, text)).collect();
    let mut unread = Vec::new();
    let mut below_broken_header = false;
    for (number, line) in text.lines().enumerate() {
        let is_broken = broken.contains(&number);
        if is_header(line) {
            below_broken_header = is_broken;
        }
        unread.push(is_broken || below_broken_header);
    }
    let is_read = |problem: &Problem| unread.get(line_of(problem, text)) == Some(&false) && problem.span.start < end;
    found.retain(|problem| !problem.absence && is_read(problem));
    found
}

fn is_header(line: &str) -> bool {
    line.trim_start().starts_with('[')
}

/// From 0.
fn line_of(problem: &Problem, text: &str) -> usize {
    text.bytes().take(problem.span.start).filter(|byte| *byte == b'\n').count()
}
