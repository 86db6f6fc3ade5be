//! Server-side apply: create, change, conflict, force, trial.

use super::prelude::*;

checks! {
    creates: "apply creates what is absent: 201, one Apply entry that owns the fields sent and no more",
    same_again: "the same apply again is 200 and leaves the resourceVersion",
    conflict: "a field that another manager owns with another value: 409, cause and message name both",
    conflicts: "several conflicts are said at once, by manager",
    conflict_with_the_status: "a conflict names the subresource of the other entry",
    equal_values_are_shared: "a field with an equal value is owned by both, without conflict; the new entry has no time",
    force: "force takes the field: value and ownership",
    own_updates_do_not_count: "an Update entry of the same manager conflicts, as another's does",
    needs_a_manager: "without a field manager it is 422",
    needs_its_name: "another name than the path's is 400, none too",
    takes_no_managed_fields: "managedFields in what is applied is 400",
    preconditions: "another uid is 422, of an absent object 409; a stale resourceVersion 409",
    unknown_field: "a field that the schema lacks is 500 and names its path",
    wrong_type: "a value of another type is 500 and names its path",
    invalid_value: "a value that the schema refuses is 422, as in any write",
    dry_run: "a dry run answers what would be, owners included, and stores nothing",
    dry_run_of_an_absent_object: "a dry run of an absent object is 201 and creates nothing",
    status_subresource: "applied to the status, only the status counts, and the entry says so",
    main_resource_ignores_status: "applied to the main resource, status is not owned",
    old_version_path: "apply works at either version; entries say which",
}

async fn creates(t: Target) -> Result<()> {
    let spec = json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "auto"}});
    let w = t.define().spec(&spec).install().await?;
    let answer = w.apply("argo", "one", &json!({"size": 1})).await?;
    assert_eq!(answer.code, 201);
    let one = answer.ok()?;
    assert_eq!(one["spec"], json!({"size": 1, "mode": "auto"}));
    assert_eq!(managers(&one), ["argo Apply v1beta1"]);
    assert_eq!(owned(&one, "argo"), &json!({"f:spec": {"f:size": {}}}), "a default is nobody's");
    assert_eq!(entries(&one)[0]["time"], one["metadata"]["creationTimestamp"]);
    Ok(())
}

async fn same_again(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.apply("argo", "one", &json!({"size": 1})).await?.ok()?;
    let again = w.apply("argo", "one", &json!({"size": 1})).await?;
    assert_eq!(again.code, 200);
    assert_eq!(again.ok()?, one);
    Ok(())
}

async fn conflict(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = w.apply("argo", "one", &json!({"size": 2})).await?.refused(409)?;
    let words = format!("conflict with \"seed\" using {}", w.api_version());
    assert_eq!(refusal.status["reason"], "Conflict");
    assert_eq!(
        refusal.status["details"],
        json!({"causes": [{"reason": "FieldManagerConflict", "message": words, "field": ".spec.size"}]})
    );
    assert_eq!(refusal.message(), format!("Apply failed with 1 conflict: {words}: .spec.size"));
    assert_eq!(w.read("one").await?["spec"], json!({"size": 1}));
    Ok(())
}

async fn conflicts(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.apply("argo", "one", &json!({"size": 1, "note": "a"})).await?.ok()?;
    w.merge_by("zed", "one", &json!({"metadata": {"labels": {"a": "b"}}})).await?.ok()?;
    let mut object = w.manifest("one", &json!({"size": 2, "note": "b"}));
    object["metadata"]["labels"] = json!({"a": "c"});
    let refusal = w.apply_object("flux", &object).await?.refused(409)?;
    // By manager: in the text by name, among the causes by time of the entry.
    let mut fields = refusal.causes();
    fields.sort_unstable();
    assert_eq!(fields, [".metadata.labels.a", ".spec.note", ".spec.size"]);
    assert_eq!(
        refusal.message(),
        format!(
            "Apply failed with 3 conflicts: conflicts with \"argo\":\n- .spec.note\n- .spec.size\nconflicts with \"zed\" \
             using {}:\n- .metadata.labels.a",
            w.api_version()
        )
    );
    Ok(())
}

async fn conflict_with_the_status(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let status = |ready: bool| json!({"apiVersion": w.api_version(), "kind": "Widget", "metadata": {"name": "one"}, "status": {"ready": ready}});
    let path = |manager: &str| format!("{}/status?fieldManager={manager}", w.path("one"));
    t.apply(&path("ctl"), &status(true)).await?.ok()?;
    let refusal = t.apply(&path("other"), &status(false)).await?.refused(409)?;
    let words = "conflict with \"ctl\" with subresource \"status\"";
    assert_eq!(refusal.message(), format!("Apply failed with 1 conflict: {words}: .status.ready"));
    Ok(())
}

async fn equal_values_are_shared(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let shared = w.apply("argo", "one", &json!({"size": 1})).await?.ok()?;
    assert_eq!(owned(&shared, "argo"), &json!({"f:spec": {"f:size": {}}}));
    assert_eq!(owned(&shared, "seed"), &json!({"f:spec": {".": {}, "f:size": {}}}));
    let entry = entries(&shared).iter().find(|entry| entry["manager"] == "argo").ok_or("no entry")?;
    assert_eq!(entry.get("time"), None, "nothing was written");
    Ok(())
}

async fn force(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1, "note": "n"})).await?;
    let forced = w.apply("argo&force=true", "one", &json!({"size": 2})).await?.ok()?;
    assert_eq!(forced["spec"], json!({"size": 2, "note": "n"}));
    assert_eq!(owned(&forced, "argo"), &json!({"f:spec": {"f:size": {}}}));
    assert_eq!(owned(&forced, "seed"), &json!({"f:spec": {".": {}, "f:note": {}}}));
    assert_eq!(forced["metadata"]["generation"], 2);
    Ok(())
}

async fn own_updates_do_not_count(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = w.apply("seed", "one", &json!({"size": 2})).await?.refused(409)?;
    assert_eq!(refusal.causes(), [".spec.size"]);
    let both = w.apply("seed", "one", &json!({"size": 1})).await?.ok()?;
    assert_eq!(managers(&both), ["seed Apply v1beta1", "seed Update v1beta1"]);
    Ok(())
}

async fn needs_a_manager(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = t.apply(&w.path("one"), &w.manifest("one", &json!({}))).await?.refused(422)?;
    let cause = "fieldManager: Required value: is required for apply patch";
    assert_eq!(refusal.message(), format!("PatchOptions.meta.k8s.io \"\" is invalid: {cause}"));
    Ok(())
}

async fn needs_its_name(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let path = format!("{}?fieldManager=argo", w.path("one"));
    let refusal = t.apply(&path, &w.manifest("two", &json!({}))).await?.refused(400)?;
    assert_eq!(refusal.message(), "the name of the object (two) does not match the name on the URL (one)");
    let nameless = json!({"apiVersion": w.api_version(), "kind": "Widget", "spec": {}});
    t.apply(&path, &nameless).await?.refused(400)?;
    Ok(())
}

async fn takes_no_managed_fields(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("one", &json!({"size": 1}));
    object["metadata"]["managedFields"] = json!([{"manager": "argo"}]);
    let refusal = w.apply_object("argo", &object).await?.refused(400)?;
    assert_eq!(refusal.message(), "metadata.managedFields must be nil");
    Ok(())
}

async fn preconditions(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("one", &json!({"size": 1}));
    object["metadata"]["uid"] = "other".into();
    let refusal = w.apply_object("argo", &object).await?.refused(409)?;
    let words = "uid mismatch: the provided object specified uid other, and no existing object was found";
    assert!(refusal.message().ends_with(words), "{refusal}");
    w.create("one", &json!({"size": 1})).await?;
    assert_eq!(w.apply_object("argo", &object).await?.refused(422)?.causes()[0], "metadata.uid");
    let mut stale = w.manifest("one", &json!({"size": 1}));
    stale["metadata"]["resourceVersion"] = "1".into();
    w.apply_object("argo", &stale).await?.refused(409)?;
    Ok(())
}

async fn unknown_field(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.apply("argo", "one", &json!({"more": 1})).await?.refused(500)?;
    let object = format!("/one; {}, Kind=Widget", w.api_version());
    assert_eq!(
        refusal.message(),
        format!("failed to create typed patch object ({object}): .spec.more: field not declared in schema")
    );
    Ok(())
}

async fn wrong_type(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.apply("argo", "one", &json!({"size": "x"})).await?.refused(500)?;
    assert!(refusal.message().ends_with(".spec.size: expected numeric (int or float), got string"), "{refusal}");
    Ok(())
}

async fn invalid_value(t: Target) -> Result<()> {
    let w = t.define().spec(&json!({"size": {"type": "integer", "maximum": 5}})).install().await?;
    let refusal = w.apply("argo", "one", &json!({"size": 9})).await?.refused(422)?;
    assert_eq!(refusal.causes(), ["spec.size"]);
    w.get("one").await?.refused(404)?;
    Ok(())
}

async fn dry_run(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let trial = w.apply("argo&force=true&dryRun=All", "one", &json!({"size": 2})).await?.ok()?;
    assert_eq!(trial["spec"], json!({"size": 2}));
    assert_eq!(managers(&trial), ["argo Apply v1beta1", "seed Update v1beta1"]);
    assert_eq!(version_of(&trial), version_of(&one));
    assert_eq!(w.read("one").await?, one);
    w.apply("argo&dryRun=All", "one", &json!({"size": 2})).await?.refused(409)?;
    Ok(())
}

async fn dry_run_of_an_absent_object(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let answer = w.apply("argo&dryRun=All", "one", &json!({"size": 1})).await?;
    assert_eq!(answer.code, 201);
    assert_eq!(version_of(&answer.ok()?), "");
    w.get("one").await?.refused(404)?;
    Ok(())
}

async fn status_subresource(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("one", &json!({"size": 7}));
    object["status"] = json!({"ready": true});
    let path = format!("{}/status?fieldManager=ctl", w.path("one"));
    t.apply(&path, &object).await?.refused(404)?;
    w.create("one", &json!({"size": 1})).await?;
    let applied = t.apply(&path, &object).await?.ok()?;
    assert_eq!((&applied["spec"], &applied["status"]), (&json!({"size": 1}), &json!({"ready": true})));
    assert_eq!(managers(&applied), ["ctl Apply v1beta1 status", "seed Update v1beta1"]);
    assert_eq!(owned(&applied, "ctl"), &json!({"f:status": {"f:ready": {}}}));
    Ok(())
}

async fn main_resource_ignores_status(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("one", &json!({"size": 1}));
    object["status"] = json!({"ready": true});
    let applied = w.apply_object("argo", &object).await?.ok()?;
    assert_eq!(applied.get("status"), None);
    assert_eq!(owned(&applied, "argo"), &json!({"f:spec": {"f:size": {}}}));
    Ok(())
}

async fn old_version_path(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.at(ALPHA).apply("argo", "one", &json!({"size": 1})).await?.ok()?;
    let both = w.apply("flux", "one", &json!({"note": "n"})).await?.ok()?;
    assert_eq!(managers(&both), ["argo Apply v1alpha1", "flux Apply v1beta1"]);
    let refusal = w.apply("flux", "one", &json!({"size": 2})).await?.refused(409)?;
    assert_eq!(causes(&refusal), [".spec.size: conflict with \"argo\""]);
    Ok(())
}
