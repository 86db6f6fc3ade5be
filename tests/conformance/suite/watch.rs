//! WATCH: which writes make an event, and what it holds.

use super::prelude::*;

checks! {
    every_change: "from a list's resourceVersion on: ADDED, MODIFIED, DELETED, each with the object as it then was",
    touch_is_one_event: "a touch that rewrites makes one MODIFIED, a touch that proves makes none",
    either_version: "events come at the version asked for",
    of_one_object: "fieldSelector watches one object",
    of_a_definition: "a prune is seen by a watch of the definition",
    without_a_start: "without resourceVersion it begins with what is there",
    too_old: "a resourceVersion that is too old is an ERROR event: 410 Expired",
    of_metadata: "events can hold metadata alone",
}

async fn start(w: &Widgets) -> Result<String> {
    Ok(version_of(&w.listed().await?).to_owned())
}

/// Type, name and size of each event.
fn short(events: &[Value]) -> Vec<Value> {
    let event = |event: &Value| {
        let object = &event["object"];
        json!([event["type"], object["metadata"]["name"], object["spec"]["size"]])
    };
    events.iter().map(event).collect()
}

async fn every_change(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let from = start(&w).await?;
    w.create("one", &json!({"size": 1})).await?;
    let modified = w.merge("one", &json!({"spec": {"size": 2}})).await?.ok()?;
    w.delete("one", &json!({})).await?.ok()?;
    let events = t.watch(&format!("{}?resourceVersion={from}", w.list()), 3).await?;
    assert_eq!(
        short(&events),
        [json!(["ADDED", "one", 1]), json!(["MODIFIED", "one", 2]), json!(["DELETED", "one", 2])]
    );
    assert_eq!(events[1]["object"], modified);
    Ok(())
}

async fn touch_is_one_event(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let from = start(&w).await?;
    w.touch("one").await?.ok()?;
    w.touch("one").await?.ok()?;
    w.create("end", &json!({})).await?;
    let events = t.watch(&format!("{}?resourceVersion={from}", w.list()), 2).await?;
    assert_eq!(short(&events), [json!(["MODIFIED", "one", 1]), json!(["ADDED", "end", null])]);
    Ok(())
}

async fn either_version(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let from = start(&w).await?;
    w.create("two", &json!({"size": 2})).await?;
    for w in [&w, &w.at(ALPHA)] {
        let events = t.watch(&format!("{}?resourceVersion={from}", w.all()), 1).await?;
        assert_eq!(events[0]["object"]["apiVersion"], w.api_version());
    }
    Ok(())
}

async fn of_one_object(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let from = start(&w).await?;
    w.create("one", &json!({"size": 1})).await?;
    w.create("two", &json!({"size": 2})).await?;
    let path = format!("{}?fieldSelector=metadata.name=two&resourceVersion={from}", w.list());
    assert_eq!(short(&t.watch(&path, 1).await?), [json!(["ADDED", "two", 2])]);
    Ok(())
}

async fn of_a_definition(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let crd = w.read_crd().await?;
    w.set_stored_versions(&[BETA]).await?.ok()?;
    let selector = format!("fieldSelector=metadata.name={}", w.crd());
    let events = t.watch(&format!("{CRDS}?{selector}&resourceVersion={}", version_of(&crd)), 1).await?;
    assert_eq!(events[0]["type"], "MODIFIED");
    assert_eq!(events[0]["object"]["status"]["storedVersions"], json!([BETA]));
    assert_eq!(events[0]["object"]["kind"], "CustomResourceDefinition");
    Ok(())
}

async fn without_a_start(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    w.create("two", &json!({"size": 2})).await?;
    let events = t.watch(&w.list(), 2).await?;
    assert_eq!(short(&events), [json!(["ADDED", "one", 1]), json!(["ADDED", "two", 2])]);
    Ok(())
}

async fn too_old(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let events = t.watch(&format!("{}?resourceVersion=1", w.list()), 1).await?;
    let status = &events[0]["object"];
    assert_eq!((&events[0]["type"], &status["kind"]), (&json!("ERROR"), &json!("Status")));
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    assert!(
        status["message"].as_str().is_some_and(|text| text.starts_with("too old resource version: 1 (")),
        "{status}"
    );
    Ok(())
}

async fn of_metadata(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let from = start(&w).await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let path = format!("{}?resourceVersion={from}", w.list());
    let events = t.watch_as(&path, 1, Some("PartialObjectMetadata")).await?;
    let object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": one["metadata"]});
    assert_eq!(events[0], json!({"type": "ADDED", "object": object}));
    Ok(())
}
