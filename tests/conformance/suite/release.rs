//! A deployer's apply of the definition without conversion, while another manager owns the caBundle.

use std::sync::Arc;

use super::answer::Answer;
use super::prelude::*;
use crate::support::webhook::Converter;

checks! {
    caught_between_owners: "the deployer gives its conversion up, the caBundle stays, and what remains is 422 by field",
    old_version_is_named_too: "before the prune the refusal names storedVersions as well",
    released: "with the caBundle owned by nobody the same apply is accepted, and conversion is None",
    released_changes_nothing_else: "the release changes no spec; the webhook and a re-sync of the old manifests go on as before",
    empty_parent_still_owns: "an emptied `f:clientConfig` left behind still owns: the apply stays refused",
    dry_run_tells_both: "two dry runs as the deployer tell: the target is accepted, the current manifest changes nothing",
}

const ARGO: &str = "argocd-controller";

/// The deployer applies the definition without a caBundle, which the controller adds; `one` is migrated. The second
/// value is what the deployer applied.
async fn owned_by_two(t: &Target) -> Result<(Widgets, Value)> {
    let same: Converter = Arc::new(|object, version| {
        let mut converted = object.clone();
        converted["apiVersion"] = version.into();
        Ok(converted)
    });
    let mut config = t.server.convert(&t.group, same);
    let bundle =
        json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": config["caBundle"].take()}}}}});
    if let Some(config) = config.as_object_mut() {
        config.remove("caBundle");
    }
    let definition = t.define().conversion(webhook(&config)).stores(ALPHA);
    let before = definition.manifest();
    let w = definition.widgets();
    apply(&w, &before, "").await?.ok()?;
    w.first_served().await?;
    w.at(ALPHA).create("one", &json!({"size": 1})).await?;
    t.merge(&format!("{}?fieldManager=controller", w.crd_path()), &bundle).await?.ok()?;
    eventually("the webhook is trusted", async || Ok(w.get("one").await?.code == 200)).await?;
    let current = t.define().conversion(webhook(&config)).manifest();
    let crd = apply(&w, &current, "").await?.ok()?;
    assert_eq!(
        managers(&crd),
        ["argocd-controller Apply v1", "controller Update v1", "kube-apiserver Update v1 status"]
    );
    w.stores(BETA, &json!({})).await?;
    w.touch("one").await?.ok()?;
    Ok((w, current))
}

/// What the deployer applies after the merge.
fn target(t: &Target) -> Value {
    t.define().only(BETA).manifest()
}

/// Server-side apply as the deployer.
async fn apply(w: &Widgets, manifest: &Value, query: &str) -> Result<Answer> {
    w.target.apply(&format!("{}?fieldManager={ARGO}&force=true{query}", w.crd_path()), manifest).await
}

/// Takes the controller's entry from the definition.
async fn release(w: &Widgets) -> Result<Value> {
    let crd = w.read_crd().await?;
    let kept: Vec<_> = entries(&crd).iter().filter(|entry| entry["manager"] != "controller").cloned().collect();
    w.merge_crd(&exactly(&crd, &json!({"managedFields": kept}))).await?.ok()
}

async fn caught_between_owners(t: Target) -> Result<()> {
    let (w, _) = owned_by_two(&t).await?;
    w.set_stored_versions(&[BETA]).await?.ok()?;
    let target = target(&t);
    for query in ["", "&dryRun=All"] {
        let refusal = apply(&w, &target, query).await?.refused(422)?;
        assert_eq!(
            causes(&refusal),
            [
                "spec.conversion.strategy: Required value",
                "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
            ],
            "{query}"
        );
    }
    Ok(())
}

async fn old_version_is_named_too(t: Target) -> Result<()> {
    let (w, _) = owned_by_two(&t).await?;
    let refusal = apply(&w, &target(&t), "").await?.refused(422)?;
    let mut fields = refusal.causes();
    fields.sort_unstable();
    assert_eq!(fields, ["spec.conversion.strategy", "spec.conversion.webhookClientConfig", "status.storedVersions[0]"]);
    Ok(())
}

async fn released(t: Target) -> Result<()> {
    let (w, _) = owned_by_two(&t).await?;
    w.set_stored_versions(&[BETA]).await?.ok()?;
    release(&w).await?;
    let crd = apply(&w, &target(&t), "").await?.ok()?;
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["spec"]["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(crd["status"]["storedVersions"], json!([BETA]));
    Ok(())
}

async fn released_changes_nothing_else(t: Target) -> Result<()> {
    let (w, old) = owned_by_two(&t).await?;
    let before = w.read_crd().await?;
    let after = release(&w).await?;
    assert_eq!(
        (&after["spec"], &after["metadata"]["generation"]),
        (&before["spec"], &before["metadata"]["generation"])
    );
    assert_eq!(managers(&after), ["argocd-controller Apply v1", "kube-apiserver Update v1 status"]);
    assert_eq!(w.at(ALPHA).read("one").await?["spec"], json!({"size": 1}));
    let synced = apply(&w, &old, "").await?.ok()?;
    assert_eq!(version_of(&synced), version_of(&after));
    Ok(())
}

async fn empty_parent_still_owns(t: Target) -> Result<()> {
    let (w, _) = owned_by_two(&t).await?;
    w.set_stored_versions(&[BETA]).await?.ok()?;
    let crd = w.read_crd().await?;
    let mut fields = crd["metadata"]["managedFields"].clone();
    for entry in fields.as_array_mut().into_iter().flatten().filter(|entry| entry["manager"] == "controller") {
        entry["fieldsV1"] = json!({"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {".": {}}}}}});
    }
    w.merge_crd(&exactly(&crd, &json!({"managedFields": fields}))).await?.ok()?;
    let refusal = apply(&w, &target(&t), "").await?.refused(422)?;
    assert_eq!(refusal.causes()[0], "spec.conversion.strategy");
    Ok(())
}

async fn dry_run_tells_both(t: Target) -> Result<()> {
    let (w, old) = owned_by_two(&t).await?;
    w.set_stored_versions(&[BETA]).await?.ok()?;
    let after = release(&w).await?;
    let target = apply(&w, &target(&t), "&dryRun=All").await?.ok()?;
    assert_eq!(target["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(apply(&w, &old, "&dryRun=All").await?.ok()?, after);
    assert_eq!(w.read_crd().await?, after);
    Ok(())
}
