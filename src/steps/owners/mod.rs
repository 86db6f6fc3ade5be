//! Children whose ownerReferences name the version that goes: the garbage collector would never
//! collect them (design, fact 5). Only `apiVersion` changes; uid and flags stay.
//!
//! Any kind can be a child, so every kind is listed that this user may list. What could not be
//! listed is said, and never counted as fine.

mod observe;
mod run;

use std::collections::{BTreeMap, BTreeSet};

pub use observe::observe;
pub use run::run;
use serde_json::Value;

use super::{
    Decision, UndoBy, World,
    access::{access, lacking},
    well_known::known,
};
use crate::{
    cluster::Access,
    object::{ObjectRef, Resource, api_version},
    plan::{Change, FieldChange, Finding, Operation},
    runbook::{NamedObject, Owners, Runbook},
};

/// The children found, and what could not be looked at.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Objects with an ownerReference that names `from`, by kind, namespace and name.
    pub children: Vec<Child>,
    /// Objects whose owner no longer exists, as `Kind name`, with an ownerReference that names `from`.
    pub orphans: Vec<(ObjectRef, String)>,
    /// Kinds that were listed.
    pub listed: usize,
    /// Kinds this user may not list, as `plural.group`.
    pub forbidden: Vec<String>,
    /// Kinds or groups that could not be listed for another reason, with the server's words.
    pub unlisted: Vec<(String, String)>,
    /// Kinds named in the runbook that the server does not serve.
    pub unknown: Vec<String>,
    /// CRDs of the upgrade that could not be read, with the server's words: their children cannot be told.
    pub unread: Vec<(String, String)>,
    /// Rights on the kinds of the children that the user lacks.
    pub denied: Vec<Access>,
    /// Why nothing could be looked at.
    pub blind: Option<String>,
}

impl Seen {
    /// Why "no child was found" would say nothing: none could have been.
    pub fn blindness(&self) -> Option<String> {
        if let Some(words) = &self.blind {
            return Some(format!("the kinds of this cluster could not be listed: {words}"));
        }
        if !self.unread.is_empty() {
            let crds: Vec<&str> = self.unread.iter().map(|(crd, _)| crd.as_str()).collect();
            return Some(format!("whose children they are is not known: {} cannot be read", crds.join(", ")));
        }
        let left_out = self.forbidden.len() + self.unlisted.len();
        (self.listed == 0 && left_out > 0).then(|| format!("none of {left_out} kinds could be listed"))
    }
}

/// One object with an ownerReference that names `from`.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its resource, at the version it was listed at.
    pub resource: Resource,
    /// Which object.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// Its ownerReferences, all of them.
    pub owner_references: Vec<Value>,
    /// uids of owners that no longer exist: references to them are left alone.
    pub dead: BTreeSet<String>,
}

/// Which ownerReferences are meant: `apiVersion` and kind before, `apiVersion` after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames(BTreeMap<(String, String), String>);

impl Renames {
    /// Of every installed CRD of the upgrade.
    pub fn of(survey: &super::Survey, runbook: &Runbook) -> Self {
        let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
        let of_crd =
            |crd: &crate::crd::Crd| ((api_version(&crd.group, from), crd.kind.clone()), api_version(&crd.group, to));
        Self(survey.installed().map(of_crd).collect())
    }

    /// What an ownerReference's `apiVersion` becomes; none when it is not meant.
    fn after(&self, reference: &Value) -> Option<&String> {
        self.0.get(&(text(reference, "apiVersion").to_owned(), text(reference, "kind").to_owned()))
    }

    /// The whole list with the new `apiVersion`s; none when no entry is meant. `dead`: uids of owners
    /// that no longer exist. Relabelled, such a reference lets the garbage collector delete the child.
    pub fn apply(&self, references: &[Value], dead: &BTreeSet<String>) -> Option<Vec<Value>> {
        let after = |reference: &Value| self.after(reference).filter(|_| !dead.contains(text(reference, "uid")));
        if !references.iter().any(|reference| after(reference).is_some()) {
            return None;
        }
        let mut renamed: Vec<Value> = Vec::new();
        for reference in references {
            let mut reference = reference.clone();
            if let Some(after) = after(&reference) {
                reference["apiVersion"] = after.clone().into();
            }
            // An owner named at both versions is one owner; the flag of either holds.
            match renamed.iter_mut().find(|earlier| same_owner(earlier, &reference)) {
                Some(earlier) => {
                    for flag in ["controller", "blockOwnerDeletion"] {
                        if reference.get(flag) == Some(&Value::Bool(true)) {
                            earlier[flag] = true.into();
                        }
                    }
                }
                None => renamed.push(reference),
            }
        }
        Some(renamed)
    }
}

fn text<'a>(reference: &'a Value, key: &str) -> &'a str {
    reference.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn same_owner(one: &Value, other: &Value) -> bool {
    ["apiVersion", "kind", "name", "uid"].iter().all(|key| one.get(key) == other.get(key))
}

/// Settled when kinds could be listed and no child among them names `from`.
pub fn decide(_task: &Owners, seen: &Seen, world: &World<'_>) -> Decision {
    let renames = Renames::of(&world.situation.survey, world.runbook);
    judge(seen, &renames, &world.runbook.upgrade.from, world.situation.rights.writes)
}

/// The decision, from what it depends on alone. `writes`: whether the user may write anything.
fn judge(seen: &Seen, renames: &Renames, from: &str, writes: bool) -> Decision {
    let findings = findings(seen, writes);
    let left_out = seen.forbidden.len() + seen.unlisted.len();
    if seen.children.is_empty() {
        if let Some(why) = seen.blindness() {
            let finding = Finding::not_checked(why);
            return Decision::pending("children could not be looked for").with([finding]).with(findings);
        }
        let mut summary = format!("no ownerReference names {from} in {} kinds", seen.listed);
        if left_out > 0 {
            summary = format!("{summary}, {left_out} not checked");
        }
        return Decision::settled(summary).with(findings);
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for child in &seen.children {
        *kinds.entry(&child.object.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let total = seen.children.len();
    let plural = if total == 1 { "" } else { "s" };
    Decision::pending(format!("relabel ownerReferences of {total} object{plural} ({})", kinds.join(", ")))
        .undo(UndoBy::Backup)
        .changing(seen.children.iter().map(|child| change(child, renames)))
        .with(findings)
}

fn change(child: &Child, renames: &Renames) -> Change {
    let meant = child.owner_references.iter().filter_map(|reference| {
        let after = renames.after(reference).filter(|_| !child.dead.contains(text(reference, "uid")))?;
        let owner = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        let path = format!("metadata.ownerReferences[{owner}].apiVersion");
        Some(FieldChange::new(path, Some(text(reference, "apiVersion")), Some(after)))
    });
    Change { operation: Operation::Update, object: child.object.clone(), fields: meant.collect() }
}

fn findings(seen: &Seen, writes: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !seen.forbidden.is_empty() {
        let text = format!(
            "{} kinds that this user may not list, so their ownerReferences are unknown: {}",
            seen.forbidden.len(),
            seen.forbidden.join(", ")
        );
        findings.push(Finding::not_checked(text).hint("grant `list` on them, or name in `kinds` those that matter"));
    }
    for (what, words) in &seen.unlisted {
        findings.push(Finding::not_checked(format!("{what} could not be listed: {words}")));
    }
    for (crd, words) in &seen.unread {
        findings.push(Finding::not_checked(format!("children of the records of {crd} cannot be told: {words}")));
    }
    for kind in &seen.unknown {
        findings.push(Finding::warning(format!("`kinds` names {kind}, which this server does not serve")));
    }
    for text in lacking(seen.denied.iter().map(|access| (access, Vec::new()))) {
        findings.push(if writes {
            Finding::blocker(text).hint("grant it as well, then plan again")
        } else {
            Finding::not_checked(text)
        });
    }
    let orphans: BTreeSet<&(ObjectRef, String)> = seen.orphans.iter().collect();
    for (object, owner) in orphans {
        let text = format!(
            "orphan: its owner {owner} no longer exists; that reference is left alone, since relabelled it lets the \
             garbage collector delete the object"
        );
        let hint = "delete it yourself if nothing needs it; to keep it, take that ownerReference off";
        findings.push(Finding::warning(text).hint(hint).about(object.clone()));
    }
    findings
}

/// Reads and patches children. Which kinds have any only the cluster knows: with `kinds` left out
/// nothing is known beforehand, and observe asks for the rights on what it finds.
pub fn rights(task: &Owners, _runbook: &Runbook) -> Vec<Access> {
    let resources = task.kinds.iter().filter_map(|kind| known(&kind_of(kind)));
    resources
        .flat_map(|resource| {
            ["list", "get", "patch"].map(|verb| access(verb, &resource.group, &resource.plural, None, None))
        })
        .collect()
}

/// `Kind` or `Kind.group`, as written in `kinds`.
/// `Kind` or `Kind.group`, as a runbook names it.
pub fn kind_of(text: &str) -> NamedObject {
    let (kind, group) = text.split_once('.').map_or((text, None), |(kind, group)| (kind, Some(group.to_owned())));
    NamedObject { kind: kind.into(), group, name: String::new() }
}

#[cfg(test)]
mod tests;
