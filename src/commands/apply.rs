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
    runbook::Runbook,
    steps::Interrupt,
    terminal::Terminal,
};

pub(super) async fn run(args: ApplyArgs, cluster: &ClusterArgs, terminal: &mut Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    for phrase in &args.approve {
        known_phrase(phrase, &runbook)?;
    }
    let options = Options {
        to: args.to.map(|name| step(&name, &runbook)).transpose()?,
        yes: args.yes,
        approvals: args.approve.into_iter().collect(),
    };
    let writer = Writer::new(connect(cluster, &runbook).await?);
    let working_dir =
        env::current_dir().map_err(|source| Error::Local { attempt: "find the working directory".into(), source })?;
    let interrupt = Interrupt::default();
    let caught = catch_signals(&interrupt, &writer)?;
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
    let planned = tokio::select! {
        plan = session.plan(options.to.as_ref()) => Some(plan?),
        () = interrupt.asked() => None,
    };
    let ending = match planned {
        Some(plan) => {
            terminal.out(&render::plan_text(&plan, &terminal.page_out()));
            session.apply(&plan, &options, terminal).await?
        }
        None => Ending::Interrupted("before there was a plan: nothing was written".into()),
    };
    terminal.err(&render::ending_text(&ending, &runbook.path, &terminal.page_err()));
    Ok(exit_code(&ending, caught.load(Ordering::Relaxed)))
}

/// A phrase that approves nothing is a mistake, best known before anything runs.
fn known_phrase(phrase: &str, runbook: &Runbook) -> Result<(), Error> {
    let context = &runbook.cluster.context;
    let asking = runbook.steps.iter().filter(|step| step.asks_for_its_phrase());
    let valid: Vec<String> = asking.map(|step| step.phrase(context)).collect();
    if valid.iter().any(|known| known == phrase) {
        return Ok(());
    }
    Err(Error::NoApproval { phrase: phrase.into(), valid })
}

fn exit_code(ending: &Ending, signal: u8) -> ExitCode {
    match ending {
        Ending::NoChanges | Ending::Finished => ExitCode::Success,
        Ending::Blocked => ExitCode::Error,
        Ending::Unmet(_) => ExitCode::Unmet,
        Ending::NeedsApproval(_) => ExitCode::NeedsApproval,
        Ending::Declined(_) => ExitCode::Declined,
        Ending::Failed(..) => ExitCode::Failed,
        Ending::Locked(_) | Ending::LockLost { .. } => ExitCode::Locked,
        Ending::Interrupted(_) => match signal {
            1 => ExitCode::Hangup,
            15 => ExitCode::Terminated,
            _ => ExitCode::Interrupted,
        },
    }
}

/// The first signal asks the run to stop, the second one leaves at once. Returns the number of the first.
fn catch_signals(interrupt: &Interrupt, writer: &Writer) -> Result<Arc<AtomicU8>, Error> {
    let caught = Arc::new(AtomicU8::new(0));
    for (number, kind) in [(1, SignalKind::hangup()), (2, SignalKind::interrupt()), (15, SignalKind::terminate())] {
        let mut signals =
            signal(kind).map_err(|source| Error::Local { attempt: "listen for signals".into(), source })?;
        let (interrupt, caught, writer) = (interrupt.clone(), Arc::clone(&caught), writer.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if caught.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                    Terminal::progress("stopping after what is in flight; once more to leave at once");
                    interrupt.set();
                } else {
                    Terminal::progress(&render::left_at_once(&writer.in_flight()));
                    std::process::exit(128 + i32::from(number));
                }
            }
        });
    }
    Ok(caught)
}
