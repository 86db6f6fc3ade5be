//! What a running step reports: facts, not sentences. Printers and the journal choose the words.

use std::time::Duration;

use jiff::Timestamp;

use crate::object::ObjectRef;

/// One thing that happened inside a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A write, or the reason it was not needed.
    Object {
        /// Which object.
        object: ObjectRef,
        /// What became of it.
        outcome: Outcome,
        /// resourceVersion afterwards, where there is one.
        resource_version: Option<String>,
    },
    /// How far a pass over many objects got.
    Pass {
        /// Over what, for instance a CRD's name.
        over: String,
        /// Which pass, from 1.
        pass: usize,
        /// Objects proved so far.
        done: usize,
        /// Objects rewritten in this pass.
        rewritten: usize,
    },
    /// A wait begins.
    Waiting {
        /// For what.
        what: String,
        /// Until when at the latest.
        until: Timestamp,
    },
    /// Still waiting; said on a change and every 30 s.
    StillWaiting {
        /// What is seen now.
        seen: String,
        /// For how long already.
        waited: Duration,
    },
    /// Something a person should read.
    Said(String),
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written.
    Updated,
    /// Written for the first time.
    Created,
    /// Deleted.
    Deleted,
    /// Looked at and found as it should be; nothing was written.
    Unchanged,
    /// It was no longer there.
    Gone,
    /// Refused or unanswered, in the server's own words.
    Failed(String),
}
