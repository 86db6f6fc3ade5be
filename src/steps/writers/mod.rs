//! Gate: nobody has written `from` for a while.
//!
//! Two witnesses. managedFields of every record say who last wrote at `from` and when; clients that
//! delete what they create leave nothing there (design, fact 12). The API server's request metric
//! sees those too, but says no time and no name, and counts for one server alone.

mod metric;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
pub use metric::{Count, counts, process};

use super::{
    Decision, Look, World,
    survey::{Records, Survey},
};
use crate::{object::ObjectRef, plan::Finding, runbook::Writers};

/// What the API server's metric says.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Mutating requests at `from` since the API server started; none when the metric cannot be
    /// read. Two samples tell whether somebody writes in between.
    pub mutations: Option<u64>,
    /// When the server that answered started, as it says it. Samples of two servers do not compare: each
    /// counts for itself, and anew after a restart.
    pub process: Option<String>,
    /// The same by resource and verb.
    pub counts: Vec<Count>,
    /// Why the metric cannot be read, in the server's words.
    pub unread: Option<String>,
}

/// Reads the metric. What the records say is in the survey.
pub async fn observe(_task: &Writers, look: &Look<'_>) -> Seen {
    match look.reader.metrics().await {
        Ok(text) => {
            let counts = counts(&text, &look.runbook.upgrade.from, &look.runbook.upgrade.crds);
            let mutations = Some(counts.iter().map(|count| count.requests).sum());
            Seen { mutations, process: process(&text).map(Into::into), counts, unread: None }
        }
        Err(error) => Seen { mutations: None, process: None, counts: Vec::new(), unread: Some(error.words()) },
    }
}

/// Open when every record could be read and the newest entry that names `from` is old enough.
pub fn decide(task: &Writers, seen: &Seen, world: &World<'_>) -> Decision {
    let from = &world.runbook.upgrade.from;
    let decision = judge(task, &world.situation.survey, from, world.situation.now);
    decision.with([metric_finding(seen, from)])
}

/// The last write of one manager, over all records.
struct Trace<'a> {
    records: usize,
    newest: Timestamp,
    newest_record: &'a ObjectRef,
    /// Whether an entry of it has no time and so counts as just written.
    untimed: bool,
}

fn judge(task: &Writers, survey: &Survey, from: &str, now: Timestamp) -> Decision {
    let unread: Vec<String> = survey.crds.iter().filter_map(unread).collect();
    let mut traces: BTreeMap<&str, Trace<'_>> = BTreeMap::new();
    for record in survey.records() {
        for (nth, entry) in record.entries.iter().enumerate() {
            let time = entry.time.unwrap_or(now);
            let trace = traces.entry(&entry.manager).or_insert_with(|| Trace {
                records: 0,
                newest: time,
                newest_record: &record.object,
                untimed: false,
            });
            // One manager can have several entries on a record: per subresource and operation.
            let counted = record.entries.iter().take(nth).any(|earlier| earlier.manager == entry.manager);
            trace.records += usize::from(!counted);
            trace.untimed |= entry.time.is_none();
            if time > trace.newest {
                (trace.newest, trace.newest_record) = (time, &record.object);
            }
        }
    }
    let details: Vec<String> = traces.iter().map(|(manager, trace)| detail(manager, trace)).collect();
    let last = traces.iter().max_by_key(|(_, trace)| trace.newest);
    let quiet_for = SignedDuration::try_from(task.quiet_for).unwrap_or(SignedDuration::MAX);
    let decision = if !unread.is_empty() {
        Decision::pending(format!("not known: {}", unread.join("; ")))
    } else if let Some((manager, trace)) = last {
        let written = format!("last {from} write {:.0} ({manager})", trace.newest);
        match trace.newest.checked_add(quiet_for) {
            Ok(open) if open <= now => Decision::settled(written),
            Ok(open) => Decision::pending(format!("{written}; quiet for {quiet_for:#} at {open:.0}")),
            Err(_) => Decision::pending(format!("{written}; quiet-for never ends")),
        }
    } else {
        Decision::settled(format!("no record has a managedFields entry that names {from}"))
    };
    Decision { details, ..decision }
}

fn detail(manager: &str, trace: &Trace<'_>) -> String {
    let Trace { records, newest, newest_record, untimed } = trace;
    let untimed = if *untimed { " (an entry without a time counts as just written)" } else { "" };
    format!("{manager}: {records} records, last {newest:.0} on {newest_record}{untimed}")
}

/// Why a CRD's records say nothing.
fn unread(surveyed: &super::survey::Surveyed) -> Option<String> {
    let name = &surveyed.name;
    match (&surveyed.crd, &surveyed.records) {
        (Err(error), _) => Some(format!("CRD {name} cannot be read: {}", error.words())),
        (Ok(None), _) => Some(format!("CRD {name} is not installed")),
        (Ok(Some(_)), Records::Unreadable { error, .. }) => Some(format!("{name} cannot be listed: {}", error.words())),
        (Ok(Some(_)), Records::NotAsked) => Some(format!("{name} does not serve the version that stays")),
        (Ok(Some(_)), Records::Listed(_)) => None,
    }
}

fn metric_finding(seen: &Seen, from: &str) -> Finding {
    const BLIND: &str = "clients that delete what they create leave no trace in managedFields";
    if let Some(words) = &seen.unread {
        return Finding::not_checked(format!("{BLIND}, and the API server's request metric cannot be read: {words}"))
            .hint("grant `get` on the non-resource URL /metrics, or look for `k8s.io/deprecated` in the audit log");
    }
    if seen.mutations == Some(0) {
        return Finding::note(format!("the API server that answered counts no write at {from} since it started"));
    }
    let counts: Vec<String> =
        seen.counts.iter().map(|count| format!("{} {} {}", count.requests, count.verb, count.resource)).collect();
    Finding::not_checked(format!(
        "the API server that answered counts writes at {from} since it started: {}. When is not known, and {BLIND}",
        counts.join(", ")
    ))
    .hint("plan again in a while: the same counts mean that nobody writes any more; apply compares them by itself")
}

#[cfg(test)]
mod tests;
