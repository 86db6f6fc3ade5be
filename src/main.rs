//! The `sbx` program: wire and leave.

use std::process::ExitCode;

use clap::Parser;
use sbx::{cli::Cli, commands, terminal::Terminal};

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => {
            let mut terminal = Terminal::new(cli.color);
            commands::run(cli, &mut terminal).into()
        }
        Err(error) => commands::usage(&error).into(),
    }
}
