//! `sbx snapshot` of a real API server: everything the runbook looks at, and no secret.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use futures::{StreamExt, TryStreamExt};
use libtest_mimic::Trial;
use sbx::snapshot::{Line, Lines};
use serde_json::{Value, json};

use crate::support::Result;
use crate::support::api::Resource;
use crate::support::control_plane::{ControlPlane, Release};
use crate::support::fixture::{
    APPLICATION, APPLICATIONS, CANARY, CLAIMS, CRDS, FLICKERD, Fixture, GARRISON, KINDS, OLD_CHILDREN, SANDBOXES,
    Truth, crd_path,
};
use crate::support::sbx::{Sbx, memory, shipped};
use crate::support::webhook::{Mode, state_annotation};
use crate::{fixture_scenario, scenario};

const FILE: &str = "cluster.snapshot";

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    let mut trials = vec![fixture_scenario(release, truth, "snapshot::secrets_stay_at_home", secrets)];
    trials.push(fixture_scenario(release, truth, "snapshot::an_offline_plan_is_the_plan", offline));
    if truth == Truth::Small {
        trials.push(fixture_scenario(release, truth, "snapshot::what_cannot_be_read_is_noted", denied));
        trials.push(fixture_scenario(
            release,
            truth,
            "snapshot::a_record_that_cannot_be_converted_is_noted",
            unreadable,
        ));
    }
    trials
}

/// Puts the canary wherever somebody might leave a secret, beside Secrets and environment.
async fn leave_canaries(fixture: &Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    let note = json!({"metadata": {"annotations": {
        "example.dev/note": CANARY, "example.dev/config": format!("{{\"password\": \"{CANARY}\"}}"),
    }}});
    let sandbox = SANDBOXES.object("v1beta1", "garrison", "keep-1");
    let (namespace, name) = APPLICATION;
    let application = APPLICATIONS.object("v1alpha1", namespace, name);
    for path in [&sandbox, &GARRISON.path(), &application, &crd_path(&SANDBOXES.crd())] {
        api.merge(path, "somebody", &note).await?;
    }
    let told = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": CANARY,
            "lastTransitionTime": "2026-10-02T08:00:00Z"},
        {"type": "Told", "status": "True", "reason": CANARY, "message": "", "lastTransitionTime": "2026-10-02T08:00:00Z"},
    ]}});
    // Upstream's schema knows no such reason; then the message alone.
    if api.merge(&format!("{sandbox}/status"), "somebody", &told).await.is_err() {
        let conditions = json!([told["status"]["conditions"][0]]);
        api.merge(&format!("{sandbox}/status"), "somebody", &json!({"status": {"conditions": conditions}})).await?;
    }
    let values = json!({
        "spec": {"source": {"helm": {"values": CANARY, "parameters": [{"name": "x", "value": CANARY}]}}},
        "status": {"operationState": {"message": CANARY}},
    });
    api.merge(&application, "somebody", &values).await?;
    let mut deployment = api.get(&GARRISON.path()).await?;
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["args"] = json!(["--token", CANARY]);
    let env = container["env"].as_array_mut().ok_or("no env")?;
    env.push(json!({"name": "KEEP_TOKEN", "value": CANARY}));
    api.replace(&GARRISON.path(), "somebody", &deployment).await?;
    Ok(())
}

/// The tests on an empty cluster.
pub fn scenarios_from_nothing(release: &Release) -> Vec<Trial> {
    // What a file costs depends on no release.
    let is_meant = release.name == "v1.36";
    let trial = || scenario(release, "snapshot::ten_thousand_records_cost_no_memory", many);
    is_meant.then(trial).into_iter().collect()
}

fn read(path: &Path) -> Result<Vec<Line>> {
    Ok(Lines::open(path)?.collect::<std::result::Result<_, _>>()?)
}

async fn secrets(fixture: Fixture) -> Result<()> {
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    leave_canaries(&fixture).await?;
    let api = fixture.plane.api("cluster").await?;
    let claim = api.get(&CLAIMS.object("v1beta1", "ai", "shell")).await?;
    assert!(claim.to_string().contains(CANARY), "the canary is there to be found");

    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let path = sbx.folder().join(FILE);
    // What is there gives way, with the rights it grants.
    fs::write(&path, "older")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    let ran = sbx.run(&["snapshot", &shipped(), "-o", FILE]).await?.ended(0)?;
    assert!(!format!("{}{}", ran.out, ran.err).contains(CANARY), "{ran:?}");
    assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(sbx.folder())?.count(), 1, "nothing is left beside it");

    let text = fs::read_to_string(&path)?;
    let encoded = serde_json::to_value(k8s_openapi::ByteString(CANARY.as_bytes().to_vec()))?;
    for secret in [CANARY, encoded.as_str().ok_or("no text")?, &CANARY[3..20]] {
        let line = text.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{secret} is in {line:?}");
    }
    assert!(!text.contains("PRIVATE KEY"), "the webhook's key");

    let header = Lines::open(&path)?.header;
    assert_eq!(
        (header.context.as_str(), header.from.as_str(), header.to.as_str()),
        ("admin@pitower", "v1alpha1", "v1beta1")
    );
    assert_eq!(header.server_version, fixture.plane.release.version);
    assert_eq!(header.user.as_deref(), Some("admin"));
    whole(&fixture, &read(&path)?).await?;
    let events = fixture.plane.audit("admin").await?;
    let written: Vec<_> = events.iter().filter(|event| event.writes()).collect();
    assert!(written.is_empty(), "{written:?}");
    assert!(events.iter().any(|event| event.resource == "sandboxclaims"), "it was looked at");
    Ok(())
}

/// Everything that the runbook looks at is there.
async fn whole(fixture: &Fixture, lines: &[Line]) -> Result<()> {
    let mut records: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for line in lines {
        let Line::Record(record) = line else { continue };
        assert_eq!(record.at.keys().collect::<Vec<_>>(), ["v1alpha1", "v1beta1"], "{record:?}");
        assert!(record.unreadable.is_empty(), "{record:?}");
        let [old, new] = ["v1alpha1", "v1beta1"].map(|version| &record.at[version]);
        assert_eq!(old.uid(), new.uid());
        assert!(!new.managed_fields().is_empty(), "{record:?}");
        records.entry(&record.crd).or_default().insert(format!(
            "{}/{}",
            new.namespace().unwrap_or_default(),
            new.name()
        ));
    }
    for kind in KINDS {
        let stored: BTreeSet<String> =
            fixture.plane.raw_records(&kind.crd()).await?.iter().map(|record| record.object().to_owned()).collect();
        assert_eq!(records.get(kind.crd().as_str()), Some(&stored));
    }
    let find = |kind: &Resource, namespace: Option<&str>, name: &str| {
        lines.iter().find_map(|line| match line {
            Line::Object(object) | Line::Metadata(object) | Line::Crd(object) => {
                (object.kind() == kind.kind && object.namespace() == namespace && object.name() == name)
                    .then_some(object)
            }
            Line::Record(record) => record.at.get("v1beta1").filter(|object| {
                object.kind() == kind.kind && object.namespace() == namespace && object.name() == name
            }),
            _ => None,
        })
    };
    for (kind, _, namespace, name) in OLD_CHILDREN {
        let child = find(kind, Some(namespace), name).ok_or_else(|| format!("no {} {namespace}/{name}", kind.kind))?;
        assert_eq!(child.owner_references().len(), 1, "{child:?}");
    }
    let crd = find(&CRDS, None, &SANDBOXES.crd()).ok_or("no CRD")?;
    assert!(crd.0.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec").is_some(), "whole");
    let other = find(&CRDS, None, "widgets.example.dev").ok_or("no other CRD")?;
    assert!(other.0.pointer("/spec/versions/0/schema/openAPIV3Schema/properties").is_none(), "without schemas");

    // What the gate compares with stays; what it does not, goes.
    let keep = find(&crate::support::fixture::DEPLOYMENTS, Some("garrison"), "garrison-keep").ok_or("no Deployment")?;
    let env = keep.items("/spec/template/spec/containers/0/env");
    assert_eq!(env[0], json!({"name": "KEEP_SANDBOX_VERSION", "value": "v1beta1"}));
    let hidden = env[1]["value"].as_str().unwrap_or_default();
    assert!(hidden.starts_with("<redacted #"), "{env:?}");
    // One secret, one number: here, in the claims, and at both versions.
    let claim = find(&CLAIMS, Some("ai"), "shell").ok_or("no claim")?;
    assert_eq!(claim.str("/spec/env/0/value"), Some(hidden));
    let state = claim.annotation(&state_annotation("SandboxClaim")).ok_or("no state annotation")?;
    let live = fixture.plane.api("cluster").await?.get(&CLAIMS.object("v1beta1", "ai", "shell")).await?;
    let size = live["metadata"]["annotations"][state_annotation("SandboxClaim")].as_str().map_or(0, str::len);
    assert!(state.ends_with(&format!(": {size} bytes>")), "{state}");
    let sandbox = find(&SANDBOXES, Some("garrison"), "keep-1").ok_or("no sandbox")?;
    assert_eq!(sandbox.str("/status/conditions/0/reason"), Some("DependenciesReady"));
    assert!(lines.iter().any(|line| matches!(line, Line::Access(access) if access.allowed == Some(true))));
    assert!(lines.iter().any(|line| matches!(line, Line::Requests(requests) if requests.count > 0)));
    Ok(())
}

/// `nobody` may read definitions, and nothing else.
async fn let_nobody_read_definitions(fixture: &Fixture) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let api = fixture.plane.api("cluster").await?;
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "definitions"},
        "rules": [{"apiGroups": [CRDS.group], "resources": [CRDS.plural], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "definitions"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "definitions"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "nobody"}],
    });
    api.create(&format!("/apis/{group}/v1/clusterroles"), "kubectl", &role).await?;
    api.create(&format!("/apis/{group}/v1/clusterrolebindings"), "kubectl", &binding).await?;
    let nobody = fixture.plane.api("nobody").await?;
    let path = crd_path(&CLAIMS.crd());
    crate::support::eventually("the role counts", async || Ok(nobody.get(&path).await.is_ok())).await
}

async fn denied(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "nobody")?;
    // A file that holds refusals alone is no snapshot.
    let refused = sbx.run(&["snapshot", &shipped(), "-o", FILE]).await?.ended(1)?;
    refused.says("none of the 4 CRDs of the upgrade may be read")?.says("sbx rbac RUNBOOK --for plan")?;
    assert_eq!(fs::read_dir(sbx.folder())?.count(), 0, "nothing is left of it");
    let_nobody_read_definitions(&fixture).await?;
    let ran = sbx.run(&["snapshot", &shipped(), "-o", FILE]).await?.ended(0)?;
    assert!(ran.err.contains("not readable, and noted as such"), "{}", ran.err);
    let lines = read(&sbx.folder().join(FILE))?;
    let paths: Vec<&str> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Denied(denied) => {
                assert_eq!(denied.refusal.code, 403, "{denied:?}");
                assert!(denied.refusal.message.contains("\"nobody\""), "{denied:?}");
                Some(denied.get.as_str())
            }
            _ => None,
        })
        .collect();
    for path in [
        "/apis/extensions.agents.x-k8s.io/v1beta1/sandboxclaims",
        &GARRISON.path(),
        "/metrics",
        "/api/v1/secrets",
        "/api/v1/namespaces/agent-sandbox-system/secrets/agent-sandbox-webhook-certs",
    ] {
        assert!(paths.contains(&path), "{path}: {paths:#?}");
    }
    assert!(lines.iter().all(|line| !matches!(line, Line::Record(_) | Line::Object(_))));
    assert!(lines.iter().any(|line| matches!(line, Line::Access(access) if access.allowed == Some(false))));
    let writes = fixture.plane.audit("nobody").await?.iter().filter(|event| event.writes()).count();
    assert_eq!(writes, 0);
    Ok(())
}

async fn unreadable(mut fixture: Fixture) -> Result<()> {
    fixture.webhook.set(Mode::FailsFor("shell".into()));
    // What it has converted before it would go on listing from its cache.
    fixture.plane.stop_api_server();
    fixture.plane.start_api_server().await?;
    let api = fixture.plane.api("cluster").await?;
    let (one, other) = (CLAIMS.object("v1beta1", "ai", "shell"), CLAIMS.object("v1beta1", "ai", "notebook"));
    crate::support::eventually("the conversion fails", async || Ok(api.get(&one).await.is_err())).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    sbx.run(&["snapshot", &shipped(), "-o", FILE]).await?.ended(0)?.says("1 record cannot be read at every version")?;
    let lines = read(&sbx.folder().join(FILE))?;
    let claims: Vec<_> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Record(record) if record.crd == CLAIMS.crd() => Some(record),
            _ => None,
        })
        .collect();
    assert_eq!(claims.len(), fixture.plane.raw_records(&CLAIMS.crd()).await?.len());
    let culprits: Vec<_> = claims.iter().filter(|record| !record.unreadable.is_empty()).collect();
    assert_eq!(culprits.len(), 1, "{culprits:#?}");
    assert_eq!(culprits[0].at["v1alpha1"].name(), "shell");
    let words = &culprits[0].unreadable["v1beta1"].message;
    assert!(words.contains("panic in conversion of shell"), "{words}");
    same_plan(&fixture, "admin", &shipped()).await?;

    fixture.webhook.set(Mode::Stopped);
    crate::support::eventually("no conversion works", async || Ok(api.get(&other).await.is_err())).await?;
    same_plan(&fixture, "admin", &shipped()).await
}

/// The plan as JSON, less what is another one by its nature: its time, and that it is offline.
async fn planned(sbx: &Sbx, words: &[&str]) -> Result<Value> {
    let ran = sbx.run(&[&["plan", "--format", "json"], words].concat()).await?;
    let mut plan: Value =
        serde_json::from_str(&without_revisions(&ran.out)).map_err(|error| format!("{error}: {ran:?}"))?;
    plan["created_at"] = Value::Null;
    // Every other note is compared by its words.
    plan["summary"]["findings"]["notes"] = Value::Null;
    plan["exit"] = ran.code.into();
    let findings = plan["diagnostics"].as_array_mut().ok_or("no findings")?;
    let offline = findings.iter().position(|finding| {
        finding["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("offline: planned from cluster.snapshot, taken 20"))
    });
    assert_eq!(offline.map(|at| findings.remove(at)).is_some(), words.contains(&"--snapshot"), "{findings:?}");
    Ok(plan)
}

/// Words of 1.37 name etcd's revision of a record, which no snapshot can know.
fn without_revisions(text: &str) -> String {
    let mut parts = text.split("revision=");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "revision=N" + part.trim_start_matches(|char: char| char.is_ascii_digit()))
}

async fn same_plan(fixture: &Fixture, user: &str, runbook: &str) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, user)?;
    sbx.run(&["snapshot", runbook, "-o", FILE]).await?.ended(0)?;
    let live = planned(&sbx, &[runbook]).await?;
    let asked = fixture.plane.audit(user).await?.len();
    let offline = planned(&sbx, &[runbook, "--snapshot", FILE, "--kubeconfig", "nowhere"]).await?;
    assert_eq!(fixture.plane.audit(user).await?.len(), asked, "{user}: the cluster is not asked");
    assert!(live == offline, "{user}\n{}", differences(&live, &offline));
    Ok(())
}

/// Lines that only one of two values has.
fn differences(live: &Value, offline: &Value) -> String {
    let [live, offline] = [live, offline].map(|plan| format!("{plan:#}"));
    let only = |one: &str, other: &str, sign: char| -> Vec<String> {
        let known: BTreeSet<&str> = other.lines().collect();
        one.lines().filter(|line| !known.contains(line)).map(|line| format!("{sign} {line}")).collect()
    };
    [only(&live, &offline, '-'), only(&offline, &live, '+')].concat().join("\n")
}

async fn offline(fixture: Fixture) -> Result<()> {
    let runbook = shipped();
    let_nobody_read_definitions(&fixture).await?;
    for user in ["admin", "reader", "nobody"] {
        same_plan(&fixture, user, &runbook).await?;
    }
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    sbx.run(&["snapshot", &runbook, "-o", FILE]).await?.ended(0)?.says("Next: sbx rehearse")?;
    sbx.run(&["rehearse", &runbook, "--snapshot", FILE]).await?.ended(0)?;
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    leave_canaries(&fixture).await?;
    fixture.roll_out(&GARRISON).await?;
    same_plan(&fixture, "admin", &runbook).await?;
    sbx.run(&["apply", &runbook, "--yes", "--to", "release"]).await?.ended(0)?;
    same_plan(&fixture, "admin", &runbook).await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    same_plan(&fixture, "admin", &runbook).await?;

    // Another question than those it was taken for is not answered.
    let text = fs::read_to_string(&runbook)?;
    let other = sbx.folder().join("other.toml");
    fs::write(&other, text.replace("Secret/agent-sandbox-webhook-certs", "Secret/others").replace("schemas", "s"))?;
    sbx.run(&["snapshot", &runbook, "-o", FILE]).await?.ended(0)?;
    let words = ["plan", "other.toml", "--snapshot", FILE];
    let path = "/api/v1/namespaces/agent-sandbox-system/secrets/others";
    sbx.run(&words).await?.ended(4)?.says(path)?.says("take it again: sbx snapshot other.toml -o cluster.snapshot")?;
    fs::write(&other, text.replace("admin@pitower", "admin@elsewhere"))?;
    sbx.run(&words).await?.ended(4)?.says("a snapshot of context admin@pitower answers")?;
    let whole = fs::read_to_string(sbx.folder().join(FILE))?;
    fs::write(sbx.folder().join(FILE), &whole[..whole.len() / 2])?;
    sbx.run(&["plan", &runbook, "--snapshot", FILE]).await?.ended(1)?.says("copy or take it again")?;
    Ok(())
}

/// Takes a snapshot; its size in KiB, and the most memory that took.
async fn peak(sbx: &Sbx) -> Result<(u64, u64)> {
    let taking = sbx.start(&["snapshot", "draft.toml", "-o", FILE])?;
    let (most, ended) = (std::sync::atomic::AtomicU64::new(0), std::sync::atomic::AtomicBool::new(false));
    let pid = taking.pid().ok_or("it has ended")?;
    let (ran, ()) = tokio::join!(
        async {
            let ran = taking.end().await;
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            ran
        },
        async {
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                most.fetch_max(memory(pid).unwrap_or_default(), std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    );
    ran?.ended(0)?;
    Ok((fs::metadata(sbx.folder().join(FILE))?.len() >> 10, most.into_inner()))
}

async fn many(release: Release) -> Result<()> {
    const WIDGETS: Resource = Resource::new("demo.test", "widgets", "Widget");
    let plane = ControlPlane::start(&release).await?;
    let api = plane.api("cluster").await?;
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": WIDGETS.crd()},
        "spec": {
            "group": WIDGETS.group, "scope": "Namespaced", "names": {"kind": WIDGETS.kind, "plural": WIDGETS.plural},
            "versions": [version("v1", false), version("v2", true)],
        },
    });
    api.apply(&crd_path(&WIDGETS.crd()), "kubectl", &crd).await?;
    let list = WIDGETS.list("v2", "default");
    crate::support::eventually("widgets served", async || Ok(api.get(&list).await.is_ok())).await?;
    let make = async |from: usize, to: usize| -> Result<()> {
        let made = futures::stream::iter(from..to).map(|number| {
            let (api, list) = (&api, &list);
            async move {
                let widget = json!({
                    "apiVersion": "demo.test/v2", "kind": "Widget", "metadata": {"name": format!("w-{number:05}")},
                    "spec": {"text": "x".repeat(4000), "env": [{"name": "A", "value": format!("{CANARY}-{number}")}]},
                });
                api.create(list, "maker", &widget).await
            }
        });
        made.buffer_unordered(16).try_for_each(|_| async { Ok(()) }).await?;
        Ok(())
    };
    make(0, 1000).await?;
    let sbx = Sbx::new(&plane, "admin")?;
    sbx.run(&["init", "--crd", &WIDGETS.crd(), "-o", "draft.toml"]).await?.ended(0)?;
    let (small, few) = peak(&sbx).await?;
    make(1000, 10_000).await?;
    let (large, many) = peak(&sbx).await?;
    assert!(large > 9 * small, "{small} KiB, then {large} KiB");
    let text = fs::read_to_string(sbx.folder().join(FILE))?;
    assert_eq!(text.lines().filter(|line| line.starts_with("{\"record\"")).count(), 10_000);
    assert!(!text.contains(CANARY));
    // One page at each version, and 32 bytes of each value that was replaced.
    assert!(many < few + 8 * 1024, "{few} KiB for 1,000 records, {many} KiB for 10,000");
    let mut lines = 0;
    for line in Lines::open(&sbx.folder().join(FILE))? {
        lines += usize::from(matches!(line?, Line::Record(_)));
    }
    assert_eq!(lines, 10_000);
    sbx.run(&["plan", "draft.toml", "--snapshot", FILE]).await?.ended(0)?.says("10000")?;
    Ok(())
}
