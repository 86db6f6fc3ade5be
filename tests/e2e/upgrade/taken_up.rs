//! Clusters on which somebody has already begun, or still goes on: taken up and brought to the end, or stopped with
//! the way out.

use jiff::Timestamp;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::time::Duration;

use super::end_state::Before;
use super::{MERGE_NOW, edited, findings, lines, plan_json, ship_clients, start_apply, step, upgrade, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{
    CLAIMS, DEPLOYER, Fixture, GARRISON, KINDS, POOLS, SANDBOXES, STAMP, SYSTEM, TEMPLATES, Truth, WEBHOOK_SERVICE,
    crd_path,
};
use crate::support::sbx::{Sbx, shipped};
use crate::support::webhook::Mode;

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::half_walked_wiki_page_is_brought_to_the_end", half_walked),
        fixture_scenario(release, truth, "upgrade::missed_record_without_a_webhook_stops_with_the_way_out", missed),
        fixture_scenario(release, truth, "upgrade::old_client_stops_the_merge_and_is_named", old_client),
    ]
}

/// Stamped, half of it pruned, merged, refused; the webhook is gone.
async fn half_walked(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let before = Before::look(&fixture).await?;
    for kind in KINDS {
        fixture.stamp_by_hand(&kind).await?;
    }
    for kind in [POOLS, SANDBOXES] {
        fixture.prune_by_hand(&kind).await?;
    }
    assert_eq!(fixture.play_argo_cd_merge().await?.len(), KINDS.len());
    // Who wrote with kubectl in the meantime wrote at the new version.
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let ran = sbx.run(&["plan", &shipped()]).await?.ended(0)?;
    ran.says("argocd app sync argocd/pitower-ai-agent-sandbox")?.says("(resolved by 7 release)")?;
    let plan = plan_json(&sbx, &shipped()).await?;
    let migrate = step(&plan, "migrate")?;
    assert!(findings(migrate, "warning").iter().any(|text| text.contains("does not work")), "{migrate:#}");
    assert!(migrate["summary"].as_str().unwrap_or_default().ends_with("prune 2 CRDs"), "{migrate:#}");

    upgrade(&fixture, &sbx).await?;
    before.assert_end(&fixture).await?;
    sbx.run(&["plan", &shipped(), "--detailed-exitcode"]).await?.ended(0)?.says("No changes")?;
    Ok(())
}

/// The worst hour: a record at the old version, the list that promises there is none, and no webhook to read it with.
async fn missed(mut fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let before = Before::look(&fixture).await?;
    for kind in [POOLS, TEMPLATES, SANDBOXES] {
        fixture.stamp_by_hand(&kind).await?;
    }
    let api = fixture.plane.api("cluster").await?;
    let stamp =
        json!({"metadata": {"annotations": {STAMP: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}}});
    for claim in api.items(&CLAIMS.all("v1beta1")).await? {
        let text = |field: &str| claim["metadata"][field].as_str().unwrap_or_default();
        if text("name") != "shell" {
            api.merge(&CLAIMS.object("v1beta1", text("namespace"), text("name")), "kubectl", &stamp).await?;
        }
    }
    for kind in KINDS {
        fixture.prune_by_hand(&kind).await?;
    }
    assert_eq!(fixture.play_argo_cd_merge().await?.len(), KINDS.len());

    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let crds = definitions(&fixture).await?;
    // While the API server still has its cache, the list succeeds; the record is found all the same.
    let plan = sbx.run(&["plan", &shipped()]).await?.ended(1)?.says("SandboxClaim ai/shell: its rewrite")?;
    plan.says("never set strategy None")?.says(&format!("service \"{WEBHOOK_SERVICE}\" not found"))?;
    start_apply(&sbx, &shipped())?.end().await?.ended(1)?.says("Nothing was written")?;
    fixture.plane.stop_api_server();
    fixture.plane.start_api_server().await?;
    let plan = sbx.run(&["plan", &shipped()]).await?.ended(1)?.says("sandboxclaims cannot be")?;
    plan.says("never set strategy None")?.says(&format!("Service {SYSTEM}/{WEBHOOK_SERVICE}"))?;
    start_apply(&sbx, &shipped())?.end().await?.ended(1)?.says("Nothing was written")?;
    assert_eq!(lines(&writes(&fixture).await?), [].into());
    assert_eq!(definitions(&fixture).await?, crds);

    // The way out that it names: the webhook is put back.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": WEBHOOK_SERVICE, "namespace": SYSTEM},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    let path = format!("/api/v1/namespaces/{SYSTEM}/services/{WEBHOOK_SERVICE}");
    fixture.plane.api("argocd").await?.apply(&path, DEPLOYER, &service).await?;
    fixture.webhook.set(Mode::Converts);
    upgrade(&fixture, &sbx).await?;
    before.assert_end(&fixture).await
}

async fn definitions(fixture: &Fixture) -> Result<Vec<Value>> {
    let api = fixture.plane.api("cluster").await?;
    let mut crds = Vec::new();
    for kind in KINDS {
        crds.push(api.get(&crd_path(&kind.crd())).await?);
    }
    Ok(crds)
}

async fn old_client(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let hour = Duration::from_secs(60 * 60);
    // While the merge is waited for.
    let mut run = start_apply(&sbx, &shipped())?;
    run.says(MERGE_NOW).await?;
    fixture.old_client_writes().await?;
    let ran = run.end().await?.ended(3)?.says("an old client is still at work")?.says("Do not merge")?;
    ran.says("Sandbox garrison/keep-1 by garrison-keep")?;
    // It is not quiet yet.
    start_apply(&sbx, &shipped())?
        .end()
        .await?
        .ended(3)?
        .says("writers: last v1alpha1 write")?
        .says("(garrison-keep)")?;

    // Half an hour later it writes again, between a run that went up to the merge and the next one.
    fixture.backdate_objects(hour).await?;
    sbx.run(&["apply", &shipped(), "--yes"]).await?.ended(5)?;
    assert!(fixture.managers_at_old_version().await?.is_empty());
    fixture.old_client_writes().await?;
    start_apply(&sbx, &shipped())?.end().await?.ended(3)?.says("(garrison-keep)")?;
    // Even where nobody asks for quiet, the merge does.
    let noisy = edited(&sbx, "noisy.toml", &[("quiet-for = \"30m\"", "quiet-for = \"1s\"")])?;
    let mut run = start_apply(&sbx, &noisy)?;
    run.says(MERGE_NOW).await?;
    fixture.old_client_writes().await?;
    run.end().await?.ended(3)?.says("an old client is still at work")?;

    fixture.ship(&GARRISON).await?;
    fixture.backdate_objects(hour).await?;
    upgrade(&fixture, &sbx).await?;
    let keep = fixture.plane.api("cluster").await?.get(&SANDBOXES.object("v1beta1", "garrison", "keep-1")).await?;
    assert_eq!(keep["spec"]["operatingMode"], "Suspended", "what the old client wrote is kept");
    assert!(fixture.managers_at_old_version().await?.is_empty());
    Ok(())
}
