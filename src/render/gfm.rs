//! Text that must stay text in GitHub-flavoured Markdown: no markup, mentions, links or HTML.
//!
//! A backslash does not stop a mention or a link, a code span does. So a word that could mean
//! something becomes a code span, and the words around it stay as they are.

use super::escape::visible;

/// A code span, delimited by more backticks than the text has in a row.
pub(super) fn code(text: &str) -> String {
    let text = visible(text);
    if text.trim().is_empty() {
        // Markdown knows no empty code span.
        return "(empty)".into();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    // Padding is stripped again on display, and only when both sides have it.
    let padded = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    let pad = if padded { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Text with every word that could mean something as a code span.
pub(super) fn text(text: &str) -> String {
    visible(text).split(' ').filter(|word| !word.is_empty()).map(word).collect::<Vec<_>>().join(" ")
}

/// For a cell of a table, where a bar ends the cell even inside a code span.
pub(super) fn cell(markdown: &str) -> String {
    markdown.replace('|', r"\|")
}

/// A fenced block, its fence longer than any run of backticks inside.
pub(super) fn fenced(language: &str, body: &str) -> String {
    let fence = "`".repeat(longest_run(body).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", body.trim_end_matches('\n'))
}

/// A value inside an HTML comment: nothing in it can end the comment or the value.
pub(super) fn comment_value(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for byte in text.bytes() {
        // Two hyphens end a comment in some readers.
        let plain = byte.is_ascii_alphanumeric() || b"._/@:".contains(&byte) || byte == b'-' && !value.ends_with('-');
        if plain {
            value.push(char::from(byte));
        } else {
            value.extend(["%", &format!("{byte:02X}")]);
        }
    }
    value
}

/// Text inside an HTML element of our own.
pub(super) fn html(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn word(word: &str) -> String {
    if word.chars().all(|c| "-=<>+".contains(c)) {
        return html(word);
    }
    let core = word.trim_start_matches(['(', '"', '\'']);
    let start = word.len() - core.len();
    let core = core.trim_end_matches(['.', ',', ';', ':', ')', '"', '\'', '?']);
    let end = start + core.len();
    if core.is_empty() || is_plain(core) {
        return word.to_owned();
    }
    // Some texts quote with backticks already.
    let quoted = core.strip_prefix('`').and_then(|core| core.strip_suffix('`'));
    let core = quoted.filter(|inside| !inside.is_empty() && !inside.contains('`')).unwrap_or(core);
    format!("{}{}{}", &word[..start], code(core), &word[end..])
}

/// Whether Markdown and GitHub take a word for nothing but a word.
fn is_plain(word: &str) -> bool {
    let letters = word.chars().all(|c| c.is_alphanumeric() || ".,;'\"()-+=%?".contains(c));
    let number = word.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
    let commit = word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit()) && !number;
    let lower = word.to_ascii_lowercase();
    // A bare host name, or an issue of GitHub, becomes a link.
    let link = lower.starts_with("www.") || lower.starts_with("gh-");
    letters && !commit && !link && !word.starts_with(['-', '+', '='])
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_plain() {
        for plain in
            ["rewrite 41 objects, relabel 12, prune 4 CRDs", "last v1alpha1 write", "(7 Pod, 2 Service)", "größer"]
        {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn words_that_mean_something_become_code() {
        for (raw, shown) in [
            ("ask @octocat now", "ask `@octocat` now"),
            ("see #12, GH-3", "see `#12`, `GH-3`"),
            ("(https://x.test/a).", "(`https://x.test/a`)."),
            ("www.x.test", "`www.x.test`"),
            ("<img src=x>", "`<img` `src=x>`"),
            ("a -> b >= c", "a -&gt; b &gt;= c"),
            ("*bold* _it_ ~~no~~ [a](b)", "`*bold*` `_it_` `~~no~~` `[a](b`)"),
            ("a `tick`, `` `a` `b`c`", "a `tick`, ``` `` ``` `a` `` `b`c` ``"),
            (":tada: 10:14Z note:", "`:tada`: `10:14Z` note:"),
            ("deadbeef1 1234567", "`deadbeef1` 1234567"),
            ("$x$ a&b", "`$x$` `a&b`"),
            ("a\u{1b}[1m", r"`a\u{1b}[1m`"),
        ] {
            assert_eq!(text(raw), shown, "{raw}");
        }
    }

    #[test]
    fn a_code_span_holds_any_backticks() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code(""), "(empty)");
        assert_eq!(cell(&code("a|b")), r"`a\|b`");
    }

    #[test]
    fn a_fence_is_longer_than_any_run_inside() {
        assert_eq!(fenced("diff", "a\n"), "```diff\na\n```\n");
        assert_eq!(fenced("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
    }

    #[test]
    fn nothing_ends_a_comment() {
        assert_eq!(comment_value("runbooks/v1.0.0.toml"), "runbooks/v1.0.0.toml");
        assert_eq!(comment_value("a --> <b>"), "a%20-%2D%3E%20%3Cb%3E");
    }
}
