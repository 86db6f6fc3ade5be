use serde_json::json;

use super::*;

const OLD: &str = "demo.test/v1alpha1";
const NEW: &str = "demo.test/v1beta1";

fn renames() -> Renames {
    Renames([((OLD.to_owned(), "Widget".to_owned()), NEW.to_owned())].into())
}

fn owner(api_version: &str, kind: &str, uid: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": "w", "uid": uid})
}

fn child(kind: &str, name: &str, owner_references: Vec<Value>) -> Child {
    let resource = known(&kind_of(kind)).expect("a kind known by heart");
    let object = resource.object(Some("default"), name);
    let resource_version = "7".into();
    Child { resource, object, uid: name.into(), resource_version, owner_references, dead: BTreeSet::new() }
}

#[test]
fn only_the_upgrades_kinds_are_renamed_and_only_their_version() {
    let mut with_flags = owner(OLD, "Widget", "1");
    with_flags["controller"] = true.into();
    with_flags["blockOwnerDeletion"] = true.into();
    let mut renamed = with_flags.clone();
    renamed["apiVersion"] = NEW.into();
    let elsewhere = owner("other.test/v1alpha1", "Widget", "2");
    let other_kind = owner(OLD, "Gadget", "3");
    let table = [
        (vec![owner(OLD, "Widget", "1")], Some(vec![owner(NEW, "Widget", "1")])),
        (vec![with_flags, elsewhere.clone()], Some(vec![renamed, elsewhere.clone()])),
        (vec![elsewhere, other_kind], None),
        (vec![owner(NEW, "Widget", "1")], None),
        (vec![], None),
    ];
    for (before, after) in table {
        assert_eq!(renames().apply(&before, &BTreeSet::new()), after, "{before:?}");
    }
}

#[test]
fn an_owner_named_at_both_versions_becomes_one_and_keeps_its_flags() {
    let mut old = owner(OLD, "Widget", "1");
    old["controller"] = true.into();
    let mut wanted = owner(NEW, "Widget", "1");
    wanted["controller"] = true.into();
    let twice = [owner(NEW, "Widget", "1"), old];
    assert_eq!(renames().apply(&twice, &BTreeSet::new()), Some(vec![wanted]));
    // Another owner of the same name is another owner.
    let two = [owner(NEW, "Widget", "1"), owner(OLD, "Widget", "2")];
    assert_eq!(
        renames().apply(&two, &BTreeSet::new()),
        Some(vec![owner(NEW, "Widget", "1"), owner(NEW, "Widget", "2")])
    );
}

#[test]
fn children_are_counted_by_kind_and_each_change_is_named() {
    let seen = Seen {
        children: vec![
            child("Pod", "a", vec![owner(OLD, "Widget", "1")]),
            child("Pod", "b", vec![owner(OLD, "Widget", "1"), owner(OLD, "Gadget", "9")]),
            child("Service", "a", vec![owner(OLD, "Widget", "1")]),
        ],
        listed: 12,
        ..Seen::default()
    };
    let decision = judge(&seen, &renames(), "v1alpha1", true);
    assert!(!decision.settled);
    assert_eq!(decision.summary, "relabel ownerReferences of 3 objects (2 Pod, 1 Service)");
    assert_eq!(decision.undo, UndoBy::Backup);
    let field = FieldChange::new("metadata.ownerReferences[Widget/w].apiVersion", Some(OLD), Some(NEW));
    assert_eq!(decision.changes.len(), 3);
    assert!(decision.changes.iter().all(|change| change.fields == [field.clone()]), "{:?}", decision.changes);
}

#[test]
fn every_way_of_not_seeing_is_said() {
    let clean = Seen { listed: 12, ..Seen::default() };
    let forbidden = Seen { forbidden: vec!["secrets".into()], ..clean.clone() };
    let group = ("API group metrics.k8s.io/v1beta1".to_owned(), "no endpoints".to_owned());
    let broken = Seen { unlisted: vec![group], ..clean.clone() };
    let unknown = Seen { unknown: vec!["Pdo".into()], ..clean.clone() };
    let blind = Seen { blind: Some("refused".into()), ..Seen::default() };
    let dead = known(&kind_of("Pod")).expect("a kind known by heart").object(Some("default"), "a");
    let orphan = Seen { orphans: vec![(dead, "Widget w".into())], ..clean.clone() };
    let denied = Seen { denied: vec![access("patch", "", "pods", None, None)], ..clean.clone() };
    let none = Seen {
        listed: 0,
        forbidden: vec!["pods".into()],
        unlisted: vec![("jobs.batch".into(), "no".into())],
        ..clean.clone()
    };
    let unread = Seen { unread: vec![("widgets.demo.test".into(), "forbidden".into())], ..clean.clone() };
    let in_clean = "no ownerReference names v1alpha1 in 12 kinds";
    let table = [
        (&clean, true, true, in_clean, vec![]),
        (
            &forbidden,
            true,
            true,
            "no ownerReference names v1alpha1 in 12 kinds, 1 not checked",
            vec!["NotChecked 1 kinds that this user may not list, so their ownerReferences are unknown: secrets"],
        ),
        (
            &broken,
            true,
            true,
            "no ownerReference names v1alpha1 in 12 kinds, 1 not checked",
            vec!["NotChecked API group metrics.k8s.io/v1beta1 could not be listed: no endpoints"],
        ),
        (&unknown, true, true, in_clean, vec!["Warning `kinds` names Pdo, which this server does not serve"]),
        (
            &blind,
            true,
            false,
            "children could not be looked for",
            vec!["NotChecked the kinds of this cluster could not be listed: refused"],
        ),
        (
            &none,
            true,
            false,
            "children could not be looked for",
            vec![
                "NotChecked none of 2 kinds could be listed",
                "NotChecked 1 kinds that this user may not list, so their ownerReferences are unknown: pods",
                "NotChecked jobs.batch could not be listed: no",
            ],
        ),
        (
            &unread,
            true,
            false,
            "children could not be looked for",
            vec![
                "NotChecked whose children they are is not known: widgets.demo.test cannot be read",
                "NotChecked children of the records of widgets.demo.test cannot be told: forbidden",
            ],
        ),
        (
            &orphan,
            true,
            true,
            in_clean,
            vec![
                "Warning orphan: its owner Widget w no longer exists; that reference is left alone, since relabelled it \
                 lets the garbage collector delete the object",
            ],
        ),
        (&denied, true, true, in_clean, vec!["Blocker the user may not patch pods"]),
        (&denied, false, true, in_clean, vec!["NotChecked the user may not patch pods"]),
    ];
    for (seen, writes, settled, summary, wanted) in table {
        let decision = judge(seen, &renames(), "v1alpha1", writes);
        let findings: Vec<String> =
            decision.findings.iter().map(|finding| format!("{:?} {}", finding.grade, finding.text)).collect();
        assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
        assert_eq!(findings, wanted);
    }
}

#[test]
fn a_reference_to_a_dead_owner_is_left_as_it_is() {
    let dead = BTreeSet::from(["1".to_owned()]);
    let both = [owner(OLD, "Widget", "1"), owner(OLD, "Widget", "2")];
    let wanted = vec![owner(OLD, "Widget", "1"), owner(NEW, "Widget", "2")];
    assert_eq!(renames().apply(&both, &dead), Some(wanted));
    assert_eq!(renames().apply(&both[..1], &dead), None);
    // The plan names the other reference alone.
    let child = Child { dead, ..child("Pod", "a", vec![owner(OLD, "Widget", "1")]) };
    assert!(change(&child, &renames()).fields.is_empty());
}
