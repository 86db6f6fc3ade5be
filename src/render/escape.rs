//! What came from a cluster is data: control characters are shown, not sent.
//!
//! A name or a message may hold an escape sequence that moves the cursor, a carriage return that
//! overwrites the line, or a bidirectional override that makes a reviewer read another word than
//! the one that is there. They are spelled out: `\u{1b}[2J`.

use std::borrow::Cow;

/// Whether a character acts on the page instead of standing on it: control characters, line and
/// paragraph separators, bidirectional controls and characters of no width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text on one line, with every hidden character spelled out.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The text line by line, each as [`visible`] shows it. Line ends at the end do not count.
pub fn visible_lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.trim_end_matches(['\n', '\r']).split('\n').map(|line| visible(line.strip_suffix('\r').unwrap_or(line)))
}

/// One word of a command line as a POSIX shell reads it back, quoted only where needed.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", visible(word).replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_left_alone() {
        for text in ["", "Sandbox team-a/job-7", "größer, 東京, naïve, 🦀", r"back\slash"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_acts_is_spelled_out() {
        for (text, shown) in [
            ("a\u{1b}[2Jb", r"a\u{1b}[2Jb"),
            ("a\rb\tc\nd", r"a\rb\tc\nd"),
            ("bell\u{7} del\u{7f} csi\u{9b}1m", r"bell\u{7} del\u{7f} csi\u{9b}1m"),
            ("user\u{202e}nimda", r"user\u{202e}nimda"),
            ("\u{2066}x\u{2069}", r"\u{2066}x\u{2069}"),
            ("zero\u{200b}width\u{feff}", r"zero\u{200b}width\u{feff}"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
            ("\u{2028}", r"\u{2028}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn lines_stay_lines() {
        let lines: Vec<_> = visible_lines("one\r\ntwo\u{1b}c\n\n  three\n").collect();
        assert_eq!(lines, ["one", r"two\u{1b}c", "", "  three"]);
        assert_eq!(visible_lines("").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_more_into_it() {
        for (word, quoted) in [
            ("runbooks/v1.0.0.toml", "runbooks/v1.0.0.toml"),
            ("merge@admin@pitower", "merge@admin@pitower"),
            ("my runbook.toml", "'my runbook.toml'"),
            ("it's.toml", r"'it'\''s.toml'"),
            ("$(rm).toml", "'$(rm).toml'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
