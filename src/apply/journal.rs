//! `runs/<run>.jsonl`: who did what when, one event a line, appended and never rewritten.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Ending, Event};
use crate::{
    backup::create_folder,
    steps::{Outcome, Progress, Stop},
};

/// An open journal.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Starts the journal of a run below the working directory, for its owner alone.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn start(working_dir: &Path, run: &str) -> io::Result<Self> {
        let folder = working_dir.join("runs");
        create_folder(&folder)?;
        let path = folder.join(format!("{run}.jsonl"));
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        Ok(Self { file, path })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends an event. One line, one write: a killed run leaves whole lines.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn write(&mut self, at: Timestamp, event: &Event) -> io::Result<()> {
        let Some((kind, mut fields)) = wire(event) else { return Ok(()) };
        fields.insert("at".into(), at.to_string().into());
        fields.insert("event".into(), kind.into());
        let mut line = Value::Object(fields).to_string();
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

fn wire(event: &Event) -> Option<(&'static str, Map<String, Value>)> {
    let (kind, value) = match event {
        Event::Began { run, context, user, fingerprint, lock } => (
            "run_began",
            json!({"run": run, "context": context, "user": user, "fingerprint": fingerprint, "lock": lock,
                   "schema": "sbx.run/1", "sbx": env!("CARGO_PKG_VERSION")}),
        ),
        Event::Approved { phrase, by_flag } => ("approved", json!({"phrase": phrase, "by_flag": by_flag})),
        Event::Settled { id, summary, .. } => ("step_settled", json!({"step": id.0, "found": summary})),
        Event::Closed { id, summary, .. } => ("gate_closed", json!({"step": id.0, "found": summary})),
        Event::StepBegan { id, summary, .. } => ("step_began", json!({"step": id.0, "will": summary})),
        Event::Step { id, progress } => return progress_wire(&id.0, progress),
        Event::StepEnded { id, stop, took, .. } => {
            ("step_ended", json!({"step": id.0, "seconds": took.as_secs_f64(), "stop": stop.as_ref().map(stop_wire)}))
        }
        Event::Ended { ending } => ("run_ended", ending_wire(ending)),
    };
    match value {
        Value::Object(fields) => Some((kind, fields)),
        _ => None,
    }
}

fn ending_wire(ending: &Ending) -> Value {
    match ending {
        Ending::NoChanges => json!({"ending": "no_changes"}),
        Ending::Finished => json!({"ending": "finished"}),
        Ending::Blocked => json!({"ending": "blocked"}),
        Ending::Unmet(gates) => {
            let gates: Vec<Value> = gates.iter().map(|(id, found)| json!({"step": id.0, "found": found})).collect();
            json!({"ending": "unmet", "gates": gates})
        }
        Ending::NeedsApproval(flag) => json!({"ending": "needs_approval", "flag": flag}),
        Ending::Declined(what) => json!({"ending": "declined", "what": what}),
        Ending::Failed(id, stop) => json!({"ending": "failed", "step": id.0, "stop": stop_wire(stop)}),
        Ending::Locked(who) => json!({"ending": "locked", "by": who}),
        Ending::Interrupted(how_far) => json!({"ending": "interrupted", "how_far": how_far}),
        Ending::LockLost { why, how_far } => json!({"ending": "lock_lost", "why": why, "how_far": how_far}),
    }
}

fn progress_wire(step: &str, progress: &Progress) -> Option<(&'static str, Map<String, Value>)> {
    let (kind, value) = match progress {
        Progress::Object { object, outcome, resource_version } => {
            let (outcome, words) = match outcome {
                Outcome::Updated => ("updated", None),
                Outcome::Created => ("created", None),
                Outcome::Deleted => ("deleted", None),
                Outcome::Unchanged => ("unchanged", None),
                Outcome::Gone => ("gone", None),
                Outcome::Failed(words) => ("failed", Some(words)),
            };
            (
                "object",
                json!({"step": step, "object": object, "outcome": outcome, "server": words,
                       "resourceVersion": resource_version}),
            )
        }
        Progress::Pass { over, pass, done, rewritten } => {
            ("pass", json!({"step": step, "over": over, "pass": pass, "done": done, "rewritten": rewritten}))
        }
        Progress::Waiting { what, until } => {
            ("waiting", json!({"step": step, "for": what, "until": until.to_string()}))
        }
        Progress::StillWaiting { seen, .. } => ("seen", json!({"step": step, "seen": seen})),
        Progress::Said(text) => ("said", json!({"step": step, "text": text})),
    };
    match value {
        Value::Object(fields) => Some((kind, fields)),
        _ => None,
    }
}

fn stop_wire(stop: &Stop) -> Value {
    match stop {
        Stop::Failed { text, failures, .. } => {
            let failures: Vec<Value> =
                failures.iter().map(|(object, words)| json!({"object": object, "server": words})).collect();
            json!({"kind": "failed", "text": text, "failures": failures})
        }
        Stop::Unmet(text) => json!({"kind": "unmet", "text": text}),
        Stop::Interrupted(text) => json!({"kind": "interrupted", "text": text}),
    }
}
