//! The `sbx` program: wire and leave.

use std::process::ExitCode;

use clap::Parser;
use sbx::{cli::Cli, commands, exit_code, terminal::Terminal};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for; anything else is wrong usage, which clap calls 2.
            let code = if error.use_stderr() { exit_code::ExitCode::Usage } else { exit_code::ExitCode::Success };
            drop(error.print());
            return code.into();
        }
    };
    let mut terminal = Terminal::new(cli.color);
    commands::run(cli.command, &mut terminal).into()
}
