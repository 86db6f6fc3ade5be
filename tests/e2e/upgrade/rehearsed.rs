//! What a rehearsal on a snapshot foretells is what happens.

use std::collections::BTreeMap;

use libtest_mimic::Trial;

use super::{ship_clients, upgrade, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{CANARY, Fixture, Truth};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![fixture_scenario(release, truth, "upgrade::a_rehearsal_foretells_every_write", foretold)]
}

async fn foretold(fixture: Fixture) -> Result<()> {
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let runbook = shipped();
    sbx.run(&["snapshot", &runbook, "-o", "before.jsonl"]).await?.ended(0)?;
    assert!(!std::fs::read_to_string(sbx.folder().join("before.jsonl"))?.contains(CANARY));
    assert!(writes(&fixture).await?.is_empty(), "a snapshot writes nothing");
    let rehearsal = sbx.run(&["rehearse", &runbook, "--snapshot", "before.jsonl"]).await?.ended(0)?;

    ship_clients(&fixture).await?;
    upgrade(&fixture, &sbx).await?;
    let mut done: BTreeMap<String, usize> = BTreeMap::new();
    let events = writes(&fixture).await?.into_iter().filter(|event| event.code < 300 && event.resource != "leases");
    for event in events {
        *done.entry(format!("{} {}", event.verb, event.resource)).or_default() += 1;
    }
    assert_eq!(foretelling(&rehearsal.out)?, done);
    Ok(())
}

/// `3 delete sandboxclaims, 1 delete secrets, …` of the report, wrapped over lines.
fn foretelling(report: &str) -> Result<BTreeMap<String, usize>> {
    let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let counts =
        flat.split_once("requests that wrote: ").and_then(|(_, rest)| rest.split_once(" What was not simulated"));
    let (counts, _) = counts.ok_or("the report counts no requests")?;
    let count = |text: &str| -> Option<(String, usize)> {
        let (count, what) = text.split_once(' ')?;
        Some((what.into(), count.parse().ok()?))
    };
    counts.split(", ").map(|text| count(text).ok_or_else(|| format!("`{text}` is no count").into())).collect()
}
