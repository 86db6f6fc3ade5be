//! Lines within a width. A word is never broken: a name that is cut in two cannot be copied.

use super::styles::width;

/// The text in lines of at most `columns`, broken at spaces; a longer word has a line to itself.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_after(text, columns, columns)
}

/// Like [`wrap`], with another width for the first line, whose start is taken.
pub(super) fn wrap_after(text: &str, first: usize, columns: usize) -> Vec<String> {
    if width(text) <= first {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let limit = if lines.is_empty() { first } else { columns };
        if !line.is_empty() && width(&line) + 1 + width(word) > limit {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The text on a page of `columns`, its first line after `head`, further ones indented.
pub(super) fn hang(head: &str, text: &str, indent: usize, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(indent);
    let mut lines = wrap_after(text, columns.saturating_sub(width(head)), room).into_iter();
    let first = format!("{head}{}", lines.next().unwrap_or_default());
    std::iter::once(first).chain(lines.map(|line| format!("{}{line}", " ".repeat(indent)))).collect()
}

/// The text to the left of a column, filled up with spaces.
pub(super) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// At most so many characters, and in words how many more there are.
pub(super) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{} ... ({} more characters)", &text[..at], text[at..].chars().count()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_at_spaces_and_never_in_a_word() {
        assert_eq!(wrap("one two three", 20), ["one two three"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a sandboxes.agents.x-k8s.io b", 10), ["a", "sandboxes.agents.x-k8s.io", "b"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("東京 東京", 5), ["東京", "東京"]);
    }

    #[test]
    fn hangs_below_its_head() {
        assert_eq!(hang("note: ", "one two three", 2, 13), ["note: one two", "  three"]);
    }

    #[test]
    fn a_cut_says_how_much() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("äbcd", 2), "äb ... (2 more characters)");
    }
}
