//! Reaching the cluster that the runbook is for, and no other.

use crate::{
    cli::ClusterArgs,
    clock::Clock,
    cluster::{self, Reader},
    error::Error,
    runbook::Runbook,
};

/// Connects with the runbook's context.
///
/// # Errors
/// Another context is asked for, another cluster answers, or none does.
pub(super) async fn connect(args: &ClusterArgs, runbook: &Runbook) -> Result<Reader, Error> {
    let wanted = &runbook.cluster.context;
    if let Some(asked) = args.context.as_ref().filter(|asked| *asked != wanted) {
        return Err(Error::OtherCluster { wanted: format!("context {wanted}"), found: format!("context {asked}") });
    }
    let reader = cluster::connect(args.kubeconfig.as_deref(), wanted, Clock::real()).await?;
    if let Some(uid) = &runbook.cluster.uid {
        let found = reader.server_facts().await?.cluster_uid.unwrap_or_else(|| "a cluster that hides its uid".into());
        if found != *uid {
            return Err(Error::OtherCluster { wanted: format!("cluster {uid}"), found });
        }
    }
    Ok(reader)
}
