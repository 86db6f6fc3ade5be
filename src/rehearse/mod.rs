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

use fault::{Fault, can_fail};
use futures::future::{BoxFuture, ready};
use player::Player;
pub use report::{Changed, Report};

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

/// Why nothing was rehearsed to its end.
#[derive(Debug, thiserror::Error)]
pub enum RehearseError {
    /// The server refuses what nobody expected it to refuse.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The step that is to go wrong has nothing that could.
    #[error("--fail {step}: it is {state} here, so nothing of it can go wrong")]
    CannotFail {
        /// The step.
        step: StepId,
        /// Where it stands.
        state: &'static str,
        /// The steps that can go wrong.
        can: Vec<StepId>,
    },
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

/// Says no to the question of the `confirm` that is to go wrong; who is asked else answers the others.
struct Doubting<'a> {
    inner: &'a mut dyn Ask,
    phrase: Option<String>,
    tell: &'a (dyn Fn(Happening<'_>) + Sync),
}

impl Ask for Doubting<'_> {
    fn ask<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        if self.phrase.as_ref().is_some_and(|phrase| question.contains(phrase)) {
            (self.tell)(Happening::Asked(question, "no"));
            return Box::pin(ready(Some("no".to_owned())));
        }
        self.inner.ask(question)
    }
}

impl Rehearsal<'_> {
    /// Plays it to the end.
    ///
    /// # Errors
    /// The server refuses what nobody expected it to refuse; the step that is to go wrong cannot.
    pub async fn run(mut self) -> Result<Report, RehearseError> {
        let (runbook, graph, tell) = (self.runbook, self.graph, self.tell);
        let own = Reader::new(self.server.client(), Clock::jumping());
        let fault = Arc::new(Fault::new(self.server.clone(), self.fail.take()));
        let stage = Arc::new(Stage {
            fault: Arc::clone(&fault),
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
        let interrupt = Interrupt::default();
        let (current, report) = (Mutex::new(None), Mutex::new(Report::default()));
        let events = |event: &Event| {
            fault.watch(event, runbook, lock(&current).as_ref());
            stage.watch(event, runbook);
            lock(&report).watch(event);
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
        let mut plan = session.plan(None).await?;
        tell(Happening::Planned(&plan));
        if let Some(step) = fault.step() {
            self.provoke(&step, &plan, &stage.player).await?;
        }
        for _ in 0..RUNS {
            for line in self.open_gates(&stage.player, &plan, &fault).await? {
                tell(Happening::Played(&line));
            }
            plan = session.plan(None).await?;
            if plan.is_settled() {
                break;
            }
            *lock(&current) = Some(plan.clone());
            tell(Happening::Applies);
            let phrase = self.doubted(&fault);
            let ask: &mut dyn Ask = match &mut self.ask {
                Some(ask) => *ask,
                None => &mut answers,
            };
            let mut ask = Doubting { inner: ask, phrase, tell };
            let ending = session.apply(&plan, &Options::default(), &mut ask).await?;
            tell(Happening::Ended(&ending));
            let again = fault.mend() || matches!(ending, Ending::Unmet(_));
            lock(&report).ended(ending);
            plan = session.plan(None).await?;
            if !again || plan.is_settled() {
                break;
            }
            tell(Happening::Played("what went wrong is put right; apply runs again and does the rest"));
        }
        tell(Happening::Planned(&plan));
        let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.finish(&plan, &self.server.requests());
        Ok(report)
    }

    /// Refuses a step that cannot go wrong; an old client that comes back does so now.
    async fn provoke(&self, step: &StepId, plan: &Plan, player: &Player) -> Result<(), RehearseError> {
        let mut can = can_fail(plan, self.runbook);
        if can.contains(step) {
            let task = self.runbook.steps.iter().find(|known| known.id == *step).map(|known| &known.task);
            if !matches!(task, Some(Task::Writers(_))) {
                return Ok(());
            }
            if let Some(line) = player.write_at_from().await? {
                (self.tell)(Happening::Played(&line));
                return Ok(());
            }
            can.retain(|id| id != step);
        }
        let state = match plan.step(step).map(|planned| &planned.state) {
            Some(State::Met) => "met",
            Some(State::Done) => "done",
            Some(State::NotNeeded) => "not needed",
            _ => "without anything to do",
        };
        Err(RehearseError::CannotFail { step: step.clone(), state, can })
    }

    /// The phrase of the `confirm` that is to go wrong.
    fn doubted(&self, fault: &Fault) -> Option<String> {
        let mut steps = self.runbook.steps.iter();
        let step = steps.find(|step| matches!(step.task, Task::Confirm(_)) && fault.is(&step.id))?;
        Some(step.phrase(&self.runbook.cluster.context))
    }

    /// What must happen before apply can begin: clients ship, and time passes until nobody has
    /// written for long enough.
    async fn open_gates(&self, player: &Player, plan: &Plan, fault: &Fault) -> Result<Vec<String>, ClusterError> {
        let mut played = Vec::new();
        for planned in plan.steps.iter().filter(|step| step.state == State::Waiting && !fault.is(&step.id)) {
            match self.runbook.steps.iter().find(|step| step.id == planned.id).map(|step| &step.task) {
                Some(Task::Client(client)) => played.push(player.ship(client).await?),
                Some(Task::Writers(writers)) => {
                    self.hands.turn(writers.quiet_for);
                    played.push(format!("{} min pass without a write", writers.quiet_for.as_secs() / 60));
                }
                Some(Task::Gone(gone)) => played.extend(player.prune(gone).await?),
                _ => {}
            }
        }
        Ok(played)
    }
}

/// What moves while `sbx` waits.
struct Stage {
    player: Player,
    fault: Arc<Fault>,
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
        let moves = match self.player.merge(&id, &task, &|id| self.fault.is(id)).await {
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
