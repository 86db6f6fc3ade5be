//! One verb per file: resolve the arguments, call the stages, hand the value to a view.

mod apply;
mod check;
mod cluster;
mod completions;
mod graph;
mod init;
mod plan;
mod rbac;
mod rehearse;
mod schema;
mod select;
mod snapshot;
mod usage;

pub use usage::usage;

use crate::{
    cli::{Cli, Command},
    error::Error,
    exit_code::ExitCode,
    render,
    runbook::RunbookError,
    terminal::Terminal,
};

/// Carries out a command and says how it ended.
pub fn run(cli: Cli, terminal: &mut Terminal) -> ExitCode {
    let Cli { color: _, cluster, command } = cli;
    let asks = matches!(command, Command::Plan(_) | Command::Apply(_) | Command::Init(_) | Command::Snapshot(_));
    let named = cluster.context.as_ref().map(|_| "--context").or(cluster.kubeconfig.as_ref().map(|_| "--kubeconfig"));
    let result = match command {
        // What is passed over in silence reads as obeyed.
        _ if !asks && named.is_some() => Err(Error::NoClusterAsked(named.unwrap_or_default())),
        Command::Check(args) => check::run(args, terminal),
        Command::Graph(args) => graph::run(args, terminal),
        Command::Plan(args) => wait(plan::run(args, &cluster, terminal)),
        Command::Apply(args) => wait(apply::run(args, &cluster, terminal)),
        Command::Rehearse(args) => wait(rehearse::run(args, terminal)),
        Command::Init(args) => wait(init::run(args, &cluster, terminal)),
        Command::Snapshot(args) => wait(snapshot::run(args, &cluster, terminal)),
        Command::Rbac(args) => rbac::run(args, terminal),
        Command::Schema => Ok(schema::run(terminal)),
        Command::Completions(args) => Ok(completions::run(&args, terminal)),
    };
    let code = result.unwrap_or_else(|error| {
        let page = terminal.page_err();
        terminal.err(&match &error {
            Error::Runbook(RunbookError::Invalid { path, text, problems }) => {
                render::problems_text(&path.to_string_lossy(), text, problems, &page)
            }
            error => render::error_text(error, &error.hints(), &page),
        });
        error.exit_code()
    });
    // What did not get out was no success, whatever it was about.
    match terminal.lost() {
        Some(error) if code == ExitCode::Success => {
            let error = Error::Local { attempt: "write the result".into(), source: error };
            terminal.err(&render::error_text(&error, &error.hints(), &terminal.page_err()));
            ExitCode::Error
        }
        _ => code,
    }
}

/// Runs what talks to a cluster.
fn wait(command: impl Future<Output = Result<ExitCode, Error>>) -> Result<ExitCode, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| Error::Local { attempt: "start the runtime".into(), source })?
        .block_on(command)
}
