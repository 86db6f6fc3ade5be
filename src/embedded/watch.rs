//! WATCH: the changes of a resource as they are stored.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use serde_json::{Value, json};

use super::json::metadata;
use super::list::{metadata_of, partial};
use super::route::{Request, Target};
use super::selector::Selector;
use super::state::State;
use super::status::Refusal;
use super::store::{Change, Record};

/// How long a watch lasts that names no `timeoutSeconds`.
const LASTS: Duration = Duration::from_secs(30 * 60);

/// Events of a watch, one JSON document a line, and how long it lasts.
pub(super) struct Watch {
    pub(super) events: UnboundedReceiver<Bytes>,
    pub(super) lasts: Duration,
}

/// Somebody who watches.
pub(super) struct Watcher {
    target: Target,
    selector: Selector,
    metadata_only: bool,
    /// The revision up to which it has been told.
    seen: u64,
    events: UnboundedSender<Bytes>,
}

impl Watcher {
    /// Whether the other side still listens.
    fn send(&self, kind: &str, object: &Value) -> bool {
        let object = if self.metadata_only && kind != "ERROR" { metadata_of(object) } else { object.clone() };
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.events.unbounded_send(line.into()).is_ok()
    }
}

impl State {
    /// Starts a watch: from a resourceVersion on, or from what is there.
    pub(super) fn watch(&mut self, target: &Target, request: &Request) -> Result<Watch, Refusal> {
        if let Err((record, error)) = self.warm(&target.kind, &target.version) {
            return Err(self.initializing(target, &record, &error));
        }
        let (events, received) = unbounded();
        let mut watcher = Watcher {
            target: target.clone(),
            selector: Selector::read(request.parameter("fieldSelector"), request.parameter("labelSelector"))?,
            metadata_only: partial(&request.accept),
            seen: self.store.revision(),
            events,
        };
        let seconds = request.parameter("timeoutSeconds").parse().ok();
        let watch = Watch { events: received, lasts: seconds.map_or(LASTS, Duration::from_secs) };
        match request.parameter("resourceVersion") {
            "" | "0" => {
                let records: Vec<_> = self.store.records(&target.kind.table()).map(|(_, it)| it.clone()).collect();
                for record in records {
                    self.tell(&watcher, "ADDED", &record, record.revision)?;
                }
            }
            from => {
                let from = from.parse::<u64>().map_err(|_| {
                    Refusal::bad_request(format!("Invalid value: {from:?}: strconv.ParseUint: invalid syntax"))
                })?;
                let oldest = self.store.oldest();
                if from < oldest {
                    watcher.send("ERROR", &Refusal::too_old(from, oldest).body());
                    return Ok(watch);
                }
                watcher.seen = from;
            }
        }
        self.watchers.push(watcher);
        self.publish();
        Ok(watch)
    }

    /// Tells everybody what changed since they were last told.
    pub(super) fn publish(&mut self) {
        let mut watchers = std::mem::take(&mut self.watchers);
        watchers.retain_mut(|watcher| {
            let changes: Vec<_> = self.store.since(watcher.seen).cloned().collect();
            watcher.seen = self.store.revision();
            let of = watcher.target.kind.table();
            changes.iter().filter(|change| change.table == of).all(|change| self.told(watcher, change))
        });
        self.watchers = watchers;
    }

    fn told(&self, watcher: &Watcher, change: &Change) -> bool {
        let told = match (&change.before, &change.after) {
            (None, Some(after)) => self.tell(watcher, "ADDED", after, change.revision),
            (Some(_), Some(after)) => self.tell(watcher, "MODIFIED", after, change.revision),
            (Some(before), None) => self.tell(watcher, "DELETED", before, change.revision),
            (None, None) => Ok(true),
        };
        told.unwrap_or_else(|refusal| {
            // An event that cannot be converted ends the watch.
            watcher.send("ERROR", &refusal.body());
            false
        })
    }

    fn tell(&self, watcher: &Watcher, event: &str, record: &Arc<Record>, revision: u64) -> Result<bool, Refusal> {
        let target = &watcher.target;
        let Some(kind) = self.kinds.get(&target.kind.table()) else { return Ok(false) };
        if !kind.version(&target.version).is_some_and(|version| version.served) {
            return Ok(false);
        }
        let mut object = self.decode(kind, record, &target.version).map_err(Refusal::untyped)?;
        metadata(&mut object).insert("resourceVersion".into(), revision.to_string().into());
        let there = target.namespace.as_ref().is_none_or(|namespace| object["metadata"]["namespace"] == **namespace);
        if !there || !watcher.selector.matches(&object) {
            return Ok(true);
        }
        Ok(watcher.send(event, &object))
    }
}
