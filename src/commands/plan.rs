//! `sbx plan`: observe and compare; writes nothing, ever.

use std::{env, fs};

use super::{cluster::connect, select::select};
use crate::{
    cli::{ClusterArgs, PlanArgs, PlanFormat},
    error::Error,
    exit_code::ExitCode,
    render, steps,
    terminal::Terminal,
};

pub(super) async fn run(args: PlanArgs, cluster: &ClusterArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    let reader = connect(cluster, &runbook).await?;
    let working_dir =
        env::current_dir().map_err(|source| Error::Local { attempt: "find the working directory".into(), source })?;
    let situation = steps::observe(&reader, &runbook, &graph, &working_dir, &[]).await?;
    let plan = steps::plan(&runbook, &graph, &situation, None);
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
