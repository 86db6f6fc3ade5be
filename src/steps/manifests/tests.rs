use std::fs;

use super::*;

fn item(name: &str, verdict: Verdict) -> Item {
    Item { object: crd_resource().object(None, name), verdict }
}

fn judged(verdicts: Vec<Verdict>) -> Decision {
    let items = verdicts.into_iter().enumerate().map(|(nth, verdict)| item(&nth.to_string(), verdict)).collect();
    judge(&Seen { items, unreadable: Vec::new() }, None, None)
}

fn said(decision: &Decision) -> Vec<String> {
    decision.findings.iter().map(|finding| format!("{:?} {}", finding.grade, finding.text)).collect()
}

#[test]
fn every_verdict_has_its_place() {
    let field = || vec![FieldChange::new("spec.a", Some("1"), Some("2"))];
    let owner = vec![("kubectl".to_owned(), "spec.a".to_owned())];
    let table = [
        (Verdict::Same, true, "1 objects are as in the files", None, vec![]),
        (Verdict::Create, false, "create 1 of 1 objects", Some(Operation::Create), vec![]),
        (Verdict::Change(field()), false, "change 1 of 1 objects", Some(Operation::Update), vec![]),
        (
            Verdict::Later("CRD w".into()),
            false,
            "create 1 of 1 objects",
            Some(Operation::Create),
            vec!["Note can be asked only once CRD w is applied"],
        ),
        (
            Verdict::Conflict(owner, field()),
            false,
            "change 1 of 1 objects",
            Some(Operation::Update),
            vec!["Blocker would take fields over: spec.a of kubectl"],
        ),
        (
            Verdict::Refused(vec![(None, "bad".into())]),
            false,
            "not known of 1 of 1 objects",
            None,
            vec!["Blocker would be refused: bad"],
        ),
        (
            Verdict::NotChecked("forbidden".into()),
            false,
            "not known of 1 of 1 objects",
            None,
            vec!["NotChecked its dry run could not be asked: forbidden"],
        ),
    ];
    for (verdict, settled, summary, operation, findings) in table {
        let decision = judged(vec![verdict]);
        assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
        assert_eq!(decision.changes.first().map(|change| change.operation), operation);
        assert_eq!(said(&decision), findings);
    }
}

#[test]
fn files_that_cannot_be_read_block() {
    let seen = Seen { unreadable: vec!["a.yaml: no such file".into()], ..Seen::default() };
    let decision = judge(&seen, None, None);
    assert_eq!((decision.settled, decision.summary.as_str()), (false, "the files cannot be read"));
    assert_eq!(said(&decision), ["Blocker a.yaml: no such file"]);
}

#[test]
fn refusals_that_earlier_steps_take_away_do_not_block() {
    let (migrate, release) = (StepId("migrate".into()), StepId("release".into()));
    let cause = |field: &str| (Some(field.to_owned()), field.to_owned());
    let refused = Verdict::Refused(vec![
        cause("status.storedVersions[1]"),
        cause("spec.conversion.strategy"),
        cause("spec.group"),
    ]);
    let seen = Seen { items: vec![item("w", refused)], unreadable: Vec::new() };
    let by = |migrate: Option<&StepId>, release: Option<&StepId>| -> Vec<Option<StepId>> {
        judge(&seen, migrate, release).findings.into_iter().map(|finding| finding.resolved_by).collect()
    };
    assert_eq!(by(Some(&migrate), Some(&release)), [Some(migrate.clone()), Some(release), None]);
    assert_eq!(by(None, None), [None, None, None]);
}

#[test]
fn crds_come_first_then_namespaces_then_the_authors_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = |kind: &str, name: &str| format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n");
    let text = [("Service", "b"), ("ConfigMap", "a"), ("Namespace", "ns"), ("CustomResourceDefinition", "w.test")]
        .map(|(kind, name)| document(kind, name))
        .concat();
    let file = folder.path().join("all.yaml");
    fs::write(&file, text).expect("a file");
    let task = Manifests { files: vec![file, "nowhere.yaml".into()], force: false, holds_upgraded_crd: false };
    let (objects, unreadable) = load(&task);
    let names: Vec<&str> = objects.iter().map(Object::name).collect();
    assert_eq!(names, ["w.test", "ns", "b", "a"]);
    assert_eq!(unreadable.len(), 1);
    let rights: Vec<String> = rights(&task).iter().map(ToString::to_string).collect();
    assert!(rights.contains(&"patch customresourcedefinitions (w.test)".to_owned()), "{rights:?}");
}
