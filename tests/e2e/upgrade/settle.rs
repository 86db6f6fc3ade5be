//! Nothing is touched before the definitions have settled.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use libtest_mimic::Trial;
use serde_json::json;

use sbx::apply::Ending;
use sbx::clock::Clock;

use super::in_process::InProcess;
use super::{ship_clients, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{Fixture, KINDS, Truth, crd_path};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![fixture_scenario(release, truth, "upgrade::no_record_is_touched_before_its_definition_settled", settles)]
}

/// The settle time of the shipped runbook.
const SETTLE: Duration = Duration::from_secs(60);

async fn settles(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let api = fixture.plane.api("cluster").await?;
    let mut changed = None;
    for kind in KINDS {
        let patch = json!({"spec": {"names": {"categories": ["all"]}}});
        let crd = api.merge(&crd_path(&kind.crd()), "kubectl-edit", &patch).await?;
        let entries = crd["metadata"]["managedFields"].as_array().into_iter().flatten();
        let entry = entries.filter(|entry| entry["manager"] == "kubectl-edit").find_map(|entry| entry["time"].as_str());
        let time: Timestamp = entry.ok_or("an entry of its own")?.parse()?;
        // The first of the runbook is waited for first.
        changed.get_or_insert(time);
    }
    let settled = changed.ok_or("four definitions")? + SETTLE;

    let clock = Clock::held();
    let run = InProcess::new(&fixture, &clock).await?;
    let quiet = |_: &_| ();
    let applying = run.apply_to("migrate", &quiet);
    tokio::pin!(applying);
    let until = tokio::select! {
        ended = &mut applying => return Err(format!("it did not wait: {:?}", ended?).into()),
        until = clock.someone_waits() => until,
    };
    let off = until.duration_since(settled).abs();
    assert!(off < SignedDuration::from_millis(100), "counted from the last change of the spec: {until}, not {settled}");
    assert_eq!(patched_records(&fixture).await?, 0);
    // A second before it is too early.
    let left = Duration::try_from(until.duration_since(clock.now()))?;
    clock.turn(left.saturating_sub(Duration::from_secs(1)));
    let too_early = tokio::time::timeout(Duration::from_millis(500), &mut applying).await;
    assert!(too_early.is_err(), "{too_early:?}");
    assert_eq!(patched_records(&fixture).await?, 0);
    // The other definitions changed a little later.
    let ending = loop {
        match tokio::time::timeout(Duration::from_millis(100), &mut applying).await {
            Ok(ending) => break ending?,
            Err(_) => clock.turn(Duration::from_secs(2)),
        }
    };
    assert!(matches!(ending, Ending::Finished), "{ending:?}");
    assert!(patched_records(&fixture).await? > 0);
    Ok(())
}

async fn patched_records(fixture: &Fixture) -> Result<usize> {
    let of_kinds = |resource: &str| KINDS.iter().any(|kind| kind.plural == resource);
    Ok(writes(fixture).await?.iter().filter(|event| of_kinds(&event.resource)).count())
}
