//! `sbx plan`: observe and compare; writes nothing, ever.

use std::{env, fs, path::Path};

use super::{cluster::connect, select::select};
use crate::{
    cli::{ClusterArgs, PlanArgs, PlanFormat},
    cluster::Reader,
    error::Error,
    exit_code::ExitCode,
    plan::Finding,
    render,
    runbook::Runbook,
    snapshot::Offline,
    steps,
    terminal::Terminal,
};

pub(super) async fn run(args: PlanArgs, cluster: &ClusterArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    let working_dir =
        env::current_dir().map_err(|source| Error::Local { attempt: "find the working directory".into(), source })?;
    let (reader, offline) = match &args.snapshot {
        None => (connect(cluster, &runbook).await?, None),
        Some(path) => {
            let (reader, note) = open(path, cluster, &runbook)?;
            (reader, Some(note))
        }
    };
    let situation = steps::observe(&reader, &runbook, &graph, &working_dir, &[]).await?;
    let mut plan = steps::plan(&runbook, &graph, &situation, None);
    plan.findings.splice(0..0, offline);
    let json = || render::json_text(&render::plan_json(&plan));
    if let Some(path) = &args.out {
        let attempt = format!("write the plan to {}", path.display());
        fs::write(path, json()).map_err(|source| Error::Local { attempt, source })?;
    }
    terminal.out(&match args.format {
        PlanFormat::Text => render::plan_text(&plan, &terminal.page_out()),
        PlanFormat::Markdown => render::plan_markdown(&plan),
        PlanFormat::Json => json(),
    });
    Ok(if plan.blockers().next().is_some() {
        ExitCode::Error
    } else if args.detailed_exitcode && !plan.is_settled() {
        ExitCode::Pending
    } else {
        ExitCode::Success
    })
}

/// A snapshot in place of the cluster, and what to say of it.
fn open(path: &Path, cluster: &ClusterArgs, runbook: &Runbook) -> Result<(Reader, Finding), Error> {
    let offline = Offline::open(path)?;
    let wanted = &runbook.cluster;
    let asked = cluster.context.as_ref().unwrap_or(&wanted.context);
    let header = &offline.header;
    let other = |wanted: &str, found: &str| {
        Err(Error::OtherCluster { wanted: wanted.to_owned(), found: format!("a snapshot of {found}") })
    };
    if *asked != wanted.context || header.context != wanted.context {
        let found = if header.context == wanted.context { asked } else { &header.context };
        return other(&format!("context {}", wanted.context), &format!("context {found}"));
    }
    if let Some(uid) = wanted.uid.as_ref().filter(|uid| header.cluster_uid.as_ref() != Some(*uid)) {
        let found = header.cluster_uid.as_deref().unwrap_or("that hides its uid");
        return other(&format!("cluster {uid}"), &format!("cluster {found}"));
    }
    let lacking = offline.lacks(runbook);
    if !lacking.is_empty() {
        return Err(Error::SnapshotLacks { path: path.to_owned(), runbook: runbook.path.clone(), lacking });
    }
    let text = format!(
        "offline: planned from {}, taken {:.0}; the cluster was not asked, and may be another one by now",
        path.display(),
        header.taken_at
    );
    Ok((offline.reader(), Finding::note(text)))
}
