//! The rules that hold for every touch, against a server that answers as it is told to.

mod server;

use std::{collections::BTreeMap, path::Path, sync::Mutex, time::Duration};

use jiff::Timestamp;
use sbx::{
    clock::Clock,
    cluster::{Reader, ServerFacts, Writer},
    graph::StepGraph,
    object::{Object, Resource},
    runbook::{Cluster, Runbook, Upgrade},
    steps::{
        Interrupt, Outcome, Pace, Progress, Rights, Run, Situation, Survey,
        touch::{Touched, touch, touch_named},
    },
};
use serde_json::{Value, json};

use server::{Fate, Server};

/// A touch of the one object, and what surrounded it.
struct Scene {
    server: Server,
    writer: Writer,
    pace: Pace,
    interrupt: Interrupt,
    said: Mutex<Vec<Progress>>,
}

impl Scene {
    fn new(fates: &[Fate]) -> Self {
        let server = Server::new(fates);
        let writer = Writer::new(Reader::new(server.client(), Clock::jumping()));
        let (pace, interrupt, said) = (Pace::default(), Interrupt::default(), Mutex::default());
        Self { server, writer, pace, interrupt, said }
    }

    fn now(&self) -> Timestamp {
        self.writer.reader().clock().now()
    }

    /// Labels the object `done`, once.
    async fn touch(&self) -> Touched {
        let build = |object: &Object| {
            let done = object.0.pointer("/metadata/labels/done").is_some();
            (!done).then(|| json!({"metadata": {"labels": {"done": "yes"}}}))
        };
        self.touch_with(&build).await
    }

    async fn touch_with(&self, build: &(dyn Fn(&Object) -> Option<Value> + Sync)) -> Touched {
        let runbook = runbook();
        let graph = StepGraph::of(&runbook).expect("no step, no cycle");
        let situation = situation();
        let report = |progress| self.said.lock().expect("nobody panics here").push(progress);
        let run = Run {
            writer: &self.writer,
            runbook: &runbook,
            graph: &graph,
            situation: &situation,
            working_dir: Path::new("."),
            run_id: "test",
            pace: &self.pace,
            report: &report,
            interrupt: &self.interrupt,
        };
        let object = resource().object(Some("ns"), "w");
        touch_named(&run, &resource(), &object, "uid-1", &build).await
    }
}

fn resource() -> Resource {
    Resource::new("demo.test", "v1beta1", "widgets", "Widget", true)
}

fn runbook() -> Runbook {
    Runbook {
        path: "test.toml".into(),
        sha256: String::new(),
        title: String::new(),
        cluster: Cluster { context: "test".into(), uid: None, lock_namespace: "default".into() },
        upgrade: Upgrade {
            from: "v1alpha1".into(),
            to: "v1beta1".into(),
            crds: Vec::new(),
            deployer: None,
            target_crds: None,
            references: Vec::new(),
        },
        steps: Vec::new(),
    }
}

fn situation() -> Situation {
    Situation {
        server: ServerFacts { version: String::new(), cluster_uid: None, user: None },
        now: Timestamp::UNIX_EPOCH,
        survey: Survey::default(),
        seen: BTreeMap::new(),
        rights: Rights::default(),
    }
}

fn preconditions(patch: &Value) -> (&str, &str) {
    let text = |key: &str| patch["metadata"][key].as_str().unwrap_or_default();
    (text("uid"), text("resourceVersion"))
}

#[tokio::test]
async fn every_answer_has_its_outcome() {
    use Fate::{
        Answer, AnswerLost, Deleted, Overtaken, Recreated, RecreatedQuietly, Silence, Unchanged, Unserved, Written,
    };
    let refused = |code: u16| Outcome::Failed(format!("said {code}"));
    let table: [(&[Fate], Outcome, bool, usize); 17] = [
        (&[Written], Outcome::Updated, false, 1),
        (&[Unchanged], Outcome::Unchanged, false, 1),
        (&[Overtaken, Overtaken, Written], Outcome::Updated, false, 3),
        (&[Deleted], Outcome::Gone, false, 1),
        (&[Recreated], Outcome::Gone, true, 1),
        (&[RecreatedQuietly], Outcome::Gone, true, 1),
        // The write landed: it is read back and not sent again.
        (&[AnswerLost], Outcome::Updated, false, 1),
        (&[Answer(500, None), Written], Outcome::Updated, false, 2),
        (&[Answer(504, None), Written], Outcome::Updated, false, 2),
        (&[Silence, Written], Outcome::Updated, false, 2),
        // A server that does not serve the path yet: nobody is gone.
        (&[Unserved, Written], Outcome::Updated, false, 2),
        (&[Answer(429, Some(2)), Answer(503, None), Written], Outcome::Updated, false, 3),
        (&[Answer(401, None), Written], refused(401), false, 1),
        (&[Answer(403, None), Written], refused(403), false, 1),
        (&[Answer(422, None), Written], refused(422), false, 1),
        (&[Answer(400, None), Written], refused(400), false, 1),
        (&[Answer(413, None), Written], refused(413), false, 1),
    ];
    for (fates, outcome, recreated, patches) in table {
        let scene = Scene::new(fates);
        let touched = scene.touch().await;
        assert_eq!((touched.outcome, touched.recreated), (outcome, recreated), "{fates:?}");
        assert_eq!(scene.server.patches().len(), patches, "{fates:?}");
    }
}

#[tokio::test]
async fn each_try_names_the_uid_and_the_version_it_was_made_from() {
    let scene = Scene::new(&[Fate::Overtaken, Fate::Written]);
    scene.touch().await;
    let patches = scene.server.patches();
    assert_eq!(patches.iter().map(preconditions).collect::<Vec<_>>(), [("uid-1", "10"), ("uid-1", "11")]);
    let object = scene.server.object().expect("it is there");
    assert_eq!(object["metadata"]["labels"], json!({"somebody": "else", "done": "yes"}));
}

#[tokio::test]
async fn nothing_to_do_sends_nothing() {
    let scene = Scene::new(&[Fate::Written]);
    let touched = scene.touch_with(&|_| None).await;
    assert_eq!((touched.outcome, scene.server.patches().len()), (Outcome::Unchanged, 0));
}

#[tokio::test]
async fn an_object_that_is_gone_is_never_made_again() {
    let scene = Scene::new(&[Fate::Deleted]);
    scene.touch().await;
    let touched = scene.touch().await;
    assert_eq!((touched.outcome, scene.server.patches().len()), (Outcome::Gone, 1));
    assert_eq!(scene.server.object(), None);
}

#[tokio::test]
async fn a_writer_in_a_loop_is_outwaited_only_so_long() {
    let scene = Scene::new(&[Fate::Overtaken]);
    let touched = scene.touch().await;
    assert_eq!(touched.outcome, Outcome::Failed("it changed under each of 40 tries: said 409".into()));
    assert_eq!(scene.server.patches().len(), 41);
}

#[tokio::test]
async fn what_should_heal_is_held_within_its_bound_and_no_longer() {
    let table = [
        (Fate::Answer(503, None), 120),
        (Fate::Answer(500, None), 120),
        (Fate::Unserved, 120),
        (Fate::Initializing, 60),
    ];
    for (fate, bound) in table {
        let scene = Scene::new(&[fate]);
        let began = scene.now();
        let touched = scene.touch().await;
        assert!(matches!(touched.outcome, Outcome::Failed(_)), "{fate:?} {:?}", touched.outcome);
        let took = scene.now().duration_since(began).as_secs();
        assert!((bound - 11..=bound + 1).contains(&took), "{fate:?} was held for {took} s");
        let waits = scene.said.lock().expect("nobody panics here").len();
        assert_eq!(waits, 1, "an outage is said once");
        // The next object of the same outage is not held anew.
        scene.writer.reader().clock().turn(Duration::from_secs(15));
        let tries = scene.server.patches().len();
        scene.touch().await;
        assert_eq!(scene.server.patches().len(), tries + 1, "{fate:?}");
    }
}

#[tokio::test]
async fn retry_after_is_honoured_and_fewer_writes_are_in_flight() {
    let scene = Scene::new(&[Fate::Answer(429, Some(7)), Fate::Answer(429, Some(7)), Fate::Written]);
    let (began, width) = (scene.now(), scene.pace.width());
    assert_eq!(scene.touch().await.outcome, Outcome::Updated);
    assert!(scene.now().duration_since(began).as_secs() >= 14);
    assert_eq!(scene.pace.width(), width / 4);
}

#[tokio::test]
async fn an_interrupt_ends_a_hold() {
    let scene = Scene::new(&[Fate::Answer(503, None)]);
    scene.interrupt.set();
    let touched = scene.touch().await;
    assert!(matches!(touched.outcome, Outcome::Failed(_)));
    assert_eq!(scene.server.patches().len(), 1);
}

#[tokio::test]
async fn what_is_kept_of_an_answer_is_metadata() {
    let scene = Scene::new(&[Fate::Written]);
    let touched = scene.touch().await;
    assert_eq!(touched.after.as_ref().map(Object::resource_version), Some("11"));
    assert!(!format!("{touched:?}").contains("canary"));
}

#[tokio::test]
async fn metadata_in_hand_is_not_read_again() {
    let scene = Scene::new(&[Fate::Overtaken, Fate::Written]);
    let (runbook, situation) = (runbook(), situation());
    let graph = StepGraph::of(&runbook).expect("no step, no cycle");
    let run = Run {
        writer: &scene.writer,
        runbook: &runbook,
        graph: &graph,
        situation: &situation,
        working_dir: Path::new("."),
        run_id: "test",
        pace: &scene.pace,
        report: &|_| {},
        interrupt: &scene.interrupt,
    };
    // As a list brought it a while ago.
    let listed = Object(json!({"metadata": {"namespace": "ns", "name": "w", "uid": "uid-1", "resourceVersion": "3"}}));
    let build = |_: &Object| Some(json!({}));
    let touched = tokio::time::timeout(Duration::from_secs(10), touch(&run, &resource(), listed, &build)).await;
    assert_eq!(touched.expect("in time").outcome, Outcome::Updated);
    let patches = scene.server.patches();
    assert_eq!(patches.iter().map(preconditions).collect::<Vec<_>>(), [("uid-1", "3"), ("uid-1", "11")]);
}
