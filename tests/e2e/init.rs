//! `sbx init` on a real API server: what it drafts passes `sbx check`, plans, and holds what is there.

use std::fs;
use std::path::PathBuf;

use libtest_mimic::Trial;
use sbx::graph;
use sbx::runbook::{Runbook, Task};
use serde_json::json;

use crate::support::api::{Api, Resource};
use crate::support::control_plane::{ControlPlane, Release};
use crate::support::fixture::{
    APPLICATION, CLAIMS, CRDS, DEPLOYER, FLICKERD, Fixture, GARRISON, KINDS, SYSTEM, Truth, WEBHOOK_SERVICE, crd_path,
};
use crate::support::sbx::Sbx;
use crate::support::{Result, eventually};
use crate::{fixture_scenario, scenario};

const DRAFT: &str = "draft.toml";

/// The tests on the cluster before the upgrade.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "init::the_draft_carries_the_upgrade_to_the_merge", upgrade),
        fixture_scenario(release, truth, "init::what_is_only_likely_is_a_comment", likely),
    ]
}

/// The tests on an empty cluster.
pub fn scenarios_from_nothing(release: &Release) -> Vec<Trial> {
    vec![scenario(release, "init::cluster_scoped_kinds_without_argo_cd_and_a_choice", choice)]
}

/// The drafted runbook, which must pass `sbx check`.
async fn drafted(sbx: &Sbx, words: &[&str]) -> Result<(Runbook, String)> {
    let words: Vec<&str> = ["init", "-o", DRAFT].iter().chain(words).copied().collect();
    sbx.run(&words).await?.ended(0)?.says("Next: sbx plan draft.toml")?;
    sbx.run(&["check", DRAFT]).await?.ended(0)?;
    let path: PathBuf = sbx.folder().join(DRAFT);
    let (runbook, _) = graph::load(&path)?;
    Ok((runbook, fs::read_to_string(path)?))
}

fn ids(runbook: &Runbook) -> Vec<&str> {
    runbook.steps.iter().map(|step| step.id.0.as_str()).collect()
}

async fn upgrade(fixture: Fixture) -> Result<()> {
    let (namespace, name) = APPLICATION;
    let argocd = fixture.plane.api("argocd").await?;
    for kind in KINDS {
        let mark = format!("{name}:apiextensions.k8s.io/CustomResourceDefinition:{SYSTEM}/{}", kind.crd());
        let mark = json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": mark}}});
        argocd.merge(&crd_path(&kind.crd()), "somebody", &mark).await?;
    }
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let (runbook, text) = drafted(&sbx, &[]).await?;
    let wanted = [
        "flickerd-generator",
        "garrison-keep",
        "writers",
        "backup",
        "migrate",
        "owners",
        "release",
        "merge",
        "agent-sandbox-controller",
        "webhook-gone",
    ];
    assert_eq!(ids(&runbook), wanted, "{text}");
    assert_eq!(runbook.upgrade.from, "v1alpha1");
    assert_eq!(runbook.upgrade.to, "v1beta1");
    assert_eq!(runbook.upgrade.deployer.as_deref(), Some(DEPLOYER));
    let mut crds: Vec<String> = KINDS.iter().map(Resource::crd).collect();
    crds.sort();
    assert_eq!(runbook.upgrade.crds, crds);
    for (step, client) in runbook.steps.iter().zip([FLICKERD, GARRISON]) {
        let Task::Client(task) = &step.task else { return Err(text.into()) };
        assert_eq!((task.name.as_str(), task.namespace.as_str()), (client.name, client.namespace));
        assert_eq!(task.image.to_string(), format!(">{}", client.before.trim_start_matches('v')));
    }
    let Task::Merge(merge) = &runbook.steps[7].task else { return Err(text.into()) };
    assert_eq!(merge.application, Some((namespace.into(), name.into())));
    let Task::Gone(gone) = &runbook.steps[9].task else { return Err(text.into()) };
    assert_eq!((gone.objects[0].name.as_str(), gone.namespace.as_deref()), (WEBHOOK_SERVICE, Some(SYSTEM)));
    assert!(text.contains("argocd-controller has written at v1alpha1:"), "{text}");
    assert!(text.contains("It applies manifests: change theirs to v1beta1 before the merge."), "{text}");

    // A second draft does not take the first one's place.
    sbx.run(&["init", "-o", DRAFT]).await?.ended(1)?.says("draft.toml: File exists")?;
    assert_eq!(fs::read_to_string(sbx.folder().join(DRAFT))?, text);
    let writes = fixture.plane.audit("admin").await?.iter().filter(|event| event.writes()).count();
    assert_eq!(writes, 0);

    sbx.run(&["plan", DRAFT, "--detailed-exitcode"])
        .await?
        .ended(2)?
        .says("2 WAITING (flickerd-generator, garrison-keep)")?;
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    sbx.run(&["apply", DRAFT, "--yes", "--to", "release"]).await?.ended(0)?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    Ok(())
}

async fn likely(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let (runbook, text) = drafted(&sbx, &["--crd", &CLAIMS.crd()]).await?;
    assert_eq!(runbook.upgrade.crds, [CLAIMS.crd()]);
    let guess = "# application = \"argocd/pitower-ai-agent-sandbox\"   # a guess";
    assert!(text.contains(guess), "{text}");
    sbx.run(&["plan", DRAFT, "--detailed-exitcode"]).await?.ended(2)?;
    let wrong = CLAIMS.crd().replace("claims", "clams");
    let words = ["init", "--crd", &wrong];
    sbx.run(&words).await?.ended(1)?.says("there is no such CRD")?.says(&CLAIMS.crd())?;
    let only = ["init", "--crd", "applications.argoproj.io"];
    sbx.run(&only).await?.ended(1)?.says("it has no version beside v1alpha1")?;
    let stranger = Sbx::new(&fixture.plane, "nobody")?;
    stranger.run(&["init"]).await?.ended(1)?.says("User \"nobody\" cannot list resource")?;
    Ok(())
}

/// A cluster-scoped kind, by server-side apply of `manager`, stored at `storage`.
async fn apply(api: &Api, kind: &Resource, manager: &str, storage: &str) -> Result<()> {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": kind.crd()},
        "spec": {
            "group": kind.group, "scope": "Cluster", "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [version("v1"), version("v2")],
        },
    });
    api.apply(&crd_path(&kind.crd()), manager, &crd).await?;
    eventually(&format!("{} served", kind.crd()), async || Ok(api.get(&kind.all("v2")).await.is_ok())).await
}

async fn choice(release: Release) -> Result<()> {
    const GADGETS: Resource = Resource::new("demo.test", "gadgets", "Gadget");
    const GEARS: Resource = Resource::new("gears.demo.test", "gears", "Gear");
    const OTHERS: Resource = Resource::new("other.test", "others", "Other");
    let plane = ControlPlane::start(&release).await?;
    let api = plane.api("cluster").await?;
    let sbx = Sbx::new(&plane, "admin")?;
    apply(&api, &GADGETS, "kubectl", "v1").await?;
    sbx.run(&["init"]).await?.ended(0)?.says("Nothing to draft: none of 1 CRDs")?;
    // Its version could go all the same.
    sbx.run(&["init", "--crd", &GADGETS.crd()]).await?.ended(0)?.says("from = \"v2\"")?;

    let gadget = json!({"apiVersion": "demo.test/v1", "kind": "Gadget", "metadata": {"name": "one"}, "size": 3});
    api.create(&GADGETS.all("v1"), "gadget-maker", &gadget).await?;
    apply(&api, &GEARS, "kubectl", "v1").await?;
    for kind in [GADGETS, GEARS] {
        apply(&api, &kind, "kubectl", "v2").await?;
    }
    let (runbook, text) = drafted(&sbx, &[]).await?;
    assert_eq!(runbook.upgrade.crds, [GADGETS.crd(), GEARS.crd()]);
    assert_eq!((runbook.upgrade.from.as_str(), runbook.upgrade.to.as_str()), ("v1", "v2"));
    assert_eq!(ids(&runbook), ["writers", "backup", "migrate", "owners", "release", "merge"], "{text}");
    assert!(text.contains("gadget-maker has written at v1: 1 Gadget, last "), "{text}");
    assert!(text.contains("No workload has its name."), "{text}");
    let Task::Merge(merge) = &runbook.steps[5].task else { return Err(text.into()) };
    assert_eq!(merge.application, None);
    sbx.run(&["plan", DRAFT, "--detailed-exitcode"]).await?.ended(2)?.says("1 objects of 1 kinds")?;

    apply(&api, &OTHERS, "another", "v1").await?;
    apply(&api, &OTHERS, "another", "v2").await?;
    let ran = sbx.run(&["init"]).await?.ended(64)?;
    let choices = ["sbx init --crd gadgets.demo.test --crd gears.gears.demo.test", "sbx init --crd others.other.test"];
    for choice in choices {
        assert!(ran.err.contains(choice), "{}", ran.err);
    }
    assert_eq!(api.items(&CRDS.all("v1")).await?.len(), 3);
    fs::remove_file(sbx.folder().join(DRAFT))?;
    let (runbook, _) = drafted(&sbx, &["--crd", &OTHERS.crd()]).await?;
    assert_eq!(runbook.upgrade.deployer.as_deref(), Some("another"));
    Ok(())
}
