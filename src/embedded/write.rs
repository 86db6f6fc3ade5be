//! Create, replace, patch: how each of them makes the new object.

use std::cell::RefCell;

use serde_json::Value;

use super::accept::{accept, check_version, judge};
use super::convert::empty;
use super::fields::ApplyError;
use super::json::{merge_patch, metadata, text};
use super::route::{Options, Target};
use super::state::State;
use super::status::{Cause, Named, Refusal};
use super::store::key;
use super::strategy::Path;
use super::update::check_name;
use super::{meta, schema};

impl State {
    /// POST.
    pub(super) fn create(&mut self, target: &Target, options: &Options, body: Value) -> Result<Value, Refusal> {
        check_version(target, &body)?;
        if !text(&body, "/metadata/resourceVersion").is_empty() {
            return Err(Refusal::untyped("resourceVersion should not be set on objects to be created"));
        }
        let mut new = self.accepted(target, options, body)?;
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

    /// The body of a create or a replacement.
    fn accepted(&mut self, target: &Target, options: &Options, body: Value) -> Result<Value, Refusal> {
        let mut unknown = Vec::new();
        let new = accept(target, body, &mut unknown)?;
        let warnings = judge(options.validation, unknown, |words| {
            let (kind, version) = (&target.kind.kind, &target.version);
            Refusal::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {words}"))
        })?;
        self.warnings.extend(warnings);
        Ok(new)
    }

    /// PUT.
    pub(super) fn replace(&mut self, target: &Target, options: &Options, body: &Value) -> Result<Value, Refusal> {
        check_version(target, body)?;
        let new = self.accepted(target, options, body.clone())?;
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
        if !patch.is_object() {
            return Err(Refusal::bad_request("error decoding patch: a merge patch is an object"));
        }
        let warnings = RefCell::new(Vec::new());
        let updated = self.update(target, options, &|state, current| {
            let mut new = current.clone();
            merge_patch(&mut new, patch);
            let mut unknown = Vec::new();
            let patched = accept(target, new.clone(), &mut unknown)?;
            let judged = judge(options.validation, unknown, |words| {
                let cause = Cause::invalid("patch", &new.to_string().into(), words);
                Refusal::invalid(&Named::new("", "", ""), &[cause])
            })?;
            warnings.replace(judged);
            Ok(state.own(target, options, current, patched))
        });
        self.warnings.extend(warnings.into_inner());
        updated
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
                    meta::coerce(&mut object, &mut Vec::new());
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
        if target.path == Path::Status {
            return Err(Refusal::not_found(&kind.named(target.object_name())));
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
}
