//! Who wrote what, at which version: `metadata.managedFields`, and what becomes of it when a version is dropped.

use super::prelude::*;

checks! {
    create_is_recorded: "a create makes one Update entry: manager, version written at, time, fields",
    version_is_that_of_the_write: "an entry names the version of the path it was written by; one manager may have several",
    fields_move: "a field that another manager changes moves to its entry",
    empty_entries_go: "an entry that owns nothing any more is gone",
    status_is_apart: "a status write makes an entry of its own, for the subresource",
    metadata_is_recorded: "labels, annotations, finalizers and ownerReferences are owned by key, value and uid",
    time_moves_with_a_change: "an entry's time stays when nothing changes and moves when something does",
    touch_leaves_them: "a touch rewrites the bytes and leaves entries that name the old version",
    relabel: "entries can be made to name the new version in the patch that stamps; owners keep what they own",
    relabel_of_the_status: "so can entries of the status subresource",
    relabel_of_missing_fields: "so can an entry that names fields which the new version lacks",
    relabelled_owner_gives_up: "after relabel and drop the owner's next apply removes what it leaves out",
    stale_label_breaks_apply: "after the drop, apply of an object with an entry that names the old version is 500; a dry run too",
    stale_label_after_the_drop: "a write that does not relabel loses every owner before 1.37, and mends nothing from then on",
    relabel_after_the_drop: "relabel in the first write after the drop works on every release",
    dropping_all: "`[{}]` drops every entry; the next apply conflicts with `before-first-apply`",
    not_through_the_status: "entries that are sent to the status subresource do not count",
    empty_list_and_null: "an empty list, or null, changes nothing",
    entries_that_cannot_be: "entries of an unknown operation are ignored; of an unknown version they cost all before 1.37",
    old_client_after_the_prune: "a client at the old version after the prune brings its entry back; bytes and storedVersions stay",
    apply_at_the_new_version_relabels: "an owner that applies at the new version moves its own entry, and no other",
}

async fn create_is_recorded(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let time = entries(&one)[0]["time"].clone();
    assert_eq!(
        one["metadata"]["managedFields"],
        json!([{
            "manager": "seed", "operation": "Update", "apiVersion": w.api_version(), "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, "f:size": {}}},
        }])
    );
    assert_eq!(time, one["metadata"]["creationTimestamp"]);
    Ok(())
}

async fn version_is_that_of_the_write(t: Target) -> Result<()> {
    let w = t.define().stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1})).await?;
    let one = w.merge_by("seed", "one", &json!({"spec": {"note": "n"}})).await?.ok()?;
    assert_eq!(managers(&one), ["seed Update v1alpha1", "seed Update v1beta1"]);
    Ok(())
}

async fn fields_move(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1, "note": "n"})).await?;
    let one = w.merge_by("other", "one", &json!({"spec": {"size": 2, "note": "n"}})).await?.ok()?;
    assert_eq!(owned(&one, "seed"), &json!({"f:spec": {".": {}, "f:note": {}}}));
    assert_eq!(owned(&one, "other"), &json!({"f:spec": {"f:size": {}}}), "an equal value is no write");
    Ok(())
}

async fn empty_entries_go(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    w.merge_by("other", "one", &json!({"metadata": {"labels": {"a": "b"}}})).await?.ok()?;
    let one = w.merge_by("third", "one", &json!({"metadata": {"labels": null}})).await?.ok()?;
    assert_eq!(managers(&one), ["seed Update v1beta1"]);
    Ok(())
}

async fn status_is_apart(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let one = w.merge_status("seed", "one", &json!({"status": {"ready": true}})).await?.ok()?;
    assert_eq!(managers(&one), ["seed Update v1beta1", "seed Update v1beta1 status"]);
    let status = entries(&one).iter().find(|entry| entry["subresource"] == "status").ok_or("no entry")?;
    assert_eq!(status["fieldsV1"], json!({"f:status": {".": {}, "f:ready": {}}}));
    Ok(())
}

async fn metadata_is_recorded(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"});
    let metadata = json!({
        "labels": {"l": "1"}, "annotations": {"a": "1"}, "finalizers": ["x.test/f"], "ownerReferences": [owner],
    });
    let one = w.create_with("one", &metadata).await?;
    assert_eq!(
        owned(&one, "seed")["f:metadata"],
        json!({
            "f:labels": {".": {}, "f:l": {}}, "f:annotations": {".": {}, "f:a": {}},
            "f:finalizers": {".": {}, "v:\"x.test/f\"": {}},
            "f:ownerReferences": {".": {}, "k:{\"uid\":\"u-1\"}": {}},
        })
    );
    Ok(())
}

async fn time_moves_with_a_change(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let mut past = one["metadata"]["managedFields"].clone();
    past[0]["time"] = "2020-01-01T00:00:00Z".into();
    // Alone, another time is no change at all.
    assert_eq!(w.merge("one", &json!({"metadata": {"managedFields": past}})).await?.ok()?, one);
    let stamped = json!({"metadata": {"managedFields": past, "annotations": {"a": "b"}}});
    w.merge("one", &stamped).await?.ok()?;
    let same = w.merge_by("seed", "one", &json!({"spec": {"size": 1}})).await?.ok()?;
    assert_eq!(time_of(&same), "2020-01-01T00:00:00Z");
    let changed = w.merge_by("seed", "one", &json!({"spec": {"size": 2}})).await?.ok()?;
    assert_ne!(time_of(&changed), "2020-01-01T00:00:00Z");
    Ok(())
}

/// The time of `seed`'s entry.
fn time_of(object: &Value) -> &Value {
    entries(object).iter().find(|entry| entry["manager"] == "seed").map_or(&Value::Null, |entry| &entry["time"])
}

async fn touch_leaves_them(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let one = w.touch("one").await?.ok()?;
    assert_eq!(managers(&one), ["seed Update v1alpha1"]);
    assert_eq!(w.stored_version("one").await?, BETA);
    Ok(())
}

async fn relabel(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.at(ALPHA).apply("argo", "one", &json!({"note": "n"})).await?.ok()?;
    let before = w.read("one").await?;
    let metadata = json!({"managedFields": w.relabelled(&before), "annotations": {"stamp": "now"}});
    let after = w.merge("one", &exactly(&before, &metadata)).await?.ok()?;
    assert_eq!(managers(&after), ["argo Apply v1beta1", "sbx Update v1beta1", "seed Update v1beta1"]);
    assert_eq!(owned(&after, "argo"), &json!({"f:spec": {"f:note": {}}}));
    assert_eq!(owned(&after, "sbx"), &json!({"f:metadata": {"f:annotations": {".": {}, "f:stamp": {}}}}));
    assert_eq!(w.stored_version("one").await?, BETA);
    Ok(())
}

async fn relabel_of_the_status(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.at(ALPHA).merge_status("ctl", "one", &json!({"status": {"ready": true}})).await?.ok()?;
    let before = w.read("one").await?;
    let after = w.merge("one", &exactly(&before, &json!({"managedFields": w.relabelled(&before)}))).await?.ok()?;
    assert_eq!(managers(&after), ["ctl Update v1beta1 status", "seed Update v1beta1"]);
    assert_eq!(after["status"], json!({"ready": true}));
    Ok(())
}

async fn relabel_of_missing_fields(t: Target) -> Result<()> {
    let definition = t.define().spec_of(ALPHA, &json!({"size": {"type": "integer"}, "old": {"type": "string"}}));
    let w = definition.seeded().await?;
    w.at(ALPHA).apply("argo", "one", &json!({"old": "o"})).await?.ok()?;
    let before = w.read("one").await?;
    let after = w.merge("one", &exactly(&before, &json!({"managedFields": w.relabelled(&before)}))).await?.ok()?;
    assert_eq!(managers(&after), ["argo Apply v1beta1", "seed Update v1beta1"]);
    assert_eq!(owned(&after, "argo"), &json!({"f:spec": {"f:old": {}}}));
    w.finish().await?;
    let applied = w.apply("argo", "one", &json!({"note": "n"})).await?.ok()?;
    assert_eq!(owned(&applied, "argo"), &json!({"f:spec": {"f:note": {}}}));
    Ok(())
}

async fn relabelled_owner_gives_up(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.at(ALPHA).apply("argo", "two", &json!({"size": 1, "note": "n"})).await?.ok()?;
    for name in ["one", "two"] {
        let before = w.read(name).await?;
        w.merge(name, &exactly(&before, &json!({"managedFields": w.relabelled(&before)}))).await?.ok()?;
    }
    w.finish().await?;
    let applied = w.apply("argo", "two", &json!({"note": "n"})).await?.ok()?;
    assert_eq!(applied["spec"], json!({"note": "n"}));
    assert_eq!(managers(&applied), ["argo Apply v1beta1"]);
    Ok(())
}

/// `one` is migrated and its version dropped, but an entry still names it.
async fn stale_label(t: &Target) -> Result<Widgets> {
    let w = t.define().seeded().await?;
    w.at(ALPHA).apply("argo", "one", &json!({"note": "n"})).await?.ok()?;
    w.touch("one").await?.ok()?;
    w.finish().await?;
    assert_eq!(managers(&w.read("one").await?), ["argo Apply v1alpha1", "seed Update v1alpha1"]);
    Ok(w)
}

async fn stale_label_breaks_apply(t: Target) -> Result<()> {
    let w = stale_label(&t).await?;
    for query in ["argo", "argo&force=true", "argo&dryRun=All", "other"] {
        let refusal = w.apply(query, "one", &json!({"note": "x"})).await?.refused(500)?;
        let words = format!("request to convert CR to an invalid group/version: {}/{ALPHA}", t.group);
        assert_eq!(refusal.message(), words, "{query}");
    }
    Ok(())
}

async fn stale_label_after_the_drop(t: Target) -> Result<()> {
    let w = stale_label(&t).await?;
    let written = w.merge("one", &json!({"metadata": {"annotations": {"a": "b"}}})).await?.ok()?;
    let applied = w.apply("argo", "one", &json!({"note": "x"})).await?;
    if t.minor() >= 37 {
        assert_eq!(managers(&written), ["argo Apply v1alpha1", "seed Update v1alpha1"]);
        applied.refused(500)?;
    } else {
        assert_eq!(written["metadata"].get("managedFields"), None);
        let words = format!("conflict with \"before-first-apply\" using {}", w.api_version());
        assert_eq!(causes(&applied.refused(409)?), [format!(".spec.note: {words}")]);
    }
    Ok(())
}

async fn relabel_after_the_drop(t: Target) -> Result<()> {
    let w = stale_label(&t).await?;
    let before = w.read("one").await?;
    w.merge("one", &exactly(&before, &json!({"managedFields": w.relabelled(&before)}))).await?.ok()?;
    let applied = w.apply("argo", "one", &json!({"note": "x"})).await?.ok()?;
    assert_eq!(managers(&applied), ["argo Apply v1beta1", "seed Update v1beta1"]);
    Ok(())
}

async fn dropping_all(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let patch = json!({"metadata": {"managedFields": [{}], "annotations": {"a": "b"}}});
    let dropped = w.merge("one", &patch).await?.ok()?;
    assert_eq!(dropped["metadata"].get("managedFields"), None);
    let refusal = w.apply("argo", "one", &json!({"size": 2})).await?.refused(409)?;
    let words = format!("conflict with \"before-first-apply\" using {}", w.api_version());
    assert_eq!(refusal.message(), format!("Apply failed with 1 conflict: {words}: .spec.size"));
    let forced = w.apply("argo&force=true", "one", &json!({"size": 2})).await?.ok()?;
    assert_eq!(managers(&forced), ["argo Apply v1beta1", "before-first-apply Update v1beta1"]);
    Ok(())
}

async fn not_through_the_status(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let patch = json!({"metadata": {"managedFields": [{}]}, "status": {"ready": true}});
    let written = t.merge(&format!("{}/status?fieldManager=ctl", w.path("one")), &patch).await?.ok()?;
    assert_eq!(managers(&written), ["ctl Update v1beta1 status", "seed Update v1beta1"]);
    Ok(())
}

async fn empty_list_and_null(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    for nothing in [json!([]), json!(null)] {
        let same = w.merge("one", &json!({"metadata": {"managedFields": nothing}})).await?.ok()?;
        assert_eq!(same, one);
    }
    Ok(())
}

async fn entries_that_cannot_be(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let unknown = format!("{}/v9", t.group);
    for (name, field, value) in
        [("one", "operation", "Guess"), ("two", "apiVersion", "none"), ("three", "apiVersion", unknown.as_str())]
    {
        let before = w.create(name, &json!({"size": 1})).await?;
        let mut entries = before["metadata"]["managedFields"].clone();
        entries[0][field] = value.into();
        let after = w.merge(name, &json!({"metadata": {"managedFields": entries}})).await?.ok()?;
        if field == "operation" || t.minor() >= 37 {
            assert_eq!(after, before, "{value}");
        } else {
            assert_eq!(after["metadata"].get("managedFields"), None, "{value}");
        }
    }
    Ok(())
}

async fn old_client_after_the_prune(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    let before = w.touch("one").await?.ok()?;
    w.merge("one", &exactly(&before, &json!({"managedFields": w.relabelled(&before)}))).await?.ok()?;
    w.set_stored_versions(&[BETA]).await?.ok()?;
    let written = w.at(ALPHA).merge_by("old", "one", &json!({"spec": {"size": 5}})).await?.ok()?;
    assert_eq!(managers(&written), ["old Update v1alpha1", "seed Update v1beta1"]);
    assert_eq!(w.stored_version("one").await?, BETA);
    assert_eq!(w.read_crd().await?["status"]["storedVersions"], json!([BETA]));
    Ok(())
}

async fn apply_at_the_new_version_relabels(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.at(ALPHA).apply("argo", "one", &json!({"note": "n"})).await?.ok()?;
    let applied = w.apply("argo", "one", &json!({"note": "n"})).await?.ok()?;
    assert_eq!(managers(&applied), ["argo Apply v1beta1", "seed Update v1alpha1"]);
    Ok(())
}
