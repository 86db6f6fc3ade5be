//! `status.storedVersions`: a promise by whoever wrote it last, held against `spec.versions`.

use super::prelude::*;

checks! {
    starts_with_the_storage_version: "a new definition lists its storage version, and no other",
    grows_with_the_storage_version: "a new storage version is added to the list",
    holds_a_version_in_the_spec: "a listed version cannot be dropped: 422 on its place in the list, in the server's words",
    main_resource_ignores_it: "a patch of the list on the main resource is 200 and changes nothing",
    status_takes_any_list: "a status patch is checked against nothing: v9 is taken, and blocks every later change",
    empty_becomes_the_storage_version: "an empty list becomes the storage version",
    pruning_is_believed: "the old version can be pruned while records are still stored at it",
    storage_version_comes_back: "pruned of the storage version, the list regains it with the next write of the definition",
    stale_status_patch_conflicts: "a status patch with a stale resourceVersion is 409",
    status_patch_ignores_the_spec: "a status patch changes no spec and no generation, but metadata",
}

async fn starts_with_the_storage_version(t: Target) -> Result<()> {
    let w = t.define().stores(ALPHA).install().await?;
    assert_eq!(w.read_crd().await?["status"]["storedVersions"], json!([ALPHA]));
    Ok(())
}

async fn grows_with_the_storage_version(t: Target) -> Result<()> {
    let w = t.define().stores(ALPHA).install().await?;
    w.store(BETA).await?;
    assert_eq!(w.read_crd().await?["status"]["storedVersions"], json!([ALPHA, BETA]));
    w.store(ALPHA).await?;
    assert_eq!(w.read_crd().await?["status"]["storedVersions"], json!([ALPHA, BETA]));
    Ok(())
}

async fn holds_a_version_in_the_spec(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let target = t.define().only(BETA).manifest();
    let refusal = w.merge_crd(&json!({"spec": target["spec"]})).await?.refused(422)?;
    let cause = format!(
        "status.storedVersions[0]: Invalid value: \"{ALPHA}\": missing from spec.versions; {ALPHA} was previously a \
         storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted \
         in {ALPHA} and removes {ALPHA} from status.storedVersions"
    );
    assert_eq!(causes(&refusal), [cause.as_str()]);
    let name = format!("CustomResourceDefinition.apiextensions.k8s.io \"{}\"", w.crd());
    assert_eq!(refusal.message(), format!("{name} is invalid: {cause}"));
    Ok(())
}

async fn main_resource_ignores_it(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.read_crd().await?;
    let after = w.merge_crd(&json!({"status": {"storedVersions": [BETA]}})).await?.ok()?;
    assert_eq!(after, before);
    Ok(())
}

async fn status_takes_any_list(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let nonsense = w.set_stored_versions(&["v9"]).await?.ok()?;
    assert_eq!(nonsense["status"]["storedVersions"], json!(["v9"]));
    let refusal = w.merge_crd(&json!({"metadata": {"labels": {"a": "b"}}})).await?.refused(422)?;
    assert_eq!(refusal.causes(), ["status.storedVersions[0]"]);
    Ok(())
}

async fn empty_becomes_the_storage_version(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let emptied = w.set_stored_versions(&[]).await?.ok()?;
    assert_eq!(emptied["status"]["storedVersions"], json!([BETA]));
    Ok(())
}

async fn pruning_is_believed(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let pruned = w.set_stored_versions(&[BETA]).await?.ok()?;
    assert_eq!(pruned["status"]["storedVersions"], json!([BETA]));
    assert_eq!(w.stored_version("one").await?, ALPHA);
    assert_eq!(w.read_crd().await?["status"]["storedVersions"], json!([BETA]));
    Ok(())
}

async fn storage_version_comes_back(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let pruned = w.set_stored_versions(&[ALPHA]).await?.ok()?;
    assert_eq!(pruned["status"]["storedVersions"], json!([ALPHA]));
    let written = w.merge_crd(&json!({"metadata": {"labels": {"a": "b"}}})).await?.ok()?;
    assert_eq!(written["status"]["storedVersions"], json!([ALPHA, BETA]));
    Ok(())
}

async fn stale_status_patch_conflicts(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let mut patch = exactly(&w.read_crd().await?, &json!({}));
    patch["status"]["storedVersions"] = json!([BETA]);
    w.merge_crd(&json!({"metadata": {"labels": {"a": "b"}}})).await?.ok()?;
    let path = format!("{}/status", w.crd_path());
    let refusal = t.merge(&path, &patch).await?.refused(409)?;
    assert_eq!(refusal.status["details"]["kind"], "customresourcedefinitions");
    patch["metadata"]["resourceVersion"] = version_of(&w.read_crd().await?).into();
    assert_eq!(t.merge(&path, &patch).await?.ok()?["status"]["storedVersions"], json!([BETA]));
    Ok(())
}

async fn status_patch_ignores_the_spec(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.read_crd().await?;
    let patch = json!({"spec": {"scope": "Cluster"}, "metadata": {"labels": {"a": "b"}}});
    let after = t.merge(&format!("{}/status", w.crd_path()), &patch).await?.ok()?;
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    Ok(())
}
