//! The watch cache: lists are answered from objects converted when they were written.
//!
//! It shows when a conversion webhook goes away: lists go on from the cache, and writes start from it, until the first
//! event that cannot be converted. From then on, and after any change of the definition, a list without a limit
//! answers 429 and one with a limit reads the records itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::kinds::Kind;
use super::state::State;
use super::store::{Record, Table};

/// Objects at one version by key, with the revision they were read at.
type Objects = BTreeMap<String, (u64, Arc<Value>)>;

/// The caches that run, by resource and version.
#[derive(Debug, Default)]
pub(super) struct Caches(BTreeMap<(Table, String), Objects>);

impl Caches {
    /// Stops every cache of a resource: its definition changed.
    pub(super) fn stop(&mut self, table: &Table) {
        self.0.retain(|(of, _), _| of != table);
    }

    /// The object as it was cached at this revision.
    pub(super) fn get(&self, table: &Table, version: &str, key: &str, revision: u64) -> Option<Arc<Value>> {
        let (at, object) = self.0.get(&(table.clone(), version.to_owned()))?.get(key)?;
        (*at == revision).then(|| object.clone())
    }
}

impl State {
    /// Starts the cache of a resource at a version, or brings it up to date.
    ///
    /// # Errors
    /// The first record that cannot be read, and why. The cache does not run then.
    pub(super) fn warm(&mut self, kind: &Kind, version: &str) -> Result<(), (Arc<Record>, String)> {
        let table = kind.table();
        let mut objects = self.caches.0.remove(&(table.clone(), version.to_owned())).unwrap_or_default();
        let mut current = Objects::new();
        for (key, record) in self.store.records(&table) {
            let object = match objects.remove(key) {
                Some((revision, object)) if revision == record.revision => object,
                _ => Arc::new(self.decode(kind, record, version).map_err(|error| (record.clone(), error))?),
            };
            current.insert(key.clone(), (record.revision, object));
        }
        self.caches.0.insert((table, version.to_owned()), current);
        Ok(())
    }

    /// Lets the running caches of a resource see what was written since: before its conversion changes.
    pub(super) fn catch_up(&mut self, kind: &Kind) {
        let table = kind.table();
        let running: Vec<_> =
            self.caches.0.keys().filter(|(of, _)| *of == table).map(|(_, version)| version.clone()).collect();
        for version in running {
            // One that fails has stopped, which is all there is to know here.
            let _ = self.warm(kind, &version);
        }
    }
}
