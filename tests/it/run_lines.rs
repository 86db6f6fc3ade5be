//! What `sbx apply` says while it runs and when it ends, from hand-made events.

use std::{path::Path, time::Duration};

use sbx::{
    apply::{Ending, Event},
    object::ObjectRef,
    render::{RunLines, Styles, View, ending_text, escape::is_hidden},
    runbook::StepId,
    steps::{Outcome, Progress, Stop},
};

const BAD: &str = "a\u{1b}[2J\u{9b}m\u{202e}";

fn id(text: &str) -> StepId {
    StepId(text.into())
}

fn sandbox(name: &str) -> ObjectRef {
    ObjectRef {
        group: "agents.x-k8s.io".into(),
        kind: "Sandbox".into(),
        namespace: Some("team-a".into()),
        name: name.into(),
    }
}

fn object(name: &str, outcome: Outcome) -> Progress {
    Progress::Object { object: sandbox(name), outcome, resource_version: None }
}

fn run() -> Vec<Event> {
    let until = "2026-12-01T14:33:40Z".parse().expect("a time");
    let within = |progress| Event::Step { id: id("migrate"), progress };
    vec![
        Event::Began {
            run: "20261201-140211-5d".into(),
            context: "admin@pitower".into(),
            user: Some("admin".into()),
            fingerprint: "a41c-90de-77b2".into(),
            lock: "Lease default/sbx-1a2b3c4d".into(),
        },
        Event::Approved { phrase: "yes".into(), by_flag: true },
        Event::Settled { number: 1, id: id("flickerd"), summary: "generator v0.15.2 >= 0.15.0, rolled out".into() },
        Event::Closed { number: 2, id: id("garrison"), summary: "keep v0.56.0, wants >= 0.57.0".into() },
        Event::StepBegan { number: 5, id: id("migrate"), summary: "rewrite 4 objects, prune 1 CRDs".into() },
        within(Progress::Waiting { what: "the CRD's spec to settle".into(), until }),
        within(Progress::StillWaiting { seen: "changed 14:32:40Z".into(), waited: Duration::from_secs(125) }),
        within(object("s1", Outcome::Updated)),
        within(object("s2", Outcome::Updated)),
        within(object("s3", Outcome::Unchanged)),
        within(object("s4", Outcome::Gone)),
        within(object("s5", Outcome::Failed("Sandbox.agents.x-k8s.io \"s5\" is invalid".into()))),
        within(Progress::Pass { over: "sandboxes.agents.x-k8s.io".into(), pass: 1, done: 5, rewritten: 2 }),
        within(Progress::Said("two\nlines".into())),
        Event::StepEnded {
            number: 5,
            id: id("migrate"),
            took: Duration::from_secs(21),
            stop: Some(Stop::failed("1 of 5 objects failed")),
        },
        Event::StepBegan { number: 11, id: id("webhook-certs"), summary: "delete 1 object".into() },
        Event::Step { id: id("webhook-certs"), progress: object("old", Outcome::Deleted) },
        Event::StepEnded { number: 11, id: id("webhook-certs"), took: Duration::from_millis(80), stop: None },
    ]
}

#[test]
fn a_run_reads_from_top_to_bottom() {
    let mut lines = RunLines::new(View::plain(100));
    let said: Vec<String> = run().iter().flat_map(|event| lines.lines(event)).collect();
    let expected = "\
run 20261201-140211-5d on admin@pitower as admin, plan a41c-90de-77b2
lock Lease default/sbx-1a2b3c4d
approved: yes (on the command line)
=  1 flickerd: generator v0.15.2 >= 0.15.0, rolled out
?  2 garrison: WAITING: keep v0.56.0, wants >= 0.57.0
>  5 migrate: rewrite 4 objects, prune 1 CRDs
     waiting until 2026-12-01T14:33:40Z at the latest: the CRD's spec to settle
     waited 2 min 5 s: changed 14:32:40Z
     Sandbox team-a/s4 was gone
     FAILED Sandbox team-a/s5: Sandbox.agents.x-k8s.io \"s5\" is invalid
     sandboxes.agents.x-k8s.io: pass 1, 2 rewritten, 5 proved
     two
     lines
!  5 migrate: FAILED after 21 s: 2 updated, 1 unchanged, 1 gone, 1 FAILED
> 11 webhook-certs: delete 1 object
     deleted Sandbox team-a/old
= 11 webhook-certs: done in under 1 s: 1 deleted";
    assert_eq!(said.join("\n"), expected);
}

#[test]
fn the_live_line_counts_within_a_step_only() {
    let mut lines = RunLines::new(View::plain(80));
    let live: Vec<Option<String>> = run()
        .iter()
        .map(|event| {
            lines.lines(event);
            lines.live()
        })
        .collect();
    assert_eq!(live[6], None, "nothing is done yet");
    assert_eq!(live[8].as_deref(), Some("5 migrate: 2 updated"));
    assert_eq!(live[13].as_deref(), Some("5 migrate: 2 updated, 1 unchanged, 1 gone, 1 FAILED"));
    assert_eq!(live[14], None, "the step is over");
    assert_eq!(live[16].as_deref(), Some("11 webhook-certs: 1 deleted"));
}

fn endings() -> Vec<(Ending, &'static str)> {
    let failed = Stop::Failed {
        text: "2 of 41 objects could not be rewritten".into(),
        failures: vec![(Some(sandbox("s5")), "is invalid:\nspec.x".into()), (None, "timeout".into())],
        hint: Some("sbx backup verify".into()),
    };
    vec![
        (Ending::NoChanges, "No changes: nothing was asked, nothing was written.\n"),
        (Ending::Finished, "Apply complete.\nCheck: sbx plan 'my runbook.toml'   (expect: No changes)\n"),
        (
            Ending::Blocked,
            "Apply refuses: the plan above has blockers. Nothing was written.\n\
             Next, once what it names is mended: sbx apply 'my runbook.toml'\n",
        ),
        (
            Ending::Unmet(vec![(id("flickerd"), "v0.14.0".into()), (id("garrison"), "v0.56.0".into())]),
            "Stopped at 2 gates; nothing that depends on them ran:\n  flickerd: v0.14.0\n  garrison: v0.56.0\nNext, \
             once they are open: sbx apply 'my runbook.toml'\n",
        ),
        (
            Ending::NeedsApproval("--approve merge@admin@pitower".into()),
            "Stopped: approval is needed and nobody can be asked. --approve merge@admin@pitower gives it.\n",
        ),
        (Ending::Declined("to run the steps".into()), "Declined to run the steps. Nothing after it ran.\n"),
        (
            Ending::Failed(id("migrate"), failed),
            "migrate failed: 2 of 41 objects could not be rewritten\n  Sandbox team-a/s5: is invalid:\\nspec.x\n  \
             timeout\nhint: sbx backup verify\nWhat is done is kept.\nNext: sbx apply 'my runbook.toml'   (does the \
             rest)\n",
        ),
        (
            Ending::Locked("ada@laptop since 14:02".into()),
            "Another apply holds the lock: ada@laptop since 14:02. Nothing was written.\nNext, once it is free: sbx apply 'my runbook.toml'\n",
        ),
        (
            Ending::Interrupted("in step 5 migrate: 19 of 29 done".into()),
            "Interrupted in step 5 migrate: 19 of 29 done. What is done is kept.\nNext: sbx apply 'my runbook.toml'   \
             (does the rest)\n",
        ),
    ]
}

#[test]
fn every_ending_says_what_comes_next() {
    for (ending, expected) in endings() {
        assert_eq!(ending_text(&ending, Path::new("my runbook.toml"), &View::plain(120)), expected);
    }
}

#[test]
fn colour_is_extra_and_nothing_acts() {
    let coloured = View { width: 120, styles: Styles::coloured() };
    for (ending, expected) in endings() {
        let painted = ending_text(&ending, Path::new("my runbook.toml"), &coloured);
        assert_eq!(console::strip_ansi_codes(&painted), expected);
    }
    let bad = || BAD.to_owned();
    let stop = || Stop::Failed { text: bad(), failures: vec![(Some(sandbox(BAD)), bad())], hint: Some(bad()) };
    let events = [
        Event::Began { run: bad(), context: bad(), user: Some(bad()), fingerprint: bad(), lock: bad() },
        Event::Approved { phrase: bad(), by_flag: false },
        Event::Settled { number: 1, id: id(BAD), summary: bad() },
        Event::Closed { number: 1, id: id(BAD), summary: bad() },
        Event::StepBegan { number: 1, id: id(BAD), summary: bad() },
        Event::Step { id: id(BAD), progress: object(BAD, Outcome::Failed(bad())) },
        Event::Step { id: id(BAD), progress: object(BAD, Outcome::Created) },
        Event::Step { id: id(BAD), progress: Progress::Pass { over: bad(), pass: 1, done: 1, rewritten: 1 } },
        Event::Step { id: id(BAD), progress: Progress::Said(bad()) },
        Event::StepEnded { number: 1, id: id(BAD), took: Duration::ZERO, stop: Some(stop()) },
    ];
    let mut lines = RunLines::new(View::plain(80));
    let mut said: Vec<String> = Vec::new();
    for event in &events {
        said.extend(lines.lines(event));
        said.extend(lines.live());
    }
    for ending in [
        Ending::Unmet(vec![(id(BAD), bad())]),
        Ending::NeedsApproval(bad()),
        Ending::Declined(bad()),
        Ending::Failed(id(BAD), stop()),
        Ending::Locked(bad()),
        Ending::Interrupted(bad()),
    ] {
        said.extend(ending_text(&ending, Path::new(BAD), &View::plain(80)).lines().map(Into::into));
    }
    for line in said {
        assert!(!line.contains(is_hidden), "{line:?}");
    }
}
