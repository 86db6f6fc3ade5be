//! Conversion by webhook: what it may change, and what the server says when it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::prelude::*;
use crate::support::api::Refusal;
use crate::support::webhook::Converter;

checks! {
    converts_both_ways: "an object is converted on its way out and on its way in; the bytes hold the storage version's shape",
    touch_stores_the_converted: "a touch stores what the webhook makes of the record, and the generation stays",
    unknown_fields_are_pruned: "a field that the webhook adds and the schema lacks is pruned",
    only_labels_and_annotations: "of the metadata a webhook may change labels and annotations; the rest is as stored",
    another_uid_or_name: "an answer with another uid, name or namespace is refused",
    another_version: "an answer in another version or kind than asked is refused",
    fails_for_one: "the webhook's own words come through; objects that it converts are not affected",
    nobody_listens: "a webhook that is gone: 500 with its URL and `connection refused`; the stored version reads and writes",
    no_service: "a webhook whose Service is gone: 500 naming the Service",
    list_with_a_broken_webhook: "LIST at the other version: 429, with a limit 500; at the stored version it works",
    cached_list_goes_on: "while nothing is written, lists go on from what was read before the webhook went away; a GET is 500",
    cached_touch: "so does a touch: it loses the owners before 1.37; a relabel in the same patch keeps them",
    healed: "with the webhook back the same LIST works",
    outage_loses_owners: "during an outage a write to a migrated object loses its owners before 1.37",
    apply_during_an_outage: "apply to an object whose entries need conversion fails during an outage",
    annotations_outgrow: "annotations that conversion makes too long: the object cannot be read or deleted, but at the stored version",
    outgrown_after_the_flip: "once the other version is stored no write can shrink such an object; with the storage flag back it can",
    state_annotation_is_persisted: "an annotation added by conversion is stored by the first touch, and null removes it",
}

/// `v1alpha1` says `size` and `v1beta1` says `count`.
fn renames() -> Converter {
    Arc::new(|object, version| Ok(renamed(object, version)))
}

fn renamed(object: &Value, version: &str) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = version.into();
    let (from, to) = if version.ends_with(BETA) { ("size", "count") } else { ("count", "size") };
    if let Some(spec) = converted["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.into(), value);
    }
    converted
}

/// As [`renames`], but changes a field of what it answers at `v1beta1`.
fn renames_and_sets(pointer: &'static str, field: &'static str, value: Value) -> Converter {
    Arc::new(move |object, version| {
        let mut converted = renamed(object, version);
        if version.ends_with(BETA)
            && let Some(parent) = converted.pointer_mut(pointer)
        {
            parent[field] = value.clone();
        }
        Ok(converted)
    })
}

/// As [`renames`], until the switch is thrown.
fn breakable() -> (Arc<AtomicBool>, Converter) {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let convert: Converter = Arc::new(move |object, version| {
        if switch.load(Ordering::SeqCst) {
            Err("the cat is on the keyboard".into())
        } else {
            Ok(renamed(object, version))
        }
    });
    (broken, convert)
}

fn counted(t: &Target) -> super::define::Definition {
    t.define()
        .spec_of(ALPHA, &json!({"size": {"type": "integer"}}))
        .spec_of(BETA, &json!({"count": {"type": "integer"}, "note": {"type": "string"}}))
}

/// Installed with `one`, stored at `v1alpha1` as the storage version.
async fn old_one(t: &Target, convert: Converter) -> Result<Widgets> {
    let w = counted(t).hook(convert).stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1})).await?;
    Ok(w)
}

/// A conversion that failed, in the words of each release; `why` follows the type.
fn failed(t: &Target, refusal: &Refusal, why: &str) {
    let words = format!("conversion webhook for {}/{ALPHA}, Kind=Widget {why}", t.group);
    assert!(refusal.message().ends_with(&words), "{refusal}");
    if t.minor() >= 37 {
        assert!(refusal.message().contains("StorageError: corrupt object, Code: 7"), "{refusal}");
    } else {
        assert_eq!(refusal.message(), words);
    }
}

async fn converts_both_ways(t: Target) -> Result<()> {
    let w = old_one(&t, renames()).await?;
    assert_eq!(w.read("one").await?["spec"], json!({"count": 1}));
    assert_eq!(w.create("two", &json!({"count": 2})).await?["spec"], json!({"count": 2}));
    assert_eq!(w.stored("two").await?["spec"], json!({"size": 2}));
    let list = w.listed().await?;
    assert_eq!(list["items"][1]["spec"], json!({"count": 2}));
    Ok(())
}

async fn touch_stores_the_converted(t: Target) -> Result<()> {
    let w = old_one(&t, renames()).await?;
    w.store(BETA).await?;
    let touched = w.touch("one").await?.ok()?;
    assert_eq!(touched["metadata"]["generation"], 1);
    let stored = w.stored("one").await?;
    assert_eq!((&stored["apiVersion"], &stored["spec"]), (&w.api_version().into(), &json!({"count": 1})));
    assert_eq!(w.at(ALPHA).read("one").await?["spec"], json!({"size": 1}));
    Ok(())
}

async fn unknown_fields_are_pruned(t: Target) -> Result<()> {
    let w = old_one(&t, renames_and_sets("/spec", "more", 1.into())).await?;
    assert_eq!(w.read("one").await?["spec"], json!({"count": 1}));
    Ok(())
}

async fn only_labels_and_annotations(t: Target) -> Result<()> {
    let convert: Converter = Arc::new(|object, version| {
        let mut converted = renamed(object, version);
        let metadata = &mut converted["metadata"];
        (metadata["labels"], metadata["annotations"]) = (json!({"l": "1"}), json!({"a": "1"}));
        (metadata["generation"], metadata["finalizers"]) = (77.into(), json!(["x.test/f"]));
        (metadata["managedFields"], metadata["resourceVersion"]) = (json!([]), "1".into());
        Ok(converted)
    });
    let w = old_one(&t, convert).await?;
    let (old, new) = (w.at(ALPHA).read("one").await?, w.read("one").await?);
    assert_eq!((&new["metadata"]["labels"], &new["metadata"]["annotations"]), (&json!({"l": "1"}), &json!({"a": "1"})));
    for field in ["generation", "finalizers", "managedFields", "resourceVersion", "uid", "creationTimestamp"] {
        assert_eq!(new["metadata"].get(field), old["metadata"].get(field), "{field}");
    }
    Ok(())
}

async fn another_uid_or_name(t: Target) -> Result<()> {
    let w = old_one(&t, renames()).await?;
    let uid = uid(&w.read("one").await?).to_owned();
    for (field, words) in [
        ("uid", format!("UID: {uid} != other")),
        ("name", "name: one != other".into()),
        ("namespace", "namespace: default != other".into()),
    ] {
        t.server.convert(&t.group, renames_and_sets("/metadata", field, "other".into()));
        let refusal = w.get("one").await?.refused(500)?;
        failed(&t, &refusal, &format!("returned invalid object: must have the same {words}"));
    }
    Ok(())
}

async fn another_version(t: Target) -> Result<()> {
    let w = old_one(&t, Arc::new(|object, _| Ok(object.clone()))).await?;
    let refusal = w.get("one").await?.refused(500)?;
    let group = &t.group;
    let words = format!("invalid groupVersion (expected {group}/{BETA}, received {group}/{ALPHA})");
    failed(&t, &refusal, &format!("returned invalid object at index 0: {words}"));
    t.server.convert(group, renames_and_sets("", "kind", "Gadget".into()));
    let refusal = w.get("one").await?.refused(500)?;
    let words = "invalid kind (expected Widget, received Gadget)";
    failed(&t, &refusal, &format!("returned invalid object at index 0: {words}"));
    Ok(())
}

async fn fails_for_one(t: Target) -> Result<()> {
    let convert: Converter = Arc::new(|object, version| match object["metadata"]["name"].as_str() {
        Some("poison") => Err("panic: assignment to entry in nil map".into()),
        _ => Ok(renamed(object, version)),
    });
    let w = old_one(&t, convert).await?;
    w.at(ALPHA).create("poison", &json!({"size": 2})).await?;
    let why = "failed: panic: assignment to entry in nil map";
    for answer in [w.get("poison").await?, w.delete("poison", &json!({"dryRun": ["All"]})).await?] {
        failed(&t, &answer.refused(500)?, why);
    }
    assert_eq!(w.read("one").await?["spec"], json!({"count": 1}));
    w.at(ALPHA).touch("poison").await?.ok()?;
    w.touch("poison").await?.refused(500)?;
    Ok(())
}

async fn nobody_listens(t: Target) -> Result<()> {
    let config = json!({"service": {"namespace": "default", "name": "conversion", "path": "/convert", "port": 1}});
    let w = counted(&t).conversion(webhook(&config)).stores(ALPHA).install().await?;
    let old = w.at(ALPHA);
    old.create("one", &json!({"size": 1})).await?;
    let refusal = w.get("one").await?.refused(500)?;
    let url = "https://conversion.default.svc:1/convert?timeout=30s";
    failed(&t, &refusal, &format!("failed: Post \"{url}\": dial tcp 127.0.0.1:1: connect: connection refused"));
    let refusal = w.post(&w.manifest("two", &json!({"count": 2}))).await?.refused(500)?;
    let start = format!("conversion webhook for {}/{BETA}, Kind=Widget failed: Post \"{url}\"", t.group);
    assert!(refusal.message().starts_with(&start), "{refusal}");
    assert_eq!(old.touch("one").await?.ok()?["spec"], json!({"size": 1}));
    assert_eq!(names(&old.listed().await?), ["one"]);
    Ok(())
}

async fn no_service(t: Target) -> Result<()> {
    let config = json!({"service": {"namespace": "default", "name": "pruned", "path": "/convert"}});
    let w = counted(&t).conversion(webhook(&config)).stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1})).await?;
    let refusal = w.get("one").await?.refused(500)?;
    let url = "https://pruned.default.svc:443/convert?timeout=30s";
    failed(&t, &refusal, &format!("failed: Post \"{url}\": service \"pruned\" not found"));
    Ok(())
}

/// Breaks the conversion, and changes the definition, so that the server reads its records anew.
async fn break_it(w: &Widgets, switch: &AtomicBool) -> Result<()> {
    switch.store(true, Ordering::SeqCst);
    w.renew().await?;
    let path = w.all();
    eventually(&format!("{path} refused"), async || Ok(w.target.get(&path).await?.code == 429)).await
}

async fn list_with_a_broken_webhook(t: Target) -> Result<()> {
    let (switch, convert) = breakable();
    let w = old_one(&t, convert).await?;
    break_it(&w, &switch).await?;
    let refusal = t.get(&w.list()).await?.refused(429)?;
    assert!(refusal.message().starts_with("storage is (re)initializing"), "{refusal}");
    for answer in [
        t.get(&format!("{}?limit=500", w.all())).await?,
        t.get_as(&format!("{}?limit=500", w.all()), "PartialObjectMetadataList").await?,
        t.get_as(&w.path("one"), "PartialObjectMetadata").await?,
    ] {
        failed(&t, &answer.refused(500)?, "failed: the cat is on the keyboard");
    }
    assert_eq!(names(&w.at(ALPHA).listed().await?), ["one"]);
    Ok(())
}

async fn cached_list_goes_on(t: Target) -> Result<()> {
    let (switch, convert) = breakable();
    let w = old_one(&t, convert).await?;
    assert_eq!(names(&w.listed().await?), ["one"]);
    switch.store(true, Ordering::SeqCst);
    failed(&t, &w.get("one").await?.refused(500)?, "failed: the cat is on the keyboard");
    for query in ["", "?limit=500"] {
        assert_eq!(names(&t.get(&format!("{}{query}", w.all())).await?.ok()?), ["one"], "{query}");
    }
    Ok(())
}

async fn cached_touch(t: Target) -> Result<()> {
    let (switch, convert) = breakable();
    let w = old_one(&t, convert).await?;
    w.at(ALPHA).create("two", &json!({"size": 2})).await?;
    w.store(BETA).await?;
    let two = w.read("two").await?;
    assert_eq!(names(&w.listed().await?), ["one", "two"]);
    switch.store(true, Ordering::SeqCst);
    let touched = w.touch("one").await?;
    if t.minor() >= 37 {
        // Nothing changed, hence the record itself is read.
        touched.refused(500)?;
        assert_eq!(w.stored_version("one").await?, ALPHA);
    } else {
        assert_eq!(managers(&touched.ok()?), [""; 0]);
        assert_eq!(w.stored_version("one").await?, BETA);
    }
    let mut managed = two["metadata"]["managedFields"].clone();
    managed[0]["apiVersion"] = w.api_version().into();
    let relabelled = w.merge("two", &exactly(&two, &json!({"managedFields": managed}))).await?.ok()?;
    assert_eq!(managers(&relabelled), ["seed Update v1beta1"]);
    assert_eq!(w.stored_version("two").await?, BETA);
    Ok(())
}

async fn healed(t: Target) -> Result<()> {
    let (switch, convert) = breakable();
    let w = old_one(&t, convert).await?;
    break_it(&w, &switch).await?;
    switch.store(false, Ordering::SeqCst);
    w.served().await?;
    assert_eq!(w.read("one").await?["spec"], json!({"count": 1}));
    Ok(())
}

/// `one` is migrated, an entry of its managedFields names the old version, and the webhook is down.
async fn migrated_in_an_outage(t: &Target) -> Result<Widgets> {
    let (switch, convert) = breakable();
    let w = old_one(t, convert).await?;
    w.store(BETA).await?;
    w.touch("one").await?.ok()?;
    switch.store(true, Ordering::SeqCst);
    Ok(w)
}

async fn outage_loses_owners(t: Target) -> Result<()> {
    let w = migrated_in_an_outage(&t).await?;
    assert_eq!(w.read("one").await?["spec"], json!({"count": 1}));
    let written = w.merge("one", &json!({"metadata": {"labels": {"a": "b"}}})).await?.ok()?;
    let expected: &[&str] = if t.minor() >= 37 { &["seed Update v1alpha1"] } else { &[] };
    assert_eq!(managers(&written), expected);
    Ok(())
}

async fn apply_during_an_outage(t: Target) -> Result<()> {
    let w = migrated_in_an_outage(&t).await?;
    let refusal = w.apply("argo", "one", &json!({"note": "n"})).await?.refused(500)?;
    let words = format!("conversion webhook for {}/{BETA}, Kind=Widget failed: the cat is on the keyboard", t.group);
    assert_eq!(refusal.message(), words);
    Ok(())
}

/// As [`renames`], but at `v1beta1` it adds a copy of the annotation `carried`.
fn carries() -> Converter {
    Arc::new(|object, version| {
        let mut converted = renamed(object, version);
        let carried = converted["metadata"]["annotations"]["carried"].clone();
        if version.ends_with(BETA) && carried.is_string() {
            converted["metadata"]["annotations"]["state"] = carried;
        }
        Ok(converted)
    })
}

const TOO_LONG: &str = "returned invalid metadata: metadata.annotation: Too long: may not be more than 262144 bytes";

/// `big` is within the limit as it is stored, and beyond it at `v1beta1`.
async fn outgrown(t: &Target) -> Result<Widgets> {
    let w = old_one(t, carries()).await?;
    w.at(ALPHA).create_with("big", &json!({"annotations": {"carried": "x".repeat(140_000)}})).await?;
    Ok(w)
}

async fn annotations_outgrow(t: Target) -> Result<()> {
    let w = outgrown(&t).await?;
    for answer in [w.get("big").await?, w.delete("big", &json!({})).await?] {
        failed(&t, &answer.refused(500)?, TOO_LONG);
    }
    w.touch("big").await?.refused(500)?;
    failed(&t, &t.get(&format!("{}?limit=500", w.all())).await?.refused(500)?, TOO_LONG);
    w.read("one").await?;
    let old = w.at(ALPHA);
    old.read("big").await?;
    old.merge("big", &json!({"metadata": {"annotations": {"carried": "short"}}})).await?.ok()?;
    assert_eq!(w.read("big").await?["metadata"]["annotations"]["state"], "short");
    Ok(())
}

async fn outgrown_after_the_flip(t: Target) -> Result<()> {
    let w = outgrown(&t).await?;
    w.store(BETA).await?;
    let old = w.at(ALPHA);
    assert_eq!(names(&old.listed().await?), ["big", "one"]);
    let shrink = json!({"metadata": {"annotations": {"carried": "short"}}});
    let words = format!("conversion webhook for {}/{ALPHA}, Kind=Widget {TOO_LONG}", t.group);
    for patch in [&json!({}), &shrink] {
        assert_eq!(old.merge("big", patch).await?.refused(500)?.message(), words);
    }
    w.store(ALPHA).await?;
    old.merge("big", &shrink).await?.ok()?;
    w.store(BETA).await?;
    w.touch("big").await?.ok()?;
    assert_eq!(w.stored("big").await?["metadata"]["annotations"]["state"], "short");
    Ok(())
}

async fn state_annotation_is_persisted(t: Target) -> Result<()> {
    let convert: Converter = Arc::new(|object, version| {
        let mut converted = renamed(object, version);
        if version.ends_with(BETA) {
            converted["metadata"]["annotations"]["state"] = "the whole old object".into();
        }
        Ok(converted)
    });
    let w = old_one(&t, convert).await?;
    w.at(ALPHA).create("two", &json!({"size": 2})).await?;
    w.store(BETA).await?;
    w.touch("one").await?.ok()?;
    assert_eq!(w.stored("one").await?["metadata"]["annotations"]["state"], "the whole old object");
    w.merge("two", &json!({"metadata": {"annotations": {"state": null, "stamp": "now"}}})).await?.ok()?;
    assert_eq!(w.stored("two").await?["metadata"]["annotations"], json!({"stamp": "now"}));
    Ok(())
}
