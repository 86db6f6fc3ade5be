//! Apply within the test, on a clock that the test turns.

use sbx::apply::{Ask, Ending, Event, Options, Session};
use sbx::clock::Clock;
use sbx::cluster::{Writer, connect};
use sbx::graph::StepGraph;
use sbx::runbook::{Runbook, StepId, load};
use sbx::steps::{Interrupt, Progress};
use tempfile::TempDir;

use crate::support::Result;
use crate::support::control_plane::CONTEXT;
use crate::support::fixture::Fixture;
use crate::support::sbx::shipped;

/// The shipped runbook, a connection and a folder.
pub struct InProcess {
    writer: Writer,
    runbook: Runbook,
    graph: StepGraph,
    folder: TempDir,
}

/// Nobody can be asked.
struct Nobody;

impl Ask for Nobody {
    fn ask<'a>(&'a mut self, _question: &'a str) -> futures::future::BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

impl InProcess {
    pub async fn new(fixture: &Fixture, clock: &Clock) -> Result<Self> {
        let runbook = load(shipped().as_ref()).map_err(|error| format!("{error:?}"))?;
        let graph = StepGraph::of(&runbook).map_err(|cycle| format!("{cycle:?}"))?;
        let reader = connect(Some(&fixture.plane.kubeconfig("admin")?), CONTEXT, clock.clone()).await?;
        Ok(Self { writer: Writer::new(reader), runbook, graph, folder: tempfile::tempdir()? })
    }

    /// `sbx apply --yes --to STEP`, with every event of it handed over as it happens.
    pub async fn apply_to(&self, step: &str, events: &(dyn Fn(&Event) + Sync)) -> Result<Ending> {
        let interrupt = Interrupt::default();
        let session = Session {
            writer: &self.writer,
            runbook: &self.runbook,
            graph: &self.graph,
            working_dir: self.folder.path(),
            interrupt: &interrupt,
            events,
        };
        let options = Options { to: Some(StepId(step.into())), yes: true, ..Options::default() };
        let plan = session.plan(options.to.as_ref()).await?;
        Ok(session.apply(&plan, &options, &mut Nobody).await?)
    }
}

/// Whether an event says that a CRD's first pass over its records is over.
pub fn first_pass_over(event: &Event, crd: &str) -> bool {
    matches!(event, Event::Step { progress: Progress::Pass { over, pass: 1, .. }, .. } if over == crd)
}
