//! What is wrong with a runbook: every problem, each with its place in the text.

use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, in a fragment without a full stop.
    pub message: String,
    /// Bytes of the text it is about.
    pub span: Range<usize>,
    /// What stands under the caret; may be empty.
    pub label: String,
    /// Other places that belong to it.
    pub also: Vec<(Range<usize>, String)>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// Whether it is that something is not there: said only where the whole text could be read.
    pub absence: bool,
}

impl Problem {
    /// A problem at a place of the text.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span,
            label: String::new(),
            also: Vec::new(),
            hints: Vec::new(),
            absence: false,
        }
    }

    /// A problem with what is not there.
    pub fn absent(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { absence: true, ..Self::new(span, message) }
    }

    /// With words under the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With "did you mean" under the caret, if there is a near name.
    #[must_use]
    pub fn did_you_mean(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.label(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// With another place that belongs to it.
    #[must_use]
    pub fn also(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.also.push((span, label.into()));
        self
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Why there is no runbook.
#[derive(Debug)]
pub enum RunbookError {
    /// Its file cannot be read.
    Unreadable {
        /// Path as given.
        path: PathBuf,
        /// The system's own words.
        source: io::Error,
    },
    /// Its text is wrong in one or more places.
    Invalid {
        /// Path as given.
        path: PathBuf,
        /// The text that the spans point into.
        text: String,
        /// What is wrong, in the order of the text; never empty.
        problems: Vec<Problem>,
    },
}

impl RunbookError {
    /// Path as given.
    pub fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. } | Self::Invalid { path, .. } => path,
        }
    }

    /// What is wrong with the text; empty when there is none.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Invalid { problems, .. } => problems,
        }
    }
}

impl fmt::Display for RunbookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, .. } => write!(f, "cannot read the runbook `{}`", path.display()),
            Self::Invalid { path, problems, .. } => {
                let s = if problems.len() == 1 { "" } else { "s" };
                write!(f, "the runbook `{}` has {} problem{s}", path.display(), problems.len())
            }
        }
    }
}

impl std::error::Error for RunbookError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Invalid { .. } => None,
        }
    }
}
