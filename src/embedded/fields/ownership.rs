//! Who owns which field after a write.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::entries::{Entry, Identity, Managed};
use super::types::Type;
use super::walk::Duplicates;
use super::walk::{Comparison, compare, fields, merge, misfit, remove};
use super::{FieldSet, walk};

/// Whoever writes, through which version and subresource, and when.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct Manager<'a> {
    pub(in crate::embedded) name: &'a str,
    pub(in crate::embedded) api_version: &'a str,
    pub(in crate::embedded) subresource: &'a str,
    /// RFC 3339.
    pub(in crate::embedded) time: &'a str,
}

/// Why an object cannot be had at another version.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum ConvertError {
    /// The kind never had it: entries that name it are dropped.
    Unknown,
    /// The server's words.
    Failed(String),
}

/// Why an apply is refused.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum ApplyError {
    /// Fields of others: `(manager, path)`.
    Conflicts(Vec<(String, String)>),
    /// The server's words, without a Status.
    Failed(String),
}

/// An object's types, its conversions, and the fields that a write through this path may not change.
pub(in crate::embedded) struct Ownership<'a> {
    /// The types of each version.
    pub(in crate::embedded) types: &'a dyn Fn(&str) -> Type<'a>,
    /// The object at another `apiVersion`.
    pub(in crate::embedded) convert: &'a dyn Fn(&Value, &str) -> Result<Value, ConvertError>,
    /// Fields that the server takes from the live object.
    pub(in crate::embedded) reset: FieldSet,
    /// Writer and path of the request.
    pub(in crate::embedded) manager: Manager<'a>,
}

/// Fields that nobody ever owns.
fn unowned() -> FieldSet {
    let mut set = FieldSet::of_fields(&["apiVersion", "kind", "metadata"]);
    for field in
        ["name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"]
    {
        set.insert(&["f:metadata".into(), format!("f:{field}")]);
    }
    set
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    super::super::json::metadata(&mut object).remove("managedFields");
    object
}

impl Ownership<'_> {
    /// The entries after an update from `live` to `new`, written into `new`.
    ///
    /// The error says why ownership cannot be told; `new` is then without entries.
    pub(in crate::embedded) fn update(&self, live: &Value, new: &mut Value) -> Result<(), String> {
        let managed = Managed::requested(live, new, !self.manager.subresource.is_empty());
        super::super::json::metadata(new).remove("managedFields");
        // An object without owners stays so, except when it is created.
        if managed.0.is_empty() && live.pointer("/metadata/uid").is_some() {
            return Ok(());
        }
        let managed = self.updated(&bare(live), new, managed, self.manager.name)?;
        managed.write(new);
        Ok(())
    }

    /// The object after a server-side apply of `config`, with its entries.
    pub(in crate::embedded) fn apply(&self, live: &Value, config: &Value, force: bool) -> Result<Value, ApplyError> {
        let failed = ApplyError::Failed;
        let mut managed =
            Managed::of(live).map_err(|error| failed(format!("failed to decode managed fields: {error}")))?;
        let live = bare(live);
        if managed.0.is_empty() {
            // Whatever was written before anybody applied belongs to nobody in particular.
            let empty = json!({"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {}});
            managed = self
                .updated(&empty, &live, managed, "before-first-apply")
                .map_err(|error| failed(format!("failed to create manager for existing fields: {error}")))?;
        }
        let version = self.manager.api_version;
        let of = (self.types)(version);
        if let Some(misfit) = misfit(of, config, Duplicates::Refused) {
            let name = super::super::json::text(config, "/metadata/name");
            let namespace = super::super::json::text(config, "/metadata/namespace");
            let kind = config["kind"].as_str().unwrap_or_default();
            return Err(failed(format!(
                "failed to create typed patch object ({namespace}/{name}; {version}, Kind={kind}): {misfit}"
            )));
        }
        self.reconcile(&live, &mut managed).map_err(failed)?;
        let merged = merge(of, Some(&live), Some(config)).unwrap_or_else(|| json!({}));
        let identity = Identity::new(true, self.manager.name, self.manager.subresource, version);
        let last = managed.0.get(&identity).cloned();
        let applied = fields(of, config).outside(&self.reset);
        let time = last.as_ref().and_then(|last| last.time.clone());
        managed.0.insert(identity.clone(), Entry { api_version: version.into(), fields: applied, time });
        let new = match last.filter(|last| !last.fields.is_empty()) {
            None => merged,
            Some(last) => {
                self.prune(&merged, &managed, &last).map_err(|e| failed(format!("failed to prune fields: {e}")))?
            }
        };
        let comparison = compare(of, &live, &new).outside(&self.reset);
        self.take(&live, &new, &comparison, &mut managed, Some(&identity), force)?;
        let changed = new != live;
        if let Some(entry) = managed.0.get_mut(&identity) {
            entry.fields = entry.fields.difference(&unowned());
            // As on the server: an apply that changes nothing sets no time, not even a first one.
            if changed {
                entry.time = Some(self.manager.time.into());
            }
            if entry.fields.is_empty() {
                managed.0.remove(&identity);
            }
        }
        let mut object = new;
        managed.write(&mut object);
        Ok(object)
    }

    /// The entries after an update; whoever changes a field owns it alone.
    fn updated(&self, live: &Value, new: &Value, mut managed: Managed, name: &str) -> Result<Managed, String> {
        let Manager { api_version, subresource, time, .. } = self.manager;
        self.reconcile(live, &mut managed)?;
        let comparison = compare((self.types)(api_version), live, new).outside(&self.reset);
        match self.take(live, new, &comparison, &mut managed, None, true) {
            Ok(()) => {}
            Err(ApplyError::Failed(error)) => return Err(error),
            Err(ApplyError::Conflicts(_)) => unreachable!("an update takes what it changes"),
        }
        let changed = comparison.modified.union(&comparison.added).outside(&self.reset).difference(&unowned());
        if !changed.is_empty() {
            let identity = Identity::new(false, name, subresource, api_version);
            let mine = managed.0.entry(identity).or_insert_with(|| Entry {
                api_version: api_version.into(),
                fields: FieldSet::default(),
                time: None,
            });
            mine.fields = mine.fields.union(&changed);
            mine.time = Some(time.into());
        }
        Ok(managed)
    }

    /// The live object must be had at every version that an entry names; entries below what the schema has made whole
    /// since own all of it.
    fn reconcile(&self, live: &Value, managed: &mut Managed) -> Result<(), String> {
        let mut unknown = Vec::new();
        for (identity, entry) in &mut managed.0 {
            match self.at(live, &entry.api_version) {
                Ok(_) => entry.fields = entry.fields.reconciled((self.types)(&entry.api_version)),
                Err(ConvertError::Unknown) => unknown.push(identity.clone()),
                Err(ConvertError::Failed(error)) => return Err(error),
            }
        }
        for identity in unknown {
            managed.0.remove(&identity);
        }
        Ok(())
    }

    /// Takes what changed from everybody but `applier`; without `force` that is a conflict.
    fn take(
        &self,
        live: &Value,
        new: &Value,
        comparison: &Comparison,
        managed: &mut Managed,
        applier: Option<&Identity>,
        force: bool,
    ) -> Result<(), ApplyError> {
        let own_version = self.manager.api_version;
        let mut versions = BTreeMap::from([(own_version.to_owned(), comparison.clone())]);
        let mut conflicts = Vec::new();
        for (identity, entry) in &mut managed.0 {
            if Some(identity) == applier {
                continue;
            }
            if !versions.contains_key(&entry.api_version) {
                let convert = |object: &Value, which: &str| match self.at(object, &entry.api_version) {
                    Ok(object) => Ok(object),
                    Err(ConvertError::Unknown) => Err(ApplyError::Failed(format!("no kind at {}", entry.api_version))),
                    Err(ConvertError::Failed(error)) => {
                        Err(ApplyError::Failed(format!("failed to convert {which} object: {error}")))
                    }
                };
                let (live, new) = (convert(live, "old")?, convert(new, "new")?);
                let comparison = compare((self.types)(&entry.api_version), &live, &new);
                versions.insert(entry.api_version.clone(), comparison);
            }
            let comparison = &versions[&entry.api_version];
            let taken = entry.fields.intersection(&comparison.modified.union(&comparison.added));
            if !taken.is_empty() && !force {
                let who = identity.described(entry);
                conflicts.extend(taken.paths().into_iter().map(|path| (who.clone(), path)));
            }
            entry.fields = entry.fields.difference(&taken).difference(&comparison.removed);
        }
        if !conflicts.is_empty() {
            conflicts.sort_by(|(a, _), (b, _)| a.cmp(b));
            return Err(ApplyError::Conflicts(conflicts));
        }
        managed.0.retain(|_, entry| !entry.fields.is_empty());
        Ok(())
    }

    /// Removes what the applier applied last time and no longer does, unless somebody else owns it.
    fn prune(&self, merged: &Value, managed: &Managed, last: &Entry) -> Result<Value, String> {
        let at = |object: &Value, version: &str| match self.at(object, version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::Unknown) => Ok(None),
            Err(ConvertError::Failed(error)) => Err(error),
        };
        let failed = |error| format!("failed to convert merged object to last applied version: {error}");
        let Some(merged) = at(merged, &last.api_version).map_err(failed)? else { return Ok(merged.clone()) };
        let of = (self.types)(&last.api_version);
        let empty = || json!({});
        let mut pruned = remove(of, &merged, &last.fields.with_declared_parents(of)).unwrap_or_else(empty);

        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for entry in managed.0.values() {
            let fields = owned.entry(&entry.api_version).or_default();
            *fields = fields.union(&entry.fields);
        }
        // The version pruned at first: another may need what is added back here to convert at all.
        let first = owned.remove_entry(last.api_version.as_str());
        for (version, owned) in first.into_iter().chain(owned) {
            let (Some(whole), Some(part)) = (at(&merged, version)?, at(&pruned, version)?) else { continue };
            let of = (self.types)(version);
            let all = |object: &Value| fields(of, object).with_declared_parents(of);
            let gone = all(&whole).difference(&all(&part).union(&owned.with_declared_parents(of)));
            pruned = remove(of, &whole, &gone).unwrap_or_else(empty);
        }

        // What goes must have been the applier's.
        let Some(part) = at(&pruned, &last.api_version)? else { return Ok(merged) };
        let all = |object: &Value| walk::fields(of, object).with_declared_parents(of);
        let gone = all(&merged).difference(&all(&part)).intersection(&last.fields.with_declared_parents(of));
        let pruned = remove(of, &merged, &gone).unwrap_or_else(empty);
        Ok(at(&pruned, self.manager.api_version)?.unwrap_or(pruned))
    }

    fn at(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        if object["apiVersion"] == api_version {
            return Ok(object.clone());
        }
        let converted = (self.convert)(object, api_version)?;
        match misfit((self.types)(api_version), &converted, Duplicates::Allowed) {
            None => Ok(converted),
            Some(misfit) => Err(ConvertError::Failed(misfit)),
        }
    }
}
