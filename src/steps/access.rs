//! What the user may not do of what the steps need: asked before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};

use sha2::{Digest, Sha256};

use super::{Look, pace::WIDTH, rights, roles::joined};
use crate::{
    cluster::Access,
    plan::Finding,
    runbook::{Runbook, StepId},
};

/// Verbs that change something.
pub(super) const WRITING: [&str; 4] = ["create", "patch", "update", "delete"];

/// Answers of the access reviews.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Rights that were refused, each with the steps that need it.
    pub denied: BTreeMap<Access, Vec<StepId>>,
    /// Reviews that failed themselves, with the server's words.
    pub unknown: BTreeMap<Access, String>,
    /// Whether any writing right was granted, or is about to be used: a user without one is a reader, whose plan is
    /// still worth having.
    pub writes: bool,
}

/// Every right that any step needs, with the steps that need it.
pub fn needed(runbook: &Runbook) -> BTreeMap<Access, Vec<StepId>> {
    let mut needed: BTreeMap<Access, Vec<StepId>> = BTreeMap::new();
    for step in &runbook.steps {
        for access in rights(step, runbook) {
            let steps = needed.entry(access).or_default();
            if !steps.contains(&step.id) {
                steps.push(step.id.clone());
            }
        }
    }
    let changing = runbook.steps.iter().filter(|step| !step.task.is_gate()).map(|step| step.id.clone());
    let changing: Vec<StepId> = changing.collect();
    for access in lock_rights(runbook) {
        needed.insert(access, changing.clone());
    }
    needed
}

/// Asks for every right that any step needs.
pub(super) async fn observe(look: &Look<'_>) -> Rights {
    let mut answers = Rights::default();
    let reviews = needed(look.runbook).into_iter().map(async |(access, steps)| {
        let answer = look.reader.may(&access).await;
        (access, steps, answer)
    });
    let mut reviews = stream::iter(reviews).buffer_unordered(WIDTH);
    while let Some((access, steps, answer)) = reviews.next().await {
        match answer {
            Ok(true) => answers.writes |= WRITING.contains(&access.verb.as_str()),
            Ok(false) => {
                answers.denied.insert(access, steps);
            }
            Err(error) => {
                answers.unknown.insert(access, error.words());
            }
        }
    }
    answers
}

/// Whether a right is of no use to who only looks: the lock is read by who takes it.
fn is_for_writing(access: &Access) -> bool {
    WRITING.contains(&access.verb.as_str()) || access.resource == "leases"
}

/// What the lock of an apply needs the right to do.
pub(super) fn lock_rights(runbook: &Runbook) -> Vec<Access> {
    let namespace = Some(runbook.cluster.lock_namespace.as_str());
    let name = lock_name(runbook);
    // Nobody can be given the right to create one name alone.
    [("create", None), ("get", Some(name.as_str())), ("update", Some(name.as_str()))]
        .map(|(verb, name)| access(verb, "coordination.k8s.io", "leases", namespace, name))
        .to_vec()
}

/// Name of the Lease for a runbook's CRDs: the same for every runbook over them.
pub fn lock_name(runbook: &Runbook) -> String {
    let mut crds = runbook.upgrade.crds.clone();
    crds.sort();
    let digest = Sha256::digest(crds.join(","));
    let digits: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    format!("sbx-{digits}")
}

impl Rights {
    /// What is missing for the steps still to come, like ones joined: blockers, or, for a user who may write nothing
    /// at all, not checked.
    pub(super) fn findings(&self, to_come: &dyn Fn(&StepId) -> bool, runbook: &Runbook) -> Vec<Finding> {
        let hint = format!(
            "grant it: sbx rbac {} prints the smallest roles for plan and for apply; then plan again",
            runbook.path.display()
        );
        let needed = self.denied.iter().filter_map(|(access, steps)| {
            let steps: Vec<StepId> = steps.iter().filter(|step| to_come(step)).cloned().collect();
            (!steps.is_empty()).then_some((access, steps))
        });
        let (mut blocking, mut open) = (Vec::new(), Vec::new());
        for (access, steps) in needed {
            let blocks = self.writes || !is_for_writing(access);
            if blocks { blocking.push((access, steps)) } else { open.push((access, steps)) }
        }
        let blocking = lacking(blocking).into_iter().map(|text| Finding::blocker(text).hint(hint.clone()));
        let open = lacking(open).into_iter().map(|text| Finding::not_checked(text).hint(hint.clone()));
        blocking.chain(open).collect()
    }

    /// Findings about no step: reviews that could not be asked.
    pub(super) fn unknown_findings(&self) -> Vec<Finding> {
        let words: BTreeSet<&String> = self.unknown.values().collect();
        words.into_iter().map(|words| Finding::not_checked(format!("access reviews failed: {words}"))).collect()
    }
}

/// `the user may not get, list, patch sandboxes.agents.x-k8s.io; backup, migrate need it`: as few lines as the rules
/// that would grant it.
pub(super) fn lacking<'a>(denied: impl IntoIterator<Item = (&'a Access, Vec<StepId>)>) -> Vec<String> {
    let denied: BTreeMap<&Access, Vec<StepId>> = denied.into_iter().collect();
    let rights = denied.keys().map(|access| (*access).clone()).collect();
    let mut texts = Vec::new();
    for (namespace, rules) in joined(&rights) {
        for rule in rules {
            let covered = denied.iter().filter(|(access, _)| rule.covers(namespace.as_deref(), access));
            let mut steps: Vec<&str> = Vec::new();
            for step in covered.flat_map(|(_, steps)| steps).map(|step| step.0.as_str()) {
                if !steps.contains(&step) {
                    steps.push(step);
                }
            }
            let place = namespace.as_ref().map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
            let need = match steps.len() {
                0 => String::new(),
                1 => format!("; {} needs it", steps[0]),
                _ => format!("; {} need it", steps.join(", ")),
            };
            texts.push(format!("the user may not {rule}{place}{need}"));
        }
    }
    texts
}

/// A right on all objects of a resource, or on one by name.
pub(super) fn access(verb: &str, group: &str, resource: &str, namespace: Option<&str>, name: Option<&str>) -> Access {
    Access {
        verb: verb.into(),
        group: group.into(),
        resource: resource.into(),
        namespace: namespace.map(Into::into),
        name: name.map(Into::into),
    }
}

/// Rights on each CRD of the upgrade, by name.
pub(super) fn on_crds(runbook: &Runbook, verb: &str, subresource: &str) -> Vec<Access> {
    let resource = format!("customresourcedefinitions{subresource}");
    let crds = runbook.upgrade.crds.iter();
    crds.map(|crd| access(verb, "apiextensions.k8s.io", &resource, None, Some(crd))).collect()
}

/// Rights on all objects of each kind of the upgrade.
pub(super) fn on_kinds(runbook: &Runbook, verb: &str) -> Vec<Access> {
    let kinds = runbook.upgrade.crds.iter().filter_map(|crd| crd.split_once('.'));
    kinds.map(|(plural, group)| access(verb, group, plural, None, None)).collect()
}
