//! Roles, not colours: what a piece of text is, and how a terminal may set it off.
//!
//! Colour is extra. Every view reads the same without it.

use console::Style;

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A heading.
    Heading,
    /// Said for completeness.
    Quiet,
    /// In order: met, done, nothing to do.
    Good,
    /// Something that is made.
    Create,
    /// Something that changes.
    Change,
    /// Something that goes.
    Remove,
    /// Somebody should look, or it is waited for.
    Warning,
    /// Apply refuses, or an error.
    Blocker,
    /// There is no way back.
    NoReturn,
    /// A command to copy.
    Command,
}

/// Whether roles show as colours: decided once, by whoever knows the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Styles {
    coloured: bool,
}

impl Styles {
    /// No escape sequence at all.
    pub fn plain() -> Self {
        Self { coloured: false }
    }

    /// Colours, whatever the stream is.
    pub fn coloured() -> Self {
        Self { coloured: true }
    }

    /// The text in its role. Pad and wrap before: an escape sequence has no width.
    pub fn paint(self, role: Role, text: &str) -> String {
        if !self.coloured || text.is_empty() {
            return text.to_owned();
        }
        let style = Style::new().force_styling(true);
        let style = match role {
            Role::Heading | Role::Command => style.bold(),
            Role::Quiet => style.dim(),
            Role::Good | Role::Create => style.green(),
            Role::Change => style.yellow(),
            Role::Remove => style.red(),
            Role::Warning => style.yellow().bold(),
            Role::Blocker => style.red().bold(),
            Role::NoReturn => style.magenta().bold(),
        };
        style.apply_to(text).to_string()
    }
}

/// The page a text view is laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Columns.
    pub width: usize,
    /// Colour or none.
    pub styles: Styles,
}

impl View {
    /// A page of this many columns, without colour.
    pub fn plain(width: usize) -> Self {
        Self { width, styles: Styles::plain() }
    }
}

/// Columns that a text without escape sequences takes.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_plain_and_colour_ends_where_it_began() {
        assert_eq!(Styles::plain().paint(Role::Blocker, "blocker"), "blocker");
        let painted = Styles::coloured().paint(Role::Blocker, "blocker");
        assert!(painted.starts_with("\u{1b}[") && painted.ends_with("\u{1b}[0m"), "{painted:?}");
        assert_eq!(console::strip_ansi_codes(&painted), "blocker");
        assert_eq!(Styles::coloured().paint(Role::Blocker, ""), "");
    }
}
