//! LIST: whole, in pages of one snapshot, or as metadata alone.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::convert::{corrupt, storage_key};
use super::kinds::Kind;
use super::route::{Request, Target};
use super::selector::Selector;
use super::state::{Release, State};
use super::status::Refusal;
use super::store::Record;

/// Lists under way that are kept: the oldest expires first.
const KEPT: usize = 64;

/// A page of a list.
type Page = Vec<(String, Arc<Record>)>;

/// The records that lists under way go on from, by revision.
#[derive(Debug, Default)]
pub(super) struct Snapshots(VecDeque<(u64, (String, String), Arc<Page>)>);

impl Snapshots {
    /// Forgets all: every token given out so far expires.
    pub(super) fn expire(&mut self) {
        self.0.clear();
    }

    fn find(&self, revision: u64, table: &(String, String)) -> Option<Arc<Page>> {
        self.0.iter().find(|(at, of, _)| *at == revision && of == table).map(|(_, _, page)| page.clone())
    }

    fn keep(&mut self, revision: u64, table: (String, String), page: Arc<Page>) {
        if self.find(revision, &table).is_none() {
            self.0.push_back((revision, table, page));
        }
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }
}

/// Where a list goes on: the revision of its snapshot, none when it expired, and the first key.
struct Token {
    revision: Option<u64>,
    start: String,
}

impl Token {
    fn read(text: &str) -> Option<Self> {
        let (revision, start) = text.split_once(':')?;
        let start = start.replace('~', "\0");
        let revision = if revision == "-1" { None } else { Some(revision.parse().ok()?) };
        Some(Self { revision, start })
    }

    fn write(&self) -> String {
        let revision = self.revision.map_or_else(|| "-1".into(), |revision| revision.to_string());
        // No key holds a tilde, and a token should be printable.
        format!("{revision}:{}", self.start.replace('\0', "~"))
    }
}

impl State {
    /// GET of a collection.
    pub(super) fn list(&mut self, target: &Target, request: &Request) -> Result<Value, Refusal> {
        let kind = target.kind.clone();
        let table = kind.table();
        let limit = request.parameter("limit").parse().unwrap_or(0_usize);
        let token = match request.parameter("continue") {
            "" => None,
            text => {
                if !matches!(request.parameter("resourceVersion"), "" | "0") {
                    let why = "specifying resource version is not allowed when using continue";
                    return Err(Refusal::bad_request(why));
                }
                let invalid = || Refusal::bad_request("invalid continue token: continue key is not valid");
                Some(Token::read(text).ok_or_else(invalid)?)
            }
        };
        let selector = Selector::read(request.parameter("fieldSelector"), request.parameter("labelSelector"))?;
        let start = token.as_ref().map_or(String::new(), |token| token.start.clone());
        let (revision, records) = if let Some(revision) = token.and_then(|token| token.revision) {
            match self.snapshots.find(revision, &table) {
                Some(records) => (revision, records),
                None => return Err(Refusal::expired(Token { revision: None, start }.write())),
            }
        } else {
            if let Err((record, error)) = self.warm(&kind, &target.version)
                && limit == 0
            {
                return Err(self.initializing(target, &record, &error));
            }
            let records = self.store.records(&table).map(|(key, record)| (key.clone(), record.clone())).collect();
            (self.store.revision(), Arc::new(records))
        };
        let prefix = target.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let mut rest = records.iter().filter(|(key, _)| key.starts_with(&prefix) && *key >= start).peekable();
        let (mut found, mut errors, mut last) = (Vec::new(), Vec::new(), String::new());
        while limit == 0 || found.len() < limit {
            let Some((key, record)) = rest.next() else { break };
            match self.object(&kind, &target.version, key, record) {
                Ok(object) => {
                    last.clone_from(key);
                    if selector.matches(&object) {
                        found.push(object);
                    }
                }
                Err(error) if self.release.minor < Release::CORRUPT_OBJECTS => return Err(Refusal::untyped(error)),
                Err(error) => {
                    let key = format!("/registry{}", storage_key(&kind, record));
                    errors.push((key, corrupt("/registry", &kind, record, &error)));
                }
            }
        }
        if !errors.is_empty() {
            return Err(Refusal::unreadable_list(&kind.named(""), &errors));
        }
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if kind.definition.is_some() && !partial(&request.accept) {
            metadata["continue"] = "".into();
        }
        if rest.peek().is_some() {
            // Right behind the last one, so that what is created there meanwhile is not missed.
            let start = format!("{last}\0");
            metadata["continue"] = Token { revision: Some(revision), start }.write().into();
            metadata["remainingItemCount"] = rest.count().into();
            self.snapshots.keep(revision, table, records.clone());
        }
        if partial(&request.accept) {
            let items: Vec<_> = found.iter().map(|object| metadata_of(object)).collect();
            return Ok(json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items,
            }));
        }
        let items: Vec<_> = found.iter().map(|object| item(&kind, object)).collect();
        let api_version = target.api_version();
        Ok(json!({"kind": kind.list_kind, "apiVersion": api_version, "metadata": metadata, "items": items}))
    }

    /// GET of one object.
    pub(super) fn get(&self, target: &Target) -> Result<Value, Refusal> {
        let kind = &target.kind;
        let key = super::store::key(target.namespace.as_deref(), target.object_name());
        let named = || kind.named(target.object_name());
        let record = self.store.get(&kind.table(), &key).ok_or_else(|| Refusal::not_found(&named()))?;
        self.read(kind, &record, &target.version)
    }

    /// A record as the cache holds it, else as it reads now.
    fn object(&self, kind: &Kind, version: &str, key: &str, record: &Record) -> Result<Arc<Value>, String> {
        match self.caches.get(&kind.table(), version, key, record.revision) {
            Some(object) => Ok(object),
            None => self.decode(kind, record, version).map(Arc::new),
        }
    }

    /// A list for which the cache does not start.
    pub(super) fn initializing(&self, target: &Target, record: &Record, error: &str) -> Refusal {
        if self.release.minor < Release::CORRUPT_OBJECTS {
            let of = target.kind.versioned(&target.api_version());
            return Refusal::initializing(&format!("failed to list {of}: {error}"));
        }
        let error = corrupt("/registry", &target.kind, record, error);
        let plural = target.kind.resource();
        let why = format!("failed to read one or more {plural} from the storage: {error}");
        Refusal::initializing(&format!("failed to list <unspecified>: {why}"))
    }
}

/// Whether metadata alone is wanted.
pub(super) fn partial(accept: &str) -> bool {
    accept.contains("as=PartialObjectMetadata")
}

/// The metadata of an object as an object.
pub(super) fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Items of built-in kinds name neither their kind nor its version.
fn item(kind: &Kind, object: &Arc<Value>) -> Value {
    let mut item = Value::clone(object);
    if let Some(map) = item.as_object_mut().filter(|_| kind.definition.is_none()) {
        map.remove("apiVersion");
        map.remove("kind");
    }
    item
}
