//! `sbx apply`: plan, ask, do, report.

use std::{
    env,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    cluster::connect,
    select::{select, step},
};
use crate::{
    apply::{Ending, Event, Options, Session},
    cli::{ApplyArgs, ClusterArgs},
    cluster::Writer,
    error::Error,
    exit_code::ExitCode,
    render::{self, RunLines},
    steps::Interrupt,
    terminal::Terminal,
};

pub(super) async fn run(args: ApplyArgs, cluster: &ClusterArgs, terminal: &mut Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    let options = Options {
        to: args.to.map(|name| step(&name, &runbook)).transpose()?,
        yes: args.yes,
        approvals: args.approve.into_iter().collect(),
    };
    let writer = Writer::new(connect(cluster, &runbook).await?);
    let working_dir =
        env::current_dir().map_err(|source| Error::Local { attempt: "find the working directory".into(), source })?;
    let interrupt = Interrupt::default();
    let caught = catch_signals(&interrupt)?;
    let lines = Mutex::new(RunLines::new(terminal.page_err()));
    let events = |event: &Event| {
        // Whole lines only: a panic while one is made leaves nothing half said.
        for line in lines.lock().unwrap_or_else(PoisonError::into_inner).lines(event) {
            Terminal::progress(&line);
        }
    };
    let session = Session {
        writer: &writer,
        runbook: &runbook,
        graph: &graph,
        working_dir: &working_dir,
        interrupt: &interrupt,
        events: &events,
    };
    let plan = session.plan(options.to.as_ref()).await?;
    terminal.out(&render::plan_text(&plan, &terminal.page_out()));
    let ending = session.apply(&plan, &options, terminal).await?;
    terminal.err(&render::ending_text(&ending, &runbook.path, &terminal.page_err()));
    Ok(exit_code(&ending, caught.load(Ordering::Relaxed)))
}

fn exit_code(ending: &Ending, signal: u8) -> ExitCode {
    match ending {
        Ending::NoChanges | Ending::Finished => ExitCode::Success,
        Ending::Blocked => ExitCode::Error,
        Ending::Unmet(_) => ExitCode::Unmet,
        Ending::NeedsApproval(_) => ExitCode::NeedsApproval,
        Ending::Declined(_) => ExitCode::Declined,
        Ending::Failed(..) => ExitCode::Failed,
        Ending::Locked(_) => ExitCode::Locked,
        Ending::Interrupted(_) => match signal {
            1 => ExitCode::Hangup,
            2 => ExitCode::Interrupted,
            15 => ExitCode::Terminated,
            // No signal: somebody took the lock over.
            _ => ExitCode::Locked,
        },
    }
}

/// The first signal asks the run to stop, the second one leaves at once. Returns the number of the first.
fn catch_signals(interrupt: &Interrupt) -> Result<Arc<AtomicU8>, Error> {
    let caught = Arc::new(AtomicU8::new(0));
    for (number, kind) in [(1, SignalKind::hangup()), (2, SignalKind::interrupt()), (15, SignalKind::terminate())] {
        let mut signals =
            signal(kind).map_err(|source| Error::Local { attempt: "listen for signals".into(), source })?;
        let (interrupt, caught) = (interrupt.clone(), Arc::clone(&caught));
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if caught.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    Terminal::progress("stopping after what is in flight; once more to leave at once");
                    interrupt.set();
                } else {
                    Terminal::progress("left at once: the outcome of the requests in flight is unknown; plan again");
                    std::process::exit(128 + i32::from(number));
                }
            }
        });
    }
    Ok(caught)
}
