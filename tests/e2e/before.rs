//! The cluster before the upgrade: that it is what the other tests take it for.

use std::collections::BTreeSet;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::fixture_scenario;
use crate::support::control_plane::Release;
use crate::support::fixture::{CLAIMS, FLICKERD, Fixture, KINDS, OLD_CHILDREN, SANDBOXES, Truth, crd_path};
use crate::support::webhook::{Mode, state_annotation};
use crate::support::{Result, eventually};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    let mut trials = vec![fixture_scenario(release, truth, "before::bytes_are_old_and_times_past", stored)];
    if truth == Truth::Small {
        trials.push(fixture_scenario(release, truth, "before::webhook_fails_in_every_way", webhook_faults));
        trials.push(fixture_scenario(release, truth, "before::a_client_is_shipped", shipped));
    }
    trials
}

async fn stored(fixture: Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    for kind in KINDS {
        let (old, new) = (kind.api_version("v1alpha1"), kind.api_version("v1beta1"));
        let records = fixture.plane.raw_records(&kind.crd()).await?;
        assert!(!records.is_empty(), "{}", kind.crd());
        for record in records {
            let wanted = if record.object() == "ai/agent-pool-m3n8v" { &new } else { &old };
            assert_eq!(&record.api_version, wanted, "{}", record.key);
            let object = record.json();
            for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
                assert_eq!(entry["apiVersion"], wanted.as_str(), "{}: {entry}", record.key);
                assert!(age(entry)? > Duration::from_secs(2 * 24 * 3600), "{}: {entry}", record.key);
            }
        }
        let crd = api.get(&crd_path(&kind.crd())).await?;
        assert_eq!(crd["status"]["storedVersions"], serde_json::json!(["v1alpha1", "v1beta1"]));
        for entry in crd["metadata"]["managedFields"].as_array().into_iter().flatten() {
            assert!(age(entry)? > Duration::from_secs(2 * 24 * 3600), "{}: {entry}", kind.crd());
        }
    }

    let mut children: Vec<_> =
        OLD_CHILDREN.iter().map(|(kind, _, namespace, name)| format!("{} {namespace}/{name}", kind.kind)).collect();
    children.extend(["Sandbox ai/agent-pool-7k2qd".into(), "Sandbox ai/agent-pool-x9w4z".into()]);
    assert_eq!(fixture.children_of_old_version().await?, children.into_iter().collect());

    let claim = api.get(&CLAIMS.object("v1beta1", "flickerd", "frame-3")).await?;
    assert_eq!(claim["spec"]["warmPoolRef"]["name"], "shadow-pool-flicker");
    assert!(claim["metadata"]["annotations"][state_annotation("SandboxClaim")].is_string());
    let keep = api.get(&SANDBOXES.object("v1beta1", "garrison", "keep-2")).await?;
    assert_eq!(keep["spec"]["operatingMode"], "Suspended");
    let reasons = api.items(&CLAIMS.list("v1beta1", "ai")).await?;
    let orphans: BTreeSet<_> = reasons
        .iter()
        .filter(|claim| claim.pointer("/status/conditions/0/reason").and_then(Value::as_str) == Some("InvalidMetadata"))
        .filter_map(|claim| claim["metadata"]["name"].as_str())
        .collect();
    assert_eq!(orphans, BTreeSet::from(["orphan-1", "orphan-2", "orphan-3"]));
    assert!(!fixture.play_resync_of_old_manifests().await?, "the manifests are what is deployed");
    Ok(())
}

fn age(entry: &Value) -> Result<Duration> {
    let time: jiff::Timestamp = entry["time"].as_str().ok_or("no time")?.parse()?;
    Ok(jiff::Timestamp::now().duration_since(time).try_into()?)
}

async fn webhook_faults(fixture: Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    let (one, other) = (CLAIMS.object("v1beta1", "ai", "shell"), CLAIMS.object("v1beta1", "ai", "notebook"));
    let faults = [
        (Mode::Stopped, "connection refused"),
        (Mode::Expired, "expired"),
        (Mode::FailsFor("shell".into()), "panic in conversion of shell"),
    ];
    for (mode, words) in faults {
        fixture.webhook.set(mode.clone());
        eventually(&format!("{mode:?} refuses"), async || Ok(api.get(&one).await.is_err())).await?;
        let refusal = api.get(&one).await.expect_err("the conversion fails");
        assert_eq!(refusal.code, 500, "{mode:?}: {refusal}");
        assert!(refusal.message().contains(words), "{mode:?}: {refusal}");
        if matches!(mode, Mode::FailsFor(_)) {
            api.get(&other).await?;
        }
        fixture.webhook.set(Mode::Converts);
        eventually(&format!("healed from {mode:?}"), async || Ok(api.get(&one).await.is_ok())).await?;
    }
    fixture.webhook.set(Mode::Slow(Duration::from_millis(300)));
    let begun = std::time::Instant::now();
    api.get(&one).await?;
    assert!(begun.elapsed() >= Duration::from_millis(300));
    Ok(())
}

async fn shipped(fixture: Fixture) -> Result<()> {
    let api = fixture.plane.api("cluster").await?;
    fixture.deploy(&FLICKERD, "ghcr.io/swibrow/flickerd:v0.15.2", "").await?;
    let halfway = api.get(&FLICKERD.path()).await?;
    assert_ne!(halfway["status"]["observedGeneration"], halfway["metadata"]["generation"]);
    fixture.ship(&FLICKERD).await?;
    let shipped = api.get(&FLICKERD.path()).await?;
    assert_eq!(shipped["status"]["observedGeneration"], shipped["metadata"]["generation"]);
    let image = shipped.pointer("/spec/template/spec/containers/0/image");
    assert_eq!(image.and_then(Value::as_str), Some("ghcr.io/swibrow/flickerd:v0.15.2"));
    Ok(())
}
