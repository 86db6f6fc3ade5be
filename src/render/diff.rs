//! What changes in a field, line by line, with a little of what stays around it.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::{
    escape::{visible, visible_lines},
    wrap::cut,
};
use crate::plan::FieldChange;

/// Unchanged lines shown on either side of a change.
const CONTEXT: usize = 2;
/// A longer line is cut, and says so.
const LINE: usize = 400;

/// A line of a diff: `-`, `+`, a space for what stays, or `@` for lines left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// What becomes of it.
    pub(super) sign: char,
    /// The line.
    pub(super) text: String,
    /// Whether all of it is there.
    pub(super) whole: bool,
}

/// A field's value before and after, where each is one short line.
pub(super) fn one_line(field: &FieldChange) -> Option<(String, String)> {
    let side = |value: &Option<String>, absent: &str| match value {
        None => Some(absent.to_owned()),
        Some(value) if value.is_empty() => Some(EMPTY.to_owned()),
        Some(value) => match visible_lines(value).collect::<Vec<_>>().as_slice() {
            [line] if line.chars().count() <= LINE => Some(line.to_string()),
            _ => None,
        },
    };
    Some((side(&field.before, "(absent)")?, side(&field.after, "(removed)")?))
}

/// A field's values as a diff of their lines; of a list's items, where it is a list.
pub(super) fn lines(field: &FieldChange) -> Vec<Line> {
    let side = |value: &Option<String>| value.as_deref().map(lines_of).unwrap_or_default();
    let (before, after) = (side(&field.before), side(&field.after));
    let old: Vec<&str> = before.iter().map(String::as_str).collect();
    let new: Vec<&str> = after.iter().map(String::as_str).collect();
    let diff = TextDiff::from_slices(&old, &new);
    let mut shown = Vec::new();
    let mut next = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let Some(first) = group.first() else { continue };
        if first.old_range().start > next {
            shown.push(Line { sign: '@', text: format!("{} unchanged", first.old_range().start - next), whole: true });
        }
        next = group.last().map_or(next, |op| op.old_range().end);
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let text = cut(change.value(), LINE);
            shown.push(Line { sign, whole: text == change.value(), text });
        }
    }
    if old.len() > next {
        shown.push(Line { sign: '@', text: format!("{} unchanged", old.len() - next), whole: true });
    }
    shown
}

/// What stands for a value of no characters.
const EMPTY: &str = "\"\"";

/// A list by its items, an object by its lines, other text by its own.
fn lines_of(value: &str) -> Vec<String> {
    let structure =
        value.trim_start().starts_with(['[', '{']).then(|| serde_json::from_str::<Value>(value).ok()).flatten();
    match structure {
        Some(Value::Array(items)) if items.iter().all(|item| !item.is_object() && !item.is_array()) => items
            .iter()
            .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
            .map(|item| visible(&item).into_owned())
            .collect(),
        None if value.is_empty() => vec![EMPTY.to_owned()],
        Some(structure) => visible_lines(&format!("{structure:#}")).map(Into::into).collect(),
        None => visible_lines(value).map(Into::into).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, after: Option<&str>, expected: &[&str]) {
        let shown: Vec<String> = lines(&FieldChange::new("path", before, after))
            .iter()
            .map(|line| format!("{}{}", line.sign, line.text))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_list_is_compared_by_its_items() {
        check(Some(r#"["v1alpha1","v1beta1"]"#), Some(r#"["v1beta1"]"#), &["-v1alpha1", " v1beta1"]);
        check(Some("[]"), Some("[1, true]"), &["+1", "+true"]);
    }

    #[test]
    fn an_object_is_compared_by_its_lines() {
        check(
            Some(r#"{"a":1,"b":2}"#),
            Some(r#"{"a":1,"b":3}"#),
            &[" {", "   \"a\": 1,", "-  \"b\": 2", "+  \"b\": 3", " }"],
        );
    }

    #[test]
    fn what_only_looks_like_a_structure_is_text() {
        check(Some("[not json"), None, &["-[not json"]);
        check(None, Some("a\nb"), &["+a", "+b"]);
        check(Some("a"), Some(""), &["-a", "+\"\""]);
    }

    #[test]
    fn unchanged_lines_far_away_are_counted() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        check(
            Some(before),
            Some(&before.replace('5', "five")),
            &["@2 unchanged", " 3", " 4", "-5", "+five", " 6", " 7", "@2 unchanged"],
        );
    }

    #[test]
    fn one_line_only_where_both_sides_are() {
        assert_eq!(one_line(&FieldChange::new("p", Some("a"), None)), Some(("a".into(), "(removed)".into())));
        assert_eq!(one_line(&FieldChange::new("p", Some("a\nb"), None)), None);
        assert_eq!(one_line(&FieldChange::new("p", Some(&"a".repeat(LINE + 1)), None)), None);
    }
}
