//! The whole upgrade in front of you, on an API server held in memory: plan, apply, plan again.
//!
//! In: a runbook, and a server that was seeded from a snapshot. Out: what happened, as it happens, and
//! a [`Report`]. The code that plans and applies is the one that runs on a real cluster; everybody
//! else (clients, deployer, webhook, time) is played, and each move is announced as played.

mod fault;
mod player;
mod report;

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fault::Fault;
use futures::future::{BoxFuture, ready};
use player::Player;
pub use report::Report;

use crate::{
    apply::{Ask, Ending, Event, Options, Session},
    clock::{Clock, Hands},
    cluster::{ClusterError, Reader, Writer},
    embedded::Server,
    graph::StepGraph,
    plan::{Plan, State},
    runbook::{Merge, Runbook, StepId, Task},
    steps::{Interrupt, Progress},
};

/// Who runs `sbx` in a rehearsal.
pub const ACTOR: &str = "you";
/// Times `apply` is run before the rehearsal gives up: gates that nobody plays stay closed.
const RUNS: usize = 6;

/// One thing that happened in a rehearsal.
pub enum Happening<'a> {
    /// A plan was made.
    Planned(&'a Plan),
    /// Somebody else did something, played.
    Played(&'a str),
    /// `apply` begins.
    Applies,
    /// Something in the run.
    Event(&'a Event),
    /// A question was asked, and this was answered.
    Asked(&'a str, &'a str),
    /// `apply` ended.
    Ended(&'a Ending),
}

/// What is rehearsed, and on what.
pub struct Rehearsal<'a> {
    /// The runbook.
    pub runbook: &'a Runbook,
    /// Its order.
    pub graph: &'a StepGraph,
    /// The server, seeded.
    pub server: &'a Server,
    /// The time it is there.
    pub hands: Hands,
    /// Backups and journals go below it.
    pub working_dir: &'a Path,
    /// A step that goes wrong the first time.
    pub fail: Option<StepId>,
    /// Who answers questions; none: the rehearsal does.
    pub ask: Option<&'a mut (dyn Ask + Send)>,
    /// Where happenings go.
    pub tell: &'a (dyn Fn(Happening<'_>) + Sync),
}

/// Answers what has to be answered to go on, and says so.
struct Answers<'a> {
    tell: &'a (dyn Fn(Happening<'_>) + Sync),
}

impl Ask for Answers<'_> {
    fn ask<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        // The phrase is named in the question, as a person reads it there.
        let phrase = question.rsplit("type  ").next().and_then(|rest| rest.split_whitespace().next());
        let answer = if question.contains("Type yes") { "yes" } else { phrase.unwrap_or_default() };
        (self.tell)(Happening::Asked(question, answer));
        Box::pin(ready(Some(answer.to_owned())))
    }
}

impl Rehearsal<'_> {
    /// Plays it to the end.
    ///
    /// # Errors
    /// The server refuses what nobody expected it to refuse.
    pub async fn run(mut self) -> Result<Report, ClusterError> {
        let (runbook, graph, tell) = (self.runbook, self.graph, self.tell);
        let own = Reader::new(self.server.client(), Clock::jumping());
        let stage = Arc::new(Stage {
            player: Player::new(own, self.hands.clone(), runbook, graph),
            merging: Mutex::default(),
            moves: Mutex::default(),
        });
        let world = Arc::clone(&stage);
        let clock = Clock::played(
            self.hands.clone(),
            Box::new(move || {
                let stage = Arc::clone(&world);
                Box::pin(async move { stage.play().await })
            }),
        );
        let hands = self.hands.clone();
        self.server.set_clock(Arc::new(move || hands.now()));
        let writer = Writer::new(Reader::new(self.server.client_as(ACTOR), clock));
        let fault = Fault::new(self.server.clone(), self.fail.take());
        let interrupt = Interrupt::default();
        let events = |event: &Event| {
            fault.watch(event, runbook);
            stage.watch(event, runbook);
            // What was played while the run waited comes before what it saw of it.
            for line in stage.played() {
                tell(Happening::Played(&line));
            }
            tell(Happening::Event(event));
        };
        let session = Session {
            writer: &writer,
            runbook,
            graph,
            working_dir: self.working_dir,
            interrupt: &interrupt,
            events: &events,
        };
        let mut answers = Answers { tell };
        let mut report = Report::default();
        let mut plan = session.plan(None).await?;
        tell(Happening::Planned(&plan));
        report.began(&plan);
        for _ in 0..RUNS {
            for line in self.open_gates(&stage.player, &plan, &fault).await? {
                tell(Happening::Played(&line));
            }
            plan = session.plan(None).await?;
            if plan.is_settled() {
                break;
            }
            tell(Happening::Applies);
            let ask: &mut dyn Ask = match &mut self.ask {
                Some(ask) => *ask,
                None => &mut answers,
            };
            let ending = session.apply(&plan, &Options::default(), ask).await?;
            tell(Happening::Ended(&ending));
            let again = fault.mend() || matches!(ending, Ending::Unmet(_));
            report.ended(ending);
            plan = session.plan(None).await?;
            if !again || plan.is_settled() {
                break;
            }
            tell(Happening::Played("what went wrong is put right; apply runs again and does the rest"));
        }
        tell(Happening::Planned(&plan));
        report.finish(&plan, &self.server.requests());
        Ok(report)
    }

    /// What must happen before apply can begin: clients ship, and time passes until nobody has
    /// written for long enough.
    async fn open_gates(&self, player: &Player, plan: &Plan, fault: &Fault) -> Result<Vec<String>, ClusterError> {
        let mut played = Vec::new();
        for planned in plan.steps.iter().filter(|step| step.state == State::Waiting && !fault.keeps_closed(&step.id)) {
            match self.runbook.steps.iter().find(|step| step.id == planned.id).map(|step| &step.task) {
                Some(Task::Client(client)) => played.push(player.ship(client).await?),
                Some(Task::Writers(writers)) => {
                    self.hands.turn(writers.quiet_for);
                    played.push(format!("{} min pass without a write", writers.quiet_for.as_secs() / 60));
                }
                _ => {}
            }
        }
        Ok(played)
    }
}

/// What moves while `sbx` waits.
struct Stage {
    player: Player,
    /// The step that waits for the merge, until the merge was played.
    merging: Mutex<Option<(StepId, Merge)>>,
    /// Moves that were not announced yet.
    moves: Mutex<Vec<String>>,
}

impl Stage {
    fn watch(&self, event: &Event, runbook: &Runbook) {
        let Event::Step { id, progress: Progress::Waiting { .. } } = event else { return };
        if let Some(Task::Merge(task)) = runbook.steps.iter().find(|step| step.id == *id).map(|step| &step.task) {
            *lock(&self.merging) = Some((id.clone(), task.clone()));
        }
    }

    async fn play(&self) {
        let Some((id, task)) = lock(&self.merging).take() else { return };
        let moves = match self.player.merge(&id, &task).await {
            Ok(moves) => moves,
            Err(error) => vec![format!("the merge could not be played: {error}")],
        };
        lock(&self.moves).extend(moves);
    }

    fn played(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.moves))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole whatever its last writer did.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
