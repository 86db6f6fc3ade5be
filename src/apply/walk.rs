//! One walk over the steps in run order: look, decide, ask, run.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    Answer, Ask, Ending, Event, Options, Session,
    counted::Counted,
    journal::Journal,
    lock::{Lock, Refused},
    outage::{Outage, cut_short},
};
use crate::{
    cluster::{ClusterError, Fault},
    plan::{Grade, Plan, State},
    runbook::{Step, StepId, Task},
    steps::{self, Decision, Pace, Progress, Run, Seen, Situation, Stop, World, merge},
};

/// Between two looks at a gate that apply waits for.
const POLL: Duration = Duration::from_secs(2);

pub(super) struct Walk<'a> {
    session: &'a Session<'a>,
    options: &'a Options,
    lock: Lock,
    run_id: String,
    journal: Mutex<Journal>,
    /// Steps that need nothing any more.
    settled: BTreeSet<StepId>,
    /// Gates and backups that the plan found to guard nothing any more.
    not_needed: BTreeSet<StepId>,
    /// Steps that the plan found done before this run.
    done_before: BTreeSet<StepId>,
    /// Steps that `--to` leaves out.
    left_out: BTreeSet<StepId>,
    closed: Vec<(StepId, String)>,
    /// Writes at `from` that the API servers counted.
    counted: Counted,
}

/// What one step came to.
enum Next {
    GoOn,
    End(Ending),
}

impl<'a> Walk<'a> {
    /// Takes the lock and starts the journal: from here on the run writes.
    pub(super) async fn begin(
        session: &'a Session<'a>,
        plan: &Plan,
        options: &'a Options,
        approved_by_flag: Option<bool>,
    ) -> Result<Started<'a>, ClusterError> {
        let now = session.writer.reader().clock().now();
        let run_id = format!("{}-{:02x}", now.strftime("%Y%m%d-%H%M%S"), now.subsec_nanosecond().unsigned_abs() % 251);
        let local = |error: std::io::Error| ClusterError {
            attempt: "start the journal".into(),
            fault: Fault::Config(error.to_string()),
        };
        let lock = match Lock::take(session.writer, session.runbook, &run_id, session.interrupt).await {
            Ok(lock) => lock,
            Err(Refused::Held(who)) => return Ok(Started::Locked(who)),
            Err(Refused::Cluster(error)) => return Err(error),
        };
        let journal = match Journal::start(session.working_dir, &run_id) {
            Ok(journal) => journal,
            Err(error) => {
                lock.release().await;
                return Err(local(error));
            }
        };
        let of_state =
            |wanted: State| plan.steps.iter().filter(move |step| step.state == wanted).map(|step| step.id.clone());
        let walk = Self {
            session,
            options,
            run_id,
            journal: Mutex::new(journal),
            settled: of_state(State::NotNeeded).collect(),
            not_needed: of_state(State::NotNeeded).collect(),
            done_before: of_state(State::Done).collect(),
            left_out: of_state(State::NotSelected).collect(),
            closed: Vec::new(),
            counted: Counted::default(),
            lock,
        };
        walk.emit(&Event::Began {
            run: walk.run_id.clone(),
            context: session.runbook.cluster.context.clone(),
            user: plan.cluster.user.clone(),
            fingerprint: plan.fingerprint().to_string(),
            lock: walk.lock.describe(),
        });
        if let Some(by_flag) = approved_by_flag {
            walk.emit(&Event::Approved { phrase: "yes".into(), by_flag });
        }
        Ok(Started::Walk(Box::new(walk)))
    }

    fn emit(&self, event: &Event) {
        let at = self.session.writer.reader().clock().now();
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = journal.write(at, event) {
            let text = format!("the journal {} cannot be written: {error}", journal.path().display());
            (self.session.events)(&Event::Step { id: StepId("journal".into()), progress: Progress::Said(text) });
        }
        (self.session.events)(event);
    }

    async fn walk(&mut self, ask: &mut dyn Ask) -> Ending {
        let session = self.session;
        for &index in session.graph.order() {
            let step = &session.runbook.steps[index];
            let before = || Ending::Interrupted(format!("before step {} {}", session.graph.number(&step.id), step.id));
            if session.interrupt.is_set() {
                return before();
            }
            // Over others too: a gate that is open behind a closed one opens nothing.
            let waits_for_others = session
                .runbook
                .steps
                .iter()
                .any(|other| session.graph.reaches(&step.id, &other.id) && !self.settled.contains(&other.id));
            if self.settled.contains(&step.id) || self.left_out.contains(&step.id) || waits_for_others {
                continue;
            }
            match self.step(step, ask).await {
                Ok(Next::GoOn) => {}
                Ok(Next::End(ending)) => return ending,
                // It was no look that came to its end.
                Err(_) if session.interrupt.is_set() => return before(),
                Err(error) => {
                    let stop = Stop::failed(format!("the cluster could not be looked at: {error}"))
                        .hint("run it again once the API server answers: it does the rest");
                    return Ending::Failed(step.id.clone(), stop);
                }
            }
        }
        if self.closed.is_empty() { Ending::Finished } else { Ending::Unmet(self.closed.clone()) }
    }

    async fn step(&mut self, step: &Step, ask: &mut dyn Ask) -> Result<Next, ClusterError> {
        let session = self.session;
        if let Task::Confirm(task) = &step.task {
            return Ok(match self.approve(step, &task.question, ask).await {
                Ok(()) => {
                    self.settled.insert(step.id.clone());
                    Next::GoOn
                }
                Err(ending) => Next::End(ending),
            });
        }
        if step.task.is_gate() && session.comes_after_a_change(&step.id) {
            return self.wait(step).await;
        }
        // Facts are re-read before each step, those of the gates it stands on included.
        let situation = self.look(step).await?;
        let world = World { runbook: session.runbook, graph: session.graph, situation: &situation };
        let closed = if step.task.is_gate() { None } else { self.gates_still_open(step, &world) };
        if let Some(ending) = closed {
            return Ok(Next::End(ending));
        }
        let Some(decision) = steps::decide(step, &world) else { return Ok(Next::GoOn) };
        if decision.settled {
            self.settle(step, decision.summary);
            return Ok(Next::GoOn);
        }
        if step.task.is_gate() {
            self.close(step, decision.summary);
            return Ok(Next::GoOn);
        }
        if let Some(stop) = self.blocked(&decision) {
            return Ok(Next::End(Ending::Failed(step.id.clone(), stop)));
        }
        if !self.lock.is_still_ours().await? {
            return Ok(Next::End(Ending::Interrupted(format!(
                "before step {} {}",
                session.graph.number(&step.id),
                step.id
            ))));
        }
        self.run_step(step, &situation, &decision, ask).await
    }

    /// Observes a step, the gates it stands on, and what its decision looks at beside itself. An API
    /// server that does not answer is waited for.
    async fn look(&self, step: &Step) -> Result<Situation, ClusterError> {
        let session = self.session;
        let beside = |other: &Step| {
            let gate = other.task.is_gate() && session.graph.reaches(&step.id, &other.id);
            let covered = matches!(step.task, Task::Backup(_) | Task::Migrate(_))
                && matches!(other.task, Task::Owners(_) | Task::Delete(_));
            other.id == step.id || gate || covered
        };
        let only: Vec<StepId> =
            session.runbook.steps.iter().filter(|other| beside(other)).map(|other| other.id.clone()).collect();
        let reader = session.writer.reader();
        let mut outage = Outage::default();
        loop {
            let seen = steps::observe(reader, session.runbook, session.graph, session.working_dir, &only).await;
            let Some(error) = cut_short(&seen) else { return seen };
            let say = |text| self.emit(&Event::Step { id: step.id.clone(), progress: Progress::Said(text) });
            if !outage.wait(&error, reader.clock(), session.interrupt, say).await {
                return seen;
            }
        }
    }

    /// Whether nothing that a gate guards is left to do: the plan found so, or this run did it.
    fn is_over(&self, gate: &Step) -> bool {
        self.not_needed.contains(&gate.id)
            || steps::is_over(gate, self.session.runbook, &|id| {
                self.settled.contains(id) || self.done_before.contains(id)
            })
    }

    /// A gate on which a step to come depends and that turned unmet stops the run.
    fn gates_still_open(&mut self, step: &Step, world: &World<'_>) -> Option<Ending> {
        let mut closed = Vec::new();
        for gate in &self.session.runbook.steps {
            let stands_on = self.session.graph.reaches(&step.id, &gate.id);
            if !stands_on || matches!(gate.task, Task::Confirm(_)) || self.is_over(gate) {
                continue;
            }
            if let Some(Seen::Writers(seen)) = world.situation.seen.get(&gate.id)
                && let Some(writes) = self.counted.since_first(seen)
            {
                let found = format!("the API server counted {writes} writes at the old version during this run");
                closed.push((gate.id.clone(), found));
            }
            let was_open = gate.task.is_gate() && self.settled.contains(&gate.id);
            if let Some(decision) = steps::decide(gate, world).filter(|decision| was_open && !decision.settled) {
                closed.push((gate.id.clone(), decision.summary));
            }
        }
        (!closed.is_empty()).then_some(Ending::Unmet(closed))
    }

    /// Blockers found anew right before a step; those of steps still to come aside.
    fn blocked(&self, decision: &Decision) -> Option<Stop> {
        let failures: Vec<_> = decision
            .findings
            .iter()
            .filter(|finding| finding.grade == Grade::Blocker)
            .filter(|finding| finding.resolved_by.as_ref().is_none_or(|by| self.settled.contains(by)))
            .map(|finding| (finding.object.clone(), finding.text.clone()))
            .collect();
        let hint = decision.findings.iter().find(|finding| finding.blocks()).and_then(|finding| finding.hint.clone());
        (!failures.is_empty()).then(|| Stop::Failed {
            text: "it cannot be done as things are now".into(),
            failures,
            hint,
        })
    }

    async fn run_step(
        &mut self,
        step: &Step,
        situation: &Situation,
        decision: &Decision,
        ask: &mut dyn Ask,
    ) -> Result<Next, ClusterError> {
        let session = self.session;
        let (number, id) = (session.graph.number(&step.id), step.id.clone());
        self.emit(&Event::StepBegan { number, id: id.clone(), summary: decision.summary.clone() });
        let clock = session.writer.reader().clock().clone();
        let began = clock.now();
        let report = |progress: Progress| self.emit(&Event::Step { id: id.clone(), progress });
        let run = Run {
            writer: session.writer,
            runbook: session.runbook,
            graph: session.graph,
            situation,
            working_dir: session.working_dir,
            run_id: &self.run_id,
            pace: &Pace::default(),
            report: &report,
            interrupt: session.interrupt,
        };
        let mut result = Ok(());
        if step.task.is_point_of_no_return() {
            // Asked only once it is known that it would work.
            result = merge::ready(&run).await;
            if result.is_ok() {
                let question = format!("POINT OF NO RETURN: {}. There is no way back.", decision.summary);
                if let Err(ending) = self.approve(step, &question, ask).await {
                    return Ok(Next::End(ending));
                }
            }
        }
        if result.is_ok() {
            result = steps::run(step, &run).await;
        }
        self.emit(&Event::StepEnded {
            number,
            id: id.clone(),
            took: took(began, clock.now()),
            stop: result.clone().err(),
        });
        Ok(match result {
            Ok(()) => {
                self.settled.insert(id);
                Next::GoOn
            }
            Err(Stop::Unmet(text)) => Next::End(Ending::Unmet(vec![(id, text)])),
            Err(Stop::Interrupted(text)) => Next::End(Ending::Interrupted(format!("in step {number} {id}: {text}"))),
            Err(stop @ Stop::Failed { .. }) => Next::End(Ending::Failed(id, stop)),
        })
    }

    /// Asks for a step's own phrase, or takes it from `--approve`.
    async fn approve(&self, step: &Step, question: &str, ask: &mut dyn Ask) -> Result<(), Ending> {
        let phrase = step.phrase(&self.session.runbook.cluster.context);
        let by_flag = self.options.approvals.contains(&phrase);
        if !by_flag {
            match self.session.ask(ask, &format!("{question}\nTo go on, type  {phrase} : ")).await {
                Answer::Nobody => return Err(Ending::NeedsApproval(format!("--approve {phrase}"))),
                Answer::Interrupted => {
                    let number = self.session.graph.number(&step.id);
                    let before = if number > 1 { format!(" after step {}", number - 1) } else { String::new() };
                    let how_far = format!("at the question of step {number} {}: nothing ran{before}", step.id);
                    return Err(Ending::Interrupted(how_far));
                }
                Answer::Said(answer) if answer.trim() == phrase => {}
                Answer::Said(_) => return Err(Ending::Declined(question.into())),
            }
        }
        self.emit(&Event::Approved { phrase, by_flag });
        Ok(())
    }

    /// Waits for a gate that opens by itself after a change.
    async fn wait(&mut self, step: &Step) -> Result<Next, ClusterError> {
        let timeout = match &step.task {
            Task::Client(task) => task.timeout,
            Task::Gone(task) => task.timeout,
            _ => Duration::ZERO,
        };
        let clock = self.session.writer.reader().clock().clone();
        let began = clock.now();
        let until = began.checked_add(timeout).unwrap_or(began);
        let mut said = None;
        loop {
            let situation = self.look(step).await?;
            let world = World { runbook: self.session.runbook, graph: self.session.graph, situation: &situation };
            let Some(decision) = steps::decide(step, &world) else { return Ok(Next::GoOn) };
            if decision.settled {
                self.settle(step, decision.summary);
                return Ok(Next::GoOn);
            }
            if clock.now() >= until {
                self.close(step, format!("{} (waited {} s)", decision.summary, timeout.as_secs()));
                return Ok(Next::GoOn);
            }
            let progress = match said.take() {
                None => Some(Progress::Waiting { what: decision.summary.clone(), until }),
                Some(last) if last != decision.summary => {
                    Some(Progress::StillWaiting { seen: decision.summary.clone(), waited: took(began, clock.now()) })
                }
                Some(_) => None,
            };
            said = Some(decision.summary);
            if let Some(progress) = progress {
                self.emit(&Event::Step { id: step.id.clone(), progress });
            }
            tokio::select! {
                () = clock.sleep(POLL) => {}
                () = self.session.interrupt.asked() => {
                    return Ok(Next::End(Ending::Interrupted(format!("while waiting for {}", step.id))));
                }
            }
        }
    }

    fn settle(&mut self, step: &Step, summary: String) {
        self.settled.insert(step.id.clone());
        self.emit(&Event::Settled { number: self.session.graph.number(&step.id), id: step.id.clone(), summary });
    }

    fn close(&mut self, step: &Step, summary: String) {
        self.closed.push((step.id.clone(), summary.clone()));
        self.emit(&Event::Closed { number: self.session.graph.number(&step.id), id: step.id.clone(), summary });
    }
}

fn took(began: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(began)).unwrap_or_default()
}

/// What taking the lock came to.
pub(super) enum Started<'a> {
    Walk(Box<Walk<'a>>),
    Locked(String),
}

impl Started<'_> {
    /// Walks, writes down how it ended, and releases the lock whatever came of it.
    pub(super) async fn run(self, ask: &mut dyn Ask) -> Ending {
        match self {
            Self::Locked(who) => Ending::Locked(who),
            Self::Walk(mut walk) => {
                let ending = match (walk.walk(ask).await, walk.lock.lost()) {
                    (Ending::Interrupted(how_far), Some(why)) => Ending::LockLost { why, how_far },
                    (ending, _) => ending,
                };
                walk.emit(&Event::Ended { ending: ending.clone() });
                walk.lock.release().await;
                ending
            }
        }
    }
}
