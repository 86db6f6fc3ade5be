//! The CRDs of the upgrade and every record of them: what most steps are about.
//!
//! Metadata-only lists in pages; a record is kept as the few facts that decisions need.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::Value;

use crate::{
    cluster::{ClusterError, Content, Reader},
    crd::{Crd, crd_resource},
    object::{ManagerEntry, Object, ObjectRef, Resource, api_version, entries_naming},
    runbook::{Runbook, Task},
};

/// At most this many records are asked one by one when a list fails.
const CULPRITS_ASKED: usize = 200;

/// What was seen of the upgrade's CRDs, in the runbook's order.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// One entry a CRD.
    pub crds: Vec<Surveyed>,
    /// uids of the CRDs as this cluster's newest backup holds them, by name.
    pub backed_up: BTreeMap<String, String>,
}

/// One CRD and its records.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// `plural.group`.
    pub name: String,
    /// The CRD; none when it is not installed.
    pub crd: Result<Option<Crd>, ClusterError>,
    /// Its records, read at `to`.
    pub records: Records,
    /// Whether one of its records reads at `from` too: either read goes through the conversion.
    /// None where `from` is not served.
    pub reads_at_from: Option<Result<(), ClusterError>>,
}

/// A list of records, or why there is none. A failed list is never an empty one.
#[derive(Clone, Debug)]
pub enum Records {
    /// All of them.
    Listed(Vec<Record>),
    /// The list failed; the records that could be told to be the cause.
    Unreadable {
        /// The list's error.
        error: ClusterError,
        /// Records that cannot be read, each with the server's words.
        culprits: Vec<(ObjectRef, String)>,
        /// Records that can.
        readable: usize,
    },
    /// There is no such CRD, or it does not serve `to`.
    NotAsked,
}

/// One record, as far as decisions need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which object.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Whether deletion has begun.
    pub deleting: bool,
    /// Value of the stamp annotation, where the runbook stamps.
    pub stamp: Option<String>,
    /// managedFields entries that name `from`.
    pub entries: Vec<ManagerEntry>,
    /// Bytes of all its annotations, names included.
    pub annotation_bytes: usize,
    /// Annotations whose name carries the version that goes: state that a conversion left.
    pub state_annotations: Vec<String>,
}

impl Survey {
    /// Every record that could be listed.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.crds.iter().flat_map(|surveyed| surveyed.records.listed())
    }

    /// The CRDs that exist and could be read.
    pub fn installed(&self) -> impl Iterator<Item = &Crd> {
        self.crds.iter().filter_map(|surveyed| surveyed.crd.as_ref().ok()?.as_ref())
    }
}

impl Records {
    /// The records, as far as the list succeeded.
    pub fn listed(&self) -> &[Record] {
        match self {
            Self::Listed(records) => records,
            Self::Unreadable { .. } | Self::NotAsked => &[],
        }
    }
}

/// Looks at every CRD of the upgrade.
pub async fn observe(reader: &Reader, runbook: &Runbook) -> Survey {
    let crds = runbook.upgrade.crds.iter().map(|name| observe_crd(reader, runbook, name));
    Survey { crds: join_all(crds).await, backed_up: BTreeMap::new() }
}

/// Looks at one CRD and its records.
pub async fn observe_crd(reader: &Reader, runbook: &Runbook, name: &str) -> Surveyed {
    let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
    let crd = reader.get(&crd_resource(), None, name).await.map(|crd| crd.map(Crd::of));
    let mut surveyed = Surveyed { name: name.into(), crd, records: Records::NotAsked, reads_at_from: None };
    let Ok(Some(crd)) = &surveyed.crd else { return surveyed };
    if crd.serves(to) {
        let old = api_version(&crd.group, from);
        let stamp = stamp_of(runbook);
        surveyed.records = match list(reader, &crd.resource(to), |object| record(&object, &old, from, stamp)).await {
            Ok(records) => Records::Listed(records),
            Err(error) => blame(reader, crd, from, to, error).await,
        };
    }
    if crd.serves(from) {
        surveyed.reads_at_from = Some(reads_at_both(reader, crd, from, to, surveyed.records.listed().first()).await);
    }
    surveyed
}

/// Asks for one record by name at each version: a LIST can be answered from a cache that was filled
/// while the conversion still worked.
async fn reads_at_both(
    reader: &Reader,
    crd: &Crd,
    from: &str,
    to: &str,
    record: Option<&Record>,
) -> Result<(), ClusterError> {
    let Some(Record { object, .. }) = record else {
        return reader.pages(&crd.resource(from), None, Content::Metadata).at_most(1).next().await.map(drop);
    };
    for version in [from, to] {
        reader.get_metadata(&crd.resource(version), object.namespace.as_deref(), &object.name).await?;
    }
    Ok(())
}

/// The annotation the runbook's migrate step stamps.
pub fn stamp_of(runbook: &Runbook) -> Option<&str> {
    runbook.steps.iter().find_map(|step| match &step.task {
        Task::Migrate(migrate) => migrate.stamp.as_deref(),
        _ => None,
    })
}

async fn list<T>(reader: &Reader, resource: &Resource, read: impl Fn(Object) -> T) -> Result<Vec<T>, ClusterError> {
    let mut found = Vec::new();
    let mut pages = reader.pages(resource, None, Content::Metadata);
    while let Some(page) = pages.next().await? {
        found.extend(page.into_iter().map(&read));
    }
    Ok(found)
}

/// The facts of one record from its metadata.
pub fn record(object: &Object, old_api_version: &str, from: &str, stamp: Option<&str>) -> Record {
    let annotations = object.0.pointer("/metadata/annotations").and_then(Value::as_object);
    let each = || annotations.into_iter().flatten();
    Record {
        object: object.reference(),
        uid: object.uid().into(),
        deleting: object.deleting(),
        stamp: stamp.and_then(|stamp| object.annotation(stamp)).map(Into::into),
        entries: entries_naming(object, old_api_version),
        annotation_bytes: each().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum(),
        state_annotations: each().map(|(name, _)| name).filter(|name| name.contains(from)).cloned().collect(),
    }
}

/// One record that cannot be converted fails the whole list, unnamed. Where the other version can
/// still be listed, every record is asked for by name to find it.
async fn blame(reader: &Reader, crd: &Crd, from: &str, to: &str, error: ClusterError) -> Records {
    let mut culprits = Vec::new();
    let mut readable = 0;
    let names = if crd.serves(from) {
        list(reader, &crd.resource(from), |object| object).await.unwrap_or_default()
    } else {
        Vec::new()
    };
    for object in names.iter().take(CULPRITS_ASKED) {
        match reader.get_metadata(&crd.resource(to), object.namespace(), object.name()).await {
            Ok(_) => readable += 1,
            Err(error) => culprits.push((object.reference(), error.words())),
        }
    }
    Records::Unreadable { error, culprits, readable }
}
