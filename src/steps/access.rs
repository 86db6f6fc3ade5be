//! What the user may not do of what the steps need: asked before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};

use super::{Look, pace::WIDTH, rights};
use crate::{
    cluster::Access,
    plan::Finding,
    runbook::{Runbook, StepId},
};

/// Verbs that change something.
const WRITING: [&str; 4] = ["create", "patch", "update", "delete"];

/// Answers of the access reviews.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    /// Rights that were refused, each with the steps that need it.
    pub denied: BTreeMap<Access, Vec<StepId>>,
    /// Reviews that failed themselves, with the server's words.
    pub unknown: BTreeMap<Access, String>,
    /// Whether any writing right was granted: a user without one is a reader, whose plan is still worth having.
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

/// What the lock of an apply needs the right to do.
fn lock_rights(runbook: &Runbook) -> Vec<Access> {
    let namespace = Some(runbook.cluster.lock_namespace.as_str());
    ["get", "create", "update"].map(|verb| access(verb, "coordination.k8s.io", "leases", namespace, None)).to_vec()
}

impl Rights {
    /// Findings for a step: blockers, or, for a user who may write nothing at all, not checked.
    pub(super) fn findings(&self, step: &StepId) -> Vec<Finding> {
        let mine = |steps: &&Vec<StepId>| steps.contains(step);
        let denied = self.denied.iter().filter(|(_, steps)| mine(steps)).map(|(access, _)| {
            let text = format!("the user may not {access}");
            if self.writes || !WRITING.contains(&access.verb.as_str()) {
                Finding::blocker(text).hint("grant it, then plan again")
            } else {
                Finding::not_checked(text)
            }
        });
        denied.collect()
    }

    /// Findings about no step: reviews that could not be asked.
    pub(super) fn unknown_findings(&self) -> Vec<Finding> {
        let words: BTreeSet<&String> = self.unknown.values().collect();
        words.into_iter().map(|words| Finding::not_checked(format!("access reviews failed: {words}"))).collect()
    }
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
