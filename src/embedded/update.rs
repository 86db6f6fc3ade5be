//! What every write comes down to: an object added, or an object changed.
//!
//! ```text
//! record -> object at the asked version -> changed -> owners -> prepared -> checked -> encoded -> the same? -> stored
//! ```

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::crd;
use super::fields::{ConvertError, Manager, Ownership, Type, without_times};
use super::json::{items, metadata, text};
use super::kinds::Kind;
use super::route::{Options, Target};
use super::state::{Release, State};
use super::status::{Cause, Named, Refusal};
use super::store::key;

/// What a write makes of the current object.
pub(super) type Change<'a> = &'a dyn Fn(&State, &Value) -> Result<Value, Refusal>;

/// A version without a schema keeps everything.
static OPEN: LazyLock<Value> = LazyLock::new(|| json!({"x-kubernetes-preserve-unknown-fields": true}));

/// What etcd takes in one request.
const STORED: usize = 1536 * 1024;

impl State {
    /// Adds an object that does not exist yet.
    pub(super) fn insert(&mut self, target: &Target, options: &Options, mut new: Value) -> Result<Value, Refusal> {
        let kind = &target.kind;
        let (uid, time) = (self.store.uid(), self.timestamp());
        let metadata = metadata(&mut new);
        metadata.insert("uid".into(), uid.into());
        metadata.insert("creationTimestamp".into(), time.into());
        metadata.remove("deletionTimestamp");
        kind.prepare_create(&target.version, &mut new);
        let name = text(&new, "/metadata/name").to_owned();
        refuse(kind, &name, &kind.check(&self.release, &target.version, target.path, &new, None))?;
        let stored = self.encode(kind, &new)?;
        let (table, key) = (kind.table(), key(target.namespace.as_deref(), &name));
        if let Some(found) = self.store.get(&table, &key) {
            let mut refusal = Refusal::already_exists(&kind.named(&name));
            if found.value.pointer("/metadata/deletionTimestamp").is_some() {
                refusal.message = format!("object is being deleted: {}", refusal.message);
            }
            return Err(refusal);
        }
        fits(&stored)?;
        if options.dry_run {
            return Ok(new);
        }
        let record = self.store.put(&table, &key, stored);
        if kind.is_definitions() {
            self.install(&record.value)?;
        }
        self.read(kind, &record, &target.version)
    }

    /// What must hold before anything is created.
    pub(super) fn admit(&self, target: &Target, new: &mut Value) -> Result<(), Refusal> {
        let kind = &target.kind;
        let name = text(new, "/metadata/name").to_owned();
        if let Some(namespace) = &target.namespace {
            match text(new, "/metadata/namespace") {
                "" => _ = metadata(new).insert("namespace".into(), namespace.clone().into()),
                given if given == namespace => {}
                _ => {
                    return Err(Refusal::bad_request(
                        "the namespace of the provided object does not match the namespace sent on the request",
                    ));
                }
            }
            let Some(found) = self.namespace(namespace) else {
                return Err(Refusal::not_found(&Named::new("", "namespaces", namespace)));
            };
            if found.pointer("/metadata/deletionTimestamp").is_some() {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                let mut refusal = Refusal::forbidden(&kind.named(&name), &why);
                let message = format!("namespace {namespace} is being terminated");
                let cause =
                    json!({"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"});
                refusal.details["causes"] = json!([cause]);
                return Err(refusal);
            }
        }
        if kind.definition.as_ref().is_some_and(|definition| definition.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Refusal::forbidden(&kind.named(&name), why));
        }
        Ok(())
    }

    /// Changes an object that exists.
    pub(super) fn update(&mut self, target: &Target, options: &Options, change: Change<'_>) -> Result<Value, Refusal> {
        let kind = target.kind.clone();
        let (table, name) = (kind.table(), target.object_name());
        let key = key(target.namespace.as_deref(), name);
        let record = self.store.get(&table, &key).ok_or_else(|| Refusal::not_found(&kind.named(name)))?;
        let mut cached = self.caches.get(&table, &target.version, &key, record.revision).filter(|_| !options.dry_run);
        loop {
            let current = match &cached {
                Some(object) => (**object).clone(),
                None if options.dry_run => self.read(&kind, &record, &target.version)?,
                None => self.read_to_write(&kind, &record, &target.version)?,
            };
            let new = self.changed(target, &current, change)?;
            if !text(&new, "/metadata/deletionTimestamp").is_empty() && items(&new, "/metadata/finalizers").is_empty() {
                if !options.dry_run {
                    self.store.remove(&table, &key);
                    self.removed(&kind, &record.value);
                }
                return Ok(new);
            }
            if options.dry_run {
                return Ok(new);
            }
            let stored = self.encode(&kind, &new)?;
            if cached.is_some() && stored == self.encode(&kind, &current)? {
                // "Nothing changed" is not believed of a cached object: the record itself is read.
                cached = None;
                continue;
            }
            if stored == record.value {
                return self.read_to_write(&kind, &record, &target.version);
            }
            fits(&stored)?;
            let record = self.store.put(&table, &key, stored);
            if kind.is_definitions() {
                self.install(&record.value)?;
            }
            return self.read_to_write(&kind, &record, &target.version);
        }
    }

    fn changed(&self, target: &Target, current: &Value, change: Change<'_>) -> Result<Value, Refusal> {
        let kind = &target.kind;
        let name = target.object_name();
        let mut new = change(self, current)?;
        check_name(target, &new)?;
        let version = text(&new, "/metadata/resourceVersion");
        if version.is_empty() {
            let cause = Cause::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
            return Err(Refusal::invalid(&kind.named(name), &[cause]));
        }
        if version.parse::<u64>().is_err() {
            return Err(Refusal::untyped(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
        }
        if version != text(current, "/metadata/resourceVersion") {
            return Err(Refusal::modified(&kind.named(name)));
        }
        kind.prepare_update(&target.version, target.path, &mut new, current);
        refuse(kind, name, &kind.check(&self.release, &target.version, target.path, &new, Some(current)))?;
        if without_times(&new) == without_times(current) {
            new["metadata"] = current["metadata"].clone();
        }
        Ok(new)
    }

    /// Notes who owns what changed. What cannot be told is lost before v1.37, and kept as it was since.
    pub(super) fn own(&self, target: &Target, options: &Options, live: &Value, mut new: Value) -> Value {
        let before = target.kind.structured(live);
        let told = self.ownership(target, options, |ownership| ownership.update(&before, &mut new));
        let managed = live.pointer("/metadata/managedFields");
        let kept = managed.filter(|_| told.is_err() && self.release.minor >= Release::KEEPS_OWNERSHIP);
        if let Some(managed) = kept {
            metadata(&mut new).insert("managedFields".into(), managed.clone());
        }
        new
    }

    pub(super) fn ownership<T>(&self, target: &Target, options: &Options, then: impl FnOnce(&Ownership<'_>) -> T) -> T {
        let kind: &Kind = &target.kind;
        let types = |api_version: &str| -> Type<'_> {
            if kind.is_definitions() {
                return Type::Root(&crd::TYPES);
            }
            if kind.definition.is_none() {
                return Type::BuiltInRoot;
            }
            let version = kind.versions.iter().find(|version| kind.api_version(&version.name) == api_version);
            Type::Root(version.and_then(|version| version.schema.as_ref()).unwrap_or(&OPEN))
        };
        let convert = |object: &Value, api_version: &str| {
            if kind.definition.is_none() {
                return Err(ConvertError::Unknown);
            }
            self.convert(kind, object, api_version).map_err(ConvertError::Failed)
        };
        let (api_version, time) = (target.api_version(), self.timestamp());
        then(&Ownership {
            types: &types,
            convert: &convert,
            reset: kind.reset(&self.release, &target.version, target.path),
            manager: Manager {
                name: &options.manager,
                api_version: &api_version,
                subresource: target.subresource(),
                time: &time,
            },
        })
    }
}

fn refuse(kind: &Kind, name: &str, causes: &[Cause]) -> Result<(), Refusal> {
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(&kind.kind_named(name), causes)) }
}

/// Whether the store takes a record of this size.
fn fits(stored: &Value) -> Result<(), Refusal> {
    if stored.to_string().len() > STORED {
        return Err(Refusal::untyped("etcdserver: request is too large"));
    }
    Ok(())
}

/// Whether an object is the one that the path names.
pub(super) fn check_name(target: &Target, object: &Value) -> Result<(), Refusal> {
    let (found, expected) = (text(object, "/metadata/name"), target.object_name());
    if found != expected {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({expected})"
        )));
    }
    let (found, expected) = (text(object, "/metadata/namespace"), target.namespace.as_deref().unwrap_or_default());
    if !found.is_empty() && found != expected {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
