//! What was typed wrong, or asked of the program itself: help and version.

use std::env;

use clap::ValueEnum;

use crate::{cli::Color, exit_code::ExitCode, render::Styles, terminal::Terminal};

/// Says what the command line's reader has to say, and how the program ends: help and version are
/// asked for, anything else is wrong usage.
pub fn usage(error: &clap::Error) -> ExitCode {
    let terminal = Terminal::new(typed_color(env::args_os().map(|word| word.to_string_lossy().into_owned())));
    let page = if error.use_stderr() { terminal.page_err() } else { terminal.page_out() };
    let text = error.render();
    let text = if page.styles == Styles::plain() { text.to_string() } else { text.ansi().to_string() };
    if error.use_stderr() {
        terminal.err(&text);
        ExitCode::Usage
    } else {
        terminal.out(&text);
        ExitCode::Success
    }
}

/// `--color`, where the rest of the command line makes no sense.
fn typed_color(words: impl Iterator<Item = String>) -> Color {
    let words: Vec<String> = words.collect();
    let next = words.windows(2).filter(|pair| pair[0] == "--color").map(|pair| pair[1].as_str());
    let joined = words.iter().filter_map(|word| word.strip_prefix("--color="));
    next.chain(joined).find_map(|word| Color::from_str(word, false).ok()).unwrap_or_default()
}
