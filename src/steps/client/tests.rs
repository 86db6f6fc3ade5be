use serde_json::{Value, json};

use super::{observe::*, *};
use crate::{object::Object, plan::Grade};

fn task() -> Client {
    Client {
        kind: "Deployment".into(),
        name: "server".into(),
        namespace: "ns".into(),
        container: None,
        image: VersionReq::parse(">=0.6.0").expect("a range"),
        digests: vec!["sha256:ab".into()],
        env: Vec::new(),
        pods: false,
        timeout: std::time::Duration::ZERO,
    }
}

fn deployment(replicas: i64, image: &str, status: &Value) -> Object {
    Object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "server", "namespace": "ns", "generation": 4},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
        "status": status,
    }))
}

fn rolled_out(replicas: i64) -> Value {
    json!({"observedGeneration": 4, "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas})
}

fn seen(object: &Object, task: &Client) -> Seen {
    Seen { workload: Ok(Some(workload(object, &task.env))), pods: None }
}

fn grades(decision: &Decision) -> Vec<Grade> {
    decision.findings.iter().map(|finding| finding.grade).collect()
}

#[test]
fn every_image_and_rollout_has_its_verdict() {
    use Grade::{Blocker, Warning};
    let status = |observed, replicas, updated, available| {
        json!({"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated,
               "availableReplicas": available})
    };
    let table = [
        (3, "a:v0.6.0", rolled_out(3), true, "main v0.6.0 >= 0.6.0, rolled out", vec![]),
        (3, "a:v0.10.0", rolled_out(3), true, "main v0.10.0 >= 0.6.0, rolled out", vec![]),
        (
            1,
            "registry.test:5000/a/b:v0.10.0@sha256:cd",
            rolled_out(1),
            true,
            "main v0.10.0 >= 0.6.0, rolled out",
            vec![],
        ),
        (1, "a@sha256:ab", rolled_out(1), true, "main sha256:ab by its digest, rolled out", vec![]),
        (3, "a:v0.2.1", rolled_out(3), false, "main v0.2.1, wants >= 0.6.0, rolled out", vec![]),
        (3, "a:v0.6.0-rc.1", rolled_out(3), false, "main v0.6.0-rc.1, wants >= 0.6.0, rolled out", vec![]),
        (3, "a:latest", rolled_out(3), false, "main latest, wants >= 0.6.0, rolled out", vec![Blocker]),
        (1, "a", rolled_out(1), false, "main without a tag, wants >= 0.6.0, rolled out", vec![Blocker]),
        (
            3,
            "a:v0.6.0",
            status(3, 3, 3, 3),
            false,
            "main v0.6.0 >= 0.6.0, rolling out: generation 4 is not observed yet",
            vec![],
        ),
        (3, "a:v0.6.0", status(4, 3, 1, 3), false, "main v0.6.0 >= 0.6.0, rolling out: 1 of 3 updated", vec![]),
        (3, "a:v0.6.0", status(4, 5, 3, 3), false, "main v0.6.0 >= 0.6.0, rolling out: 2 old still there", vec![]),
        (3, "a:v0.6.0", status(4, 3, 3, 2), false, "main v0.6.0 >= 0.6.0, rolling out: 1 of 3 unavailable", vec![]),
        (0, "a:v0.6.0", rolled_out(0), true, "main v0.6.0 >= 0.6.0, scaled to 0", vec![Warning]),
    ];
    for (replicas, image, status, settled, summary, wanted) in table {
        let task = task();
        let decision = judge(&task, &seen(&deployment(replicas, image, &status), &task));
        assert_eq!((decision.summary.as_str(), decision.settled), (summary, settled));
        assert_eq!(grades(&decision), wanted, "{summary}");
    }
}

#[test]
fn what_is_scaled_to_zero_is_judged_by_its_template_and_waits_for_its_last_pods() {
    let task = task();
    let old = judge(&task, &seen(&deployment(0, "a:v0.2.1", &rolled_out(0)), &task));
    assert_eq!((old.settled, old.summary.as_str()), (false, "main v0.2.1, wants >= 0.6.0, scaled to 0"));
    let ending = json!({"observedGeneration": 4, "replicas": 1});
    let decision = judge(&task, &seen(&deployment(0, "a:v0.6.0", &ending), &task));
    assert!(!decision.settled, "{}", decision.summary);
}

#[test]
fn a_paused_or_stuck_rollout_is_closed_and_says_so() {
    let task = task();
    let mut paused = deployment(3, "a:v0.6.0", &rolled_out(3));
    paused.0["spec"]["paused"] = true.into();
    let decision = judge(&task, &seen(&paused, &task));
    assert_eq!((decision.settled, decision.summary.as_str()), (false, "main v0.6.0 >= 0.6.0, paused"));
    assert_eq!(grades(&decision), [Grade::Warning]);

    let status = json!({"observedGeneration": 4, "replicas": 4, "updatedReplicas": 1, "availableReplicas": 3,
        "conditions": [{"type": "Progressing", "status": "False", "message": "has timed out progressing."}]});
    let decision = judge(&task, &seen(&deployment(3, "a:v0.6.0", &status), &task));
    assert!(!decision.settled);
    assert_eq!(decision.findings[0].text, "its rollout makes no progress: has timed out progressing.");
}

#[test]
fn daemon_sets_and_stateful_sets_have_their_own_numbers() {
    let daemons = |updated: i64, current: i64, available: i64| {
        Object(json!({
            "kind": "DaemonSet", "metadata": {"generation": 2},
            "status": {"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": current,
                       "updatedNumberScheduled": updated, "numberAvailable": available},
        }))
    };
    assert_eq!(Rollout::of(&daemons(2, 2, 2)).stage(), Stage::Done);
    assert_eq!(Rollout::of(&daemons(1, 2, 2)).stage(), Stage::Rolling("1 of 2 updated".into()));
    assert_eq!(Rollout::of(&daemons(2, 2, 1)).stage(), Stage::Rolling("1 of 2 unavailable".into()));
    let stateful = |updated: i64| {
        Object(json!({
            "kind": "StatefulSet", "metadata": {"generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": updated, "availableReplicas": 2},
        }))
    };
    assert_eq!(Rollout::of(&stateful(2)).stage(), Stage::Done);
    // A partition leaves old pods for good.
    assert_eq!(Rollout::of(&stateful(1)).stage(), Stage::Rolling("1 of 2 updated".into()));
    // Nothing written yet is not nothing wanted.
    let fresh = Object(json!({"kind": "Deployment", "metadata": {"generation": 1}}));
    assert_eq!(Rollout::of(&fresh).stage(), Stage::Rolling("generation 1 is not observed yet".into()));
}

fn with_many_containers() -> Object {
    let mut object = deployment(1, "a:v0.6.0", &rolled_out(1));
    let pod = &mut object.0["spec"]["template"]["spec"];
    pod["initContainers"] = json!([
        {"name": "setup", "image": "a:v0.2.0"},
        {"name": "proxy", "image": "p:v1.0.0", "restartPolicy": "Always"},
    ]);
    pod["containers"] = json!([{"name": "main", "image": "a:v0.6.0"}, {"name": "extra", "image": "a:v0.2.0"}]);
    object
}

#[test]
fn containers_are_told_apart_and_named() {
    let object = with_many_containers();
    let mut task = task();
    let decision = judge(&task, &seen(&object, &task));
    assert_eq!(decision.summary, "main v0.6.0 >= 0.6.0, extra v0.2.0, wants >= 0.6.0, rolled out");
    assert!(!decision.settled);
    assert_eq!(
        decision.details,
        [
            "no container is named, so all are judged: main, extra",
            "not judged: init container setup (v0.2.0), sidecar proxy (v1.0.0)"
        ]
    );
    let table = [
        ("main", true, "main v0.6.0 >= 0.6.0, rolled out"),
        ("setup", false, "init container setup v0.2.0, wants >= 0.6.0, rolled out"),
        ("proxy", true, "sidecar proxy v1.0.0 >= 0.6.0, rolled out"),
        ("nope", false, "Deployment ns/server has no container nope"),
    ];
    for (container, settled, summary) in table {
        task.container = Some(container.into());
        let decision = judge(&task, &seen(&object, &task));
        assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
        assert_eq!(decision.findings.iter().any(Finding::blocks), container == "nope");
    }
}

#[test]
fn a_workload_that_is_not_there_blocks_and_one_that_cannot_be_seen_is_not_fine() {
    let absent = judge(&task(), &Seen { workload: Ok(None), pods: None });
    assert_eq!((absent.settled, absent.summary.as_str()), (false, "Deployment ns/server not found"));
    assert_eq!(grades(&absent), [Grade::Blocker]);
    let unseen = judge(&task(), &Seen { workload: Err("forbidden".into()), pods: None });
    assert_eq!((unseen.settled, grades(&unseen)), (false, vec![Grade::NotChecked]));
}

#[test]
fn variables_are_judged_where_they_are_set_and_never_shown() {
    let mut task = task();
    task.env = vec![("KEEP_SANDBOX_VERSION".into(), "v1beta1".into())];
    let named = |entry: Value| json!({"env": [entry]});
    let name = "KEEP_SANDBOX_VERSION";
    let table = [
        (json!({}), true, "", None),
        (named(json!({"name": "OTHER", "value": "x"})), true, "", None),
        (named(json!({"name": name, "value": "v1beta1"})), true, "", None),
        (named(json!({"name": name, "value": "canary"})), false, ", KEEP_SANDBOX_VERSION is not v1beta1", None),
        (named(json!({"name": name})), false, ", KEEP_SANDBOX_VERSION is not v1beta1", None),
        (
            json!({"env": [{"name": name, "value": "v1beta1"}, {"name": name, "value": "canary"}]}),
            false,
            ", KEEP_SANDBOX_VERSION is not v1beta1",
            None,
        ),
        (
            named(json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}})),
            false,
            ", KEEP_SANDBOX_VERSION not checked",
            Some(Grade::NotChecked),
        ),
        (json!({"envFrom": [{"configMapRef": {"name": "c"}}]}), true, "", Some(Grade::NotChecked)),
    ];
    for (extra, settled, ending, grade) in table {
        let mut object = deployment(1, "a:v0.6.0", &rolled_out(1));
        let container = &mut object.0["spec"]["template"]["spec"]["containers"][0];
        for (key, value) in extra.as_object().expect("an object") {
            container[key] = value.clone();
        }
        let decision = judge(&task, &seen(&object, &task));
        assert_eq!(decision.summary, format!("main v0.6.0 >= 0.6.0, rolled out{ending}"));
        assert_eq!((decision.settled, grades(&decision)), (settled, grade.into_iter().collect()), "{extra}");
        assert!(!format!("{decision:?}").contains("canary"));
    }
}

fn pod(name: &str, image: &str, image_id: &str) -> Pod {
    read_pod(&Object(json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": image}, {"name": "injected", "image": "mesh:latest"}]},
        "status": {"containerStatuses": [{"name": "main", "imageID": image_id}]},
    })))
}

#[test]
fn running_pods_are_judged_by_what_they_run() {
    let task = Client { pods: true, ..task() };
    let object = deployment(1, "a:v0.6.0", &rolled_out(1));
    let new = || pod("new", "a:v0.6.0", "");
    let old = || pod("old", "a:v0.2.1", "");
    let by_digest = || pod("pulled", "a:latest", "docker-pullable://a@sha256:ab");
    let base = "main v0.6.0 >= 0.6.0, rolled out";
    let table = [
        (Ok(vec![new(), by_digest()]), true, ", 2 pods checked"),
        (Ok(vec![new(), old()]), false, ", 1 of 2 pods run another image"),
        (Ok(vec![]), false, ", no pod of it runs"),
        (Err("forbidden".to_owned()), false, ", pods not checked"),
    ];
    for (pods, settled, ending) in table {
        let seen = Seen { pods: Some(pods), ..seen(&object, &task) };
        let decision = judge(&task, &seen);
        assert_eq!((decision.settled, decision.summary), (settled, format!("{base}{ending}")));
    }
    let mut ending = old();
    ending.deleting = true;
    let decision = judge(&task, &Seen { pods: Some(Ok(vec![ending])), ..seen(&object, &task) });
    assert_eq!(decision.details, ["Pod old runs main v0.2.1, terminating"]);
}

#[test]
fn selectors_take_what_the_api_server_would() {
    let labels = json!({"app": "a", "tier": "x"});
    let expression = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let table = [
        (json!({"matchLabels": {"app": "a"}}), true),
        (json!({"matchLabels": {"app": "b"}}), false),
        (json!({"matchLabels": {"app": "a", "absent": "x"}}), false),
        (expression("In", "tier", &["x", "y"]), true),
        (expression("In", "tier", &["y"]), false),
        (expression("NotIn", "tier", &["x"]), false),
        (expression("NotIn", "absent", &["x"]), true),
        (expression("Exists", "tier", &[]), true),
        (expression("DoesNotExist", "tier", &[]), false),
        (expression("Nonsense", "tier", &[]), false),
        (json!({}), false),
        (Value::Null, false),
    ];
    for (selector, wanted) in table {
        assert_eq!(selects(&selector, &labels), wanted, "{selector}");
    }
}

#[test]
fn ranges_are_shown_with_a_space_after_the_operator() {
    let table = [(">=0.15.0", ">= 0.15.0"), (">=0.15.0,<1", ">= 0.15.0, < 1"), ("^1.2", "^1.2"), ("*", "*")];
    for (written, shown) in table {
        assert_eq!(spaced(&VersionReq::parse(written).expect(written)), shown);
    }
}
