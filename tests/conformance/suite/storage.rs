//! Stored bytes change version only on a write whose encoding differs: a touch rewrites, a second one proves.

use super::prelude::*;

checks! {
    old_record_reads_at_both_versions: "a record stored at one version reads at every served one",
    create_is_stored_at_the_storage_version: "what is created at any version is encoded at the storage version",
    touch_rewrites_old_bytes: "an empty merge patch rewrites a record stored at another version: new resourceVersion, nothing else",
    second_touch_proves: "an empty merge patch leaves a record at the storage version untouched, resourceVersion included",
    touch_with_preconditions: "a patch of only resourceVersion and uid touches and proves as the empty one does",
    touch_at_the_old_path: "a touch at the old version's path rewrites to the storage version, too",
    touch_of_the_status: "an empty patch of the status subresource rewrites, too",
    put_rewrites: "a PUT of what was read rewrites an old record and leaves a new one untouched",
    dry_run_proves_nothing: "a dry run answers the old resourceVersion whether or not the record is old",
    another_uid_is_invalid: "a patch with another uid, for an object re-created since, is 422 on metadata.uid",
    stale_resource_version_conflicts: "a patch with a stale resourceVersion is 409",
    absent_is_not_created: "a patch of an absent object is 404 and creates nothing",
    unreadable_resource_version: "a resourceVersion that is no number is 500, not a conflict",
    stamp_changes_no_generation: "an annotation rewrites and changes no generation",
    cluster_scoped_records: "cluster-scoped objects are touched and proved alike",
}

async fn old_record_reads_at_both_versions(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let (old, new) = (w.at(ALPHA).read("one").await?, w.read("one").await?);
    assert_eq!((&old["apiVersion"], &new["apiVersion"]), (&w.at(ALPHA).api_version().into(), &w.api_version().into()));
    assert_eq!((&old["metadata"], &old["spec"]), (&new["metadata"], &new["spec"]));
    Ok(())
}

async fn create_is_stored_at_the_storage_version(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.at(ALPHA).create("two", &json!({"size": 2})).await?;
    let stored = w.stored("two").await?;
    assert_eq!((&stored["apiVersion"], &stored["spec"]), (&w.api_version().into(), &json!({"size": 2})));
    assert_eq!(stored["metadata"].get("resourceVersion"), None, "it is the revision, and not stored");
    assert_eq!(w.read_crd().await?["status"]["storedVersions"], json!([ALPHA, BETA]));
    Ok(())
}

async fn touch_rewrites_old_bytes(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.read("one").await?;
    let mut after = w.touch("one").await?.ok()?;
    assert_eq!(w.stored_version("one").await?, BETA);
    assert_ne!(version_of(&after), version_of(&before));
    after["metadata"]["resourceVersion"] = version_of(&before).into();
    assert_eq!(after, before);
    Ok(())
}

async fn second_touch_proves(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let first = w.touch("one").await?.ok()?;
    let second = w.touch("one").await?.ok()?;
    assert_eq!(second, first);
    Ok(())
}

async fn touch_with_preconditions(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.read("one").await?;
    let first = w.merge("one", &exactly(&before, &json!({}))).await?.ok()?;
    assert_ne!(version_of(&first), version_of(&before));
    assert_eq!(w.stored_version("one").await?, BETA);
    let second = w.merge("one", &exactly(&first, &json!({}))).await?.ok()?;
    assert_eq!(second, first);
    Ok(())
}

async fn touch_at_the_old_path(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let touched = w.at(ALPHA).touch("one").await?.ok()?;
    assert_eq!(touched["apiVersion"], w.at(ALPHA).api_version());
    assert_eq!(w.stored_version("one").await?, BETA);
    Ok(())
}

async fn touch_of_the_status(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.merge_status("sbx", "one", &json!({})).await?.ok()?;
    assert_eq!(w.stored_version("one").await?, BETA);
    Ok(())
}

async fn put_rewrites(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.read("one").await?;
    let first = t.put(&w.path("one"), &before).await?.ok()?;
    assert_ne!(version_of(&first), version_of(&before));
    assert_eq!(w.stored_version("one").await?, BETA);
    let second = t.put(&w.path("one"), &first).await?.ok()?;
    assert_eq!(version_of(&second), version_of(&first));
    Ok(())
}

async fn dry_run_proves_nothing(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let path = format!("{}?dryRun=All", w.path("one"));
    let before = w.read("one").await?;
    assert_eq!(t.merge(&path, &json!({})).await?.ok()?, before);
    assert_eq!(w.stored_version("one").await?, ALPHA);
    let after = w.touch("one").await?.ok()?;
    assert_eq!(t.merge(&path, &json!({})).await?.ok()?, after);
    Ok(())
}

async fn another_uid_is_invalid(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let refusal = w.merge("one", &json!({"metadata": {"uid": "other"}})).await?.refused(422)?;
    let cause = "metadata.uid: Invalid value: \"other\": field is immutable";
    assert_eq!(refusal.message(), format!("Widget.{} \"one\" is invalid: {cause}", t.group));
    // Validated twice, said twice.
    assert_eq!(causes(&refusal), [cause, cause]);
    assert_eq!(w.stored_version("one").await?, ALPHA);
    Ok(())
}

async fn stale_resource_version_conflicts(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let stale = exactly(&w.read("one").await?, &json!({}));
    // A real change: a server may let a stale patch pass whose outcome is what is stored already.
    w.merge("one", &json!({"spec": {"size": 2}})).await?.ok()?;
    let refusal = w.merge("one", &stale).await?.refused(409)?;
    assert_eq!(refusal.status["reason"], "Conflict");
    assert_eq!(
        refusal.message(),
        format!(
            "Operation cannot be fulfilled on widgets.{} \"one\": the object has been modified; please apply your \
             changes to the latest version and try again",
            t.group
        )
    );
    Ok(())
}

async fn absent_is_not_created(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.touch("gone").await?.refused(404)?;
    assert_eq!(refusal.message(), format!("widgets.{} \"gone\" not found", t.group));
    w.get("gone").await?.refused(404)?;
    Ok(())
}

async fn unreadable_resource_version(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let refusal = w.merge("one", &json!({"metadata": {"resourceVersion": "x"}})).await?.refused(500)?;
    assert_eq!(refusal.message(), "strconv.ParseUint: parsing \"x\": invalid syntax");
    Ok(())
}

async fn stamp_changes_no_generation(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let stamped = w.merge("one", &json!({"metadata": {"annotations": {"stamp": "now"}}})).await?.ok()?;
    assert_eq!(stamped["metadata"]["generation"], 1);
    assert_eq!(w.stored("one").await?["metadata"]["annotations"], json!({"stamp": "now"}));
    assert_eq!(w.stored_version("one").await?, BETA);
    Ok(())
}

async fn cluster_scoped_records(t: Target) -> Result<()> {
    let w = t.define().cluster_scoped().seeded().await?;
    let first = w.touch("one").await?.ok()?;
    assert_eq!(first["metadata"].get("namespace"), None);
    assert_eq!(w.stored_version("one").await?, BETA);
    assert_eq!(w.touch("one").await?.ok()?, first);
    Ok(())
}
