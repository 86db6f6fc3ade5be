use serde_json::json;

use super::*;
use crate::runbook::NamedObject;

fn claims(at_most: usize) -> Delete {
    let target = DeleteTarget::Matching {
        resource: "sandboxclaims.demo.test".into(),
        condition_type: "Ready".into(),
        status: None,
        reason: Some("InvalidMetadata".into()),
        at_most,
    };
    Delete { target, namespace: Some("ai".into()) }
}

fn named(names: &[(&str, &str)]) -> Delete {
    let object = |(kind, name): &(&str, &str)| NamedObject { kind: (*kind).into(), group: None, name: (*name).into() };
    Delete { target: DeleteTarget::Objects(names.iter().map(object).collect()), namespace: Some("sys".into()) }
}

fn found(group: &str, kind: &str, namespace: &str, name: &str) -> Target {
    let resource = Resource::new(group, "v1", &format!("{}s", kind.to_lowercase()), kind, true);
    Target {
        object: resource.object(Some(namespace), name),
        resource,
        uid: format!("uid-{name}"),
        resource_version: "7".into(),
        deleting: false,
        finalizers: Vec::new(),
    }
}

fn claim(name: &str) -> Target {
    found("demo.test", "SandboxClaim", "ai", name)
}

fn uids(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("uid-{name}")).collect()
}

fn said(decision: &Decision) -> Vec<String> {
    let text = |finding: &Finding| {
        let object = finding.object.as_ref().map_or_else(String::new, |object| format!("{object}: "));
        format!("{:?} {object}{}", finding.grade, finding.text)
    };
    decision.findings.iter().map(text).collect()
}

fn deleted(decision: &Decision) -> Vec<&str> {
    assert!(decision.changes.iter().all(|change| change.operation == Operation::Delete));
    decision.changes.iter().map(|change| change.object.name.as_str()).collect()
}

#[test]
fn conditions_match_by_what_the_runbook_names() {
    let ready = |status: &str, reason: &str| {
        Object(
            json!({"status": {"conditions": [{"type": "Other"}, {"type": "Ready", "status": status, "reason": reason}]}}),
        )
    };
    let with = |status: Option<&str>, reason: Option<&str>| {
        let mut task = claims(3);
        if let DeleteTarget::Matching { status: wanted_status, reason: wanted_reason, .. } = &mut task.target {
            (*wanted_status, *wanted_reason) = (status.map(Into::into), reason.map(Into::into));
        }
        task
    };
    let table = [
        (with(None, Some("InvalidMetadata")), ready("False", "InvalidMetadata"), true),
        (with(None, Some("InvalidMetadata")), ready("False", "Pending"), false),
        (with(Some("False"), None), ready("False", "Pending"), true),
        (with(Some("False"), Some("InvalidMetadata")), ready("True", "InvalidMetadata"), false),
        (with(None, None), ready("True", ""), true),
        (with(None, None), Object(json!({})), false),
        (with(None, Some("InvalidMetadata")), Object(json!({"status": {"conditions": "?"}})), false),
        (named(&[("Secret", "a")]), Object(json!({})), true),
    ];
    for (task, object, wanted) in table {
        assert_eq!(matches(&task, &object), wanted, "{task:?} {object:?}");
    }
}

#[test]
fn only_what_matched_when_the_backup_was_taken_goes() {
    let three = vec![claim("a"), claim("b"), claim("c")];
    let late = "Note SandboxClaim ai/c: not deleted: it began to match after the backup was taken";
    let too_many = "Blocker 3 objects match, and at-most says 2";
    let table = [
        // No backup yet: all that match now will be in it.
        (3, None, false, "delete 3 SandboxClaims in ai", vec!["a", "b", "c"], vec![]),
        (3, Some(uids(&["a", "b"])), false, "delete 2 SandboxClaims in ai", vec!["a", "b"], vec![late]),
        (2, Some(uids(&["a", "b"])), false, "delete 2 SandboxClaims in ai", vec!["a", "b"], vec![late]),
        (2, None, false, "delete 3 SandboxClaims in ai", vec!["a", "b", "c"], vec![too_many]),
        (2, Some(uids(&["a", "b", "c"])), false, "delete 3 SandboxClaims in ai", vec!["a", "b", "c"], vec![too_many]),
    ];
    for (at_most, scope, settled, summary, names, findings) in table {
        let seen = Seen { targets: three.clone(), scope, ..Seen::default() };
        let decision = judge(&claims(at_most), &seen, None);
        assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
        assert_eq!((deleted(&decision), said(&decision)), (names, findings.into_iter().map(str::to_owned).collect()));
    }
    let outside = Seen { targets: vec![claim("c")], scope: Some(uids(&["a"])), ..Seen::default() };
    let decision = judge(&claims(3), &outside, None);
    assert_eq!((decision.settled, decision.summary.as_str()), (true, "no sandboxclaims.demo.test in ai to delete"));
    assert_eq!(said(&decision), [late]);
}

#[test]
fn absent_is_fine_and_unreadable_is_not() {
    let one = named(&[("Secret", "certs")]);
    let two = named(&[("Secret", "certs"), ("Service", "hook")]);
    let nothing = Seen::default();
    let unseen = Seen { unreadable: vec!["Secret/certs could not be looked at: forbidden".into()], ..Seen::default() };
    let table = [
        (&one, &nothing, true, "it is not there", vec![]),
        (&two, &nothing, true, "none of 2 is there", vec![]),
        (
            &one,
            &unseen,
            false,
            "what there is to delete could not be looked at",
            vec!["NotChecked Secret/certs could not be looked at: forbidden"],
        ),
    ];
    for (task, seen, settled, summary, findings) in table {
        let decision = judge(task, seen, None);
        assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
        assert_eq!(said(&decision), findings);
    }
    // A name means whatever has it, so the backup's scope is no limit.
    let again = Seen { targets: vec![found("", "Secret", "sys", "certs")], scope: Some(uids(&[])), ..Seen::default() };
    assert_eq!(judge(&one, &again, None).summary, "delete Secret sys/certs");
}

#[test]
fn what_a_conversion_needs_does_not_go_before_the_merge() {
    let service =
        |namespace: &str, name: &str| WebhookService { namespace: namespace.into(), name: name.into(), port: 443 };
    let conversions = vec![
        ("a.demo.test".to_owned(), service("sys", "hook")),
        ("b.demo.test".to_owned(), service("sys", "hook")),
        ("c.demo.test".to_owned(), service("elsewhere", "hook")),
    ];
    let table = [
        (found("", "Service", "sys", "hook"), vec!["a.demo.test", "b.demo.test"]),
        (found("", "Secret", "sys", "certs"), vec!["a.demo.test", "b.demo.test"]),
        (found("", "Service", "sys", "other"), vec![]),
        (found("", "Secret", "default", "certs"), vec![]),
        (found("", "ConfigMap", "sys", "hook"), vec![]),
        (found("serving.test", "Service", "sys", "hook"), vec![]),
    ];
    for (target, wanted) in table {
        assert_eq!(needed_by(&target, &conversions), wanted, "{}", target.object);
    }
    let seen = Seen { targets: vec![found("", "Secret", "sys", "certs")], conversions, ..Seen::default() };
    let task = named(&[("Secret", "certs")]);
    let merge = StepId("merge".into());
    for (merge, blocks) in [(None, true), (Some(&merge), false)] {
        let decision = judge(&task, &seen, merge);
        assert_eq!(
            said(&decision),
            ["Blocker Secret sys/certs: the conversion of a.demo.test, b.demo.test still needs it"]
        );
        assert_eq!(decision.findings[0].blocks(), blocks);
    }
}

#[test]
fn what_holds_or_uses_an_object_is_said() {
    let secret = found("", "Secret", "sys", "certs");
    let deployment = Resource::new("apps", "v1", "deployments", "Deployment", true).object(Some("sys"), "controller");
    let held = Target { finalizers: vec!["demo.test/hold".into()], ..claim("held") };
    let going = Target { deleting: true, ..held.clone() };
    let secret_seen = Seen {
        targets: vec![secret.clone()],
        mounted: vec![(secret.object, deployment)],
        conversions_unread: Some("forbidden".into()),
        ..Seen::default()
    };
    let crd = Target {
        resource: crate::crd::crd_resource(),
        ..found("apiextensions.k8s.io", "CustomResourceDefinition", "sys", "x")
    };
    let table = [
        (
            named(&[("Secret", "certs")]),
            secret_seen,
            vec![
                "Warning Secret sys/certs: Deployment sys/controller runs with it",
                "NotChecked whether CRDs outside the upgrade convert through it could not be looked at: forbidden",
            ],
        ),
        (
            claims(3),
            Seen { targets: vec![held], ..Seen::default() },
            vec!["Note SandboxClaim ai/held: it will stay for a while, held by finalizers demo.test/hold"],
        ),
        (
            claims(3),
            Seen { targets: vec![going.clone()], ..Seen::default() },
            vec!["Warning SandboxClaim ai/held: its deletion has begun, held by finalizers demo.test/hold"],
        ),
        (
            named(&[("CustomResourceDefinition", "x")]),
            Seen { targets: vec![crd], ..Seen::default() },
            vec!["Blocker CustomResourceDefinition sys/x: sbx never deletes a CustomResourceDefinition or a Namespace"],
        ),
    ];
    for (task, seen, wanted) in table {
        assert_eq!(said(&judge(&task, &seen, None)), wanted);
    }
    // Its deletion is asked for already: nothing is left to do.
    assert!(judge(&claims(3), &Seen { targets: vec![going], ..Seen::default() }, None).settled);
}

#[test]
fn every_way_of_using_a_secret_is_found() {
    let table = [
        (json!({"volumes": [{"secret": {"secretName": "certs"}}]}), true),
        (json!({"volumes": [{"projected": {"sources": [{"secret": {"name": "certs"}}]}}]}), true),
        (json!({"containers": [{"envFrom": [{"secretRef": {"name": "certs"}}]}]}), true),
        (json!({"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "certs", "key": "k"}}}]}]}), true),
        (json!({"volumes": [{"secret": {"secretName": "other"}}]}), false),
        (json!({"volumes": [{"configMap": {"name": "certs"}}]}), false),
        (Value::Null, false),
    ];
    for (pod, wanted) in table {
        assert_eq!(observe::uses(&pod, "certs"), wanted, "{pod}");
    }
}

#[test]
fn kinds_have_their_plurals() {
    let table = [
        ("SandboxClaim", "SandboxClaims"),
        ("NetworkPolicy", "NetworkPolicies"),
        ("Gateway", "Gateways"),
        ("Ingress", "Ingresses"),
        ("Sandbox", "Sandboxes"),
    ];
    for (kind, wanted) in table {
        assert_eq!(plural(kind), wanted);
    }
}

#[test]
fn rights_are_by_name_where_names_are_known() {
    let shown = |task: &Delete| rights(task).iter().map(ToString::to_string).collect::<Vec<_>>();
    let wanted = ["get secrets (certs) in namespace sys", "delete secrets (certs) in namespace sys"];
    assert_eq!(shown(&named(&[("Secret", "certs")])), wanted);
    let wanted = ["list", "get", "delete"].map(|verb| format!("{verb} sandboxclaims.demo.test in namespace ai"));
    assert_eq!(shown(&claims(3)), wanted);
}

#[test]
fn no_merge_ends_the_conversion_of_crds_outside_the_runbook() {
    let service = WebhookService { namespace: "sys".into(), name: "hook".into(), port: 443 };
    let seen = Seen {
        targets: vec![found("", "Service", "sys", "hook")],
        foreign_conversions: vec![("other.demo.test".to_owned(), service)],
        ..Seen::default()
    };
    let merge = StepId("merge".into());
    let decision = judge(&named(&[("Service", "hook")]), &seen, Some(&merge));
    assert_eq!(
        said(&decision),
        [
            "Blocker Service sys/hook: the conversion of other.demo.test still needs it, and this runbook does not upgrade \
          them"
        ]
    );
    assert!(decision.findings[0].blocks());
}

#[test]
fn a_secret_that_is_no_certificate_is_spared() {
    let table = [
        (json!({"type": "Opaque", "data": {"ca.crt": "", "tls.crt": "", "tls.key": ""}}), None),
        (json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}), None),
        (json!({}), None),
        (
            json!({"type": "Opaque", "data": {"db-password": "aHVudGVy", "tls.crt": ""}}),
            Some("it holds db-password beside a certificate"),
        ),
        (json!({"type": "helm.sh/release.v1"}), Some("it is of type helm.sh/release.v1")),
    ];
    for (secret, wanted) in table {
        assert_eq!(observe::odd(&Object(secret)).as_deref(), wanted);
    }
    let secret = found("", "Secret", "sys", "certs");
    let spared = vec![(secret.object.clone(), "it holds db-password beside a certificate".to_owned())];
    let seen = Seen { targets: vec![secret, found("", "Service", "sys", "hook")], spared, ..Seen::default() };
    let decision = judge(&named(&[("Secret", "certs"), ("Service", "hook")]), &seen, None);
    assert_eq!((decision.settled, decision.summary.as_str()), (false, "delete Service sys/hook"));
    assert_eq!(said(&decision), ["Warning Secret sys/certs: not deleted: it holds db-password beside a certificate"]);
    let alone = Seen { targets: vec![seen.targets[0].clone()], ..seen };
    assert!(judge(&named(&[("Secret", "certs")]), &alone, None).settled);
}
