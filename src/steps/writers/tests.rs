use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    cluster::{ClusterError, Fault},
    crd::Crd,
    object::{ManagerEntry, Object, Resource},
    plan::Grade,
    steps::survey::{Record, Surveyed},
};

const NOW: &str = "2026-12-01T14:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn record(name: &str, entries: &[(&str, Option<&str>)]) -> Record {
    let entry = |(manager, time): &(&str, Option<&str>)| ManagerEntry {
        manager: (*manager).into(),
        operation: "Update".into(),
        subresource: String::new(),
        time: time.map(|time| time.parse().expect("a time")),
    };
    Record {
        object: Resource::new("demo.test", "v1beta1", "widgets", "Widget", true).object(Some("ns"), name),
        uid: name.into(),
        deleting: false,
        stamp: None,
        entries: entries.iter().map(entry).collect(),
        annotation_bytes: 0,
        state_annotations: Vec::new(),
    }
}

fn survey(records: Records) -> Survey {
    let crd = Crd::of(Object(json!({"metadata": {"name": "widgets.demo.test"}})));
    Survey {
        crds: vec![Surveyed { name: "widgets.demo.test".into(), crd: Ok(Some(crd)), records, reads_at_from: None }],
        ..Survey::default()
    }
}

fn judged(records: Records) -> Decision {
    judge(&Writers { quiet_for: Duration::from_secs(1800) }, &survey(records), "v1alpha1", now())
}

#[test]
fn quiet_is_judged_from_the_newest_entry() {
    let old = record("old", &[("garrison-keep", Some("2026-11-28T10:14:00Z"))]);
    let edge = record("edge", &[("flickerd", Some("2026-12-01T13:30:00Z"))]);
    let recent = record("recent", &[("flickerd", Some("2026-12-01T13:30:01Z"))]);
    let untimed = record("untimed", &[("flickerd", None)]);
    let ahead = record("ahead", &[("flickerd", Some("2026-12-01T14:05:00Z"))]);
    let clean = record("clean", &[]);
    let table = [
        (vec![clean], true, "no record has a managedFields entry that names v1alpha1"),
        (vec![old.clone()], true, "last v1alpha1 write 2026-11-28T10:14:00Z (garrison-keep)"),
        (vec![old.clone(), edge], true, "last v1alpha1 write 2026-12-01T13:30:00Z (flickerd)"),
        (
            vec![recent, old.clone()],
            false,
            "last v1alpha1 write 2026-12-01T13:30:01Z (flickerd); quiet for 30m at 2026-12-01T14:00:01Z",
        ),
        (
            vec![old, untimed],
            false,
            "last v1alpha1 write 2026-12-01T14:00:00Z (flickerd); quiet for 30m at 2026-12-01T14:30:00Z",
        ),
        (
            vec![ahead],
            false,
            "last v1alpha1 write 2026-12-01T14:05:00Z (flickerd); quiet for 30m at 2026-12-01T14:35:00Z",
        ),
        (vec![], true, "no record has a managedFields entry that names v1alpha1"),
    ];
    for (records, settled, summary) in table {
        let decision = judged(Records::Listed(records));
        assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
    }
}

#[test]
fn managers_are_listed_with_what_they_wrote() {
    let decision = judged(Records::Listed(vec![
        record("a", &[("argocd", Some("2026-11-01T00:00:00Z")), ("keep", Some("2026-11-02T00:00:00Z"))]),
        // Two entries of one manager on one record are one record.
        record("b", &[("keep", Some("2026-11-03T00:00:00Z")), ("keep", None)]),
    ]));
    assert_eq!(
        decision.details,
        [
            "argocd: 1 records, last 2026-11-01T00:00:00Z on Widget ns/a",
            "keep: 2 records, last 2026-12-01T14:00:00Z on Widget ns/b (an entry without a time counts as just written)",
        ]
    );
}

#[test]
fn records_that_cannot_be_read_keep_the_gate_closed_without_blocking() {
    let error = || ClusterError { attempt: "list".into(), fault: Fault::Transport("connection refused".into()) };
    let unreadable = Records::Unreadable { error: error(), culprits: Vec::new(), readable: 0 };
    let decision = judged(unreadable);
    let wanted = "not known: widgets.demo.test cannot be listed: no answer: connection refused";
    assert_eq!((decision.settled, decision.summary.as_str()), (false, wanted));
    assert!(decision.findings.is_empty());
    assert!(!judged(Records::NotAsked).settled);
    for (crd, words) in [
        (Ok(None), "not known: CRD widgets.demo.test is not installed"),
        (Err(error()), "not known: CRD widgets.demo.test cannot be read: no answer: connection refused"),
    ] {
        let mut survey = survey(Records::NotAsked);
        survey.crds[0].crd = crd;
        let decision = judge(&Writers { quiet_for: Duration::ZERO }, &survey, "v1alpha1", now());
        assert_eq!((decision.settled, decision.summary.as_str()), (false, words));
    }
}

#[test]
fn the_metric_is_a_note_only_when_it_counts_nothing() {
    let counted = Count { resource: "widgets.demo.test".into(), verb: "POST".into(), requests: 7 };
    let table = [
        (
            Seen { mutations: Some(0), process: None, counts: Vec::new(), unread: None },
            Grade::Note,
            "the API server that answered counts no write at v1alpha1 since it started",
        ),
        (
            Seen { mutations: Some(7), process: None, counts: vec![counted], unread: None },
            Grade::NotChecked,
            "the API server that answered counts writes at v1alpha1 since it started: 7 POST widgets.demo.test. When is \
             not known, and clients that delete what they create leave no trace in managedFields",
        ),
        (
            Seen { mutations: None, process: None, counts: Vec::new(), unread: Some("forbidden".into()) },
            Grade::NotChecked,
            "clients that delete what they create leave no trace in managedFields, and the API server's request metric \
             cannot be read: forbidden",
        ),
    ];
    for (seen, grade, text) in table {
        let finding = metric_finding(&seen, "v1alpha1");
        assert_eq!((finding.grade, finding.text.as_str()), (grade, text));
    }
}
