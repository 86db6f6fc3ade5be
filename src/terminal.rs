//! Streams, colour, width and questions: the only place that prints.
//!
//! Results go to stdout, everything else to stderr. A reader that went away ends the output
//! quietly. A pipe is never consent: a question needs stdin and stderr to be terminals.

use std::{
    env,
    io::{self, BufRead, ErrorKind, IsTerminal, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use console::Term;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::{
    apply::Ask,
    cli::Color,
    render::{Styles, View},
};

/// Width of text that goes to no terminal.
const PIPE_WIDTH: usize = 100;

/// Whether the cursor stands behind a question that nobody answered yet.
static ASKING: AtomicBool = AtomicBool::new(false);

/// The terminal, or what stands in for it.
#[derive(Debug)]
pub struct Terminal {
    out: View,
    err: View,
    lost: OnceLock<ErrorKind>,
}

impl Terminal {
    /// Decides once about colour and width, each stream for itself.
    pub fn new(color: Color) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let (out, err) = (view(color, out, &Term::stdout()), view(color, err, &Term::stderr()));
        // console would decide again, by rules of its own.
        console::set_colors_enabled(out.styles == Styles::coloured());
        console::set_colors_enabled_stderr(err.styles == Styles::coloured());
        Self { out, err, lost: OnceLock::new() }
    }

    /// The page that results are laid out for.
    pub fn page_out(&self) -> View {
        self.out
    }

    /// The page that messages are laid out for.
    pub fn page_err(&self) -> View {
        self.err
    }

    /// Prints a result.
    pub fn out(&self, text: &str) {
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // A reader that went away has seen enough. Anything else is a result that nobody has.
            if error.kind() != ErrorKind::BrokenPipe {
                // The first one says why.
                let _ = self.lost.set(error.kind());
            }
        }
    }

    /// Why a result did not get out.
    pub fn lost(&self) -> Option<io::Error> {
        self.lost.get().map(|kind| io::Error::from(*kind))
    }

    /// Prints a warning or an error.
    pub fn err(&self, text: &str) {
        Self::progress(text);
    }

    /// Prints progress; whole lines, also from several tasks at once.
    pub fn progress(text: &str) {
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let before = if ASKING.swap(false, Ordering::Relaxed) { "\n" } else { "" };
        // Where stderr is gone there is nobody left to tell.
        let _ = io::stderr().lock().write_all(format!("{before}{text}{newline}").as_bytes());
    }
}

fn view(color: Color, is_terminal: bool, term: &Term) -> View {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let coloured = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
    };
    let width = term.size_checked().map(|(_, columns)| usize::from(columns)).filter(|_| is_terminal);
    View { width: width.unwrap_or(PIPE_WIDTH), styles: if coloured { Styles::coloured() } else { Styles::plain() } }
}

impl Ask for Terminal {
    fn ask<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(Prompt.answer(question))
    }
}

/// Whether somebody can be asked: a question needs stdin and stderr to be terminals.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal, whoever prints there.
#[derive(Debug)]
pub struct Prompt;

impl Ask for Prompt {
    fn ask<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(Self.answer(question))
    }
}

impl Prompt {
    async fn answer(self, question: &str) -> Option<String> {
        if !can_ask() {
            return None;
        }
        {
            // Let go before the answer: a signal has something to say meanwhile.
            let mut err = io::stderr().lock();
            err.write_all(question.as_bytes()).and_then(|()| err.flush()).ok()?;
        }
        ASKING.store(true, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        // Nothing ends a read but a line: a thread of its own is left behind when the program leaves.
        thread::spawn(move || answer.send(read_line()));
        answered.await.ok().flatten()
    }
}

/// A line from the keyboard. The end of input is an answer, and no consent; so is what is no text.
fn read_line() -> Option<String> {
    let mut answer = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut answer).ok()?;
    ASKING.store(!answer.ends_with(b"\n"), Ordering::Relaxed);
    Some(String::from_utf8_lossy(&answer).into_owned())
}
