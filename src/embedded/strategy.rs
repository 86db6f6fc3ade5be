//! What each kind makes of an object that is written, before it is stored.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::fields::FieldSet;
use super::json::{metadata, object};
use super::kinds::Kind;
use super::state::Release;
use super::status::Cause;
use super::{crd, meta, schema};

/// Through what a write comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// The resource itself.
    Main,
    /// `/status`.
    Status,
}

impl Kind {
    fn has_status(&self, version: &str) -> bool {
        self.version(version).is_some_and(|version| version.status)
    }

    /// Fields that a write through this path leaves as they were.
    pub(super) fn reset(&self, release: &Release, version: &str, path: Path) -> FieldSet {
        let fields: &[&str] = match path {
            Path::Main if self.has_status(version) => &["status"],
            Path::Main => &[],
            Path::Status if self.definition.is_some() && release.minor < Release::STATUS_LEAVES_METADATA => &["spec"],
            Path::Status if self.is_definitions() && release.minor >= Release::STATUS_LEAVES_METADATA => &["spec"],
            Path::Status => &["metadata", "spec"],
        };
        FieldSet::of_fields(fields)
    }

    /// Fills in what the server fills in as soon as it has read an object.
    pub(super) fn fill(&self, object: &mut Value) {
        match self.kind.as_str() {
            _ if self.is_definitions() => crd::default(object),
            "Secret" => secret(object),
            "Namespace" => {
                let name = object["metadata"]["name"].clone();
                self::object(&mut object["metadata"], "labels").insert("kubernetes.io/metadata.name".into(), name);
            }
            _ => {}
        }
    }

    /// An object with the empty structures that built-in kinds always have: nobody comes to own them by filling them.
    pub(super) fn structured(&self, live: &Value) -> Value {
        if self.definition.is_some() {
            return live.clone();
        }
        if self.is_definitions() {
            return crd::filled(live);
        }
        let mut live = live.clone();
        for part in ["spec", "status"] {
            object(&mut live, part);
        }
        live
    }

    /// Prepares an object that is created.
    pub(super) fn prepare_create(&self, version: &str, new: &mut Value) {
        if self.has_status(version)
            && let Some(map) = new.as_object_mut()
        {
            map.remove("status");
        }
        if self.counts_generation() {
            metadata(new).insert("generation".into(), 1.into());
        }
        match self.kind.as_str() {
            _ if self.is_definitions() => crd::prepare(new, None),
            "Namespace" => {
                new["spec"] = json!({"finalizers": ["kubernetes"]});
                new["status"] = json!({"phase": "Active"});
            }
            "Pod" => new["status"] = json!({"phase": "Pending"}),
            _ => {}
        }
    }

    /// Prepares an object that replaces `old`.
    pub(super) fn prepare_update(&self, version: &str, path: Path, new: &mut Value, old: &Value) {
        let generation = old.pointer("/metadata/generation").cloned();
        match path {
            Path::Main => {
                if self.has_status(version) {
                    keep(new, old, "status");
                }
                if self.is_definitions() {
                    crd::prepare(new, Some(old));
                }
            }
            Path::Status => {
                let (status, managed) = (new.get("status").cloned(), new.pointer("/metadata/managedFields").cloned());
                let keeps_metadata = self.is_definitions().then(|| new["metadata"].clone());
                *new = old.clone();
                if let Some(metadata) = keeps_metadata {
                    new["metadata"] = metadata;
                }
                set(new, "status", status);
                set(&mut new["metadata"], "managedFields", managed);
                if self.is_definitions() {
                    crd::default_stored_versions(new);
                }
            }
        }
        let counted = self.counts_generation() && path == Path::Main && changed(self, new, old);
        let generation = match (generation.as_ref().and_then(Value::as_i64), counted) {
            (Some(generation), true) => Some(Value::from(generation + 1)),
            (_, false) => generation,
            (None, true) => Some(1.into()),
        };
        set(&mut new["metadata"], "generation", generation);
        for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            if let Some(before) = old["metadata"].get(key) {
                metadata(new).insert(key.into(), before.clone());
            }
        }
        let metadata = metadata(new);
        if !metadata.contains_key("uid") {
            metadata.insert("uid".into(), old["metadata"]["uid"].clone());
        }
    }

    /// What is wrong with an object.
    pub(super) fn check(
        &self,
        release: &Release,
        version: &str,
        path: Path,
        new: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        let mut causes = meta::check(release, new, old);
        if old.is_some() && (self.definition.is_some() || release.minor < Release::CHECKS_OWNERS_ONCE) {
            // The server checks metadata twice, and says so twice.
            causes.extend(causes.clone());
        }
        if self.is_definitions() && path == Path::Main {
            causes.extend(crd::check(new, old));
        }
        if let Some(schema) = self.version(version).and_then(|version| version.schema.as_ref()) {
            let only = (path == Path::Status).then_some("status");
            causes.extend(schema::validate(schema, new, old, only));
        }
        causes
    }
}

/// Whether anything that counts in `metadata.generation` differs.
fn changed(kind: &Kind, new: &Value, old: &Value) -> bool {
    if kind.definition.is_none() {
        return new.get("spec") != old.get("spec");
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.remove("metadata");
        }
        object
    };
    rest(new) != rest(old)
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    let before = old.get(field).cloned();
    set(new, field, before);
}

fn set(parent: &mut Value, field: &str, value: Option<Value>) {
    if let Some(map) = parent.as_object_mut() {
        match value {
            Some(value) => map.insert(field.into(), value),
            None => map.remove(field),
        };
    }
}

/// `stringData` becomes `data`.
fn secret(new: &mut Value) {
    let texts = new.as_object_mut().and_then(|map| map.remove("stringData"));
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let bytes = ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
        // Bytes always are JSON: a base64 string.
        object(new, "data").insert(key.clone(), serde_json::to_value(bytes).unwrap_or_default());
    }
    if new.get("type").is_none() {
        new["type"] = "Opaque".into();
    }
}
