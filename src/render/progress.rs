//! A run as it happens: typed events to lines, for standard error.
//!
//! A step over thousands of objects says what it did as counts; what failed, what was made and
//! what was deleted is named at once.

use std::time::Duration;

use super::{
    View,
    escape::{visible, visible_lines},
    fold::full_name,
    styles::Role,
    words,
    wrap::hang,
};
use crate::{
    apply::Event,
    steps::{Outcome, Progress, Stop},
};

/// Turns the events of one run into lines, in their order.
#[derive(Debug)]
pub struct RunLines {
    view: View,
    /// The step that runs, as it is called in front of a line.
    step: String,
    counts: Counts,
}

/// What the running step did.
#[derive(Debug, Default)]
struct Counts {
    created: usize,
    updated: usize,
    deleted: usize,
    unchanged: usize,
    gone: usize,
    failed: usize,
}

impl RunLines {
    /// For a page of this shape.
    pub fn new(view: View) -> Self {
        Self { view, step: String::new(), counts: Counts::default() }
    }

    /// What an event says, without line ends; often nothing.
    pub fn lines(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Began { run, context, user, fingerprint, lock } => {
                let user = user.as_deref().map(|user| format!(" as {}", visible(user))).unwrap_or_default();
                let (run, context) = (visible(run), visible(context));
                vec![
                    format!("run {run} on {context}{user}, plan {}", visible(fingerprint)),
                    format!("lock {}", visible(lock)),
                ]
            }
            Event::Approved { phrase, by_flag } => {
                let how = if *by_flag { "on the command line" } else { "typed" };
                vec![format!("approved: {} ({how})", visible(phrase))]
            }
            Event::Settled { number, id, summary } => self.step('=', Role::Good, *number, &id.0, summary),
            Event::Closed { number, id, summary } => {
                self.step('?', Role::Warning, *number, &id.0, &format!("WAITING: {summary}"))
            }
            Event::StepBegan { number, id, summary } => {
                self.counts = Counts::default();
                self.step = format!("{number} {}", visible(&id.0));
                self.step('>', Role::Change, *number, &id.0, summary)
            }
            Event::Step { progress, .. } => self.progress(progress),
            // The last lines are a text of their own.
            Event::Ended { .. } => Vec::new(),
            Event::StepEnded { number, id, took, stop } => {
                let took = duration(*took);
                let counts = self.counts.said();
                let counts = if counts.is_empty() { counts } else { format!(": {counts}") };
                self.step.clear();
                let (marker, role, how) = match stop {
                    None => ('=', Role::Good, format!("done in {took}")),
                    Some(Stop::Failed { .. }) => ('!', Role::Blocker, format!("FAILED after {took}")),
                    Some(Stop::Unmet(_)) => ('?', Role::Warning, format!("stopped after {took}")),
                    Some(Stop::Interrupted(_)) => ('!', Role::Warning, format!("interrupted after {took}")),
                };
                self.step(marker, role, *number, &id.0, &format!("{how}{counts}"))
            }
        }
    }

    /// How far the running step got, for a line that is overwritten; none between steps.
    pub fn live(&self) -> Option<String> {
        let counts = self.counts.said();
        (!self.step.is_empty() && !counts.is_empty()).then(|| format!("{}: {counts}", self.step))
    }

    fn progress(&mut self, progress: &Progress) -> Vec<String> {
        let said = match progress {
            Progress::Object { object, outcome, .. } => {
                let object = full_name(object);
                match outcome {
                    Outcome::Updated => {
                        self.counts.updated += 1;
                        return Vec::new();
                    }
                    Outcome::Unchanged => {
                        self.counts.unchanged += 1;
                        return Vec::new();
                    }
                    Outcome::Created => {
                        self.counts.created += 1;
                        format!("created {object}")
                    }
                    Outcome::Deleted => {
                        self.counts.deleted += 1;
                        format!("deleted {object}")
                    }
                    Outcome::Gone => {
                        self.counts.gone += 1;
                        format!("{object} was gone")
                    }
                    Outcome::Failed(words) => {
                        self.counts.failed += 1;
                        format!("FAILED {object}: {words}")
                    }
                }
            }
            Progress::Pass { over, pass, done, rewritten } => {
                let parts = [(*rewritten, "rewritten"), (*done, "proved")];
                let said = parts.iter().filter(|(number, _)| *number > 0);
                let said: Vec<String> = said.map(|(number, word)| format!("{number} {word}")).collect();
                let said = if said.is_empty() { "no objects".into() } else { said.join(", ") };
                format!("{over}: pass {pass}, {said}")
            }
            Progress::Waiting { what, until } => {
                format!("waiting until {} at the latest: {what}", words::time(*until))
            }
            Progress::StillWaiting { seen, waited } => format!("waited {}: {seen}", duration(*waited)),
            Progress::Said(text) => text.clone(),
        };
        visible_lines(&said).flat_map(|line| hang("     ", &line, 7, self.view.width)).collect()
    }

    fn step(&self, marker: char, role: Role, number: usize, id: &str, said: &str) -> Vec<String> {
        let said = format!("{}: {}", visible(id), visible(said));
        let mut lines = hang(&format!("{marker} {number:>2} "), &said, 7, self.view.width);
        if let Some(first) = lines.first_mut() {
            let marker = self.view.styles.paint(role, &first[..1]);
            *first = format!("{marker}{}", &first[1..]);
        }
        lines
    }
}

impl Counts {
    fn said(&self) -> String {
        let parts = [
            (self.created, "created"),
            (self.updated, "updated"),
            (self.deleted, "deleted"),
            (self.unchanged, "unchanged"),
            (self.gone, "gone"),
            (self.failed, "FAILED"),
        ];
        let said = parts.iter().filter(|(number, _)| *number > 0);
        said.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
    }
}

/// `21 s`, `2 min 5 s`.
fn duration(took: Duration) -> String {
    match took.as_secs() {
        0 => "under 1 s".into(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
