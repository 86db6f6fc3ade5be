//! The entries of `metadata.managedFields`, read and written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::json::text;
use super::FieldSet;

/// Who an entry belongs to. The version is part of it for updates only: an applier has one entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) applied: bool,
    pub(super) manager: String,
    pub(super) subresource: String,
    version: String,
}

/// What one manager owns.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) api_version: String,
    pub(super) fields: FieldSet,
    /// RFC 3339, as it was read.
    pub(super) time: Option<String>,
}

/// All entries of an object.
#[derive(Clone, Debug, Default)]
pub(in crate::embedded) struct Managed(pub(super) BTreeMap<Identity, Entry>);

impl Identity {
    pub(super) fn new(applied: bool, manager: &str, subresource: &str, api_version: &str) -> Self {
        let version = if applied { String::new() } else { api_version.to_owned() };
        Self { applied, manager: manager.into(), subresource: subresource.into(), version }
    }

    /// As a conflict names it.
    pub(super) fn described(&self, entry: &Entry) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.applied { text } else { format!("{text} using {}", entry.api_version) }
    }
}

impl Managed {
    /// Reads the entries of an object.
    pub(super) fn of(object: &Value) -> Result<Self, String> {
        let mut managed = BTreeMap::new();
        for entry in super::super::json::items(object, "/metadata/managedFields") {
            let applied = match text(entry, "/operation") {
                "Apply" => true,
                "Update" => false,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            let api_version = text(entry, "/apiVersion");
            if api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            if text(entry, "/fieldsType") != "FieldsV1" {
                return Err(format!("invalid fieldsType {}", entry["fieldsType"]));
            }
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => FieldSet::root_from_json(fields)?,
            };
            let identity = Identity::new(applied, text(entry, "/manager"), text(entry, "/subresource"), api_version);
            let time = entry["time"].as_str().map(Into::into);
            managed.insert(identity, Entry { api_version: api_version.into(), fields, time });
        }
        Ok(Self(managed))
    }

    /// The entries to start from: those the request sets, else those of the live object.
    pub(super) fn requested(live: &Value, new: &Value, through_subresource: bool) -> Self {
        let of_live = || Self::of(live).unwrap_or_default();
        if through_subresource {
            return of_live();
        }
        match new.pointer("/metadata/managedFields") {
            // An empty list, or one empty entry, asks to start afresh.
            Some(Value::Array(entries)) if matches!(entries.as_slice(), [] | [Value::Null]) => Self::default(),
            Some(Value::Array(entries)) if *entries == [json!({})] => Self::default(),
            _ => Self::of(new).ok().filter(|managed| !managed.0.is_empty()).unwrap_or_else(of_live),
        }
    }

    /// Writes the entries into an object.
    pub(super) fn write(&self, object: &mut Value) {
        let metadata = super::super::json::metadata(object);
        if self.0.is_empty() {
            metadata.remove("managedFields");
            return;
        }
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by(|(a, x), (b, y)| {
            let key = |identity: &Identity, entry: &Entry| {
                (!identity.applied, entry.time.clone().unwrap_or_default(), identity.manager.clone())
            };
            let rest = |identity: &Identity, entry: &Entry| (entry.api_version.clone(), identity.subresource.clone());
            key(a, x).cmp(&key(b, y)).then_with(|| rest(a, x).cmp(&rest(b, y)))
        });
        let entries = entries.into_iter().map(|(identity, entry)| {
            let mut json = json!({
                "manager": identity.manager,
                "operation": if identity.applied { "Apply" } else { "Update" },
                "apiVersion": entry.api_version,
                "fieldsType": "FieldsV1",
                "fieldsV1": entry.fields.to_json(),
            });
            if let Some(time) = &entry.time {
                json["time"] = time.clone().into();
            }
            if !identity.subresource.is_empty() {
                json["subresource"] = identity.subresource.clone().into();
            }
            json
        });
        metadata.insert("managedFields".into(), entries.collect());
    }
}

/// managedFields without their times: a write that only refreshes times changes nothing.
pub(in crate::embedded) fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries.sort_by_key(ToString::to_string);
    }
    object
}
