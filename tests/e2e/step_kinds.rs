//! Each step kind by itself, on the cluster before the upgrade: what it sees, what it does, what it leaves alone.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use tempfile::TempDir;

use sbx::clock::Clock;
use sbx::cluster::{Writer, connect};
use sbx::graph::StepGraph;
use sbx::plan::Grade;
use sbx::runbook::{Runbook, Step, load};
use sbx::steps::{self, Decision, Interrupt, Outcome, Pace, Progress, Run, Situation, Stop, World};

use crate::fixture_scenario;
use crate::support::Result;
use crate::support::api::Resource;
use crate::support::control_plane::{CONTEXT, Release};
use crate::support::fixture::{
    CANARY, CLAIMS, CONTROLLER, FLICKERD, Fixture, GARRISON, KINDS, OLD_CHILDREN, OTHER_CHILDREN, SANDBOXES, SYSTEM,
    Truth, WEBHOOK_SECRET, crd_path,
};
use crate::support::webhook::state_annotation;

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    if truth != Truth::Small {
        return Vec::new();
    }
    vec![
        fixture_scenario(release, truth, "step_kinds::owners", owners),
        fixture_scenario(release, truth, "step_kinds::gates", gates),
        fixture_scenario(release, truth, "step_kinds::delete_and_strip", delete_and_strip),
        fixture_scenario(release, truth, "step_kinds::manifests", manifests),
    ]
}

const SECRETS: Resource = Resource::new("", "secrets", "Secret");
const SETTINGS: Resource = Resource::new("settings.test", "settings", "Setting");

/// A runbook, and the library as apply would use it.
struct Bench {
    writer: Writer,
    runbook: Runbook,
    graph: StepGraph,
    folder: TempDir,
    interrupt: Interrupt,
    said: Mutex<Vec<Progress>>,
}

impl Bench {
    async fn new(fixture: &Fixture, user: &str, steps: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("runbook.toml");
        let crds: Vec<String> = KINDS.iter().map(Resource::crd).collect();
        let head = format!(
            "title = \"t\"\n[cluster]\ncontext = \"{CONTEXT}\"\n[upgrade]\nfrom = \"v1alpha1\"\nto = \"v1beta1\"\n\
             deployer = \"argocd-controller\"\ncrds = {crds:?}\n"
        );
        fs::write(&path, format!("{head}{steps}"))?;
        // What a `manifests` step is told to read must be there when the runbook is.
        fs::write(folder.path().join("settings.json"), "")?;
        let runbook = load(&path).map_err(|error| format!("{error:?}"))?;
        let graph = StepGraph::of(&runbook).map_err(|cycle| format!("{cycle:?}"))?;
        let reader = connect(Some(&fixture.plane.kubeconfig(user)?), CONTEXT, Clock::real()).await?;
        let (interrupt, said) = (Interrupt::default(), Mutex::default());
        Ok(Self { writer: Writer::new(reader), runbook, graph, folder, interrupt, said })
    }

    async fn look(&self) -> Result<Situation> {
        Ok(steps::observe(self.writer.reader(), &self.runbook, &self.graph, self.folder.path(), &[]).await?)
    }

    fn step(&self, id: &str) -> Result<&Step> {
        self.runbook.steps.iter().find(|step| step.id.0 == id).ok_or_else(|| format!("no step {id}").into())
    }

    async fn decide(&self, id: &str) -> Result<Decision> {
        let situation = self.look().await?;
        let world = World { runbook: &self.runbook, graph: &self.graph, situation: &situation };
        steps::decide(self.step(id)?, &world).ok_or_else(|| "it was observed".into())
    }

    async fn run(&self, id: &str) -> Result<Result<(), Stop>> {
        let situation = self.look().await?;
        let report = |progress| self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(progress);
        let run = Run {
            writer: &self.writer,
            runbook: &self.runbook,
            graph: &self.graph,
            situation: &situation,
            working_dir: self.folder.path(),
            run_id: "20261201-140211-5d",
            pace: &Pace::default(),
            report: &report,
            interrupt: &self.interrupt,
        };
        Ok(steps::run(self.step(id)?, &run).await)
    }

    /// Runs a step that must succeed.
    async fn done(&self, id: &str) -> Result<()> {
        self.run(id).await?.map_err(|stop| format!("{id}: {stop:?}").into())
    }

    /// What became of each object so far.
    fn outcomes(&self) -> Vec<(String, Outcome)> {
        let said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let objects = said.iter().filter_map(|progress| match progress {
            Progress::Object { object, outcome, .. } => Some((object.to_string(), outcome.clone())),
            _ => None,
        });
        objects.collect()
    }
}

fn texts(decision: &Decision, grade: Grade) -> Vec<String> {
    decision.findings.iter().filter(|finding| finding.grade == grade).map(|finding| finding.text.clone()).collect()
}

/// Writes by `admin`, who runs sbx; dry runs and reviews aside.
async fn writes(fixture: &Fixture) -> Result<usize> {
    let events = fixture.plane.audit("admin").await?;
    let written = |verb: &str| ["create", "update", "patch", "delete", "deletecollection"].contains(&verb);
    let asked = |uri: &str| uri.contains("dryRun=All") || uri.contains("reviews");
    Ok(events.iter().filter(|event| written(&event.verb) && !asked(&event.uri)).count())
}

async fn owners(fixture: Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    // Its owner is long gone.
    let dead = json!({"apiVersion": SANDBOXES.api_version("v1alpha1"), "kind": "Sandbox", "name": "keep-0",
                      "uid": "00000000-0000-0000-0000-000000000000"});
    let orphan =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "orphan", "ownerReferences": [dead]}});
    api.create(&SECRETS.list("v1", "ai"), "kubectl", &orphan).await?;
    let path = |&(kind, version, namespace, name): &(Resource, &str, &str, &str)| kind.object(version, namespace, name);
    let (mut before, mut others) = (Vec::new(), Vec::new());
    for child in OLD_CHILDREN {
        before.push(api.get(&path(child)).await?);
    }
    for other in OTHER_CHILDREN {
        others.push(api.get(&path(other)).await?);
    }

    let steps = "[[step]]\nid = \"backup\"\n[step.backup]\nto = \"b-{run}\"\n\
                 [[step]]\nid = \"owners\"\nneeds = [\"backup\"]\n[step.owners]\n";
    let bench = Bench::new(&fixture, "admin", steps).await?;
    let decision = bench.decide("owners").await?;
    let wanted = "relabel ownerReferences of 8 objects (1 NetworkPolicy, 1 PersistentVolumeClaim, 2 Pod, 2 Sandbox, \
                  1 Secret, 1 Service)";
    assert_eq!((decision.settled, decision.summary.as_str()), (false, wanted));
    assert_eq!(decision.changes.len(), 8);
    assert_eq!(texts(&decision, Grade::NotChecked), [""; 0]);
    let warnings = texts(&decision, Grade::Warning);
    assert!(matches!(&warnings[..], [one] if one.starts_with("orphan: its owner Sandbox keep-0")), "{warnings:?}");
    assert_eq!(writes(&fixture).await?, 0);

    let reader = Bench::new(&fixture, "reader", steps).await?.decide("owners").await?;
    assert_eq!(reader.summary, wanted);
    assert!(texts(&reader, Grade::Blocker).is_empty(), "{:?}", reader.findings);
    let denied = "the user may not patch persistentvolumeclaims, pods, secrets, services".to_owned();
    assert!(texts(&reader, Grade::NotChecked).contains(&denied), "{reader:?}");
    let nobody = Bench::new(&fixture, "nobody", steps).await?.decide("owners").await?;
    assert!(!nobody.settled && nobody.summary == "children could not be looked for", "{nobody:?}");

    bench.done("owners").await?;
    // Relabelled, it would go: its owner no longer exists.
    let left = fixture.children_of_old_version().await?;
    assert!(left.len() == 1 && left.iter().all(|name| name.ends_with("orphan")), "{left:?}");
    for (child, before) in OLD_CHILDREN.iter().zip(before) {
        let after = api.get(&path(child)).await?;
        let owner = |object: &Value| object["metadata"]["ownerReferences"][0].clone();
        let mut wanted = owner(&before);
        let renamed = wanted["apiVersion"].as_str().unwrap_or_default().replace("v1alpha1", "v1beta1");
        wanted["apiVersion"] = renamed.into();
        assert_eq!(owner(&after), wanted, "{child:?}");
        assert_eq!((&after["metadata"]["uid"], &after["spec"]), (&before["metadata"]["uid"], &before["spec"]));
    }
    for (other, before) in OTHER_CHILDREN.iter().zip(others) {
        assert_eq!(api.get(&path(other)).await?, before, "{other:?}");
    }
    assert_eq!(bench.outcomes().len(), 8);
    assert!(bench.outcomes().iter().all(|(_, outcome)| *outcome == Outcome::Updated), "{:?}", bench.outcomes());

    let written = writes(&fixture).await?;
    assert_eq!(written, 8);
    let decision = bench.decide("owners").await?;
    assert!(decision.settled, "{}", decision.summary);
    bench.done("owners").await?;
    assert_eq!(writes(&fixture).await?, written, "a second run writes nothing");
    Ok(())
}

async fn gates(fixture: Fixture) -> Result<()> {
    let steps = "[[step]]\nid = \"flickerd\"\n[step.client]\nworkload = \"Deployment/flickerd-generator\"\n\
                 namespace = \"flickerd\"\ncontainer = \"generator\"\nimage = \">=0.15.0\"\npods = true\n\
                 [[step]]\nid = \"garrison\"\n[step.client]\nworkload = \"Deployment/garrison-keep\"\n\
                 namespace = \"garrison\"\nimage = \">=0.57.0\"\nenv = { KEEP_SANDBOX_VERSION = \"v1beta1\" }\n\
                 [[step]]\nid = \"writers\"\n[step.writers]\nquiet-for = \"30m\"\n";
    let bench = Bench::new(&fixture, "admin", steps).await?;
    let word = async |id: &str| -> Result<(bool, String)> {
        let decision = bench.decide(id).await?;
        assert!(!format!("{decision:?}").contains(CANARY));
        Ok((decision.settled, decision.summary))
    };
    let old = "generator v0.14.0, wants >= 0.15.0, rolled out, 1 of 1 pods run another image";
    assert_eq!(word("flickerd").await?, (false, old.into()));
    let old = "keep v0.56.0, wants >= 0.57.0, rolled out, KEEP_SANDBOX_VERSION is not v1beta1";
    assert_eq!(word("garrison").await?, (false, old.into()));
    let (quiet, summary) = word("writers").await?;
    assert!(quiet && summary.starts_with("last v1alpha1 write "), "{summary}");

    // The new image, and the old variable; then the rollout under way.
    fixture.deploy(&GARRISON, "ghcr.io/swibrow/garrison:v0.57.0", "v1alpha1").await?;
    let rolling = "keep v0.57.0 >= 0.57.0, rolling out: generation 2 is not observed yet, \
                   KEEP_SANDBOX_VERSION is not v1beta1";
    assert_eq!(word("garrison").await?, (false, rolling.into()));
    fixture.ship(&GARRISON).await?;
    fixture.ship(&FLICKERD).await?;
    assert_eq!(word("garrison").await?, (true, "keep v0.57.0 >= 0.57.0, rolled out".into()));
    let new = "generator v0.15.2 >= 0.15.0, rolled out, 1 pods checked";
    assert_eq!(word("flickerd").await?, (true, new.into()));

    // Of a write at the old version both witnesses know, of a claim made and deleted only the metric.
    let mutations = async || -> Result<u64> {
        match bench.look().await?.seen.get(&bench.step("writers")?.id) {
            Some(steps::Seen::Writers(seen)) => seen.mutations.ok_or_else(|| "admin may read /metrics".into()),
            _ => Err("writers was observed".into()),
        }
    };
    let counted = mutations().await?;
    assert!(counted > 0, "the fixture wrote at v1alpha1");
    let flickerd = fixture.plane.api("flickerd").await?;
    let claim = json!({"apiVersion": CLAIMS.api_version("v1alpha1"), "kind": "SandboxClaim",
        "metadata": {"name": "brief"}, "spec": {"sandboxTemplateRef": {"name": "flicker"}, "warmpool": "none"}});
    flickerd.create(&CLAIMS.list("v1alpha1", "flickerd"), "flickerd-generator", &claim).await?;
    flickerd.delete(&CLAIMS.object("v1alpha1", "flickerd", "brief")).await?;
    assert_eq!(mutations().await?, counted + 2);
    assert!(word("writers").await?.0, "managedFields know nothing of it");
    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    flickerd.merge(&CLAIMS.object("v1alpha1", "flickerd", "frame-1"), "flickerd-generator", &label).await?;
    let (quiet, summary) = word("writers").await?;
    assert!(!quiet && summary.contains("(flickerd-generator); quiet for 30m at "), "{summary}");

    let reader = Bench::new(&fixture, "reader", steps).await?.decide("writers").await?;
    assert!(texts(&reader, Grade::NotChecked)[0].starts_with("clients that delete what they create"), "{reader:?}");
    fixture.plane.api("cluster").await?.delete(&FLICKERD.path()).await?;
    let gone = bench.decide("flickerd").await?;
    assert_eq!(texts(&gone, Grade::Blocker), ["Deployment flickerd/flickerd-generator does not exist"]);
    assert_eq!(writes(&fixture).await?, 0);
    Ok(())
}

async fn delete_and_strip(fixture: Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    let state = state_annotation("SandboxClaim").replace("sandboxclaim-state", "*");
    let steps = format!(
        "[[step]]\nid = \"backup\"\n[step.backup]\nto = \"b-{{run}}\"\n\
         [[step]]\nid = \"migrate\"\nneeds = [\"backup\"]\n[step.migrate]\nsettle = \"1s\"\n\
         [[step]]\nid = \"certs\"\nneeds = [\"migrate\"]\n[step.delete]\nobjects = [\"Secret/{WEBHOOK_SECRET}\"]\n\
         namespace = \"{SYSTEM}\"\n\
         [[step]]\nid = \"claims\"\nneeds = [\"migrate\"]\n[step.delete]\nresource = \"{}\"\nnamespace = \"ai\"\n\
         condition = {{ type = \"Ready\", reason = \"InvalidMetadata\" }}\nat-most = 3\n\
         [[step]]\nid = \"strip\"\nneeds = [\"migrate\"]\n[step.strip]\nannotations = [\"{state}\"]\n",
        CLAIMS.crd()
    );
    let bench = Bench::new(&fixture, "admin", &steps).await?;

    // The webhook still needs its Secret.
    let certs = bench.decide("certs").await?;
    let blockers = texts(&certs, Grade::Blocker);
    assert!(matches!(&blockers[..], [one] if KINDS.iter().all(|kind| one.contains(&kind.crd()))), "{blockers:?}");
    let stopped = bench.run("certs").await?;
    assert!(matches!(&stopped, Err(Stop::Failed { text, .. }) if text.contains("still needs Secret")), "{stopped:?}");
    let secret = SECRETS.object("v1", SYSTEM, WEBHOOK_SECRET);
    api.get(&secret).await?;

    // Before a backup a delete by condition shows what matches, and takes nothing.
    let claims = bench.decide("claims").await?;
    assert_eq!(claims.summary, "delete 3 SandboxClaims in ai");
    assert!(matches!(bench.run("claims").await?, Err(Stop::Failed { .. })));
    assert_eq!(writes(&fixture).await?, 0);
    bench.done("backup").await?;

    // One begins to match later, one no longer does.
    let status = |reason: &str| {
        json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": "",
                                          "lastTransitionTime": "2026-11-01T00:00:00Z"}]}})
    };
    let path = |name: &str| CLAIMS.object("v1beta1", "ai", name);
    api.merge(&format!("{}/status", path("shell")), CONTROLLER.name, &status("InvalidMetadata")).await?;
    api.merge(&format!("{}/status", path("orphan-3")), CONTROLLER.name, &status("Pending")).await?;
    let before: BTreeSet<String> = names(&api.items(&CLAIMS.list("v1beta1", "ai")).await?);
    let claims = bench.decide("claims").await?;
    assert_eq!(claims.summary, "delete 2 SandboxClaims in ai");
    assert_eq!(texts(&claims, Grade::Note), ["not deleted: it began to match after the backup was taken"]);
    bench.done("claims").await?;
    let after = names(&api.items(&CLAIMS.list("v1beta1", "ai")).await?);
    let gone: Vec<&str> = before.difference(&after).map(String::as_str).collect();
    assert_eq!(gone, ["orphan-1", "orphan-2"]);
    assert!(bench.decide("claims").await?.settled);

    // The state annotations are on disk only once a record was rewritten.
    bench.done("migrate").await?;
    let strip = bench.decide("strip").await?;
    assert!(!strip.settled && strip.summary.starts_with("remove "), "{}", strip.summary);
    assert!(!format!("{strip:?}").contains(CANARY));
    bench.done("strip").await?;
    for kind in KINDS {
        for record in fixture.plane.raw_records(&kind.crd()).await? {
            let annotations = record.json()["metadata"]["annotations"].clone();
            let left = annotations.as_object().into_iter().flatten().any(|(name, _)| name.ends_with("-state"));
            assert!(!left, "{}: {annotations}", record.key);
            assert_eq!(record.api_version, kind.api_version("v1beta1"));
        }
    }
    let written = writes(&fixture).await?;
    assert!(bench.decide("strip").await?.settled);
    bench.done("strip").await?;
    assert_eq!(writes(&fixture).await?, written, "a second run writes nothing");

    // What another CRD in the cluster converts through does not go either.
    for kind in KINDS {
        api.merge(
            &crd_path(&kind.crd()),
            "kubectl",
            &json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}}),
        )
        .await?;
    }
    let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": SYSTEM, "name": "hook"}}}});
    let other = crd("others.settings.test", "others", "Other", &webhook);
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "kubectl", &other).await?;
    let blockers = texts(&bench.decide("certs").await?, Grade::Blocker);
    assert_eq!(
        blockers,
        ["the conversion of others.settings.test still needs it, and this runbook does not upgrade them"]
    );
    api.delete(&crd_path("others.settings.test")).await?;
    crate::support::eventually("the CRD is gone", async || {
        Ok(api.get(&crd_path("others.settings.test")).await.is_err())
    })
    .await?;

    api.merge(&secret, "kubectl", &json!({"metadata": {"finalizers": ["demo.test/hold"]}})).await?;
    assert_eq!(bench.decide("certs").await?.summary, format!("delete Secret {SYSTEM}/{WEBHOOK_SECRET}"));
    bench.done("certs").await?;
    let held = bench.decide("certs").await?;
    let warning = "its deletion has begun, held by finalizers demo.test/hold";
    assert_eq!((held.settled, texts(&held, Grade::Warning)), (true, vec![warning.to_owned()]));
    api.merge(&secret, "kubectl", &json!({"metadata": {"finalizers": null}})).await?;
    assert_eq!(bench.decide("certs").await?.summary, "it is not there");
    bench.done("certs").await?;
    Ok(())
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().filter_map(|object| Some(object["metadata"]["name"].as_str()?.to_owned())).collect()
}

fn crd(name: &str, plural: &str, kind: &str, conversion: &Value) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"group": "settings.test", "scope": "Namespaced", "conversion": conversion,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

async fn manifests(fixture: Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    let steps = "[[step]]\nid = \"backup\"\n[step.backup]\nto = \"b-{run}\"\n\
                 [[step]]\nid = \"migrate\"\nneeds = [\"backup\"]\n[step.migrate]\n\
                 [[step]]\nid = \"files\"\nneeds = [\"migrate\"]\n[step.manifests]\nfiles = [\"settings.json\"]\n";
    let mut bench = Bench::new(&fixture, "admin", steps).await?;
    let settings = bench.folder.path().join("settings.json");
    let write = |size: u64, token: &str| {
        let metadata = |name: &str| json!({"name": name, "namespace": "new"});
        let objects = [
            json!({"apiVersion": "settings.test/v1", "kind": "Setting", "metadata": metadata("a"), "spec": {"size": size}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("a"), "stringData": {"token": token}}),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}),
            crd("settings.settings.test", "settings", "Setting", &json!({"strategy": "None"})),
        ];
        fs::write(&settings, objects.map(|object| object.to_string()).join("\n"))
    };
    write(1, CANARY)?;
    let decision = bench.decide("files").await?;
    assert_eq!((decision.settled, decision.summary.as_str()), (false, "create 4 of 4 objects"));
    let notes = texts(&decision, Grade::Note);
    let wanted = ["CRD settings.settings.test", "Namespace new"];
    assert_eq!(notes, wanted.map(|what| format!("can be asked only once {what} is applied")));
    assert_eq!(writes(&fixture).await?, 0);
    bench.done("files").await?;
    let made: Vec<String> = bench.outcomes().into_iter().map(|(object, _)| object).collect();
    let wanted = ["CustomResourceDefinition settings.settings.test", "Namespace new", "Setting new/a", "Secret new/a"];
    assert_eq!(made, wanted);
    assert_eq!(bench.decide("files").await?.summary, "4 objects are as in the files");
    let written = writes(&fixture).await?;
    bench.done("files").await?;
    assert_eq!(writes(&fixture).await?, written, "a second run writes nothing");

    write(2, "another-canary")?;
    let decision = bench.decide("files").await?;
    assert_eq!(decision.summary, "change 2 of 4 objects");
    let shown = format!("{decision:?}");
    assert!(!shown.contains("canary") && !shown.contains("YW5vdGhlci1jYW5hcnk"), "{shown}");
    let fields: Vec<String> = decision
        .changes
        .iter()
        .flat_map(|change| &change.fields)
        .map(|field| format!("{}: {:?} -> {:?}", field.path, field.before, field.after))
        .collect();
    let wanted = [r#"spec.size: Some("1") -> Some("2")"#, r#"data.token: Some("<masked 1>") -> Some("<masked 2>")"#];
    assert_eq!(fields, wanted);

    // Somebody else takes a field, another value with it.
    api.apply(
        &SETTINGS.object("v1", "new", "a"),
        "someone",
        &json!({"apiVersion": "settings.test/v1",
        "kind": "Setting", "metadata": {"name": "a"}, "spec": {"size": 7}}),
    )
    .await?;
    let decision = bench.decide("files").await?;
    assert_eq!(texts(&decision, Grade::Blocker), ["would take fields over: spec.size of someone"]);
    let stopped = bench.run("files").await?;
    assert!(matches!(&stopped, Err(Stop::Failed { failures, .. }) if failures.len() == 1), "{stopped:?}");
    assert_eq!(writes(&fixture).await?, written, "one refusal, and nothing is applied");
    for step in &mut bench.runbook.steps {
        if let sbx::runbook::Task::Manifests(task) = &mut step.task {
            task.force = true;
        }
    }
    bench.done("files").await?;
    assert_eq!(api.get(&SETTINGS.object("v1", "new", "a")).await?["spec"]["size"], 2);

    // A reader is told what could not be asked; what is wrong in a file is told to everybody.
    write(3, CANARY)?;
    let reader = Bench::new(&fixture, "reader", steps).await?;
    fs::copy(&settings, reader.folder.path().join("settings.json"))?;
    let decision = reader.decide("files").await?;
    assert!(!decision.settled && !texts(&decision, Grade::NotChecked).is_empty(), "{decision:?}");
    let wrong = [
        (json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}), "it names no namespace"),
        (
            json!({"apiVersion": "nowhere.test/v1", "kind": "Thing", "metadata": {"name": "a"}}),
            "the server serves no Thing in nowhere.test/v1",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "nowhere"}}),
            "namespaces \"nowhere\" not found",
        ),
        (
            json!({"apiVersion": "settings.test/v1", "kind": "Setting", "metadata": {"name": "a", "namespace": "new"},
                   "spec": {"size": "large"}}),
            "spec.size",
        ),
    ];
    for (object, words) in wrong {
        fs::write(&settings, object.to_string())?;
        let decision = bench.decide("files").await?;
        let blockers = texts(&decision, Grade::Blocker);
        assert!(matches!(&blockers[..], [one] if one.contains(words)), "{:?} {words}", decision.findings);
        assert!(matches!(bench.run("files").await?, Err(Stop::Failed { .. })), "{words}");
    }
    Ok(())
}
