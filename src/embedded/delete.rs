//! DELETE: preconditions, finalizers, and what goes along.

use serde_json::{Value, json};

use super::json::{items, metadata, split_api_version, text};
use super::kinds::Kind;
use super::route::{Request, Target};
use super::state::{State, namespaces};
use super::status::Refusal;
use super::store::key;

impl State {
    /// DELETE. What is left to answer with: the object when it stays for its finalizers.
    pub(super) fn delete(&mut self, target: &Target, options: &Value, dry_run: bool) -> Result<Value, Refusal> {
        let kind = target.kind.clone();
        let (table, name) = (kind.table(), target.object_name());
        let key = key(target.namespace.as_deref(), name);
        let record = self.store.get(&table, &key).ok_or_else(|| Refusal::not_found(&kind.named(name)))?;
        let object = self.read(&kind, &record, &target.version)?;
        check(&kind, name, options, &object)?;
        let uid = text(&object, "/metadata/uid").to_owned();
        if dry_run {
            return Ok(deleted(&kind, name, &uid));
        }
        if kind.is_definitions() {
            return self.delete_definition(&record.value);
        }
        let mut new = object;
        let finalizer = match text(options, "/propagationPolicy") {
            "Foreground" => Some("foregroundDeletion"),
            "Orphan" => Some("orphan"),
            _ => None,
        };
        let mut finalizers = items(&new, "/metadata/finalizers").to_vec();
        if let Some(finalizer) = finalizer.filter(|finalizer| !finalizers.iter().any(|known| known == finalizer)) {
            finalizers.push(finalizer.into());
            metadata(&mut new).insert("finalizers".into(), finalizers.clone().into());
        }
        if finalizers.is_empty() && table != namespaces() {
            self.store.remove(&table, &key);
            self.removed(&kind, &record.value);
            return Ok(deleted(&kind, name, &uid));
        }
        if new.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(new);
        }
        let time = self.timestamp();
        let metadata = metadata(&mut new);
        metadata.insert("deletionTimestamp".into(), time.into());
        if table != namespaces() {
            metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
        }
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".into(), (generation + 1).into());
        }
        if table == namespaces() {
            new["status"]["phase"] = "Terminating".into();
        }
        let stored = self.encode(&kind, &new)?;
        let record = self.store.put(&table, &key, stored);
        self.read(&kind, &record, &target.version)
    }

    /// DELETE of a collection. The answer lists what was deleted.
    pub(super) fn delete_collection(
        &mut self,
        target: &Target,
        request: &Request,
        options: &Value,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        let list = self.list(target, request)?;
        for item in items(&list, "/items") {
            let namespace = item.pointer("/metadata/namespace").and_then(Value::as_str);
            let one = Target::main(target.kind.clone(), &target.version, namespace, text(item, "/metadata/name"));
            self.delete(&one, options, dry_run)?;
        }
        Ok(list)
    }

    /// Deletes every object of a kind that can be deleted, or says why they cannot be listed.
    pub(super) fn delete_all(&mut self, kind: &std::sync::Arc<Kind>) -> Result<(), String> {
        self.warm(kind, kind.storage()).map_err(|(record, error)| {
            self.initializing(&Target::main(kind.clone(), kind.storage(), None, ""), &record, &error).message
        })?;
        let records: Vec<_> = self.store.records(&kind.table()).map(|(_, record)| record.clone()).collect();
        for record in records {
            let namespace = record.value.pointer("/metadata/namespace").and_then(Value::as_str);
            let version = split_api_version(text(&record.value, "/apiVersion")).1;
            let target = Target::main(kind.clone(), version, namespace, text(&record.value, "/metadata/name"));
            // One that cannot be deleted shows as an object that is still there.
            let _ = self.delete(&target, &Value::Null, false);
        }
        Ok(())
    }

    /// What follows once a record is gone.
    pub(super) fn removed(&mut self, kind: &Kind, record: &Value) {
        if kind.is_definitions() {
            let defined = Kind::defined(record);
            self.kinds.remove(&defined.table());
            self.caches.stop(&defined.table());
        } else {
            self.finish_definition(&kind.table());
        }
    }
}

fn check(kind: &Kind, name: &str, options: &Value, object: &Value) -> Result<(), Refusal> {
    for (field, what, why) in [
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ] {
        let given = text(options, &format!("/preconditions/{field}"));
        let found = text(object, &format!("/metadata/{field}"));
        if !given.is_empty() && given != found {
            let why = format!(
                "the {what} in the precondition ({given}) does not match the {what} in record ({found}). {why}"
            );
            return Err(Refusal::conflict(&kind.kind_named(name), &why));
        }
    }
    Ok(())
}

fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural, "uid": uid});
    if !kind.group.is_empty() {
        details["group"] = kind.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
