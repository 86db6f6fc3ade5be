//! `sbx init`: a runbook drafted from the live cluster.

use std::{fs::OpenOptions, io::Write};

use crate::{
    cli::{ClusterArgs, InitArgs},
    clock::Clock,
    cluster,
    draft::{self, Found, Upgrade},
    error::Error,
    exit_code::ExitCode,
    render,
    terminal::Terminal,
};

pub(super) async fn run(args: InitArgs, cluster: &ClusterArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let kubeconfig = cluster.kubeconfig.as_deref();
    let context = match &cluster.context {
        Some(context) => context.clone(),
        None => cluster::current_context(kubeconfig)?,
    };
    let reader = cluster::connect(kubeconfig, &context, Clock::real()).await?;
    let upgrade = match draft::upgrades(&reader, &args.crd).await? {
        Found::One(upgrade) => upgrade,
        Found::Nothing(looked_at) => {
            terminal.err(&format!(
                "Nothing to draft: none of {looked_at} CRDs lists more than its storage version. `--crd NAME` drafts \
                 for one all the same."
            ));
            return Ok(ExitCode::Success);
        }
        Found::Several(upgrades) => return Err(choice(&upgrades)),
        Found::Cannot(name, why, near) => return Err(Error::NoUpgrade { name, why, near }),
    };
    let draft = draft::draft(&reader, &context, &upgrade).await?;
    let text = render::draft_text(&draft);
    let Some(path) = &args.output else {
        terminal.out(&text);
        return Ok(ExitCode::Success);
    };
    let attempt = format!("write the runbook to {}", path.display());
    // A runbook that somebody has worked on is never written over.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|source| Error::Local { attempt: attempt.clone(), source })?;
    file.write_all(text.as_bytes()).map_err(|source| Error::Local { attempt, source })?;
    let shown = render::escape::shell_word(&path.to_string_lossy());
    terminal.err(&format!("Drafted {shown}: read it, then\nNext: sbx plan {shown}"));
    Ok(ExitCode::Success)
}

fn choice(upgrades: &[Upgrade]) -> Error {
    let choices = upgrades.iter().map(|upgrade| {
        let crds = upgrade.crds.iter().map(|crd| crd.name().to_owned()).collect();
        (upgrade.from.clone(), upgrade.to.clone(), crds)
    });
    Error::SeveralUpgrades(choices.collect())
}
