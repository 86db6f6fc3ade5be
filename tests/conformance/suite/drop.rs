//! A version is dropped: early, with a record still stored at it, or in time.

use super::prelude::*;
use crate::support::api::Refusal;

checks! {
    list_is_refused_for_ever: "with an old record left, LIST is 429 `storage is (re)initializing`, Retry-After 1, by every list",
    paged_list_says_why: "the same LIST with a limit is 500 and names the version that is gone",
    watch_is_refused: "so is a watch: 429",
    get_and_delete_fail: "GET and DELETE of the old record are 500, in the words of each release",
    writes_fail: "PATCH, PUT and apply of the old record are 500, in the words of each release",
    others_still_read: "an object stored at the new version still reads and is created",
    name_is_still_taken: "the unreadable object still holds its name",
    putting_back_heals: "declared again, unserved, the old version makes lists, reads and touches work",
    in_time_nothing_breaks: "touched, pruned and dropped in that order, everything works",
    old_path_is_gone: "the dropped version's path is 404 in plain text",
    old_body_is_refused: "an object that names the dropped version is 400 at the new path",
    old_field_is_ignored: "a field of the old shape at the new path is 200 and changes nothing",
}

fn gone(t: &Target) -> String {
    format!("request to convert CR from an invalid group/version: {}/{ALPHA}", t.group)
}

/// What 1.37 puts around it.
fn corrupt(t: &Target, refusal: &Refusal, start: &str) {
    assert!(refusal.message().ends_with(&gone(t)), "{refusal}");
    if t.minor() >= 37 {
        assert!(refusal.message().starts_with(start), "{refusal}");
    } else {
        assert_eq!(refusal.message(), gone(t));
    }
}

async fn list_is_refused_for_ever(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.drop_early().await?;
    for path in [w.all(), w.list(), format!("{}?resourceVersion=0", w.all())] {
        let answer = t.get(&path).await?;
        assert_eq!(answer.header("retry-after"), "1", "{path}");
        let refusal = answer.refused(429)?;
        assert!(refusal.message().starts_with("storage is (re)initializing"), "{refusal}");
        assert_eq!(refusal.status["reason"], "TooManyRequests");
        assert_eq!(refusal.status["details"], json!({"retryAfterSeconds": 1}));
    }
    t.get_as(&w.all(), "PartialObjectMetadataList").await?.refused(429)?;
    Ok(())
}

async fn paged_list_says_why(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.drop_early().await?;
    let refusal = t.get(&format!("{}?limit=500", w.all())).await?.refused(500)?;
    let start = format!(
        "failed to read one or more widgets.{0} from the storage: StorageError: corrupt object, Code: 7, Key: \
         /registry/{0}/widgets/default/one, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=",
        t.group
    );
    corrupt(&t, &refusal, &start);
    let reason = if t.minor() >= 37 { json!("StorageReadError") } else { json!(null) };
    assert_eq!(refusal.status["reason"], reason);
    Ok(())
}

async fn watch_is_refused(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.drop_early().await?;
    let refusal = t.get(&format!("{}?watch=true&timeoutSeconds=5", w.all())).await?.refused(429)?;
    assert!(refusal.message().starts_with("storage is (re)initializing"), "{refusal}");
    Ok(())
}

async fn get_and_delete_fail(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.drop_early().await?;
    let start = format!(
        "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /{}/widgets/default/one, \
         ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=",
        t.group
    );
    for answer in [w.get("one").await?, w.delete("one", &json!({})).await?] {
        let refusal = answer.refused(500)?;
        corrupt(&t, &refusal, &start);
        let reason = if t.minor() >= 37 { json!("InternalError") } else { json!(null) };
        assert_eq!(refusal.status["reason"], reason, "{refusal}");
    }
    assert_eq!(w.stored_version("one").await?, ALPHA);
    Ok(())
}

async fn writes_fail(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let mut object = w.read("one").await?;
    w.drop_early().await?;
    let put = t.put(&w.path("one"), &object).await?;
    object["metadata"] = json!({"name": "one"});
    for answer in [put, w.touch("one").await?, w.apply_object("argo", &object).await?] {
        corrupt(&t, &answer.refused(500)?, "object not decodable revision=");
    }
    Ok(())
}

async fn others_still_read(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.create("two", &json!({"size": 2})).await?;
    w.drop_early().await?;
    assert_eq!(w.read("two").await?["spec"], json!({"size": 2}));
    w.create("three", &json!({"size": 3})).await?;
    w.delete("two", &json!({})).await?.ok()?;
    Ok(())
}

async fn name_is_still_taken(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.drop_early().await?;
    let refusal = w.post(&w.manifest("one", &json!({}))).await?.refused(409)?;
    assert_eq!(refusal.status["reason"], "AlreadyExists");
    Ok(())
}

async fn putting_back_heals(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.drop_early().await?;
    let mut versions = t.define().versions();
    versions[0]["served"] = false.into();
    let healed = w.merge_crd(&json!({"spec": {"versions": versions}})).await?.ok()?;
    assert_eq!(healed["status"]["storedVersions"], json!([BETA]), "it is not listed again");
    w.served().await?;
    assert_eq!(w.read("one").await?["spec"], json!({"size": 1}));
    w.touch("one").await?.ok()?;
    assert_eq!(w.stored_version("one").await?, BETA);
    w.at(ALPHA).get("one").await?.refused(404)?;
    w.drop_alpha().await?;
    w.served().await
}

async fn in_time_nothing_breaks(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.touch("one").await?.ok()?;
    w.finish().await?;
    assert_eq!(names(&w.listed().await?), ["one"]);
    w.delete("one", &json!({})).await?.ok()?;
    Ok(())
}

async fn old_path_is_gone(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.touch("one").await?.ok()?;
    w.finish().await?;
    let old = w.at(ALPHA);
    for answer in [old.get("one").await?, old.touch("one").await?, t.get(&old.all()).await?] {
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.refused(404)?.status, "404 page not found\n");
    }
    Ok(())
}

async fn old_body_is_refused(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.touch("one").await?.ok()?;
    w.finish().await?;
    let refusal = w.post(&w.at(ALPHA).manifest("two", &json!({}))).await?.refused(400)?;
    let group = &t.group;
    assert_eq!(
        refusal.message(),
        format!(
            "the API version in the data ({group}/{ALPHA}) does not match the expected API version ({group}/{BETA})"
        )
    );
    Ok(())
}

async fn old_field_is_ignored(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.touch("one").await?.ok()?;
    w.finish().await?;
    let answer = w.merge("one", &json!({"spec": {"replicas": 0}})).await?;
    assert_eq!(answer.header("warning"), "299 - \"unknown field \\\"spec.replicas\\\"\"");
    assert_eq!(answer.ok()?["spec"], before["spec"]);
    Ok(())
}
