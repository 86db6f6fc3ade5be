//! An API server held in memory: the requests that `sbx` sends, answered as kube-apiserver answers them.
//!
//! ```text
//! client -> service -> dispatch -> access -> list, get, watch                                -> convert -> store
//!                                         -> write, delete -> update -> strategy, schema, fields -> convert -> store
//! ```
//!
//! It exists for what happens to stored versions: each record keeps the version it was encoded at, and every fact
//! about their migration follows from reading and writing records as the real server does.
//!
//! - `store`: the records. `convert`: records to objects and back. `cache`: what lists are answered from.
//! - `write`, `delete`: the verbs; `update`: what they come down to. `strategy`, `crd`, `meta`: what each kind makes of a
//!   write.
//! - `schema`: pruning, defaults, validation. `fields`: who owns which field, server-side apply.
//! - `list`, `watch`, `discovery`, `access`, `requests`: the rest of what is asked.
//!
//! What it leaves out: JSON patch, strategic merge patch, admission, CEL rules, the garbage collector and every other
//! controller. Built-in kinds have no schema: they are stored as they come.

#![expect(clippy::disallowed_types, reason = "a client of this server is what a test or a rehearsal asks it for")]

mod accept;
mod access;
mod cache;
mod convert;
mod crd;
mod delete;
mod discovery;
mod dispatch;
mod fields;
mod json;
mod kinds;
mod list;
mod meta;
mod requests;
mod route;
mod schema;
mod selector;
mod service;
mod state;
mod status;
mod store;
mod strategy;
#[cfg(test)]
mod tests;
mod update;
mod watch;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

pub use access::Rule;
pub use convert::Converter;
pub use requests::{Intercept, Interception, RequestRecord};
pub use state::{Now, Release};

use state::State;

/// The user of [`Server::client`].
const ADMIN: &str = "admin";

/// An API server held in memory. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    state: Arc<Mutex<State>>,
}

/// One record as etcd would hold it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// `namespace/name`, or the name of a cluster-scoped object.
    pub key: String,
    /// The object at the version it is encoded at, without a resourceVersion.
    pub object: Value,
    /// Its resourceVersion.
    pub revision: u64,
}

impl Stored {
    /// The version the record is encoded at.
    pub fn version(&self) -> &str {
        json::split_api_version(json::text(&self.object, "/apiVersion")).1
    }
}

impl Server {
    /// A server with the namespaces that every cluster has.
    pub fn new(release: Release) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(release))) }
    }

    /// A client that may do everything. Must be called within a tokio runtime.
    pub fn client(&self) -> kube::Client {
        self.client_as(ADMIN)
    }

    /// A client in a user's name. Must be called within a tokio runtime.
    pub fn client_as(&self, user: &str) -> kube::Client {
        let (state, user) = (self.state.clone(), user.to_owned());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (state, user) = (state.clone(), user.clone());
            async move {
                let request = service::read(&user, request).await?;
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                Ok::<_, kube::Error>(state.answer(&request))
            }
        });
        kube::Client::new(service, "default")
    }

    /// Plays the conversion webhook of a definition, by its name.
    ///
    /// It is called while the server is held: it must not ask the server itself.
    pub fn converter(&self, crd: &str, converter: Converter) {
        let mut state = self.state();
        state.before_conversion_changes(crd);
        state.converters.insert(crd.into(), converter);
    }

    /// Stops playing it: conversions fail as with a webhook that is gone.
    pub fn stop_converter(&self, crd: &str) {
        let mut state = self.state();
        state.before_conversion_changes(crd);
        state.converters.remove(crd);
    }

    /// The raw records of a resource, named as `widgets.demo.test` or `pods`, in the order of their keys.
    pub fn stored(&self, resource: &str) -> Vec<Stored> {
        let state = self.state();
        let Some(kind) = state.kind_named(resource) else { return Vec::new() };
        let table = kind.table();
        let records = state.store.records(&table);
        records
            .map(|(key, record)| Stored { key: key.clone(), object: record.value.clone(), revision: record.revision })
            .collect()
    }

    /// Puts a record as it is: version, uid, times and owners are taken as given. An object that names no uid gets one.
    ///
    /// A definition put this way is served.
    ///
    /// # Errors
    /// The server has no such resource, or the object has no name.
    pub fn put(&self, resource: &str, object: Value) -> Result<(), String> {
        self.state().put_raw(resource, object)
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.state().requests.clone()
    }

    /// Whether the server has a resource, named as `widgets.demo.test` or `pods`.
    pub fn serves(&self, resource: &str) -> bool {
        self.state().kind_named(resource).is_some()
    }

    /// Fills the cache of a resource at every served version, as lists at each do.
    pub fn warm(&self, resource: &str) {
        let mut state = self.state();
        let Some(kind) = state.kind_named(resource) else { return };
        for version in kind.versions.iter().filter(|version| version.served) {
            // A cache that cannot be filled does not run.
            let _ = state.warm(&kind, &version.name);
        }
    }

    /// Counts in the metric what was answered elsewhere so many times.
    pub fn count(&self, request: RequestRecord, times: u64) {
        self.state().counted.push((request, times));
    }

    /// Serves a kind that comes with another server. One that is there already stays as it is.
    pub fn serve(&self, api_version: &str, plural: &str, kind: &str, namespaced: bool) {
        let (group, version) = json::split_api_version(api_version);
        let found = kinds::foreign(group, version, plural, kind, namespaced);
        self.state().kinds.entry(found.table()).or_insert_with(|| Arc::new(found));
    }

    /// Serves of the kinds without a definition only those that are meant, by group and plural.
    pub fn serve_only(&self, meant: impl Fn(&str, &str) -> bool) {
        self.state().kinds.retain(|(group, plural), kind| kind.definition.is_some() || meant(group, plural));
    }

    /// Forgets what was asked so far.
    pub fn clear_requests(&self) {
        self.state().requests.clear();
    }

    /// Goes by another clock, in every time it writes and in the `Date` of its answers.
    pub fn set_clock(&self, now: Now) {
        self.state().now = now;
    }

    /// From now on this user may do only what the rules allow.
    pub fn grant(&self, user: &str, rules: Vec<Rule>) {
        self.state().access.grant(user, rules);
    }

    /// From now on this user may not do what the rule describes.
    pub fn deny(&self, user: &str, rule: Rule) {
        self.state().access.deny(user, rule);
    }

    /// Lets a function answer in place of the server; none ends it. It is called while the server is held.
    pub fn intercept(&self, intercept: Option<Intercept>) {
        self.state().intercept = intercept;
    }

    /// Forgets the past, as etcd's compaction does: every continue token given out so far expires, and no watch can
    /// start before now.
    pub fn compact(&self) {
        let mut state = self.state();
        state.snapshots.expire();
        state.store.compact();
    }

    /// From now on a change of the storage version is noticed late: for this long, by the server's clock, records are
    /// still encoded at the old one.
    pub fn settle_after(&self, lag: Duration) {
        self.state().lag = lag;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test's converter leaves the records whole: each is replaced at once.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn before_conversion_changes(&mut self, crd: &str) {
        if let Some(kind) = self.kind_named(crd) {
            self.catch_up(&kind);
        }
    }

    fn put_raw(&mut self, resource: &str, mut object: Value) -> Result<(), String> {
        let kind = self.kind_named(resource).ok_or_else(|| format!("no resource {resource}"))?;
        let name = json::text(&object, "/metadata/name").to_owned();
        if name.is_empty() {
            return Err(format!("put {resource}: an object without a name"));
        }
        if json::text(&object, "/metadata/uid").is_empty() {
            let uid = self.store.uid();
            json::metadata(&mut object).insert("uid".into(), uid.into());
        }
        let namespace = json::text(&object, "/metadata/namespace").to_owned();
        let key = store::key(Some(namespace.as_str()).filter(|namespace| !namespace.is_empty()), &name);
        let record = self.store.put(&kind.table(), &key, object);
        if kind.is_definitions() {
            self.install(&record.value).map_err(|refusal| refusal.message)?;
        }
        Ok(())
    }
}
