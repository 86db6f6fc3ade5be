//! What a runbook would have to be about, found on the live cluster.
//!
//! ```text
//! CRDs -> upgrades (from, to, deployer) -> one of them -> its writers -> Draft -> render
//! ```
//!
//! A guess is never passed for a fact: what was seen becomes a step, what was only inferred a comment.

mod deployer;
mod upgrades;
mod writers;

use std::collections::{BTreeMap, BTreeSet};

pub use deployer::{Deployer, Origin};
use jiff::Timestamp;
pub use upgrades::{Found, Upgrade, upgrades};

use crate::{
    cluster::{ClusterError, Reader},
    crd::WebhookService,
    object::ObjectRef,
};

/// Everything that a drafted runbook says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// kubeconfig context.
    pub context: String,
    /// uid of namespace `kube-system`; none when it could not be read.
    pub cluster_uid: Option<String>,
    /// Version that goes.
    pub from: String,
    /// Version that stays.
    pub to: String,
    /// CRDs, by name.
    pub crds: Vec<DraftCrd>,
    /// Who applies them; none: nobody's name stands in them.
    pub deployer: Option<Deployer>,
    /// Who has written records at `from`.
    pub writers: Vec<Writer>,
    /// The conversion webhooks.
    pub webhooks: Vec<Webhook>,
    /// Names of the annotations in which a conversion keeps the old object.
    pub state_annotations: BTreeSet<String>,
    /// What could not be looked at, in the server's words.
    pub unread: Vec<String>,
}

/// One CRD of the draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftCrd {
    /// `plural.group`.
    pub name: String,
    /// `status.storedVersions`.
    pub stored_versions: Vec<String>,
    /// Its records; none: they cannot be listed.
    pub records: Option<usize>,
}

/// Who has written records at the version that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// Field manager.
    pub manager: String,
    /// How many records of each kind.
    pub kinds: BTreeMap<String, usize>,
    /// When last; none: no entry of it has a time.
    pub last: Option<Timestamp>,
    /// Whether it server-side-applies: then it is a deployer, with manifests somewhere.
    pub applies: bool,
    /// Workloads of its name.
    pub workloads: Vec<Workload>,
}

/// A workload and the container that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Which one.
    pub object: ObjectRef,
    /// The container; none: it has only one.
    pub container: Option<String>,
    /// Its image.
    pub image: String,
}

/// A conversion webhook that goes with the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where it is reached.
    pub service: WebhookService,
    /// Whether the deployer's name stands in the Service: then it goes when it is no longer deployed.
    pub deployed: bool,
    /// Labels of the pods that answer it.
    pub selector: BTreeMap<String, String>,
    /// Workloads that answer it.
    pub workloads: Vec<Workload>,
}

/// Drafts a runbook for an upgrade.
///
/// # Errors
/// The server does not answer.
pub async fn draft(reader: &Reader, context: &str, upgrade: &Upgrade) -> Result<Draft, ClusterError> {
    let server = reader.server_facts().await?;
    let mut draft = Draft {
        context: context.into(),
        cluster_uid: server.cluster_uid,
        from: upgrade.from.clone(),
        to: upgrade.to.clone(),
        crds: Vec::new(),
        deployer: upgrade.deployer.clone(),
        writers: Vec::new(),
        webhooks: Vec::new(),
        state_annotations: BTreeSet::new(),
        unread: upgrade.unread.clone(),
    };
    writers::records(reader, upgrade, &mut draft).await?;
    writers::webhooks(reader, upgrade, &mut draft).await?;
    writers::workloads(reader, &mut draft).await?;
    Ok(draft)
}
