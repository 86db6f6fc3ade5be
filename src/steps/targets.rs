//! The CRDs that will be applied, from `[upgrade] target-crds`, or derived from the live ones.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::{
    Survey,
    trial::{Target, derive_target, target},
};
use crate::{
    cluster::Reader,
    crd::Crd,
    files,
    object::{Object, ObjectRef},
    runbook::Runbook,
};

/// Target CRDs by name.
pub enum Targets {
    /// The runbook names no files.
    Derived,
    /// Those found in the files.
    Files(BTreeMap<String, Object>),
    /// The files cannot be read.
    Unreadable(String),
}

impl Targets {
    /// Reads the runbook's files, if it names any.
    pub fn load(runbook: &Runbook) -> Self {
        let Some(path) = &runbook.upgrade.target_crds else { return Self::Derived };
        match files::read_objects(path) {
            Ok(objects) => Self::Files(
                objects
                    .into_iter()
                    .filter(|object| object.kind() == "CustomResourceDefinition")
                    .map(|object| (object.name().to_owned(), object))
                    .collect(),
            ),
            Err(words) => Self::Unreadable(words),
        }
    }

    /// The object that will be applied for a CRD.
    ///
    /// # Errors
    /// Why there is none, as a verdict.
    pub fn object(&self, runbook: &Runbook, crd: &Crd) -> Result<Object, Target> {
        match self {
            Self::Derived => derive_target(runbook, crd),
            // A prune by the deployer would delete a CRD that is missing, and every object with it.
            Self::Files(files) => files
                .get(crd.name())
                .cloned()
                .ok_or_else(|| Target::Refused(format!("target-crds hold no CRD {}", crd.name()))),
            Self::Unreadable(words) => Err(Target::Refused(format!("target-crds: {words}"))),
        }
    }

    /// What the server says of a CRD's target.
    pub(super) async fn trial(&self, reader: &Reader, runbook: &Runbook, crd: &Crd) -> Target {
        if !crd.declares(&runbook.upgrade.from) {
            return Target::Applied;
        }
        match self.object(runbook, crd) {
            Ok(object) => target(reader, runbook, &object).await,
            Err(verdict) => verdict,
        }
    }
}

/// What the server says of the target of every installed CRD.
pub(super) async fn trials(reader: &Reader, runbook: &Runbook, survey: &Survey) -> Vec<(ObjectRef, Target)> {
    let targets = Targets::load(runbook);
    let trials = survey.installed().map(async |crd| {
        let target = targets.trial(reader, runbook, crd).await;
        (crd.object.reference(), target)
    });
    join_all(trials).await
}
