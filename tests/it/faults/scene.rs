//! The built-in cluster, a runbook without gates, and a run over it.

use std::future::ready;

use futures::future::BoxFuture;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use sbx::{
    apply::{Ask, Ending, Event, Options, Session},
    backup::create_folder,
    clock::{Clock, Hands},
    cluster::{Reader, Writer},
    embedded::Server,
    graph::{self, StepGraph},
    plan::Plan,
    runbook::{Runbook, StepId},
    snapshot,
    steps::{Interrupt, Stop},
};
use serde_json::Value;

pub(super) const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
pub(super) const CLAIMS: &str = "sandboxclaims.extensions.agents.x-k8s.io";
pub(super) const TEMPLATES: &str = "sandboxtemplates.extensions.agents.x-k8s.io";

const HEAD: &str = r#"
title = "a test"
[cluster]
context = "admin@pitower"
[upgrade]
from = "v1alpha1"
to = "v1beta1"
crds = [
  "sandboxwarmpools.extensions.agents.x-k8s.io", "sandboxtemplates.extensions.agents.x-k8s.io",
  "sandboxes.agents.x-k8s.io", "sandboxclaims.extensions.agents.x-k8s.io",
]
deployer = "DEPLOYER"
[[step]]
id = "backup"
[step.backup]
to = "b-{run}"
"#;

/// Migration as a step of these runbooks.
pub(super) const MIGRATE: &str = "[[step]]\nid = \"migrate\"\nneeds = [\"backup\"]\n[step.migrate]\n";
/// Release, likewise.
pub(super) const RELEASE: &str = "[[step]]\nid = \"release\"\nneeds = [\"migrate\"]\n[step.release]\n";

/// Types what it is asked for.
struct Yes;

impl Ask for Yes {
    fn ask<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        let phrase = question.rsplit("type  ").next().and_then(|rest| rest.split_whitespace().next());
        let answer = if question.contains("Type yes") { "yes" } else { phrase.unwrap_or_default() };
        Box::pin(ready(Some(answer.to_owned())))
    }
}

/// What is run: a plan alone, or apply after it, up to a step.
enum Verb<'a> {
    Plan,
    Apply(Option<&'a str>),
}

/// What happens to the server.
type Act = Arc<dyn Fn(&Server) + Send + Sync>;

pub(super) struct Scene {
    pub(super) server: Server,
    pub(super) hands: Hands,
    pub(super) folder: PathBuf,
    pub(super) runbook: Runbook,
    pub(super) graph: StepGraph,
    began: Mutex<Option<(String, Act)>>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Scene {
    /// `steps`: what follows the backup.
    pub(super) fn new(deployer: &str, steps: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sbx-faults-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        create_folder(&folder).expect("a folder");
        let path = folder.join("runbook.toml");
        fs::write(&path, format!("{}{steps}", HEAD.replace("DEPLOYER", deployer))).expect("written");
        let (runbook, graph) = graph::load(&path).unwrap_or_else(|error| panic!("{error:?}"));
        let (header, server) = snapshot::built_in("you").expect("the built-in snapshot");
        let hands = Hands::at(header.taken_at);
        let clock = hands.clone();
        server.set_clock(Arc::new(move || clock.now()));
        Self { server, hands, folder, runbook, graph, began: Mutex::default() }
    }

    /// Does something once a step begins, after the last look before it.
    pub(super) fn when_begins(&self, step: &str, act: impl Fn(&Server) + Send + Sync + 'static) {
        *self.began.lock().expect("no panic while it is held") = Some((step.into(), Arc::new(act)));
    }

    fn writer(&self) -> Writer {
        let clock = Clock::played(self.hands.clone(), Box::new(|| Box::pin(tokio::task::yield_now())));
        Writer::new(Reader::new(self.server.client_as("you"), clock))
    }

    pub(super) async fn plan(&self) -> Plan {
        self.with(&Verb::Plan).await.0
    }

    /// Plans and applies, up to a step.
    pub(super) async fn apply(&self, to: Option<&str>) -> Ending {
        self.with(&Verb::Apply(to)).await.1.expect("it was applied")
    }

    async fn with(&self, verb: &Verb<'_>) -> (Plan, Option<Ending>) {
        let (writer, interrupt) = (self.writer(), Interrupt::default());
        let events = |event: &Event| {
            let Event::StepBegan { id, .. } = event else { return };
            let mut began = self.began.lock().expect("no panic while it is held");
            if began.as_ref().is_some_and(|(step, _)| *step == id.0)
                && let Some((_, act)) = began.take()
            {
                act(&self.server);
            }
        };
        let session = Session {
            writer: &writer,
            runbook: &self.runbook,
            graph: &self.graph,
            working_dir: &self.folder,
            interrupt: &interrupt,
            events: &events,
        };
        let to = match verb {
            Verb::Plan => None,
            Verb::Apply(to) => to.map(|id| StepId(id.into())),
        };
        let plan = session.plan(to.as_ref()).await.expect("the server answers");
        if matches!(verb, Verb::Plan) {
            return (plan, None);
        }
        let options = Options { to, ..Options::default() };
        let ending = session.apply(&plan, &options, &mut Yes).await.expect("the server answers");
        (plan, Some(ending))
    }

    /// Changes a record under everybody's hands.
    pub(super) fn alter(server: &Server, resource: &str, name: &str, change: impl Fn(&mut Value)) {
        let stored = server.stored(resource).into_iter();
        let found = stored.filter(|stored| stored.key == name || stored.key.ends_with(&format!("/{name}")));
        let mut changed = 0;
        for mut stored in found {
            change(&mut stored.object);
            server.put(resource, stored.object).expect("put");
            changed += 1;
        }
        assert_eq!(changed, 1, "{resource} {name}");
    }

    pub(super) fn crd(&self, name: &str) -> Value {
        let stored = self.server.stored(CRDS).into_iter();
        stored.map(|stored| stored.object).find(|crd| crd["metadata"]["name"] == name).expect("the CRD")
    }

    /// The one backup's manifest.
    pub(super) fn manifest(&self) -> Value {
        let entries = fs::read_dir(&self.folder).expect("the folder").flatten();
        let manifest = entries.map(|entry| entry.path().join("manifest.json")).find(|path| path.exists());
        let text = fs::read(manifest.as_deref().unwrap_or(Path::new("no manifest"))).expect("a manifest");
        serde_json::from_slice(&text).expect("JSON")
    }
}

/// What a run that failed says, with every object's words and the hint.
pub(super) fn failure(ending: &Ending) -> String {
    match ending {
        Ending::Failed(step, Stop::Failed { text, failures, hint }) => {
            let words: Vec<&str> = failures.iter().map(|(_, words)| words.as_str()).collect();
            format!("{step}: {text} [{}] {}", words.join("; "), hint.as_deref().unwrap_or_default())
        }
        other => format!("{other:?}"),
    }
}
