//! One apply at a time.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{LEASES, MERGE_NOW, expire_lock, lines, lock, ship_clients, start_apply, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{Fixture, Truth};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![fixture_scenario(release, truth, "upgrade::second_apply_waits_for_the_lock_of_the_first", locked)]
}

async fn locked(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let (sbx, other) = (Sbx::new(&fixture.plane, "admin")?, Sbx::new(&fixture.plane, "cluster")?);
    let mut first = start_apply(&sbx, &shipped())?;
    first.says(MERGE_NOW).await?;
    let holder = holder(&fixture).await?;
    let written = lines(&writes(&fixture).await?);
    for second in [&sbx, &other] {
        let ran = start_apply(second, &shipped())?.end().await?.ended(8)?.says("Nothing was written")?;
        ran.says(&format!("Another apply holds the lock: {holder}, since "))?;
    }
    assert_eq!(lines(&writes(&fixture).await?), written);
    assert!(!other.folder().join("runs").exists());

    // Killed, it cannot give the lock back; who comes after waits until it is stale.
    first.kill().await?;
    start_apply(&sbx, &shipped())?.end().await?.ended(8)?;
    expire_lock(&fixture).await?;
    let mut second = start_apply(&sbx, &shipped())?;
    second.says(MERGE_NOW).await?;
    // Somebody takes over a lock that is held: its holder stops.
    let stolen = json!({"spec": {"holderIdentity": "somebody else"}});
    let path = LEASES.object("v1", "default", &lock(&fixture).await?);
    fixture.plane.api("cluster").await?.merge(&path, "sbx", &stolen).await?;
    second.end().await?.ended(8)?;
    assert_eq!(self::holder(&fixture).await?, "somebody else");
    expire_lock(&fixture).await?;
    sbx.run(&["apply", &shipped(), "--yes"]).await?.ended(5)?;
    assert_eq!(self::holder(&fixture).await?, "", "given back");
    Ok(())
}

async fn holder(fixture: &Fixture) -> Result<String> {
    let path = LEASES.object("v1", "default", &lock(fixture).await?);
    let lease = fixture.plane.api("cluster").await?.get(&path).await?;
    Ok(lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned())
}
