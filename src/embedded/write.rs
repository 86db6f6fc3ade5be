//! Create, replace, patch: what every write goes through.
//!
//! ```text
//! record -> object at the asked version -> changed -> owners -> prepared -> checked -> encoded -> the same? -> stored
//! ```

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::convert::empty;
use super::fields::{ApplyError, ConvertError, Manager, Ownership, Type, without_times};
use super::json::{items, merge_patch, metadata, text};
use super::kinds::Kind;
use super::route::{Options, Target};
use super::state::{Release, State, namespaces};
use super::status::{Cause, Named, Refusal};
use super::store::key;
use super::{crd, meta, schema};

/// What a write makes of the current object.
type Change<'a> = &'a dyn Fn(&State, &Value) -> Result<Value, Refusal>;

/// A version without a schema keeps everything.
static OPEN: LazyLock<Value> = LazyLock::new(|| json!({"x-kubernetes-preserve-unknown-fields": true}));

impl State {
    /// POST.
    pub(super) fn create(&mut self, target: &Target, options: &Options, body: Value) -> Result<Value, Refusal> {
        check_version(target, &body)?;
        let mut new = accept(target, body)?;
        if text(&new, "/metadata/name").is_empty() && !text(&new, "/metadata/generateName").is_empty() {
            let suffix: String = self.store.uid().chars().filter(char::is_ascii_alphanumeric).take(5).collect();
            let name = format!("{}{suffix}", text(&new, "/metadata/generateName"));
            metadata(&mut new).insert("name".into(), name.into());
        }
        self.admit(target, &mut new)?;
        let start = empty(&target.kind, &target.version);
        let new = self.own(target, options, &start, new);
        self.insert(target, options, new)
    }

    /// Adds an object that does not exist yet.
    fn insert(&mut self, target: &Target, options: &Options, mut new: Value) -> Result<Value, Refusal> {
        let kind = &target.kind;
        let (uid, time) = (self.store.uid(), self.timestamp());
        let metadata = metadata(&mut new);
        metadata.insert("uid".into(), uid.into());
        metadata.insert("creationTimestamp".into(), time.into());
        metadata.remove("resourceVersion");
        metadata.remove("deletionTimestamp");
        kind.prepare_create(&target.version, &mut new);
        let name = text(&new, "/metadata/name").to_owned();
        refuse(kind, &name, &kind.check(&target.version, target.path, &new, None))?;
        let stored = self.encode(kind, &new)?;
        let (table, key) = (kind.table(), key(target.namespace.as_deref(), &name));
        if self.store.get(&table, &key).is_some() {
            return Err(Refusal::already_exists(&kind.named(&name)));
        }
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
    fn admit(&self, target: &Target, new: &mut Value) -> Result<(), Refusal> {
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

    /// PUT.
    pub(super) fn replace(&mut self, target: &Target, options: &Options, body: &Value) -> Result<Value, Refusal> {
        check_version(target, body)?;
        let new = accept(target, body.clone())?;
        let kind = target.kind.clone();
        self.update(target, options, &|state, current| {
            let (given, found) = (text(&new, "/metadata/uid"), text(current, "/metadata/uid"));
            if !given.is_empty() && given != found {
                let key = key(target.namespace.as_deref(), target.object_name());
                let why = format!(
                    "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{key}, ResourceVersion: 0, \
                     AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {found}",
                    kind.group, kind.plural
                );
                return Err(Refusal::conflict(&kind.named(target.object_name()), &why));
            }
            let mut new = new.clone();
            if kind.definition.is_none() && !kind.is_definitions() {
                // Built-in kinds take a replacement that names no resourceVersion.
                metadata(&mut new)
                    .entry("resourceVersion")
                    .or_insert_with(|| current["metadata"]["resourceVersion"].clone());
            }
            if target.namespace.is_some() {
                metadata(&mut new).entry("namespace").or_insert_with(|| current["metadata"]["namespace"].clone());
            }
            Ok(state.own(target, options, current, new))
        })
    }

    /// PATCH by JSON merge patch.
    pub(super) fn merge(&mut self, target: &Target, options: &Options, patch: &Value) -> Result<Value, Refusal> {
        self.update(target, options, &|state, current| {
            let mut new = current.clone();
            merge_patch(&mut new, patch);
            let new = accept(target, new)?;
            Ok(state.own(target, options, current, new))
        })
    }

    /// PATCH by server-side apply. Whether the object was created, and the object.
    pub(super) fn apply(
        &mut self,
        target: &Target,
        options: &Options,
        config: &Value,
        force: bool,
    ) -> Result<(bool, Value), Refusal> {
        let kind = target.kind.clone();
        if text(config, "/apiVersion") != target.api_version() || text(config, "/kind") != kind.kind {
            let (api_version, found) = (text(config, "/apiVersion"), text(config, "/kind"));
            return Err(Refusal::bad_request(format!("invalid object type: {api_version}, Kind={found}")));
        }
        if config.pointer("/metadata/managedFields").is_some() {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        let key = key(target.namespace.as_deref(), target.object_name());
        let apply = |state: &Self, live: &Value| {
            let applied = state.ownership(target, options, |ownership| ownership.apply(live, config, force));
            match applied {
                Ok(mut object) => {
                    meta::coerce(&mut object);
                    kind.fill(&mut object);
                    schema::default(&mut object, kind.version(&target.version).and_then(|v| v.schema.as_ref()));
                    Ok(object)
                }
                Err(ApplyError::Conflicts(conflicts)) => Err(Refusal::apply_conflict(&conflicts)),
                Err(ApplyError::Failed(error)) => Err(Refusal::untyped(error)),
            }
        };
        if self.store.get(&kind.table(), &key).is_some() {
            return self.update(target, options, &apply).map(|object| (false, object));
        }
        let mut new = apply(self, &empty(&kind, &target.version))?;
        if !text(&new, "/metadata/uid").is_empty() {
            let uid = text(&new, "/metadata/uid");
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Refusal::conflict(&kind.named(target.object_name()), &why));
        }
        check_name(target, &new)?;
        self.admit(target, &mut new)?;
        self.insert(target, options, new).map(|object| (true, object))
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
        refuse(kind, name, &kind.check(&target.version, target.path, &new, Some(current)))?;
        if without_times(&new) == without_times(current) {
            new["metadata"] = current["metadata"].clone();
        }
        Ok(new)
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

    fn ownership<T>(&self, target: &Target, options: &Options, then: impl FnOnce(&Ownership<'_>) -> T) -> T {
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
            reset: kind.reset(&target.version, target.path),
            manager: Manager {
                name: &options.manager,
                api_version: &api_version,
                subresource: target.subresource(),
                time: &time,
            },
        })
    }

    /// DELETE. What is left to answer with: the object when it stays for its finalizers.
    pub(super) fn delete(&mut self, target: &Target, body: &Value, dry_run: bool) -> Result<Value, Refusal> {
        let kind = target.kind.clone();
        let (table, name) = (kind.table(), target.object_name());
        let key = key(target.namespace.as_deref(), name);
        let record = self.store.get(&table, &key).ok_or_else(|| Refusal::not_found(&kind.named(name)))?;
        let object = self.read(&kind, &record, &target.version)?;
        for (field, what, why) in [
            ("uid", "UID", "The object might have been deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "The object might have been modified"),
        ] {
            let (given, found) =
                (text(body, &format!("/preconditions/{field}")), text(&object, &format!("/metadata/{field}")));
            if !given.is_empty() && given != found {
                let why = format!(
                    "the {what} in the precondition ({given}) does not match the {what} in record ({found}). {why}"
                );
                return Err(Refusal::conflict(&kind.kind_named(name), &why));
            }
        }
        let uid = text(&object, "/metadata/uid").to_owned();
        if dry_run {
            return Ok(deleted(&kind, name, &uid));
        }
        if kind.is_definitions() {
            return self.delete_definition(&record.value);
        }
        let held = !items(&object, "/metadata/finalizers").is_empty() || table == namespaces();
        if !held {
            self.store.remove(&table, &key);
            self.removed(&kind, &record.value);
            return Ok(deleted(&kind, name, &uid));
        }
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(object);
        }
        let mut new = object;
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
}

/// What a create or a replacement calls itself.
fn check_version(target: &Target, object: &Value) -> Result<(), Refusal> {
    let (expected, found) = (target.api_version(), text(object, "/apiVersion"));
    if found.is_empty() || found == expected {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    )))
}

/// An object as it came in a request: the right type, pruned, defaulted.
fn accept(target: &Target, mut object: Value) -> Result<Value, Refusal> {
    let kind = &target.kind;
    if !object.is_object() {
        return Err(Refusal::bad_request("the body of the request is no object"));
    }
    let expected = target.api_version();
    for (field, expected) in [("apiVersion", &expected), ("kind", &kind.kind)] {
        let found = object[field].as_str().unwrap_or_default();
        if !found.is_empty() && found != expected {
            let named = if field == "kind" { found } else { &kind.kind };
            let named = Named::new(&kind.group, named, text(&object, "/metadata/name"));
            let cause = Cause::invalid(field, &found.into(), &format!("must be {expected}"));
            return Err(Refusal::invalid(&named, &[cause]));
        }
    }
    object["apiVersion"] = expected.into();
    object["kind"] = kind.kind.clone().into();
    meta::coerce(&mut object);
    kind.fill(&mut object);
    if kind.definition.is_some() {
        let schema = kind.version(&target.version).and_then(|version| version.schema.as_ref());
        schema::prune(&mut object, schema);
        schema::default(&mut object, schema);
    }
    Ok(object)
}

fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural, "uid": uid});
    if !kind.group.is_empty() {
        details["group"] = kind.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn refuse(kind: &Kind, name: &str, causes: &[Cause]) -> Result<(), Refusal> {
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(&kind.kind_named(name), causes)) }
}

fn check_name(target: &Target, object: &Value) -> Result<(), Refusal> {
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
