//! While the merge is waited for, somebody takes away what it stands on: who waits is told not to merge.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::end_state::Before;
use super::{MERGE_NOW, edited, ship_clients, start_apply, upgrade};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{Fixture, KINDS, POOLS, Truth, crd_path};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::waiting::conversion_owned_again_is_not_merged", owned_again),
        fixture_scenario(release, truth, "upgrade::waiting::version_listed_again_is_not_merged", listed_again),
    ]
}

/// Within these the watch asks anew; without that it would wait to the end, which is another exit code.
const SHORTER: (&str, &str) = ("timeout      = \"30m\"", "timeout      = \"40s\"");

/// The webhook's Secret was made anew, and the controller restarted.
async fn owned_again(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let before = Before::look(&fixture).await?;
    let runbook = edited(&sbx, "shorter.toml", &[SHORTER])?;
    let mut run = start_apply(&sbx, &runbook)?;
    run.says(MERGE_NOW).await?;
    let controller = fixture.plane.api("controller").await?;
    let authority = &fixture.webhook.certificates.authority;
    let bundle = serde_json::to_value(k8s_openapi::ByteString(format!("{authority}{authority}").into_bytes()))?;
    let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}});
    for kind in KINDS {
        controller.merge(&crd_path(&kind.crd()), "agent-sandbox-controller", &patch).await?;
    }
    let ran = run.end().await?.ended(7)?.says("do not merge")?;
    ran.says("spec.conversion.strategy: Required value")?.says("run again to release and ask anew")?;
    // As it says.
    fixture.backdate_crds(std::time::Duration::from_secs(60 * 60)).await?;
    upgrade(&fixture, &sbx).await?;
    before.assert_end(&fixture).await
}

/// Somebody makes the old version the storage version, and takes it back at once.
async fn listed_again(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let runbook = edited(&sbx, "shorter.toml", &[SHORTER])?;
    let mut run = start_apply(&sbx, &runbook)?;
    run.says(MERGE_NOW).await?;
    let (api, path) = (fixture.plane.api("cluster").await?, crd_path(&POOLS.crd()));
    for stored in ["v1alpha1", "v1beta1"] {
        let mut versions = api.get(&path).await?["spec"]["versions"].take();
        for version in versions.as_array_mut().into_iter().flatten() {
            version["storage"] = Value::Bool(version["name"] == stored);
        }
        api.merge(&path, "kubectl-edit", &json!({"spec": {"versions": versions}})).await?;
    }
    assert_eq!(api.get(&path).await?["status"]["storedVersions"], json!(["v1beta1", "v1alpha1"]));
    let ran = run.end().await?.ended(7)?.says("do not merge")?;
    ran.says("is v1beta1, v1alpha1 again; kubectl-edit changed its spec last")?;
    sbx.run(&["plan", &shipped()]).await?.ended(0)?.says("prune 1 CRD")?;
    Ok(())
}
