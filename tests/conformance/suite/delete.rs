//! DELETE: preconditions, finalizers, namespaces on their way out.

use super::prelude::*;

checks! {
    answers_a_status: "deleted at once: 200, a Status of Success with the uid; deleted again 404",
    uid_precondition: "another uid is 409 and nothing is deleted",
    resource_version_precondition: "a stale resourceVersion is 409, the current one deletes",
    dry_run: "a dry run in the body, or in the query where there is no body, deletes nothing",
    dry_run_beside_a_body: "with a body the query does not count: `dryRun=All` beside empty options deletes",
    finalizers_hold: "with finalizers it answers the object, with deletionTimestamp and a new generation, and stays",
    twice: "deleted again while it is held, nothing changes",
    last_finalizer: "the patch that removes the last finalizer deletes it",
    no_new_finalizers: "while it is held none can be added: 422",
    deletion_time_stays: "a deletionTimestamp cannot be taken back",
    held_object_is_touched: "an object being deleted is touched and proved as any other",
    propagation: "Foreground and Orphan hold it with a finalizer, Background does not",
    old_version_path: "an object is deleted at either version, whatever its bytes are",
    terminating_namespace: "in a terminating namespace nothing is created: 403 with its cause; patches go on",
}

async fn answers_a_status(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    let deleted = w.delete("one", &options).await?;
    assert_eq!(deleted.code, 200);
    assert_eq!(
        deleted.ok()?,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
            "details": {"name": "one", "group": t.group, "kind": "widgets", "uid": uid(&one)},
        })
    );
    w.delete("one", &options).await?.refused(404)?;
    Ok(())
}

async fn uid_precondition(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let refusal = w.delete("one", &json!({"preconditions": {"uid": "other"}})).await?.refused(409)?;
    let words = format!(
        "the UID in the precondition (other) does not match the UID in record ({}). The object might have been deleted \
         and then recreated",
        uid(&one)
    );
    assert_eq!(refusal.message(), format!("Operation cannot be fulfilled on Widget.{} \"one\": {words}", t.group));
    assert_eq!(refusal.status["details"], json!({"name": "one", "group": t.group, "kind": "Widget"}));
    assert_eq!(w.read("one").await?, one);
    Ok(())
}

async fn resource_version_precondition(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    let now = w.merge("one", &json!({"spec": {"size": 2}})).await?.ok()?;
    let options =
        |object: &Value| json!({"preconditions": {"uid": uid(object), "resourceVersion": version_of(object)}});
    let refusal = w.delete("one", &options(&one)).await?.refused(409)?;
    let words = format!(
        "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). The object \
         might have been modified",
        version_of(&one),
        version_of(&now)
    );
    assert!(refusal.message().ends_with(&words), "{refusal}");
    w.delete("one", &options(&now)).await?.ok()?;
    w.get("one").await?.refused(404)?;
    Ok(())
}

async fn dry_run(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    t.send(http::Method::DELETE, &format!("{}?dryRun=All", w.path("one")), &[], None).await?.ok()?;
    w.delete("one", &json!({"dryRun": ["All"]})).await?.ok()?;
    assert_eq!(w.read("one").await?, one);
    Ok(())
}

async fn dry_run_beside_a_body(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    t.delete(&format!("{}?dryRun=All", w.path("one")), &json!({})).await?.ok()?;
    w.get("one").await?.refused(404)?;
    Ok(())
}

/// `one` is deleted, and held by a finalizer.
async fn held(t: &Target) -> Result<(Widgets, Value)> {
    let w = t.define().install().await?;
    w.create_with("one", &json!({"finalizers": ["x.test/hold"]})).await?;
    let deleted = w.delete("one", &json!({})).await?.ok()?;
    Ok((w, deleted))
}

async fn finalizers_hold(t: Target) -> Result<()> {
    let (w, deleted) = held(&t).await?;
    let metadata = &deleted["metadata"];
    assert!(metadata["deletionTimestamp"].is_string(), "{deleted}");
    assert_eq!((&metadata["deletionGracePeriodSeconds"], &metadata["generation"]), (&json!(0), &json!(2)));
    assert_eq!(w.read("one").await?, deleted);
    Ok(())
}

async fn twice(t: Target) -> Result<()> {
    let (w, deleted) = held(&t).await?;
    assert_eq!(w.delete("one", &json!({})).await?.ok()?, deleted);
    Ok(())
}

async fn last_finalizer(t: Target) -> Result<()> {
    let (w, _) = held(&t).await?;
    let last = w.merge("one", &json!({"metadata": {"finalizers": null}})).await?.ok()?;
    assert_eq!((&last["kind"], last["metadata"].get("finalizers")), (&json!("Widget"), None));
    w.get("one").await?.refused(404)?;
    Ok(())
}

async fn no_new_finalizers(t: Target) -> Result<()> {
    let (w, _) = held(&t).await?;
    let patch = json!({"metadata": {"finalizers": ["x.test/hold", "x.test/more"]}});
    let refusal = w.merge("one", &patch).await?.refused(422)?;
    let words = "no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{\"x.test/more\"}";
    assert_eq!(causes(&refusal)[0], format!("metadata.finalizers: Forbidden: {words}"));
    Ok(())
}

async fn deletion_time_stays(t: Target) -> Result<()> {
    let (w, deleted) = held(&t).await?;
    let patched = w.merge("one", &json!({"metadata": {"deletionTimestamp": null}})).await?.ok()?;
    assert_eq!(patched, deleted);
    Ok(())
}

async fn held_object_is_touched(t: Target) -> Result<()> {
    let w = t.define().stores(ALPHA).install().await?;
    w.create_with("one", &json!({"finalizers": ["x.test/hold"]})).await?;
    w.delete("one", &json!({})).await?.ok()?;
    w.store(BETA).await?;
    let touched = w.touch("one").await?.ok()?;
    assert_eq!(w.stored_version("one").await?, BETA);
    assert_eq!(w.touch("one").await?.ok()?, touched);
    Ok(())
}

async fn propagation(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    for (name, policy, finalizer) in [("one", "Foreground", "foregroundDeletion"), ("two", "Orphan", "orphan")] {
        w.create(name, &json!({"size": 1})).await?;
        let deleted = w.delete(name, &json!({"propagationPolicy": policy})).await?.ok()?;
        assert_eq!(deleted["metadata"]["finalizers"], json!([finalizer]));
    }
    w.create("three", &json!({"size": 1})).await?;
    w.delete("three", &json!({"propagationPolicy": "Background"})).await?.ok()?;
    w.get("three").await?.refused(404)?;
    Ok(())
}

async fn old_version_path(t: Target) -> Result<()> {
    let w = t.define().seeded().await?;
    w.create("two", &json!({"size": 2})).await?;
    w.delete("one", &json!({})).await?.ok()?;
    w.at(ALPHA).delete("two", &json!({})).await?.ok()?;
    assert_eq!(names(&w.listed().await?), [""; 0]);
    Ok(())
}

async fn terminating_namespace(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let name = "delete-terminating-namespace";
    let namespaces = "/api/v1/namespaces";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    t.post(namespaces, &namespace).await?.ok()?;
    let objects = w.list().replace("default", name);
    t.post(&objects, &w.manifest("one", &json!({"size": 1}))).await?.ok()?;
    let deleted = t.delete(&format!("{namespaces}/{name}"), &json!({})).await?.ok()?;
    assert_eq!(
        (&deleted["status"]["phase"], &deleted["spec"]["finalizers"]),
        (&json!("Terminating"), &json!(["kubernetes"]))
    );

    let refusal = t.post(&objects, &w.manifest("two", &json!({}))).await?.refused(403)?;
    let words = format!("unable to create new content in namespace {name} because it is being terminated");
    assert_eq!(refusal.message(), format!("widgets.{} \"two\" is forbidden: {words}", t.group));
    assert_eq!(causes(&refusal), [format!("metadata.namespace: namespace {name} is being terminated")]);
    let cause = &refusal.status["details"]["causes"][0]["reason"];
    assert_eq!(cause, "NamespaceTerminating");
    t.merge(&format!("{objects}/one"), &json!({"spec": {"size": 2}})).await?.ok()?;
    Ok(())
}
