//! Records in and out: one stored version, any served version.
//!
//! ```text
//! read:  stored bytes -> prune, default (stored version) -> convert -> prune (asked version)
//! write: object -> convert to the storage version -> prune -> stored bytes
//! ```

use std::sync::Arc;

use serde_json::{Value, json};

use super::json::{metadata, split_api_version, text};
use super::kinds::{Kind, Webhook};
use super::meta::annotations_size;
use super::schema;
use super::state::{Release, State};
use super::status::Refusal;
use super::store::{Record, key};

/// A conversion webhook: the object and the `apiVersion` wanted.
pub type Converter = Arc<dyn Fn(&Value, &str) -> Result<Value, String> + Send + Sync>;

/// What annotations may hold in all.
pub(super) const ANNOTATIONS: u64 = 256 * 1024;

impl State {
    /// A record as an object at `version`.
    ///
    /// # Errors
    /// The conversion's own words; what the server makes of them depends on the request.
    pub(super) fn decode(&self, kind: &Kind, record: &Record, version: &str) -> Result<Value, String> {
        let mut object = record.value.clone();
        if kind.definition.is_some() {
            let stored = split_api_version(text(&object, "/apiVersion")).1.to_owned();
            if let Some(stored) = kind.version(&stored) {
                schema::prune(&mut object, stored.schema.as_ref());
                schema::default(&mut object, stored.schema.as_ref());
            }
            let target = kind.api_version(version);
            object = self.convert(kind, &object, &target)?;
            schema::prune(&mut object, kind.version(version).and_then(|version| version.schema.as_ref()));
        }
        metadata(&mut object).insert("resourceVersion".into(), record.revision.to_string().into());
        Ok(object)
    }

    /// An object as the record to store.
    pub(super) fn encode(&self, kind: &Kind, object: &Value) -> Result<Value, Refusal> {
        let mut stored = object.clone();
        if kind.definition.is_some() {
            let version = self.encoding(kind);
            stored = self.convert(kind, object, &kind.api_version(version)).map_err(Refusal::untyped)?;
            schema::prune(&mut stored, kind.version(version).and_then(|version| version.schema.as_ref()));
        }
        metadata(&mut stored).remove("resourceVersion");
        Ok(stored)
    }

    /// An object at another version, by the strategy of its definition.
    pub(super) fn convert(&self, kind: &Kind, object: &Value, target: &str) -> Result<Value, String> {
        let known = |api_version: &str| kind.versions.iter().any(|v| kind.api_version(&v.name) == api_version);
        let from = text(object, "/apiVersion");
        if !known(target) {
            return Err(format!("request to convert CR to an invalid group/version: {target}"));
        }
        if !known(from) {
            return Err(format!("request to convert CR from an invalid group/version: {from}"));
        }
        let definition = kind.definition.as_ref();
        let webhook = definition.and_then(|definition| definition.webhook.as_ref());
        // An object that is only a type passes: the server's own empty ones do.
        let empty = object.as_object().is_some_and(|map| map.keys().all(|key| key == "apiVersion" || key == "kind"));
        match webhook {
            Some(webhook) if from != target && !empty => {
                let fail = |error: String| format!("conversion webhook for {} {error}", kind.versioned(from));
                let name = definition.map_or("", |definition| &definition.name);
                self.call(name, webhook, object, target).map_err(fail)
            }
            _ => {
                let mut converted = object.clone();
                converted["apiVersion"] = target.into();
                Ok(converted)
            }
        }
    }

    fn call(&self, crd: &str, webhook: &Webhook, object: &Value, target: &str) -> Result<Value, String> {
        let Some(convert) = self.converters.get(crd) else {
            let why = self.unreachable(webhook);
            return Err(format!("failed: Post \"{}?timeout=30s\": {why}", webhook.url));
        };
        let mut converted = convert(object, target).map_err(|error| format!("failed: {error}"))?;
        if converted["apiVersion"] != target {
            let (expected, found) = (target, text(&converted, "/apiVersion"));
            return Err(format!(
                "returned invalid object at index 0: invalid groupVersion (expected {expected}, received {found})"
            ));
        }
        if converted["kind"] != object["kind"] {
            let (expected, found) = (text(object, "/kind"), text(&converted, "/kind"));
            return Err(format!(
                "returned invalid object at index 0: invalid kind (expected {expected}, received {found})"
            ));
        }
        for (pointer, what) in
            [("/metadata/name", "name"), ("/metadata/namespace", "namespace"), ("/metadata/uid", "UID")]
        {
            let (before, after) = (text(object, pointer), text(&converted, pointer));
            if before != after {
                return Err(format!("returned invalid object: must have the same {what}: {before} != {after}"));
            }
        }
        // A webhook may change labels and annotations, and no other metadata.
        let (labels, annotations) =
            (converted["metadata"]["labels"].take(), converted["metadata"]["annotations"].take());
        converted["metadata"] = object["metadata"].clone();
        let metadata = metadata(&mut converted);
        for (key, value) in [("labels", labels), ("annotations", annotations)] {
            if value.is_null() {
                metadata.remove(key);
            } else {
                metadata.insert(key.into(), value);
            }
        }
        let changed = converted["metadata"]["annotations"] != object["metadata"]["annotations"];
        if changed && annotations_size(&converted) > ANNOTATIONS {
            return Err(format!(
                "returned invalid metadata: metadata.annotation: Too long: may not be more than {ANNOTATIONS} bytes"
            ));
        }
        Ok(converted)
    }

    /// Why a webhook that nobody plays does not answer.
    fn unreachable(&self, webhook: &Webhook) -> String {
        match &webhook.service {
            Some((namespace, name)) => {
                let table = (String::new(), "services".to_owned());
                match self.store.get(&table, &key(Some(namespace), name)) {
                    None => format!("service {name:?} not found"),
                    Some(_) => format!("dial tcp 127.0.0.1:{}: connect: connection refused", webhook.port),
                }
            }
            None => format!("dial tcp 127.0.0.1:{}: connect: connection refused", webhook.port),
        }
    }

    /// A record for a GET, a DELETE or a dry run.
    pub(super) fn read(&self, kind: &Kind, record: &Record, version: &str) -> Result<Value, Refusal> {
        self.decode(kind, record, version).map_err(|error| {
            if self.release.minor < Release::CORRUPT_OBJECTS {
                return Refusal::untyped(error);
            }
            Refusal::internal(&corrupt("", kind, record, &error))
        })
    }

    /// A record that a write starts from.
    pub(super) fn read_to_write(&self, kind: &Kind, record: &Record, version: &str) -> Result<Value, Refusal> {
        self.decode(kind, record, version).map_err(|error| {
            if self.release.minor < Release::CORRUPT_OBJECTS {
                return Refusal::untyped(error);
            }
            Refusal::untyped(undecodable(record, &error))
        })
    }
}

/// What v1.37 says of a record that it cannot read: healthy data that only lacks its conversion, too.
pub(super) fn corrupt(prefix: &str, kind: &Kind, record: &Record, error: &str) -> String {
    let storage_key = storage_key(kind, record);
    let error = undecodable(record, error);
    format!(
        "StorageError: corrupt object, Code: 7, Key: {prefix}{storage_key}, ResourceVersion: 0, AdditionalErrorMsg: {error}"
    )
}

/// The key of a record in etcd, without its prefix.
pub(super) fn storage_key(kind: &Kind, record: &Record) -> String {
    let namespace = Some(text(&record.value, "/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    format!("/{}/{}/{}", kind.group, kind.plural, key(namespace, text(&record.value, "/metadata/name")))
}

fn undecodable(record: &Record, error: &str) -> String {
    format!("object not decodable revision={}: {error}", record.revision)
}

/// The server's empty object, from which a create starts.
pub(super) fn empty(kind: &Kind, version: &str) -> Value {
    json!({"apiVersion": kind.api_version(version), "kind": kind.kind})
}
