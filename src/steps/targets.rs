//! The CRDs that will be applied, from `[upgrade] target-crds`, or derived from the live ones.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::{
    Survey,
    trial::{Target, target},
};
use crate::{
    cluster::Reader,
    crd::Crd,
    files,
    object::{Object, ObjectRef},
    runbook::Runbook,
};

/// Target CRDs by name.
pub(super) enum Targets {
    /// The runbook names no files.
    Derived,
    /// Those found in the files.
    Files(BTreeMap<String, Object>),
    /// The files cannot be read.
    Unreadable(String),
}

impl Targets {
    /// Reads the runbook's files, if it names any.
    pub(super) fn load(runbook: &Runbook) -> Self {
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

    /// What the server says of a CRD's target.
    pub(super) async fn trial(&self, reader: &Reader, runbook: &Runbook, crd: &Crd) -> Target {
        match self {
            Self::Derived => target(reader, runbook, crd, None).await,
            Self::Files(files) => match files.get(crd.name()) {
                Some(file) => target(reader, runbook, crd, Some(file)).await,
                // A prune by the deployer would delete the CRD, and every object with it.
                None => Target::Refused(format!("target-crds hold no CRD {}", crd.name())),
            },
            Self::Unreadable(words) => Target::Refused(format!("target-crds: {words}")),
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
