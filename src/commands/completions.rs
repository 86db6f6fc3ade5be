//! `sbx completions`: for a shell.

use clap::CommandFactory;

use crate::{
    cli::{Cli, CompletionsArgs},
    exit_code::ExitCode,
    terminal::Terminal,
};

pub(super) fn run(args: &CompletionsArgs, terminal: &Terminal) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sbx", &mut script);
    terminal.out(&String::from_utf8_lossy(&script));
    ExitCode::Success
}
