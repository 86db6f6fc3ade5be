use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{
    crd::WebhookService,
    draft::DraftCrd,
    graph,
    object::ObjectRef,
    runbook::{Runbook, Task},
};

fn workload(name: &str, image: &str) -> Workload {
    let object =
        ObjectRef { group: "apps".into(), kind: "Deployment".into(), namespace: Some("ns".into()), name: name.into() };
    Workload { object, container: None, image: image.into() }
}

fn writer(manager: &str, workloads: Vec<Workload>) -> Writer {
    Writer {
        manager: manager.into(),
        kinds: BTreeMap::from([("Widget".into(), 3)]),
        last: Some("2026-11-28T10:14:00Z".parse().expect("a time")),
        applies: false,
        workloads,
    }
}

/// As little as can be found.
fn draft() -> Draft {
    Draft {
        context: "kind".into(),
        cluster_uid: None,
        from: "v1alpha1".into(),
        to: "v1".into(),
        crds: vec![DraftCrd {
            name: "widgets.demo.test".into(),
            stored_versions: vec!["v1alpha1".into(), "v1".into()],
            records: Some(3),
        }],
        deployer: None,
        writers: Vec::new(),
        webhooks: Vec::new(),
        state_annotations: BTreeSet::new(),
        unread: Vec::new(),
    }
}

/// The draft as a runbook, which it must be.
fn read(draft: &Draft) -> (String, Runbook) {
    let text = draft_text(draft);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("draft.toml");
    std::fs::write(&path, &text).expect("a file");
    let (runbook, _) = graph::load(&path).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    (text, runbook)
}

fn ids(runbook: &Runbook) -> Vec<&str> {
    runbook.steps.iter().map(|step| step.id.0.as_str()).collect()
}

#[test]
fn whatever_was_found_is_a_runbook() {
    let (text, runbook) = read(&draft());
    assert_eq!(ids(&runbook), ["writers", "backup", "migrate", "owners", "merge"]);
    assert_eq!(runbook.title, "demo.test: drop v1alpha1");
    assert!(text.contains("deployer = \"kubectl\"   # a guess"), "{text}");

    let service = WebhookService { namespace: "system".into(), name: "hook".into(), port: 443 };
    let webhook = Webhook {
        service,
        deployed: true,
        selector: BTreeMap::new(),
        workloads: vec![workload("operator", "x:v1.2.3")],
    };
    let whole = Draft {
        cluster_uid: Some("7c1e4b1a-0000-4000-8000-0000000090af".into()),
        deployer: Some(Deployer {
            manager: "argocd-controller".into(),
            applies: true,
            origin: Origin::Application("argocd/demo".into()),
        }),
        writers: vec![
            writer("argocd-controller", Vec::new()),
            writer("maker", vec![workload("maker", "registry.test:5000/maker:v0.14.0")]),
            writer("merge", vec![workload("merge", "m@sha256:00")]),
        ],
        webhooks: vec![webhook],
        state_annotations: BTreeSet::from(["demo.test/v1alpha1-widget-state".into()]),
        unread: vec!["DaemonSets: forbidden".into()],
        ..draft()
    };
    let (text, runbook) = read(&whole);
    let wanted =
        ["maker", "merge-2", "writers", "backup", "migrate", "owners", "release", "merge", "operator", "webhook-gone"];
    assert_eq!(ids(&runbook), wanted);
    let Task::Client(maker) = &runbook.steps[0].task else { panic!("{text}") };
    assert_eq!((maker.namespace.as_str(), maker.image.to_string().as_str()), ("ns", ">0.14.0"));
    let Task::Merge(merge) = &runbook.steps[7].task else { panic!("{text}") };
    assert_eq!(merge.application, Some(("argocd".into(), "demo".into())));
    assert!(text.contains("# Not looked at: DaemonSets: forbidden"), "{text}");
    assert!(text.contains("annotations = [\"demo.test/v1alpha1-widget-state\"]"), "{text}");
}

#[test]
fn names_from_the_cluster_stay_inside_their_strings_and_comments() {
    let hostile = "a\"]\n[step.delete] # \\ \u{1b}[2J\u{7f}";
    let hostile = Draft {
        context: hostile.into(),
        deployer: Some(Deployer { manager: hostile.into(), applies: true, origin: Origin::Flux(hostile.into()) }),
        writers: vec![writer(hostile, Vec::new()), writer("x", vec![workload("x", hostile)])],
        unread: vec![hostile.into()],
        ..draft()
    };
    let text = draft_text(&hostile);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.lines().all(|line| !line.starts_with("[step.delete]")), "{text}");
    let parsed = toml_like(&text);
    assert!(parsed.contains("context = \"a\\\"]\\u000A[step.delete] # \\\\ \\u001B[2J\\u007F\""), "{parsed}");
}

/// The lines that are no comments.
fn toml_like(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[test]
fn groups_are_named_by_what_they_have_in_common() {
    let table: [(&[&str], &str); 5] = [
        (&["sandboxes.agents.x-k8s.io", "claims.extensions.agents.x-k8s.io"], "agents.x-k8s.io"),
        (&["widgets.demo.test"], "demo.test"),
        (&["widgets.demo.test", "gadgets.demo.test"], "demo.test"),
        (&["widgets.demo.test", "gadgets.other.test"], "demo.test"),
        (&[], "CRDs"),
    ];
    for (crds, wanted) in table {
        assert_eq!(common_group(crds), wanted);
    }
}
