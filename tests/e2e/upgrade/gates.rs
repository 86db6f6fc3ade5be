//! Gates and approvals: what keeps apply from writing, and how far each approval goes.

use libtest_mimic::Trial;

use super::{PHRASE, lines, plan_json, ship_clients, step, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{FLICKERD, Fixture, GARRISON, Truth};
use crate::support::sbx::{Ran, Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::old_clients_keep_apply_from_writing", old_clients),
        fixture_scenario(release, truth, "upgrade::each_approval_goes_as_far_as_it_says", approvals),
    ]
}

async fn old_clients(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let both = apply(&sbx).await?.ended(3)?.says("Stopped at 2 gates")?;
    both.says("flickerd: generator v0.14.0, wants >= 0.15.0")?.says("garrison: keep v0.56.0, wants >= 0.57.0")?;
    fixture.ship(&FLICKERD).await?;
    apply(&sbx).await?.ended(3)?.says("Stopped at 1 gate; nothing")?.says("garrison: keep v0.56.0")?;
    fixture.ship_old(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    apply(&sbx).await?.ended(3)?.says("Stopped at 1 gate; nothing")?.says("flickerd: generator v0.14.0")?;
    // Image and variable are set, and the old pods still run.
    fixture.deploy(&FLICKERD, "ghcr.io/swibrow/flickerd:v0.15.2", "").await?;
    apply(&sbx).await?.ended(3)?.says("Stopped at 1 gate; nothing")?.says("flickerd: ")?;
    assert_eq!(lines(&writes(&fixture).await?), [].into());
    assert!(!sbx.folder().join("backups").exists() && !sbx.folder().join("runs").exists());
    Ok(())
}

async fn apply(sbx: &Sbx) -> Result<Ran> {
    sbx.run(&["apply", &shipped(), "--yes", "--approve", PHRASE]).await
}

async fn approvals(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let runbook = shipped();
    ship_clients(&fixture).await?;
    sbx.run(&["apply", &runbook, "--yes", "--to", "migrat"]).await?.ended(64)?.says("did you mean `migrate`?")?;
    sbx.run(&["apply", &runbook, "--yes", "--context", "other"]).await?.ended(4)?.says("admin@pitower")?;
    // Nobody can be asked, with or without the phrase of a later step.
    sbx.run(&["apply", &runbook]).await?.ended(5)?.says("--yes gives it")?;
    sbx.run(&["apply", &runbook, "--approve", PHRASE]).await?.ended(5)?.says("--yes gives it")?;
    assert_eq!(lines(&writes(&fixture).await?), [].into());

    sbx.run(&["apply", &runbook, "--yes", "--to", "migrate"]).await?.ended(0)?;
    let plan = plan_json(&sbx, &runbook).await?;
    assert_eq!(fixture.stored_versions().await?, ["v1beta1".into()].into());
    assert!(!fixture.children_of_old_version().await?.is_empty(), "`owners` was not selected");
    // What is pruned is proved again by each run, so `migrate` never says done before the merge.
    assert_eq!(step(&plan, "migrate")?["summary"], "prove 19 objects");
    assert_eq!(step(&plan, "owners")?["after"], serde_json::json!([5]));

    // A phrase that approves nothing is a mistake, known before anything runs.
    let wrong = format!("{PHRASE}s");
    for phrase in [wrong.as_str(), "release@admin@pitower"] {
        let ran = sbx.run(&["apply", &runbook, "--yes", "--approve", phrase]).await?;
        ran.ended(64)?.says(&format!("it asks for: {PHRASE}"))?;
    }
    assert_eq!(step(&plan_json(&sbx, &runbook).await?, "owners")?["after"], serde_json::json!([5]));
    sbx.run(&["apply", &runbook, "--yes"]).await?.ended(5)?.says(&format!("--approve {PHRASE} gives it"))?;
    let plan = plan_json(&sbx, &runbook).await?;
    assert_eq!((&step(&plan, "owners")?["state"], &step(&plan, "release")?["state"]), (&"done".into(), &"done".into()));
    assert_eq!(step(&plan, "merge")?["after"], serde_json::json!([5]));
    Ok(())
}
