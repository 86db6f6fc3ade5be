//! A run that ends too early, in every place and way: the next one does exactly the rest.

use std::collections::BTreeMap;

use libtest_mimic::Trial;

use super::end_state::Before;
use super::{MERGE_NOW, expire_lock, ship_clients, start_apply, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{Fixture, OLD_CHILDREN, Truth};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::killed_after_each_step_a_rerun_does_the_rest", killed),
        fixture_scenario(release, truth, "upgrade::stopped_by_signals_a_rerun_does_the_rest", signalled),
    ]
}

async fn killed(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let before = Before::look(&fixture).await?;
    let places = [
        "lock Lease",
        "backup: done",
        "sandboxtemplates.extensions.agents.x-k8s.io: pass 1",
        "sandboxclaims.extensions.agents.x-k8s.io: pass 1",
        "migrate: done",
        "owners: done",
        "release: done",
        MERGE_NOW,
    ];
    for place in places {
        let mut run = start_apply(&sbx, &shipped())?;
        run.says(place).await?;
        run.kill().await?;
        expire_lock(&fixture).await?;
    }
    let mut run = start_apply(&sbx, &shipped())?;
    run.says(MERGE_NOW).await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    run.says("merge: done").await?;
    run.kill().await?;
    for place in ["controller: agent-sandbox-controller v1.0.0", "webhook-certs: done"] {
        expire_lock(&fixture).await?;
        let mut run = start_apply(&sbx, &shipped())?;
        run.says(place).await?;
        run.kill().await?;
    }
    expire_lock(&fixture).await?;
    start_apply(&sbx, &shipped())?.end().await?.ended(0)?;

    assert_touched_once(&fixture).await?;
    before.assert_upgraded(&fixture).await?;
    let backups = std::fs::read_dir(sbx.folder().join("backups"))?.filter_map(std::result::Result::ok);
    let sealed = backups.filter(|backup| backup.path().join("manifest.json").exists()).count();
    assert_eq!(sealed, 1, "reruns use the first backup");
    Ok(())
}

async fn signalled(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let before = Before::look(&fixture).await?;
    let places = [
        ("backup: done", "INT", 130),
        ("sandboxes.agents.x-k8s.io: pass 1", "TERM", 143),
        ("owners: done", "HUP", 129),
        (MERGE_NOW, "INT", 130),
    ];
    for (place, signal, code) in places {
        let mut run = start_apply(&sbx, &shipped())?;
        run.says(place).await?;
        run.signal(signal).await?;
        // The lock is given back: the next run need not wait for it.
        run.end().await?.ended(code)?.says("What is done is kept.")?;
    }
    let mut run = start_apply(&sbx, &shipped())?;
    run.says(MERGE_NOW).await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    run.says("merge: done").await?;
    run.signal("INT").await?;
    run.end().await?.ended(130)?;
    start_apply(&sbx, &shipped())?.end().await?.ended(0)?;
    assert_touched_once(&fixture).await?;
    before.assert_upgraded(&fixture).await
}

/// Over all runs each child and each deleted object was written once.
async fn assert_touched_once(fixture: &Fixture) -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in writes(fixture).await? {
        *counts.entry(format!("{} {} {}/{}", event.verb, event.resource, event.namespace, event.name)).or_default() +=
            1;
    }
    for (kind, _, namespace, name) in OLD_CHILDREN {
        assert_eq!(counts.get(&format!("patch {} {namespace}/{name}", kind.plural)), Some(&1), "{counts:#?}");
    }
    for (what, count) in counts.iter().filter(|(what, _)| what.starts_with("delete ")) {
        assert_eq!(*count, 1, "{what}");
    }
    Ok(())
}
