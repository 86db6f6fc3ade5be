//! JSON merge patch, and PUT: what they change, and which metadata they may touch.

use super::prelude::*;

checks! {
    null_removes_and_lists_are_replaced: "null removes a field, objects are merged, lists are replaced whole",
    nothing_changes_nothing: "a patch to equal values leaves the resourceVersion",
    generation_counts_the_spec: "generation moves with the spec, not with metadata or status, and cannot be set",
    name_must_be_that_of_the_path: "another name is 400, another namespace too",
    type_must_be_that_of_the_path: "another kind or apiVersion is 422",
    creation_time_stays: "creationTimestamp cannot be changed and is silently kept",
    deletion_time_is_refused: "deletionTimestamp cannot be set: 422",
    owner_references_are_replaced: "ownerReferences are a list: replaced whole, and validated",
    put_without_resource_version: "a PUT without resourceVersion is 422",
    put_with_a_stale_one: "a PUT with a stale resourceVersion is 409; of an absent object 404",
    put_with_another_uid: "a PUT with another uid is 409",
    other_content_types: "strategic merge patch, and no patch at all, are 415 for custom resources",
    malformed: "a patch that is no object is 400",
    options_are_checked: "an unknown dryRun, or force on a merge patch, is 422 on PatchOptions",
    dry_run: "a dry run answers what would be, resourceVersion unchanged, and stores nothing",
}

async fn null_removes_and_lists_are_replaced(t: Target) -> Result<()> {
    let free = json!({"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let w = t.define().spec(&free).install().await?;
    w.create("one", &json!({"free": {"a": 1, "b": {"c": 1, "d": 2}, "l": [1, 2]}})).await?;
    let patch = json!({"spec": {"free": {"a": null, "b": {"c": 3}, "l": [3]}}});
    let patched = w.merge("one", &patch).await?.ok()?;
    assert_eq!(patched["spec"]["free"], json!({"b": {"c": 3, "d": 2}, "l": [3]}));
    Ok(())
}

async fn nothing_changes_nothing(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let patch = json!({"spec": {"size": 1, "note": null}, "metadata": {"labels": {}}});
    assert_eq!(w.merge("one", &patch).await?.ok()?, one);
    Ok(())
}

async fn generation_counts_the_spec(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let generation = async |patch: Value| -> Result<Value> {
        Ok(w.merge("one", &patch).await?.ok()?["metadata"]["generation"].take())
    };
    assert_eq!(generation(json!({"spec": {"size": 2}})).await?, 2);
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}}})).await?, 2);
    assert_eq!(generation(json!({"metadata": {"generation": 9}})).await?, 2);
    let status = w.merge_status("ctl", "one", &json!({"status": {"ready": true}})).await?.ok()?;
    assert_eq!(status["metadata"]["generation"], 2);
    Ok(())
}

async fn name_must_be_that_of_the_path(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = w.merge("one", &json!({"metadata": {"name": "two"}})).await?.refused(400)?;
    assert_eq!(refusal.message(), "the name of the object (two) does not match the name on the URL (one)");
    let refusal = w.merge("one", &json!({"metadata": {"namespace": "kube-system"}})).await?.refused(400)?;
    let words = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(refusal.message(), words);
    Ok(())
}

async fn type_must_be_that_of_the_path(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = w.merge("one", &json!({"kind": "Gadget"})).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["kind: Invalid value: \"Gadget\": must be Widget"]);
    let refusal = w.merge("one", &json!({"apiVersion": "x.test/v1"})).await?.refused(422)?;
    let api_version = w.api_version();
    assert_eq!(causes(&refusal), [format!("apiVersion: Invalid value: \"x.test/v1\": must be {api_version}")]);
    Ok(())
}

async fn creation_time_stays(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let patch = json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}});
    assert_eq!(w.merge("one", &patch).await?.ok()?, one);
    Ok(())
}

async fn deletion_time_is_refused(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let patch = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}});
    let refusal = w.merge("one", &patch).await?.refused(422)?;
    assert_eq!(refusal.causes()[0], "metadata.deletionTimestamp");
    Ok(())
}

async fn owner_references_are_replaced(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let owner = |version: &str, uid: &str| json!({"apiVersion": format!("x.test/{version}"), "kind": "X", "name": "x", "uid": uid});
    let one = w.create_with("one", &json!({"ownerReferences": [owner("v1", "u-1"), owner("v1", "u-2")]})).await?;
    let relabelled = json!([owner("v2", "u-1"), owner("v1", "u-2")]);
    let patched = w.merge("one", &exactly(&one, &json!({"ownerReferences": relabelled}))).await?.ok()?;
    assert_eq!(patched["metadata"]["ownerReferences"], relabelled);
    let refusal = w.merge("one", &json!({"metadata": {"ownerReferences": [owner("v1", "")]}})).await?.refused(422)?;
    let field = if t.minor() >= 37 { "metadata.ownerReferences[0].uid" } else { "metadata.ownerReferences.uid" };
    assert_eq!(refusal.causes()[0], field);
    Ok(())
}

async fn put_without_resource_version(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = t.put(&w.path("one"), &w.manifest("one", &json!({"size": 2}))).await?.refused(422)?;
    let cause = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(refusal.message(), format!("widgets.{} \"one\" is invalid: {cause}", t.group));
    Ok(())
}

async fn put_with_a_stale_one(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut one = w.create("one", &json!({"size": 1})).await?;
    w.merge("one", &json!({"spec": {"size": 2}})).await?.ok()?;
    t.put(&w.path("one"), &one).await?.refused(409)?;
    one["metadata"]["name"] = "two".into();
    t.put(&w.path("two"), &one).await?.refused(404)?;
    t.put(&w.path("one"), &one).await?.refused(400)?;
    Ok(())
}

async fn put_with_another_uid(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut one = w.create("one", &json!({"size": 1})).await?;
    let real = uid(&one).to_owned();
    one["metadata"]["uid"] = "other".into();
    let refusal = t.put(&w.path("one"), &one).await?.refused(409)?;
    let words = format!("Precondition failed: UID in precondition: other, UID in object meta: {real}");
    assert!(refusal.message().ends_with(&words), "{refusal}");
    Ok(())
}

async fn other_content_types(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    for kind in ["application/strategic-merge-patch+json", "application/json"] {
        let headers = [(http::header::CONTENT_TYPE, kind)];
        let answer = t.send(http::Method::PATCH, &w.path("one"), &headers, Some(&json!({}))).await?;
        let refusal = answer.refused(415)?;
        assert_eq!(refusal.status["reason"], "UnsupportedMediaType");
        assert!(refusal.message().contains("application/merge-patch+json"), "{refusal}");
    }
    Ok(())
}

async fn malformed(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = w.merge("one", &json!([])).await?.refused(400)?;
    assert!(refusal.message().starts_with("error decoding patch: "), "{refusal}");
    Ok(())
}

async fn options_are_checked(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    for (query, cause) in [
        ("dryRun=Some", "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""),
        ("force=true", "force: Forbidden: may not be specified for non-apply patch"),
    ] {
        let refusal = t.merge(&format!("{}?{query}", w.path("one")), &json!({})).await?.refused(422)?;
        assert_eq!(refusal.message(), format!("PatchOptions.meta.k8s.io \"\" is invalid: {cause}"));
    }
    Ok(())
}

async fn dry_run(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let path = format!("{}?dryRun=All&fieldManager=sbx", w.path("one"));
    let trial = t.merge(&path, &json!({"spec": {"size": 2}})).await?.ok()?;
    assert_eq!((&trial["spec"], &trial["metadata"]["generation"]), (&json!({"size": 2}), &json!(2)));
    assert_eq!((version_of(&trial), managers(&trial).len()), (version_of(&one), 2));
    assert_eq!(w.read("one").await?, one);
    let trial = t.post(&format!("{}?dryRun=All", w.list()), &w.manifest("two", &json!({"size": 2}))).await?.ok()?;
    assert_eq!(version_of(&trial), "");
    w.get("two").await?.refused(404)?;
    Ok(())
}
