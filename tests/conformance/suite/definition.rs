//! What the server makes of a definition: its defaults, its rules, its end.

use super::prelude::*;

checks! {
    defaults: "names and conversion None are filled in; the conditions say that it is served",
    webhook_needs_a_stanza: "strategy Webhook without a webhook is 422, on webhookClientConfig and conversionReviewVersions",
    none_takes_no_stanza: "strategy None with a webhook is 422, on the same two",
    stanza_without_strategy: "a webhook without a strategy is 422, on strategy first: what is left when its owner gives it up",
    client_config_rules: "no client config, two of them, no review version, an unknown strategy: 422 by field",
    none_by_patch: "strategy None alone leaves the webhook and is 422; with webhook null, or conversion null, it is None",
    broken_authority: "a caBundle that was fine cannot be changed into one that holds no certificate",
    unusable_authority: "a new definition with such a caBundle is taken, and its condition says why it is not served",
    one_storage_version: "exactly one version is the storage version: none or two are 422 on spec.versions",
    schema_is_required: "a version without a schema is 422 on its place in the list",
    name_is_plural_and_group: "a name that is not plural.group is 422 on metadata.name",
    immutable_group_and_scope: "group and scope cannot change: 422",
    generation: "only a change of the spec moves the generation",
    already_there: "creating it again is 409 AlreadyExists",
    absent: "an absent definition is 404",
    put_needs_a_resource_version: "a PUT without resourceVersion is 422, with a stale one 409",
    dry_run: "a dry run answers what would be and changes nothing",
    deletion_waits_for_objects: "deleted, it deletes its objects and waits for those that have finalizers",
    terminating_takes_no_more: "while it waits nothing can be created, but read and touched",
    storage_flag_of_an_unserved_version: "a version can be the storage version without being served",
}

const SERVICE: &str = "default";

fn config() -> Value {
    json!({"service": {"namespace": SERVICE, "name": "conversion", "path": "/convert", "port": 1}})
}

async fn conversion_causes(t: &Target, conversion: Value) -> Result<Vec<String>> {
    Ok(causes(&t.define().conversion(conversion).post().await?.refused(422)?))
}

async fn defaults(t: Target) -> Result<()> {
    let crd = t.define().install().await?.read_crd().await?;
    assert_eq!(
        crd["spec"]["names"],
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"})
    );
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["status"]["acceptedNames"], crd["spec"]["names"]);
    let conditions = crd["status"]["conditions"].as_array().ok_or("no conditions")?;
    let short: Vec<_> = conditions.iter().map(|condition| json!([condition["type"], condition["status"]])).collect();
    assert_eq!(short, [json!(["NamesAccepted", "True"]), json!(["Established", "True"])]);
    assert_eq!(managers(&crd), ["kube-apiserver Update v1 status", "seed Update v1"]);
    assert_eq!(owned(&crd, "seed")["f:spec"]["f:conversion"], json!({".": {}, "f:strategy": {}}));
    Ok(())
}

async fn webhook_needs_a_stanza(t: Target) -> Result<()> {
    assert_eq!(
        conversion_causes(&t, json!({"strategy": "Webhook"})).await?,
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ]
    );
    Ok(())
}

async fn none_takes_no_stanza(t: Target) -> Result<()> {
    let mut conversion = webhook(&config());
    conversion["strategy"] = "None".into();
    let forbidden = "Forbidden: should not be set when strategy is not set to Webhook";
    assert_eq!(
        conversion_causes(&t, conversion).await?,
        [
            format!("spec.conversion.webhookClientConfig: {forbidden}"),
            format!("spec.conversion.conversionReviewVersions: {forbidden}"),
        ]
    );
    Ok(())
}

async fn stanza_without_strategy(t: Target) -> Result<()> {
    let conversion = json!({"webhook": {"clientConfig": {"caBundle": ""}}});
    let refusal = t.define().conversion(conversion).post().await?.refused(422)?;
    assert_eq!(refusal.causes(), ["spec.conversion.strategy", "spec.conversion.webhookClientConfig"]);
    assert_eq!(
        refusal.message(),
        format!(
            "CustomResourceDefinition.apiextensions.k8s.io \"widgets.{}\" is invalid: [spec.conversion.strategy: Required \
             value, spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook]",
            t.group
        )
    );
    Ok(())
}

async fn client_config_rules(t: Target) -> Result<()> {
    let mut two = config();
    two["url"] = "https://127.0.0.1/convert".into();
    let versions = "spec.conversion.conversionReviewVersions";
    let cases = [
        (
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}),
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook".to_owned(),
        ),
        (
            webhook(&two),
            "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required".into(),
        ),
        (json!({"strategy": "Webhook", "webhook": {"clientConfig": config()}}), format!("{versions}: Required value")),
        (
            json!({"strategy": "Guess"}),
            "spec.conversion.strategy: Unsupported value: \"Guess\": supported values: \"None\", \"Webhook\"".into(),
        ),
        (json!({}), "spec.conversion.strategy: Required value".into()),
    ];
    for (conversion, cause) in cases {
        assert_eq!(conversion_causes(&t, conversion).await?, [cause]);
    }
    Ok(())
}

async fn none_by_patch(t: Target) -> Result<()> {
    let w = t.define().conversion(webhook(&config())).install().await?;
    let refusal = w.merge_crd(&json!({"spec": {"conversion": {"strategy": "None"}}})).await?.refused(422)?;
    assert_eq!(refusal.causes(), ["spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions"]);
    for conversion in [json!(null), json!({"strategy": "None", "webhook": null})] {
        w.merge_crd(&json!({"spec": {"conversion": webhook(&config())}})).await?.ok()?;
        let patched = w.merge_crd(&json!({"spec": {"conversion": conversion}})).await?.ok()?;
        assert_eq!(patched["spec"]["conversion"], json!({"strategy": "None"}));
    }
    Ok(())
}

async fn broken_authority(t: Target) -> Result<()> {
    let w = t.define().hook(std::sync::Arc::new(|object, _| Ok(object.clone()))).install().await?;
    let patch = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "Cg=="}}}}});
    let refusal = w.merge_crd(&patch).await?.refused(422)?;
    let words = "unable to load root certificates: unable to parse bytes as PEM block";
    let field = "spec.conversion.webhookClientConfig.caBundle";
    assert_eq!(causes(&refusal), [format!("{field}: Invalid value: \"Cg==\": {words}")]);
    Ok(())
}

async fn unusable_authority(t: Target) -> Result<()> {
    let mut config = config();
    config["caBundle"] = "Cg==".into();
    t.define().conversion(webhook(&config)).post().await?.ok()?;
    let path = format!("{CRDS}/widgets.{}", t.group);
    let mut condition = Value::Null;
    eventually("the reason why it is not served", async || {
        let crd = t.get(&path).await?.ok()?;
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        condition = conditions.into_iter().find(|condition| condition["type"] == "Established").unwrap_or_default();
        Ok(condition["reason"] == "InvalidCABundle")
    })
    .await?;
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["message"], "The conversion webhook CABundle is invalid");
    Ok(())
}

async fn one_storage_version(t: Target) -> Result<()> {
    for stored in [true, false] {
        let mut manifest = t.define().manifest();
        for version in manifest["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["storage"] = stored.into();
        }
        let refusal = t.post(CRDS, &manifest).await?.refused(422)?;
        assert!(refusal.causes().contains(&"spec.versions"), "{refusal}");
        assert!(refusal.message().contains("must have exactly one version marked as storage version"), "{refusal}");
    }
    Ok(())
}

async fn schema_is_required(t: Target) -> Result<()> {
    let mut manifest = t.define().manifest();
    if let Some(version) = manifest["spec"]["versions"][1].as_object_mut() {
        version.remove("schema");
    }
    let refusal = t.post(CRDS, &manifest).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["spec.versions[1].schema.openAPIV3Schema: Required value"]);
    Ok(())
}

async fn name_is_plural_and_group(t: Target) -> Result<()> {
    let mut manifest = t.define().manifest();
    let name = format!("gadgets.{}", t.group);
    manifest["metadata"]["name"] = name.as_str().into();
    let refusal = t.post(CRDS, &manifest).await?.refused(422)?;
    let words = "must be spec.names.plural+\".\"+spec.group";
    assert_eq!(causes(&refusal), [format!("metadata.name: Invalid value: \"{name}\": {words}")]);
    Ok(())
}

async fn immutable_group_and_scope(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    for (field, value) in [("group", "x.test"), ("scope", "Cluster")] {
        let refusal = w.merge_crd(&json!({"spec": {field: value}})).await?.refused(422)?;
        let cause = format!("spec.{field}: Invalid value: \"{value}\": field is immutable");
        assert!(causes(&refusal).contains(&cause), "{refusal}");
    }
    Ok(())
}

async fn generation(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let generation =
        async |patch: Value| -> Result<Value> { Ok(w.merge_crd(&patch).await?.ok()?["metadata"]["generation"].take()) };
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}}})).await?, 1);
    assert_eq!(generation(json!({"spec": {"versions": t.define().versions()}})).await?, 1, "the same spec");
    assert_eq!(w.set_stored_versions(&[BETA]).await?.ok()?["metadata"]["generation"], 1);
    assert_eq!(generation(json!({"spec": {"names": {"shortNames": ["wg"]}}})).await?, 2);
    assert_eq!(generation(json!({"metadata": {"generation": 9}})).await?, 2);
    Ok(())
}

async fn already_there(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let refusal = t.define().post().await?.refused(409)?;
    assert_eq!(refusal.status["reason"], "AlreadyExists");
    let name = w.crd();
    assert_eq!(refusal.message(), format!("customresourcedefinitions.apiextensions.k8s.io \"{name}\" already exists"));
    Ok(())
}

async fn absent(t: Target) -> Result<()> {
    let refusal = t.get(&format!("{CRDS}/widgets.{}", t.group)).await?.refused(404)?;
    let name = format!("widgets.{}", t.group);
    assert_eq!(refusal.message(), format!("customresourcedefinitions.apiextensions.k8s.io \"{name}\" not found"));
    Ok(())
}

async fn put_needs_a_resource_version(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut crd = w.read_crd().await?;
    crd["metadata"]["resourceVersion"] = "1".into();
    t.put(&w.crd_path(), &crd).await?.refused(409)?;
    crd["metadata"]["resourceVersion"].take();
    let refusal = t.put(&w.crd_path(), &crd).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["metadata.resourceVersion: Invalid value: 0: must be specified for an update"]);
    Ok(())
}

async fn dry_run(t: Target) -> Result<()> {
    let path = format!("{CRDS}?dryRun=All");
    t.post(&path, &t.define().manifest()).await?.ok()?;
    let w = t.define().install().await?;
    let before = w.read_crd().await?;
    let patch = json!({"spec": {"versions": t.define().only(BETA).versions()}});
    let trial = t.merge(&format!("{}?dryRun=All", w.crd_path()), &patch).await?.ok()?;
    assert_eq!(trial["spec"]["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(trial["metadata"]["generation"], 2);
    assert_eq!(w.read_crd().await?, before);
    Ok(())
}

/// Deleted, while an object with a finalizer is left.
async fn terminating(t: &Target) -> Result<Widgets> {
    let w = t.define().install().await?;
    w.create("free", &json!({})).await?;
    w.create_with("held", &json!({"finalizers": ["x.test/hold"]})).await?;
    let deleted = t.delete(&w.crd_path(), &json!({})).await?.ok()?;
    assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted}");
    assert_eq!(deleted["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    eventually("`free` is deleted", async || Ok(w.get("free").await?.code == 404)).await?;
    Ok(w)
}

async fn deletion_waits_for_objects(t: Target) -> Result<()> {
    let w = terminating(&t).await?;
    assert!(w.read("held").await?["metadata"]["deletionTimestamp"].is_string());
    let crd = w.read_crd().await?;
    let conditions = crd["status"]["conditions"].as_array().ok_or("no conditions")?;
    let condition = conditions.iter().find(|condition| condition["type"] == "Terminating").ok_or("no condition")?;
    assert_eq!(condition["status"], "True");
    w.merge("held", &json!({"metadata": {"finalizers": null}})).await?.ok()?;
    let path = w.crd_path();
    eventually("the definition is gone", async || Ok(t.get(&path).await?.code == 404)).await?;
    eventually("its path is gone", async || Ok(t.get(&w.all()).await?.code == 404)).await
}

async fn terminating_takes_no_more(t: Target) -> Result<()> {
    let w = terminating(&t).await?;
    let created = async || Ok(w.post(&w.manifest("new", &json!({}))).await?.code == 403);
    eventually("nothing can be created", created).await?;
    let refusal = w.post(&w.manifest("new", &json!({}))).await?.refused(403)?;
    let words = "create not allowed while custom resource definition is terminating";
    assert_eq!(refusal.message(), format!("widgets.{} \"new\" is forbidden: {words}", t.group));
    w.touch("held").await?.ok()?;
    assert_eq!(names(&t.get(&w.all()).await?.ok()?), ["held"]);
    Ok(())
}

async fn storage_flag_of_an_unserved_version(t: Target) -> Result<()> {
    let w = t.define().stores(ALPHA).install().await?;
    let mut versions = t.define().stores(ALPHA).versions();
    versions[0]["served"] = false.into();
    w.merge_crd(&json!({"spec": {"versions": versions}})).await?.ok()?;
    let old = w.at(ALPHA).all();
    eventually("the old path is gone", async || Ok(t.get(&old).await?.code == 404)).await?;
    w.served().await?;
    w.create("one", &json!({"size": 1})).await?;
    assert_eq!(w.stored_version("one").await?, ALPHA);
    Ok(())
}
