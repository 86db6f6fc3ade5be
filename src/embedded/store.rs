//! The records, as etcd would hold them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// One stored object: its bytes as JSON, at the version they were encoded at, and the revision they were written in.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The object, without `metadata.resourceVersion`.
    pub(super) value: Value,
    /// Its resourceVersion.
    pub(super) revision: u64,
}

/// Group and plural.
pub(super) type Table = (String, String);

/// Records of one resource by `namespace/name`, or by name: the order of a list.
pub(super) type Records = BTreeMap<String, Arc<Record>>;

/// One write: what was there before, and after.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) table: Table,
    pub(super) revision: u64,
    pub(super) before: Option<Arc<Record>>,
    pub(super) after: Option<Arc<Record>>,
}

/// Changes that are remembered for watches.
const REMEMBERED: usize = 10_000;

/// All records.
#[derive(Debug, Default)]
pub(super) struct Store {
    changes: VecDeque<Change>,
    /// Every change since this revision is remembered.
    oldest: u64,
    tables: BTreeMap<Table, Records>,
    revision: u64,
    uids: u64,
}

/// The key of an object in its table.
pub(super) fn key(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

impl Store {
    /// The revision of the last write.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, table: &Table, key: &str) -> Option<Arc<Record>> {
        self.tables.get(table)?.get(key).cloned()
    }

    /// Every record of a resource.
    pub(super) fn records(&self, table: &Table) -> impl Iterator<Item = (&String, &Arc<Record>)> {
        self.tables.get(table).into_iter().flatten()
    }

    /// Writes a record and answers its revision.
    pub(super) fn put(&mut self, table: &Table, key: &str, mut value: Value) -> Arc<Record> {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        self.revision += 1;
        let record = Arc::new(Record { value, revision: self.revision });
        let before = self.tables.entry(table.clone()).or_default().insert(key.into(), record.clone());
        self.remember(table, before, Some(record.clone()));
        record
    }

    /// Removes a record.
    pub(super) fn remove(&mut self, table: &Table, key: &str) {
        if let Some(before) = self.tables.get_mut(table).and_then(|records| records.remove(key)) {
            self.revision += 1;
            self.remember(table, Some(before), None);
        }
    }

    fn remember(&mut self, table: &Table, before: Option<Arc<Record>>, after: Option<Arc<Record>>) {
        self.changes.push_back(Change { table: table.clone(), revision: self.revision, before, after });
        if self.changes.len() > REMEMBERED
            && let Some(forgotten) = self.changes.pop_front()
        {
            self.oldest = forgotten.revision;
        }
    }

    /// Forgets every change so far.
    pub(super) fn compact(&mut self) {
        self.changes.clear();
        self.oldest = self.revision;
    }

    /// The revision since which every change is remembered.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The changes after a revision.
    pub(super) fn since(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let start = self.changes.partition_point(|change| change.revision <= revision);
        self.changes.range(start..)
    }

    /// A new uid. They repeat from server to server, so that the same run has the same output.
    pub(super) fn uid(&mut self) -> String {
        self.uids += 1;
        let digest = Sha256::digest(self.uids.to_be_bytes());
        let mut uid = String::new();
        for (index, byte) in digest.iter().take(16).enumerate() {
            let byte = match index {
                6 => byte & 0x0f | 0x40,
                8 => byte & 0x3f | 0x80,
                _ => *byte,
            };
            if matches!(index, 4 | 6 | 8 | 10) {
                uid.push('-');
            }
            // Writing to a String cannot fail.
            let _ = write!(uid, "{byte:02x}");
        }
        uid
    }
}
