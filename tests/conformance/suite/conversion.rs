//! Conversion by None: the apiVersion is exchanged, and each version's schema decides what is left.

use super::prelude::*;

checks! {
    touch_drops_what_the_new_schema_lacks: "a touch drops the fields that the new version's schema lacks, without a word",
    reading_hides_it_first: "until then they are in the bytes, readable at the old version and hidden at the new",
    create_at_the_old_version: "created at the old version, fields that the storage version lacks are not stored, nor answered",
    dropped_fields_keep_the_generation: "losing fields to a touch is no change to the server: the generation stays",
    ratchet_maximum: "a value beyond a new maximum passes a touch and another change; changed itself it is 422",
    ratchet_required: "an object without a newly required field passes a touch, a stamp and another change",
    default_of_the_new_version: "a default of the new version does not show on read; the touch stores it, with a new generation",
    alone_needs_no_conversion: "what is stored at the asked version is not converted",
}

async fn touch_drops_what_the_new_schema_lacks(t: Target) -> Result<()> {
    let w = t.define().spec_of(ALPHA, &json!({"size": {"type": "integer"}, "old": {"type": "string"}}));
    let w = w.stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1, "old": "o"})).await?;
    w.store(BETA).await?;
    let answer = w.touch("one").await?;
    assert_eq!(answer.header("warning"), "");
    assert_eq!(answer.ok()?["spec"], json!({"size": 1}));
    assert_eq!(w.stored("one").await?["spec"], json!({"size": 1}));
    assert_eq!(w.at(ALPHA).read("one").await?["spec"], json!({"size": 1}));
    Ok(())
}

async fn reading_hides_it_first(t: Target) -> Result<()> {
    let w = t.define().spec_of(ALPHA, &json!({"size": {"type": "integer"}, "old": {"type": "string"}}));
    let w = w.stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1, "old": "o"})).await?;
    assert_eq!(w.read("one").await?["spec"], json!({"size": 1}));
    assert_eq!(w.at(ALPHA).read("one").await?["spec"], json!({"size": 1, "old": "o"}));
    assert_eq!(w.stored("one").await?["spec"], json!({"size": 1, "old": "o"}));
    Ok(())
}

async fn create_at_the_old_version(t: Target) -> Result<()> {
    let w = t.define().spec_of(ALPHA, &json!({"size": {"type": "integer"}, "old": {"type": "string"}}));
    let w = w.install().await?;
    let made = w.at(ALPHA).create("one", &json!({"size": 1, "old": "o"})).await?;
    assert_eq!(made["spec"], json!({"size": 1}));
    assert_eq!(w.stored("one").await?["spec"], json!({"size": 1}));
    assert_eq!(owned(&made, "seed"), &json!({"f:spec": {".": {}, "f:old": {}, "f:size": {}}}), "it is owned");
    Ok(())
}

async fn dropped_fields_keep_the_generation(t: Target) -> Result<()> {
    let w = t.define().spec_of(ALPHA, &json!({"size": {"type": "integer"}, "old": {"type": "string"}}));
    let w = w.stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1, "old": "o"})).await?;
    w.store(BETA).await?;
    assert_eq!(w.touch("one").await?.ok()?["metadata"]["generation"], 1);
    Ok(())
}

async fn ratchet_maximum(t: Target) -> Result<()> {
    let w = t.define().spec_of(BETA, &json!({"size": {"type": "integer", "maximum": 5}, "note": {"type": "string"}}));
    let w = w.stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 9})).await?;
    w.store(BETA).await?;
    w.touch("one").await?.ok()?;
    assert_eq!(w.stored_version("one").await?, BETA);
    let noted = w.merge("one", &json!({"spec": {"note": "n"}})).await?.ok()?;
    assert_eq!(noted["spec"], json!({"size": 9, "note": "n"}));
    let refusal = w.merge("one", &json!({"spec": {"size": 8}})).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["spec.size: Invalid value: 8: spec.size in body should be less than or equal to 5"]);
    w.post(&w.manifest("two", &json!({"size": 9}))).await?.refused(422)?;
    Ok(())
}

async fn ratchet_required(t: Target) -> Result<()> {
    let required = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "size": {"type": "integer"},
    }});
    let w = t.define().spec_of(BETA, &required).stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1})).await?;
    w.store_with(BETA, &json!({"name": "probe"})).await?;
    w.touch("one").await?.ok()?;
    assert_eq!(w.stored_version("one").await?, BETA);
    w.merge("one", &json!({"metadata": {"annotations": {"stamp": "now"}}})).await?.ok()?;
    let refusal = w.merge("one", &json!({"spec": {"size": 2}})).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["spec.name: Required value"]);
    Ok(())
}

async fn default_of_the_new_version(t: Target) -> Result<()> {
    let beta = json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "auto"}});
    let w = t.define().spec_of(BETA, &beta).stores(ALPHA).install().await?;
    w.at(ALPHA).create("one", &json!({"size": 1})).await?;
    w.store(BETA).await?;
    assert_eq!(w.read("one").await?["spec"], json!({"size": 1}));
    let touched = w.touch("one").await?.ok()?;
    assert_eq!(
        (&touched["spec"], &touched["metadata"]["generation"]),
        (&json!({"size": 1, "mode": "auto"}), &json!(2))
    );
    assert_eq!(w.stored("one").await?["spec"]["mode"], "auto");
    Ok(())
}

async fn alone_needs_no_conversion(t: Target) -> Result<()> {
    let w = t.define().hook(std::sync::Arc::new(|_, _| Err("never asked".into()))).stores(ALPHA);
    let w = w.install().await?.at(ALPHA);
    w.create("one", &json!({"size": 1})).await?;
    w.touch("one").await?.ok()?;
    assert_eq!(w.merge("one", &json!({"spec": {"size": 2}})).await?.ok()?["spec"], json!({"size": 2}));
    w.delete("one", &json!({})).await?.ok()?;
    Ok(())
}
