//! Whole runs on an API server held in memory: what goes wrong in between, and how the run ends.

mod prompts;
mod served;

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use sbx::{
    apply::{Ending, Event},
    clock::Hands,
    embedded::{Interception, RequestRecord, Server},
    graph,
    rehearse::{ACTOR, Happening, Rehearsal},
    runbook::StepId,
    snapshot,
};
use serde_json::Value;

/// What came of a rehearsal in which somebody meddles.
struct Played {
    /// How each apply ended.
    endings: Vec<Ending>,
    /// The last line of each journal, in the order of the runs.
    last_lines: Vec<Value>,
}

/// Rehearses the shipped runbook; `meddle` is told of each event and each ending.
async fn rehearse(fail: Option<&str>, meddle: impl Fn(&Server, &Happening<'_>) + Sync) -> Played {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("runbooks/v1.0.0.toml");
    let (runbook, order) = graph::load(&path).expect("the shipped runbook is sound");
    let (header, server) = snapshot::built_in(ACTOR).expect("the built-in snapshot is sound");
    let folder = tempfile::tempdir().expect("a folder");
    let endings = Mutex::new(Vec::new());
    let tell = |happening: Happening<'_>| {
        if let Happening::Ended(ending) = &happening {
            endings.lock().expect("nobody panics here").push((*ending).clone());
        }
        meddle(&server, &happening);
    };
    let rehearsal = Rehearsal {
        runbook: &runbook,
        graph: &order,
        server: &server,
        hands: Hands::at(header.taken_at),
        working_dir: folder.path(),
        fail: fail.map(|id| StepId(id.into())),
        ask: None,
        tell: &tell,
    };
    rehearsal.run().await.expect("the server answers in the end");
    let endings = endings.into_inner().expect("nobody panics here");
    Played { endings, last_lines: last_lines(folder.path()) }
}

fn last_lines(folder: &Path) -> Vec<Value> {
    let runs = std::fs::read_dir(folder.join("runs")).expect("journals");
    let mut paths: Vec<_> = runs.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let last = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a journal");
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
    };
    paths.iter().map(last).collect()
}

/// A client of the gate `flickerd` goes back to a release that writes the old version.
fn ship_an_old_client(server: &Server) {
    let raw = server.stored("deployments.apps");
    let stored = raw.iter().find(|stored| stored.key == "flickerd/flickerd-generator").expect("it is there");
    let mut object = stored.object.clone();
    for container in object["spec"]["template"]["spec"]["containers"].as_array_mut().expect("containers") {
        let image = container["image"].as_str().expect("an image").to_owned();
        let name = image.rsplit_once(':').expect("a tag").0;
        container["image"] = format!("{name}:v0.14.0").into();
    }
    server.put("deployments.apps", object).expect("the server has deployments");
}

fn ended(happening: &Happening<'_>, step: &str) -> bool {
    matches!(happening, Happening::Event(Event::StepEnded { id, stop: None, .. }) if id.0 == step)
}

#[tokio::test]
async fn a_gate_whose_change_this_run_made_stops_it_no_more() {
    let played = rehearse(None, |server, happening| {
        if ended(happening, "merge") {
            ship_an_old_client(server);
        }
    })
    .await;
    assert!(matches!(&played.endings[..], [Ending::Finished]), "{:?}", played.endings);
}

#[tokio::test]
async fn a_gate_that_the_plan_did_not_need_stops_no_rerun() {
    let played = rehearse(Some("orphaned-claims"), |server, happening| {
        if let Happening::Ended(_) = happening {
            ship_an_old_client(server);
        }
    })
    .await;
    let endings = &played.endings;
    assert!(matches!(&endings[..], [Ending::Failed(..), Ending::Finished]), "{endings:?}");
}

#[tokio::test]
async fn a_gate_that_still_guards_something_stops_the_run_when_it_closes() {
    let closed = AtomicUsize::new(0);
    let played = rehearse(None, |server, happening| {
        if ended(happening, "backup") && closed.fetch_add(1, Ordering::Relaxed) == 0 {
            ship_an_old_client(server);
        }
    })
    .await;
    assert!(matches!(&played.endings[0], Ending::Unmet(gates) if gates[0].0.0 == "flickerd"), "{:?}", played.endings);
}

/// From now on this many requests find nobody in; none: all of them.
fn break_down(server: &Server, requests: Option<usize>) {
    let left = AtomicUsize::new(requests.unwrap_or(usize::MAX));
    server.intercept(Some(Arc::new(move |_: &RequestRecord| {
        let down = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        down.then(|| Interception {
            code: 503,
            reason: "ServiceUnavailable",
            message: "etcd is away".into(),
            retry_after: None,
            after: false,
        })
    })));
}

#[tokio::test]
async fn an_outage_between_steps_is_waited_out() {
    let played = rehearse(None, |server, happening| {
        if ended(happening, "backup") || ended(happening, "merge") {
            break_down(server, Some(40));
        }
    })
    .await;
    assert!(matches!(&played.endings[..], [Ending::Finished]), "{:?}", played.endings);
    assert_eq!(played.last_lines[0]["event"], "run_ended");
    assert_eq!(played.last_lines[0]["ending"], "finished");
}

#[tokio::test]
async fn an_outage_that_lasts_is_a_step_that_failed() {
    for step in ["backup", "merge"] {
        let broken = AtomicUsize::new(0);
        let played = rehearse(None, |server, happening| {
            if ended(happening, step) && broken.fetch_add(1, Ordering::Relaxed) == 0 {
                break_down(server, None);
            }
            if let Happening::Ended(_) = happening {
                server.intercept(None);
            }
        })
        .await;
        let next = if step == "backup" { "migrate" } else { "controller" };
        let Ending::Failed(id, stop) = &played.endings[0] else { panic!("after {step}: {:?}", played.endings) };
        assert_eq!(id.0, next);
        assert!(format!("{stop:?}").contains("etcd is away"), "{stop:?}");
        let last = &played.last_lines[0];
        assert_eq!(
            (&last["event"], &last["ending"], &last["step"]),
            (&"run_ended".into(), &"failed".into(), &next.into())
        );
    }
}
