//! LIST: order, pages, tokens that expire, metadata alone.

use tokio::sync::Mutex;

use super::prelude::*;

checks! {
    shape: "a list has its kind, a resourceVersion, and items with apiVersion and kind, by namespace and name",
    namespaces: "one namespace or all; a namespace that is not there is empty, not absent",
    pages: "limit gives a token and what remains; the pages make the list, at one resourceVersion",
    pages_are_one_snapshot: "what is created or deleted between two pages is not seen by the second",
    expired_token: "a token from before the compaction is 410 Expired, with a new token that goes on",
    bad_token: "a token that is none is 400; a token and a resourceVersion are 400",
    metadata_alone: "PartialObjectMetadata: a list, an object, a patch's answer",
    by_name: "fieldSelector finds by name and namespace; other fields are 400",
    by_label: "labelSelector finds by label",
    resource_version_zero: "resourceVersion 0 lists as well",
    either_version: "a list at either version holds every object, whatever its bytes are",
}

/// Compaction is of the whole server: whoever walks pages wants none.
static WALK: Mutex<()> = Mutex::const_new(());

async fn five(t: &Target) -> Result<Widgets> {
    let w = t.define().install().await?;
    for name in ["e", "c", "a", "d", "b"] {
        w.create(name, &json!({"size": 1})).await?;
    }
    Ok(w)
}

async fn page(w: &Widgets, token: &str) -> Result<Value> {
    w.target.get(&format!("{}?limit=2&continue={token}", w.list())).await?.ok()
}

fn token(page: &Value) -> &str {
    page["metadata"]["continue"].as_str().unwrap_or_default()
}

async fn shape(t: Target) -> Result<()> {
    let w = five(&t).await?;
    let list = t.get(&w.list()).await?.ok()?;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("WidgetList"), &json!(w.api_version())));
    assert_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    assert_eq!(list["items"][0], w.read("a").await?);
    let newest = version_of(&w.read("b").await?).parse::<u64>()?;
    assert!(version_of(&list).parse::<u64>()? >= newest, "{}", list["metadata"]);
    assert_eq!((token(&list), list["metadata"].get("remainingItemCount")), ("", None));
    Ok(())
}

async fn namespaces(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let system = w.list().replace("default", "kube-system");
    t.post(&system, &w.manifest("another", &json!({"size": 1}))).await?.ok()?;
    assert_eq!(names(&w.listed().await?), ["one", "another"]);
    assert_eq!(names(&t.get(&system).await?.ok()?), ["another"]);
    let absent = t.get(&w.list().replace("default", "absent")).await?.ok()?;
    assert_eq!(absent["items"], json!([]));
    Ok(())
}

async fn pages(t: Target) -> Result<()> {
    let _walk = WALK.lock().await;
    let w = five(&t).await?;
    let first = page(&w, "").await?;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    let second = page(&w, token(&first)).await?;
    assert_eq!((names(&second), &second["metadata"]["remainingItemCount"]), (vec!["c", "d"], &json!(1)));
    let third = page(&w, token(&second)).await?;
    assert_eq!((names(&third), third["metadata"].get("remainingItemCount")), (vec!["e"], None));
    assert_eq!(token(&third), "");
    assert_eq!((version_of(&second), version_of(&third)), (version_of(&first), version_of(&first)));
    Ok(())
}

async fn pages_are_one_snapshot(t: Target) -> Result<()> {
    let _walk = WALK.lock().await;
    let w = five(&t).await?;
    let first = page(&w, "").await?;
    w.create("bb", &json!({"size": 1})).await?;
    w.delete("c", &json!({})).await?.ok()?;
    w.merge("d", &json!({"spec": {"size": 9}})).await?.ok()?;
    let second = page(&w, token(&first)).await?;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["spec"], json!({"size": 1}));
    Ok(())
}

async fn expired_token(t: Target) -> Result<()> {
    let _walk = WALK.lock().await;
    let w = five(&t).await?;
    let first = page(&w, "").await?;
    // A server answers from what it has read as long as it can.
    w.renew().await?;
    w.create("bb", &json!({"size": 1})).await?;
    let path = format!("{}?limit=2&continue={}", w.list(), token(&first));
    eventually("the token has expired", async || {
        t.server.compact().await?;
        Ok(t.get(&path).await?.code == 410)
    })
    .await?;
    let refusal = t.get(&path).await?.refused(410)?;
    assert_eq!(refusal.status["reason"], "Expired");
    assert!(refusal.message().contains("continue"), "{refusal}");
    let rest = page(&w, token(&refusal.status)).await?;
    assert_eq!(names(&rest), ["bb", "c"], "as it is now");
    Ok(())
}

async fn bad_token(t: Target) -> Result<()> {
    let w = five(&t).await?;
    let refusal = t.get(&format!("{}?limit=2&continue=zzz", w.list())).await?.refused(400)?;
    assert!(refusal.message().starts_with("invalid continue token: continue key is not valid"), "{refusal}");
    let first = page(&w, "").await?;
    let both = format!("{}?limit=2&resourceVersion=1&continue={}", w.list(), token(&first));
    let refusal = t.get(&both).await?.refused(400)?;
    assert_eq!(refusal.message(), "specifying resource version is not allowed when using continue");
    Ok(())
}

async fn metadata_alone(t: Target) -> Result<()> {
    let w = five(&t).await?;
    let a = w.read("a").await?;
    let alone = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": a["metadata"]});
    assert_eq!(t.get_as(&w.path("a"), "PartialObjectMetadata").await?.ok()?, alone);
    let list = t.get_as(&format!("{}?limit=2", w.list()), "PartialObjectMetadataList").await?.ok()?;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1")));
    assert_eq!((&list["items"][0], &list["metadata"]["remainingItemCount"]), (&alone, &json!(3)));
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = t.merge_as(&w.path("a"), "PartialObjectMetadata", &patch).await?.ok()?;
    assert_eq!(patched["metadata"], w.read("a").await?["metadata"]);
    assert_eq!(patched.get("spec"), None);
    Ok(())
}

async fn by_name(t: Target) -> Result<()> {
    let w = five(&t).await?;
    let found = t.get(&format!("{}?fieldSelector=metadata.name=c", w.list())).await?.ok()?;
    assert_eq!(names(&found), ["c"]);
    let found = t.get(&format!("{}?fieldSelector=metadata.name=c,metadata.namespace=absent", w.all())).await?.ok()?;
    assert_eq!(found["items"], json!([]));
    let refusal = t.get(&format!("{}?fieldSelector=spec.size=1", w.list())).await?.refused(400)?;
    assert_eq!(refusal.message(), "field label not supported: spec.size");
    Ok(())
}

async fn by_label(t: Target) -> Result<()> {
    let w = five(&t).await?;
    w.merge("c", &json!({"metadata": {"labels": {"tier": "front"}}})).await?.ok()?;
    for selector in ["tier=front", "tier"] {
        let found = t.get(&format!("{}?labelSelector={selector}", w.list())).await?.ok()?;
        assert_eq!(names(&found), ["c"], "{selector}");
    }
    Ok(())
}

async fn resource_version_zero(t: Target) -> Result<()> {
    let w = five(&t).await?;
    let path = format!("{}?resourceVersion=0", w.list());
    eventually("all five are there", async || Ok(names(&t.get(&path).await?.ok()?).len() == 5)).await
}

async fn either_version(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.create("two", &json!({"size": 2})).await?;
    for w in [&w, &w.at(ALPHA)] {
        let list = w.listed().await?;
        assert_eq!(names(&list), ["one", "two"]);
        assert_eq!(list["items"][0]["apiVersion"], w.api_version());
    }
    Ok(())
}
