use serde_json::json;

use super::*;

const CANARY: &str = "canary-4f1d9c";

/// What an object becomes.
fn redacted(object: Value) -> Value {
    let mut object = Object(object);
    Redactor::default().object(&mut object);
    object.0
}

/// A Sandbox with one field, and what becomes of that field.
fn field(pointer: &str, object: &Value) -> Value {
    let mut whole = json!({"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox"});
    for (key, value) in object.as_object().expect("fields") {
        whole[key] = value.clone();
    }
    redacted(whole).pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn environment_arguments_and_credentials_go_wherever_they_stand() {
    let spec = json!({"podTemplate": {"spec": {
        "initContainers": [{"env": [{"name": "A", "value": CANARY}]}],
        "containers": [{
            "name": "agent", "image": "example.dev/agent:1",
            "env": [{"name": "B", "value": CANARY}, {"name": "C", "note": {"token": CANARY}, "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}],
            "envFrom": [{"secretRef": {"name": "s"}}],
            "args": ["--token", CANARY], "command": ["sh", "-c", CANARY],
        }],
    }}, "extraEnv": {"D": CANARY, "PIN": 1234}, "envVars": [CANARY], "apiKey": CANARY, "db-password": CANARY,
        "remote": format!("https://user:{CANARY}@example.dev/x"), "tokenExpirationSeconds": 60, "stringData": {"x": CANARY}});
    let after = field("/spec", &json!({"spec": spec}));
    assert!(!after.to_string().contains(CANARY), "{after:#}");
    let container = &after["podTemplate"]["spec"]["containers"][0];
    assert_eq!(container["name"], "agent");
    assert_eq!(container["image"], "example.dev/agent:1");
    assert_eq!(container["env"][0], json!({"name": "B", "value": "<redacted #1>"}));
    assert_eq!(container["env"][1]["valueFrom"]["secretKeyRef"], json!({"name": "s", "key": "token"}));
    assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "s"}}]));
    assert_eq!(after["tokenExpirationSeconds"], 60);
}

#[test]
fn the_same_value_has_the_same_number() {
    let mut redactor = Redactor::default();
    let mut env = |values: [&str; 2]| {
        let env: Vec<Value> = values.iter().map(|value| json!({"name": "A", "value": value})).collect();
        let mut object = Object(json!({"kind": "Sandbox", "spec": {"env": env}}));
        redactor.object(&mut object);
        [object.str("/spec/env/0/value").map(ToOwned::to_owned), object.str("/spec/env/1/value").map(ToOwned::to_owned)]
    };
    let number = |number: usize| Some(format!("<redacted #{number}>"));
    assert_eq!(env(["x", "y"]), [number(1), number(2)]);
    assert_eq!(env(["y", "x"]), [number(2), number(1)]);
    assert_eq!(env(["", "z"]), [Some(String::new()), number(3)]);
    assert_eq!(redactor.replaced(), 5);
}

#[test]
fn annotations_stay_only_where_they_are_known_or_plain_and_keep_their_size() {
    let table = [
        ("example.dev/anything", CANARY, "<redacted #1: 13 bytes>"),
        ("api.agents.x-k8s.io/v1alpha1-sandbox-state", "{\"spec\":{}}", "<redacted #1: 11 bytes>"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}", "<redacted #1: 2 bytes>"),
        ("argocd.argoproj.io/tracking-id", "app:apps/Deployment:ns/x", "app:apps/Deployment:ns/x"),
        ("argocd.argoproj.io/tracking-id", "{\"a\": 1}", "<redacted #1: 8 bytes>"),
        ("argocd.argoproj.io/sync-options", "Replace=true, Force=true", "Replace=true, Force=true"),
        ("agents.x-k8s.io/storage-migrated-at", "2026-12-01T14:02:11Z", "2026-12-01T14:02:11Z"),
        ("example.dev/replicas", "3", "3"),
        ("example.dev/account", "49301230500105170101", "<redacted #1: 20 bytes>"),
        ("example.dev/on", "true", "true"),
        ("example.dev/none", "", ""),
    ];
    for (name, value, wanted) in table {
        let after = field("/metadata/annotations", &json!({"metadata": {"annotations": {name: value}}}));
        assert_eq!(after, json!({name: wanted}), "{name}");
    }
    let template =
        json!({"spec": {"template": {"metadata": {"annotations": {"a": CANARY}, "labels": {"token": "x"}}}}});
    let wanted = json!({"annotations": {"a": "<redacted #1: 13 bytes>"}, "labels": {"token": "x"}});
    assert_eq!(field("/spec/template/metadata", &template), wanted);
}

#[test]
fn a_status_keeps_the_words_of_the_api_conventions_alone() {
    let condition = json!({
        "type": "example.dev/Ready", "status": "True", "reason": "PodReady", "message": CANARY,
        "observedGeneration": 3, "lastTransitionTime": "2026-12-01T14:02:11Z",
    });
    let after =
        field("/status", &json!({"status": {"conditions": [condition.clone()], "phase": "Running", "note": CANARY}}));
    let mut wanted = condition;
    wanted["message"] = "<redacted #1>".into();
    assert_eq!(after, json!({"conditions": [wanted], "phase": "Running", "note": "<redacted #1>"}));
    for key in STATUS_WORDS {
        assert_eq!(field(&format!("/status/{key}"), &json!({"status": {key: CANARY}})), "<redacted #1>", "{key}");
    }
    let statuses = json!({"containerStatuses": [{
        "name": "keep", "image": "example.dev/keep:1", "imageID": "example.dev/keep@sha256:00", "ready": true,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": CANARY}},
    }]});
    let mut wanted = statuses.clone();
    wanted["containerStatuses"][0]["state"]["waiting"]["message"] = "<redacted #1>".into();
    assert_eq!(field("/status", &json!({"status": statuses})), wanted);
}

#[test]
fn a_secret_keeps_its_name_and_an_application_what_says_how_it_syncs() {
    let secret =
        redacted(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": CANARY},
        "stringData": {"b": CANARY}, "type": "Opaque"}));
    assert_eq!(secret["data"], json!({"a": "<redacted #1>"}));
    assert!(!secret.to_string().contains(CANARY));
    let application = redacted(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a", "namespace": "argocd"},
        "spec": {
            "source": {"repoURL": "https://example.dev/r", "path": "p", "helm": {"values": CANARY}},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["ServerSideApply=true"]},
        },
        "operation": {"info": [{"value": CANARY}]},
        "status": {
            "sync": {"status": "Synced", "revision": "3b1f0c9a7d5e", "comparedTo": {"source": {"helm": {"values": CANARY}}}},
            "health": {"status": "Healthy"},
            "operationState": {"phase": "Failed", "message": CANARY, "startedAt": "2026-12-01T14:02:11Z",
                "syncResult": {"resources": [{"message": CANARY}]}},
        },
    }));
    assert_eq!(application["spec"]["source"], json!({"repoURL": "https://example.dev/r", "path": "p"}));
    assert_eq!(application["spec"]["syncPolicy"]["syncOptions"], json!(["ServerSideApply=true"]));
    assert_eq!(application["status"]["sync"], json!({"status": "Synced", "revision": "3b1f0c9a7d5e"}));
    let wanted = json!({"phase": "Failed", "message": "<redacted #1>", "startedAt": "2026-12-01T14:02:11Z"});
    assert_eq!(application["status"]["operationState"], wanted);
}

#[test]
fn a_definition_keeps_its_schemas() {
    let schema =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"password": {"type": "string", "default": "x"}}}});
    let crd = redacted(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.test", "annotations": {"a": CANARY}, "managedFields": [{"manager": "x"}]},
        "spec": {
            "versions": [{"name": "v1", "schema": schema}],
            "conversion": {"webhook": {"clientConfig": {"url": format!("https://u:{CANARY}@x.dev"), "caBundle": "LS0t"}}},
        },
        "status": {"storedVersions": ["v1"], "conditions": [{"type": "Established", "message": CANARY}]},
    }));
    assert_eq!(crd.pointer("/spec/versions/0/schema"), Some(&schema));
    assert_eq!(crd.pointer("/spec/conversion/webhook/clientConfig/caBundle"), Some(&json!("LS0t")));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert!(!crd.to_string().contains(CANARY), "{crd:#}");
}

#[test]
fn what_the_runbook_compares_with_stays_when_it_is_the_same() {
    let workload = ObjectRef {
        group: "apps".into(),
        kind: "Deployment".into(),
        namespace: Some("garrison".into()),
        name: "garrison-keep".into(),
    };
    let keep = Keep {
        env: BTreeMap::from([(workload, BTreeSet::from([("VERSION".into(), "v1beta1".into())]))]),
        words: BTreeSet::from(["invalid-metadata".into()]),
    };
    let deployment = |name: &str, value: &str| {
        let mut object = Object(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "garrison"},
            "spec": {"template": {"spec": {"containers": [{"env": [
                {"name": "VERSION", "value": value}, {"name": "OTHER", "value": "v1beta1"},
            ]}]}}},
        }));
        Redactor::new(keep.clone()).object(&mut object);
        let env = |nth| object.str(&format!("/spec/template/spec/containers/0/env/{nth}/value")).map(ToOwned::to_owned);
        (env(0).unwrap_or_default(), env(1).unwrap_or_default())
    };
    assert_eq!(deployment("garrison-keep", "v1beta1"), ("v1beta1".into(), "<redacted #1>".into()));
    assert_eq!(deployment("garrison-keep", "v1alpha1"), ("<redacted #1>".into(), "<redacted #2>".into()));
    assert_eq!(deployment("another", "v1beta1"), ("<redacted #1>".into(), "<redacted #1>".into()));
    let mut claim = Object(json!({"kind": "X", "status": {"reason": "invalid-metadata", "phase": "other-word"}}));
    Redactor::new(keep).object(&mut claim);
    assert_eq!(claim.0["status"], json!({"reason": "invalid-metadata", "phase": "<redacted #1>"}));
}
