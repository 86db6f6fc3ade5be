//! From the cluster before the upgrade to the one after it, in one run.

use libtest_mimic::Trial;

use super::end_state::Before;
use super::{plan_json, ship_clients, upgrade, writes};
use crate::fixture_scenario;
use crate::support::control_plane::Release;
use crate::support::fixture::{Fixture, OLD_CHILDREN, SANDBOXES, TEMPLATES, Truth};
use crate::support::sbx::{Sbx, shipped};
use crate::support::{Result, eventually};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    let mut trials = vec![fixture_scenario(release, truth, "upgrade::one_run_carries_it_out", one_run)];
    if truth == Truth::Small && release.name == "v1.37" {
        trials.push(fixture_scenario(release, truth, "upgrade::children_are_collected_afterwards", collected));
    }
    trials
}

async fn one_run(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let runbook = shipped();
    let before = Before::look(&fixture).await?;
    sbx.run(&["plan", &runbook, "--detailed-exitcode"]).await?.ended(2)?;

    // Up to the merge; then somebody syncs what is deployed, once more.
    sbx.run(&["apply", &runbook, "--yes", "--to", "release"]).await?.ended(0)?;
    assert!(!fixture.play_resync_of_old_manifests().await?, "a sync before the merge changes nothing");
    upgrade(&fixture, &sbx).await?;
    before.assert_upgraded(&fixture).await?;

    sbx.run(&["plan", &runbook, "--detailed-exitcode"]).await?.ended(0)?.says("No changes")?;
    let plan = plan_json(&sbx, &runbook).await?;
    let settled = ["met", "done", "not_needed"];
    for step in plan["steps"].as_array().into_iter().flatten() {
        assert!(settled.contains(&step["state"].as_str().unwrap_or_default()), "{step:#}");
    }
    let written = writes(&fixture).await?.len();
    // Without any approval: there is nothing to ask.
    sbx.run(&["apply", &runbook]).await?.ended(0)?.says("No changes: nothing was asked, nothing was written.")?;
    assert_eq!(writes(&fixture).await?.len(), written);
    Ok(())
}

async fn collected(mut fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    upgrade(&fixture, &sbx).await?;
    fixture.plane.start_controllers(&["garbage-collector-controller"])?;
    let api = fixture.plane.api("cluster").await?;
    api.delete(&SANDBOXES.object("v1beta1", "garrison", "keep-1")).await?;
    api.delete(&SANDBOXES.object("v1beta1", "ai", "agent-pool-7k2qd")).await?;
    api.delete(&TEMPLATES.object("v1beta1", "ai", "agent")).await?;
    for (kind, version, namespace, name) in OLD_CHILDREN {
        let path = kind.object(version, namespace, name);
        // A claimed volume waits for its protection to be lifted, which nobody does here.
        let gone = async || match api.get(&path).await {
            Ok(child) => Ok(child["metadata"]["deletionTimestamp"].is_string()),
            Err(refusal) => Ok(refusal.code == 404),
        };
        eventually(&format!("{path} is collected"), gone).await?;
    }
    Ok(())
}
