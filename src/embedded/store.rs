//! The records, as etcd would hold them.

use std::collections::BTreeMap;
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

/// All records.
#[derive(Debug, Default)]
pub(super) struct Store {
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
        self.tables.entry(table.clone()).or_default().insert(key.into(), record.clone());
        record
    }

    /// Removes a record.
    pub(super) fn remove(&mut self, table: &Table, key: &str) {
        if self.tables.get_mut(table).and_then(|records| records.remove(key)).is_some() {
            self.revision += 1;
        }
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
