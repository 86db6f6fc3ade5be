//! The shape of a refusal, and what cannot be created.

use super::prelude::*;

checks! {
    not_found: "404 is a Status, whole",
    already_exists: "409 AlreadyExists is a Status, whole",
    invalid: "422 is a Status whose details name the kind and each cause",
    missing_namespace: "creating in a namespace that is not there is 404 and names the namespace",
    no_name: "a create without a name is 422",
    bad_name: "a name that is none is 422 and says what one is",
    other_type: "a create of another kind is 422, at another version 400, for another namespace 400",
    resource_version_at_create: "a create with a resourceVersion is 500",
    annotations_too_long: "262,144 bytes of annotations, and no more: 422",
    too_large_for_the_store: "an object beyond the store's limit is 500: request is too large",
    unknown_resource: "a resource that does not exist is 404 in plain text",
    generated_name: "generateName gets five letters more",
}

async fn not_found(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.get("one").await?.refused(404)?;
    assert_eq!(
        refusal.status,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 404, "reason": "NotFound",
            "message": format!("widgets.{} \"one\" not found", t.group),
            "details": {"name": "one", "group": t.group, "kind": "widgets"},
        })
    );
    w.delete("one", &json!({})).await?.refused(404)?;
    Ok(())
}

async fn already_exists(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let refusal = w.post(&w.manifest("one", &json!({"size": 2}))).await?.refused(409)?;
    assert_eq!(
        refusal.status,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 409,
            "reason": "AlreadyExists", "message": format!("widgets.{} \"one\" already exists", t.group),
            "details": {"name": "one", "group": t.group, "kind": "widgets"},
        })
    );
    Ok(())
}

async fn invalid(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.post(&w.manifest("one", &json!({"size": "x"}))).await?.refused(422)?;
    let words = "Invalid value: \"string\": spec.size in body must be of type integer: \"string\"";
    assert_eq!(
        refusal.status,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid",
            "message": format!("Widget.{} \"one\" is invalid: spec.size: {words}", t.group),
            "details": {
                "name": "one", "group": t.group, "kind": "Widget",
                "causes": [{"reason": "FieldValueTypeInvalid", "message": words, "field": "spec.size"}],
            },
        })
    );
    Ok(())
}

async fn missing_namespace(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let path = w.list().replace("default", "absent");
    let refusal = t.post(&path, &w.manifest("one", &json!({"size": 1}))).await?.refused(404)?;
    assert_eq!(refusal.message(), "namespaces \"absent\" not found");
    assert_eq!(refusal.status["details"], json!({"name": "absent", "kind": "namespaces"}));
    Ok(())
}

async fn no_name(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("", &json!({}));
    object["metadata"] = json!({});
    let refusal = w.post(&object).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["metadata.name: Required value: name or generateName is required"]);
    Ok(())
}

async fn bad_name(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.post(&w.manifest("Not_A_Name", &json!({}))).await?.refused(422)?;
    let start = "metadata.name: Invalid value: \"Not_A_Name\": a lowercase RFC 1123 subdomain must consist of";
    assert!(causes(&refusal)[0].starts_with(start), "{refusal}");
    Ok(())
}

async fn other_type(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("one", &json!({}));
    object["kind"] = "Gadget".into();
    let refusal = w.post(&object).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["kind: Invalid value: \"Gadget\": must be Widget"]);
    w.post(&w.at(ALPHA).manifest("one", &json!({}))).await?.refused(400)?;
    let mut object = w.manifest("one", &json!({}));
    object["metadata"]["namespace"] = "kube-system".into();
    w.post(&object).await?.refused(400)?;
    Ok(())
}

async fn resource_version_at_create(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("one", &json!({}));
    object["metadata"]["resourceVersion"] = "5".into();
    let refusal = w.post(&object).await?.refused(500)?;
    assert_eq!(refusal.message(), "resourceVersion should not be set on objects to be created");
    Ok(())
}

async fn annotations_too_long(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    // Keys count, too.
    let full = json!({"metadata": {"annotations": {"a": "x".repeat(262_143)}}});
    w.merge("one", &full).await?.ok()?;
    let refusal = w.merge("one", &json!({"metadata": {"annotations": {"b": ""}}})).await?.refused(422)?;
    let cause = "metadata.annotations: Too long: may not be more than 262144 bytes";
    assert_eq!(causes(&refusal)[0], cause);
    assert_eq!(refusal.message(), format!("Widget.{} \"one\" is invalid: {cause}", t.group));
    w.touch("one").await?.ok()?;
    Ok(())
}

async fn too_large_for_the_store(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = w.post(&w.manifest("one", &json!({"note": "x".repeat(1_600_000)}))).await?.refused(500)?;
    assert_eq!(refusal.message(), "etcdserver: request is too large");
    Ok(())
}

async fn unknown_resource(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    for path in [
        format!("/apis/{}/{BETA}/gadgets", t.group),
        format!("/apis/{}/v9/widgets", t.group),
        "/apis/absent.test/v1/things".into(),
        format!("{}/one", w.all()),
    ] {
        let answer = t.get(&path).await?;
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8", "{path}");
        assert_eq!(answer.refused(404)?.status, "404 page not found\n");
    }
    Ok(())
}

async fn generated_name(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut object = w.manifest("", &json!({}));
    object["metadata"] = json!({"generateName": "one-"});
    let name = w.post(&object).await?.ok()?["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.starts_with("one-") && name.len() == "one-".len() + 5, "{name}");
    Ok(())
}
