//! `sbx snapshot`: what plan and rehearse need of the live cluster, in one file.

use super::{cluster::connect, select::select};
use crate::{
    cli::{ClusterArgs, SnapshotArgs},
    error::Error,
    exit_code::ExitCode,
    render,
    snapshot::{self, TakeError},
    terminal::Terminal,
};

pub(super) async fn run(args: SnapshotArgs, cluster: &ClusterArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, _) = select(args.runbook)?;
    let reader = connect(cluster, &runbook).await?;
    let summary = snapshot::take(&reader, &runbook, &args.output).await.map_err(|error| match error {
        TakeError::Cluster(error) => Error::Cluster(error),
        error @ TakeError::NothingRead(..) => Error::NothingRead(error),
        TakeError::File(source) => {
            Error::Local { attempt: format!("write the snapshot to {}", args.output.display()), source }
        }
    })?;
    terminal.err(&render::snapshot_text(&summary, &args.output, &runbook.path, &terminal.page_err()));
    Ok(ExitCode::Success)
}
