//! The conversion webhook fails: before the plan, for a while, for good, for one object.

use std::collections::BTreeSet;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;

use sbx::apply::Ending;
use sbx::clock::Clock;
use sbx::steps::Stop;

use super::end_state::Before;
use super::in_process::{InProcess, first_pass_over};
use super::{MERGE_NOW, lines, ship_clients, start_apply, writes};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{CLAIMS, Fixture, KINDS, POOLS, SYSTEM, Truth, WEBHOOK_SERVICE, crd_path};
use crate::support::sbx::{Sbx, shipped};
use crate::support::webhook::Mode;

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::webhook_that_fails_before_the_plan_is_a_blocker", before_the_plan),
        fixture_scenario(release, truth, "upgrade::authority_that_expired_is_dated", expired_authority),
        fixture_scenario(release, truth, "upgrade::webhook_that_fails_for_a_while_is_waited_for", for_a_while),
        fixture_scenario(release, truth, "upgrade::webhook_that_fails_for_good_stops_before_the_prune", for_good),
    ]
}

async fn before_the_plan(mut fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let service = format!("Service {SYSTEM}/{WEBHOOK_SERVICE}, port {}", fixture.webhook.port);
    for (mode, words) in [(Mode::Stopped, "connection refused"), (Mode::Expired, "certificate has expired")] {
        fixture.webhook.set(mode);
        let plan = sbx.run(&["plan", &shipped()]).await?.ended(1)?.says("the conversion of sandboxes")?;
        plan.says(&service)?.says(words)?;
        start_apply(&sbx, &shipped())?.end().await?.ended(1)?.says("Nothing was written")?;
    }
    // One object that cannot be converted is named, whether the list still comes from a cache or fails as a whole.
    fixture.webhook.set(Mode::FailsFor("shell".into()));
    sbx.run(&["plan", &shipped()])
        .await?
        .ended(1)?
        .says("SandboxClaim ai/shell")?
        .says("panic in conversion of shell")?;
    fixture.plane.stop_api_server();
    fixture.plane.start_api_server().await?;
    let plan = sbx.run(&["plan", &shipped()]).await?.ended(1)?.says("1 of 9 sandboxclaims cannot be converted")?;
    plan.says("SandboxClaim ai/shell (")?.says("panic in conversion of shell")?;
    start_apply(&sbx, &shipped())?.end().await?.ended(1)?;
    assert_eq!(lines(&writes(&fixture).await?), [].into());
    fixture.webhook.set(Mode::Converts);
    sbx.run(&["plan", &shipped()]).await?.ended(0)?;
    Ok(())
}

/// The server knows the webhook by an authority whose time is over: its own words name no date.
async fn expired_authority(mut fixture: Fixture) -> Result<()> {
    fixture.plane.restart_without_cache().await?;
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let api = fixture.plane.api("controller").await?;
    let path = crd_path(&CLAIMS.crd());
    let bundle = |pem: &str| -> Result<serde_json::Value> {
        let bundle = serde_json::to_value(k8s_openapi::ByteString(pem.as_bytes().to_vec()))?;
        Ok(json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}))
    };
    api.merge(&path, "controller", &bundle(&fixture.webhook.certificates.expired_authority)?).await?;
    let told = async || sbx.run(&["plan", &shipped()]).await?.ended(1)?.says("expired on 2021-01-01T00:00:00Z");
    // The server takes the new bundle up a moment later.
    crate::support::eventually("the conversion fails", async || Ok(told().await?.says("x509: certificate").is_ok()))
        .await?;
    api.merge(&path, "controller", &bundle(&fixture.webhook.certificates.authority)?).await?;
    crate::support::eventually("it works again", async || Ok(sbx.run(&["plan", &shipped()]).await?.ended(0).is_ok()))
        .await?;
    Ok(())
}

async fn for_a_while(mut fixture: Fixture) -> Result<()> {
    fixture.plane.restart_without_cache().await?;
    ship_clients(&fixture).await?;
    let sbx = Sbx::new(&fixture.plane, "admin")?;
    let before = Before::look(&fixture).await?;
    fixture.webhook.set(Mode::Slow(Duration::from_millis(200)));
    let mut run = start_apply(&sbx, &shipped())?;
    run.says("sandboxwarmpools.extensions.agents.x-k8s.io: pass 1").await?;
    fixture.webhook.set(Mode::Stopped);
    run.says("at the latest: the API server: ").await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    fixture.webhook.set(Mode::Expired);
    tokio::time::sleep(Duration::from_secs(5)).await;
    fixture.webhook.set(Mode::Converts);
    run.says(MERGE_NOW).await?;
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    run.end().await?.ended(0)?;
    before.assert_upgraded(&fixture).await
}

/// On a clock on which waiting takes no time: the two minutes of patience are over at once.
async fn for_good(mut fixture: Fixture) -> Result<()> {
    fixture.plane.restart_without_cache().await?;
    ship_clients(&fixture).await?;
    let run = InProcess::new(&fixture, &Clock::jumping()).await?;
    let whole = [Mode::Stopped, Mode::FailsFor("shell".into())];
    let mut pruned = BTreeSet::from([POOLS.crd()]);
    for mode in whole {
        let breaks = |event: &sbx::apply::Event| {
            if first_pass_over(event, &POOLS.crd()) {
                fixture.webhook.set(mode.clone());
            }
        };
        let ending = run.apply_to("migrate", &breaks).await?;
        let Ending::Failed(step, Stop::Failed { text, failures, hint }) = ending else {
            return Err(format!("{mode:?}: {ending:?}").into());
        };
        assert_eq!(step.0, "migrate");
        assert!(text.contains("pruned") || text.contains("list"), "{text}");
        if let Mode::FailsFor(name) = &mode {
            let named: Vec<_> =
                failures.iter().filter_map(|(object, words)| Some((object.as_ref()?.to_string(), words))).collect();
            assert_eq!(named.len(), 1, "{failures:?}");
            assert_eq!(named[0].0, format!("SandboxClaim ai/{name}"));
            assert!(named[0].1.contains("panic in conversion of shell"), "{named:?}");
            assert!(hint.is_some());
            pruned.extend(KINDS.iter().filter(|kind| **kind != CLAIMS).map(crate::support::api::Resource::crd));
        }
        assert_pruned(&fixture, &pruned).await?;
        fixture.webhook.set(Mode::Converts);
    }
    let ending = run.apply_to("migrate", &|_| ()).await?;
    assert!(matches!(ending, Ending::Finished), "{ending:?}");
    assert_pruned(&fixture, &KINDS.iter().map(crate::support::api::Resource::crd).collect()).await
}

async fn assert_pruned(fixture: &Fixture, pruned: &BTreeSet<String>) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    for kind in KINDS {
        let crd = api.get(&crd_path(&kind.crd())).await?;
        let stored = if pruned.contains(&kind.crd()) { json!(["v1beta1"]) } else { json!(["v1alpha1", "v1beta1"]) };
        assert_eq!(crd["status"]["storedVersions"], stored, "{}", kind.crd());
    }
    Ok(())
}
