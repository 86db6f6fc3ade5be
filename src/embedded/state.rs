//! Everything the server holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::access::Access;
use super::cache::Caches;
use super::convert::Converter;
use super::kinds::{Kind, built_in};
use super::list::Snapshots;
use super::requests::{Intercept, RequestRecord};
use super::store::{Store, Table};
use super::watch::Watcher;

/// A release of Kubernetes, as far as it behaves differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `v1.36.3`.
    pub git_version: String,
    /// `36`.
    pub minor: u32,
}

impl Release {
    /// The first release that calls a record it cannot convert a corrupt object.
    pub(super) const CORRUPT_OBJECTS: u32 = 37;
    /// The first release that keeps field ownership when it cannot be told.
    pub(super) const KEEPS_OWNERSHIP: u32 = 37;
    /// The first release that says which owner reference is wrong, and checks the metadata of built-in kinds once.
    pub(super) const CHECKS_OWNERS_ONCE: u32 = 37;
    /// The first release in which a write to the status of a custom resource cannot come to own metadata.
    pub(super) const STATUS_LEAVES_METADATA: u32 = 36;

    /// v1.34, as measured.
    pub fn v1_34() -> Self {
        Self { git_version: "v1.34.4".into(), minor: 34 }
    }

    /// v1.36, as measured.
    pub fn v1_36() -> Self {
        Self { git_version: "v1.36.3".into(), minor: 36 }
    }

    /// v1.37, as measured.
    pub fn v1_37() -> Self {
        Self { git_version: "v1.37.2".into(), minor: 37 }
    }

    /// By the `gitVersion` of another server; none when it is no version of Kubernetes 1.
    pub fn named(git_version: &str) -> Option<Self> {
        let minor = git_version.strip_prefix("v1.")?.split(['.', '+', '-']).next()?.parse().ok()?;
        Some(Self { git_version: git_version.into(), minor })
    }
}

/// The time the server goes by.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// An encoder that has not yet seen a new storage version.
pub(super) struct Lag {
    pub(super) version: String,
    pub(super) until: Timestamp,
}

/// Everything the server holds.
pub(super) struct State {
    pub(super) release: Release,
    pub(super) store: Store,
    pub(super) kinds: BTreeMap<Table, Arc<Kind>>,
    /// By the name of the definition.
    pub(super) converters: BTreeMap<String, Converter>,
    pub(super) caches: Caches,
    pub(super) snapshots: Snapshots,
    pub(super) access: Access,
    pub(super) now: Now,
    pub(super) requests: Vec<RequestRecord>,
    /// What was counted elsewhere, and how often.
    pub(super) counted: Vec<(RequestRecord, u64)>,
    pub(super) intercept: Option<Intercept>,
    pub(super) watchers: Vec<Watcher>,
    /// What the request under way is to be warned of.
    pub(super) warnings: Vec<String>,
    /// How long after a change of the storage version records are still encoded at the old one.
    pub(super) lag: Duration,
    /// By the name of the definition.
    pub(super) lags: BTreeMap<String, Lag>,
}

impl State {
    pub(super) fn new(release: Release) -> Self {
        let kinds = built_in().map(|kind| (kind.table(), Arc::new(kind))).collect();
        let mut state = Self {
            release,
            store: Store::default(),
            kinds,
            converters: BTreeMap::new(),
            caches: Caches::default(),
            snapshots: Snapshots::default(),
            access: Access::default(),
            now: Arc::new(Timestamp::now),
            requests: Vec::new(),
            counted: Vec::new(),
            intercept: None,
            watchers: Vec::new(),
            warnings: Vec::new(),
            lag: Duration::ZERO,
            lags: BTreeMap::new(),
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": name, "uid": state.store.uid(), "creationTimestamp": state.timestamp(),
                    "labels": {"kubernetes.io/metadata.name": name},
                },
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            state.store.put(&namespaces(), name, namespace);
        }
        state.store.compact();
        state
    }

    /// Now, as the server writes times.
    pub(super) fn timestamp(&self) -> String {
        (self.now)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The version that records are encoded at right now.
    pub(super) fn encoding<'a>(&self, kind: &'a Kind) -> &'a str {
        let lag = kind.definition.as_ref().and_then(|definition| self.lags.get(&definition.name));
        let old = lag.filter(|lag| (self.now)() < lag.until).and_then(|lag| kind.version(&lag.version));
        old.map_or_else(|| kind.storage(), |version| &version.name)
    }

    /// A kind by the name of its resource: `widgets.demo.test`, `pods`.
    pub(super) fn kind_named(&self, resource: &str) -> Option<Arc<Kind>> {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.kinds.get(&(group.to_owned(), plural.to_owned())).cloned()
    }

    /// Why nothing can be created in a namespace: it is not there, or on its way out.
    pub(super) fn namespace(&self, name: &str) -> Option<Value> {
        self.store.get(&namespaces(), name).map(|record| record.value.clone())
    }
}

/// The table of namespaces.
pub(super) fn namespaces() -> Table {
    (String::new(), "namespaces".into())
}
