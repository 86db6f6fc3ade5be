//! The upgrade without `sbx`: the wiki page to the letter, and what it would have taken.

use std::collections::BTreeSet;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture_scenario;
use crate::support::control_plane::Release;
use crate::support::fixture::{
    APPLICATION, APPLICATIONS, CLAIMS, FLICKERD, Fixture, GARRISON, KINDS, PRUNED, REVISION_AFTER, SANDBOXES, SYSTEM,
    Truth, crd_path,
};
use crate::support::{Result, eventually};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    let mut trials = vec![
        fixture_scenario(release, truth, "by_hand::wiki_page_ends_with_a_refused_apply", wiki_page),
        fixture_scenario(release, truth, "by_hand::relabel_and_release_let_it_through", released),
    ];
    if truth == Truth::Small {
        trials.push(fixture_scenario(release, truth, "by_hand::without_relabel_no_later_apply_works", unlabelled));
        if release.name == "v1.37" {
            let name = "by_hand::children_that_name_the_old_version_are_never_collected";
            trials.push(fixture_scenario(release, truth, name, uncollected));
        }
    }
    trials
}

async fn wiki_page(fixture: Fixture) -> Result<()> {
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    fixture.walk_the_wiki_page().await?;
    // The page's last check is green, and true so far.
    assert_eq!(fixture.stored_versions().await?, BTreeSet::from(["v1beta1".into()]));
    let still_named = fixture.managers_at_old_version().await?;
    assert!(still_named.contains("SandboxTemplate by argocd-controller"), "{still_named:?}");
    assert!(still_named.contains("SandboxClaim by flickerd-generator"), "{still_named:?}");
    assert!(still_named.contains("Sandbox by garrison-keep"), "{still_named:?}");

    let refusals = fixture.play_argo_cd_merge().await?;
    assert_eq!(refusals.len(), KINDS.len(), "{refusals:#?}");
    for refusal in &refusals {
        assert_eq!(refusal.code, 422, "{refusal}");
        assert_eq!(refusal.causes(), ["spec.conversion.strategy", "spec.conversion.webhookClientConfig"], "{refusal}");
    }
    // It pruned first and went on afterwards: definitions that call a webhook which is gone.
    let api = fixture.plane.api("cluster").await?;
    for (kind, version, name) in PRUNED {
        assert_eq!(api.get(&kind.object(version, SYSTEM, name)).await.err().map(|refusal| refusal.code), Some(404));
    }
    assert!(fixture.controller_image().await?.ends_with(":v1.0.0"));
    let application = application(&fixture).await?;
    assert_eq!(application["status"]["operationState"]["phase"], "Failed");
    let message = application["status"]["operationState"]["message"].as_str().unwrap_or_default();
    assert!(refusals.iter().all(|refusal| message.contains(refusal.message())), "{message}");
    let old = api.get(&CLAIMS.object("v1alpha1", "ai", "shell")).await;
    assert!(old.is_err(), "{old:?}");
    Ok(())
}

async fn released(fixture: Fixture) -> Result<()> {
    let before = fixture.inventory().await?;
    fixture.ship(&FLICKERD).await?;
    fixture.ship(&GARRISON).await?;
    for kind in KINDS {
        fixture.relabel_by_hand(&kind).await?;
        fixture.prune_by_hand(&kind).await?;
    }
    assert_eq!(fixture.stored_versions().await?, BTreeSet::from(["v1beta1".into()]));
    assert_eq!(fixture.managers_at_old_version().await?, BTreeSet::new());
    let api = fixture.plane.api("cluster").await?;
    for kind in KINDS {
        fixture.release_by_hand(&kind).await?;
        let crd = api.get(&crd_path(&kind.crd())).await?;
        assert!(crd.pointer("/spec/conversion/webhook/clientConfig/caBundle").is_some(), "the caBundle stays");
    }
    assert!(!fixture.play_resync_of_old_manifests().await?, "a sync before the merge changes nothing");
    api.get(&CLAIMS.object("v1alpha1", "ai", "shell")).await?;

    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    for kind in KINDS {
        let crd = api.get(&crd_path(&kind.crd())).await?;
        let versions = crd["spec"]["versions"].as_array().map_or(0, Vec::len);
        assert_eq!((versions, &crd["status"]["storedVersions"]), (1, &json!(["v1beta1"])), "{}", kind.crd());
        assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}), "{}", kind.crd());
    }
    let status = application(&fixture).await?["status"].clone();
    assert_eq!((&status["sync"]["status"], &status["sync"]["revision"]), (&json!("Synced"), &json!(REVISION_AFTER)));

    // Nothing is gone but what Argo CD prunes, nothing that was converted is lost, and the deployer still owns its template.
    let after = fixture.inventory().await?;
    let gone: BTreeSet<_> =
        before.into_iter().filter(|(name, uid)| after.get(name) != Some(uid)).map(|(name, _)| name).collect();
    let pruned = PRUNED.iter().map(|(kind, _, name)| format!("{} {SYSTEM}/{name}", kind.kind));
    assert_eq!(gone, pruned.collect());
    let claim = api.get(&CLAIMS.object("v1beta1", "flickerd", "frame-1")).await?;
    assert_eq!(claim["spec"]["warmPoolRef"]["name"], "shadow-pool-flicker");
    let keep = api.get(&SANDBOXES.object("v1beta1", "garrison", "keep-2")).await?;
    assert_eq!(keep["spec"]["operatingMode"], "Suspended");
    let template = fixture.apply_template().await?;
    let applied: Vec<_> = template["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|entry| entry["operation"] == "Apply")
        .collect();
    assert_eq!(applied.len(), 1, "{applied:?}");
    assert!(applied[0].pointer("/fieldsV1/f:spec/f:podTemplate").is_some(), "{applied:?}");
    Ok(())
}

async fn unlabelled(fixture: Fixture) -> Result<()> {
    fixture.walk_the_wiki_page().await?;
    for kind in KINDS {
        fixture.release_by_hand(&kind).await?;
    }
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    let refusal = fixture.apply_template().await.expect_err("an entry names the version that is gone");
    assert_eq!(refusal.code, 500, "{refusal}");
    assert!(refusal.message().contains("request to convert CR to an invalid group/version"), "{refusal}");
    Ok(())
}

async fn uncollected(mut fixture: Fixture) -> Result<()> {
    for kind in KINDS {
        fixture.relabel_by_hand(&kind).await?;
        fixture.prune_by_hand(&kind).await?;
        fixture.release_by_hand(&kind).await?;
    }
    assert_eq!(fixture.play_argo_cd_merge().await?, []);
    fixture.plane.start_controllers(&["garbage-collector-controller"])?;
    let api = fixture.plane.api("cluster").await?;
    let pod = |name: &str| format!("/api/v1/namespaces/ai/pods/{name}");
    api.delete(&SANDBOXES.object("v1beta1", "ai", "agent-pool-7k2qd")).await?;
    api.delete(&SANDBOXES.object("v1beta1", "ai", "agent-pool-m3n8v")).await?;
    eventually("the child that names the new version is collected", async || {
        Ok(api.get(&pod("agent-pool-m3n8v")).await.is_err_and(|refusal| refusal.code == 404))
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    api.get(&pod("agent-pool-7k2qd")).await?;
    Ok(())
}

async fn application(fixture: &Fixture) -> Result<Value> {
    let (namespace, name) = APPLICATION;
    Ok(fixture.plane.api("cluster").await?.get(&APPLICATIONS.object("v1alpha1", namespace, name)).await?)
}
