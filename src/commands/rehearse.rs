//! `sbx rehearse`: the whole upgrade on an API server held in memory.

use std::{env, fs, path::PathBuf, process};

use super::select::{select, step};
use crate::{
    apply::Ending,
    backup::create_folder,
    cli::RehearseArgs,
    clock::Hands,
    error::Error,
    exit_code::ExitCode,
    rehearse::{ACTOR, Happening, Rehearsal},
    render::{RehearsalPage, report_text},
    snapshot,
    terminal::{self, Prompt, Terminal},
};

pub(super) async fn run(args: RehearseArgs, terminal: &Terminal) -> Result<ExitCode, Error> {
    let (runbook, graph) = select(args.runbook)?;
    if args.interactive && !terminal::can_ask() {
        return Err(Error::NobodyToAsk);
    }
    let fail = args.fail.map(|name| step(&name, &runbook)).transpose()?;
    let (header, server) = match &args.snapshot {
        Some(path) => snapshot::load(path, ACTOR)?,
        None => snapshot::built_in(ACTOR)?,
    };
    let folder = Folder::new()?;
    let view = terminal.page_out();
    let page = std::sync::Mutex::new(RehearsalPage::new(&runbook.path, view));
    let tell = |happening: Happening<'_>| {
        // Whole texts only: a panic while one is made leaves nothing half said.
        let text = page.lock().unwrap_or_else(std::sync::PoisonError::into_inner).text(&happening);
        terminal.out(&text);
    };
    let mut prompt = Prompt;
    let rehearsal = Rehearsal {
        runbook: &runbook,
        graph: &graph,
        server: &server,
        hands: Hands::at(header.taken_at),
        working_dir: &folder.0,
        fail,
        ask: args.interactive.then_some(&mut prompt as _),
        tell: &tell,
    };
    let report = rehearsal.run().await?;
    terminal.out(&report_text(&report, &view));
    Ok(match (report.settled, report.endings.last()) {
        (true, _) => ExitCode::Success,
        (false, Some(Ending::NeedsApproval(_))) => ExitCode::NeedsApproval,
        (false, Some(Ending::Declined(_))) => ExitCode::Declined,
        (false, _) => ExitCode::Error,
    })
}

/// Where the rehearsal's backups and journals go; gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Error> {
        let path = env::temp_dir().join(format!("sbx-rehearsal-{}", process::id()));
        create_folder(&path)
            .map_err(|source| Error::Local { attempt: format!("make the folder {}", path.display()), source })?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
