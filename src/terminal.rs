//! Streams, colour, width and questions: the only place that prints.
//!
//! Results go to stdout, everything else to stderr. A reader that went away ends the output
//! quietly. A pipe is never consent: a question needs stdin and stderr to be terminals.

use std::io::{self, BufRead, IsTerminal, Write};

use console::Term;

use crate::{
    apply::Ask,
    cli::Color,
    render::{Styles, View},
};

/// Width of text that goes to no terminal.
const PIPE_WIDTH: usize = 100;

/// The terminal, or what stands in for it.
#[derive(Debug)]
pub struct Terminal {
    colour_out: bool,
    colour_err: bool,
    width: usize,
}

impl Terminal {
    /// Decides once about colour and width.
    pub fn new(color: Color) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let decide = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain,
        };
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let width = Term::stdout().size_checked().map(|(_, width)| usize::from(width)).filter(|_| out);
        // Decided here, once: console would decide again by its own rules.
        console::set_colors_enabled(decide(out));
        console::set_colors_enabled_stderr(decide(err));
        Self { colour_out: decide(out), colour_err: decide(err), width: width.unwrap_or(PIPE_WIDTH) }
    }

    /// The page that results are laid out for.
    pub fn page_out(&self) -> View {
        View { width: self.width, styles: styles(self.colour_out) }
    }

    /// The page that messages are laid out for.
    pub fn page_err(&self) -> View {
        View { width: self.width, styles: styles(self.colour_err) }
    }

    /// Prints a result.
    pub fn out(&self, text: &str) {
        let mut out = io::stdout().lock();
        quietly(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// Prints a warning or an error.
    pub fn err(&self, text: &str) {
        Self::progress(text);
    }

    /// Prints progress; whole lines, also from several tasks at once.
    pub fn progress(text: &str) {
        let mut err = io::stderr().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        quietly(err.write_all(format!("{text}{newline}").as_bytes()));
    }
}

fn styles(colour: bool) -> Styles {
    if colour { Styles::coloured() } else { Styles::plain() }
}

/// A reader that went away has seen enough; nothing can be said to a broken stderr either.
fn quietly(result: io::Result<()>) {
    drop(result);
}

impl Ask for Terminal {
    fn ask(&mut self, question: &str) -> Option<String> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let mut err = io::stderr().lock();
        err.write_all(question.as_bytes()).and_then(|()| err.flush()).ok()?;
        let mut answer = String::new();
        // The end of input is no answer, and no consent.
        match io::stdin().lock().read_line(&mut answer) {
            Ok(0) => Some(String::new()),
            Ok(_) => Some(answer),
            Err(_) => None,
        }
    }
}
