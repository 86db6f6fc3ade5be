//! What a structural schema does to an object on its way in: pruned, defaulted, validated.

use super::prelude::*;

checks! {
    unknown_fields_are_pruned: "an unknown field is pruned with a warning; Strict refuses it, Ignore says nothing",
    preserved_fields_stay: "under preserve-unknown-fields anything stays",
    defaults_on_create: "a default is filled in where the field is missing or null",
    defaults_on_read: "a default that came later shows on read and is stored with the next write",
    nested_defaults: "a default is filled into what another default made",
    ratchet_by_key: "an unchanged item of a keyed list is not judged again wherever it stands; a plain list is judged whole",
    null_is_dropped: "null is dropped, but kept where the schema says nullable",
    missing_is_required: "a missing required field is 422: Required value",
    wrong_type: "a wrong type is 422 and names both types",
    numbers: "1.0 is an integer; beyond minimum and maximum is 422",
    strings: "too long, no match of the pattern, no date: 422",
    enumeration: "no value of the enum is 422 and lists them",
    int_or_string: "int-or-string takes both and nothing else",
    lists: "too many items, a duplicate in a set, a duplicate key, a missing key: 422 by place",
    maps: "values of a map are validated by key",
    several_at_once: "all that is wrong is said at once",
    patched_objects_are_validated: "a merge patch is validated as a whole object; nothing of it is stored when refused",
    status_at_create_is_dropped: "a status sent with a create is dropped, where there is a status subresource",
    status_is_apart: "the main resource ignores status, the subresource ignores spec, labels and finalizers",
    spec_is_optional: "an object without a spec is taken where nothing is required",
}

async fn widgets(t: &Target) -> Result<Widgets> {
    t.define()
        .only(BETA)
        .spec(&json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 10},
            "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
            "when": {"type": "string", "format": "date-time"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "mode": {"type": "string", "default": "auto"},
            "void": {"type": "string", "nullable": true},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "flag": {"type": "boolean"},
            "env": {
                "type": "array", "maxItems": 2,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            },
            "extra": {"type": "object", "additionalProperties": {"type": "string"}},
        }}))
        .install()
        .await
}

/// The spec as it is taken, with `size` given.
async fn taken(w: &Widgets, name: &str, mut spec: Value) -> Result<Value> {
    spec["size"] = 1.into();
    let mut taken = w.create(name, &spec).await?["spec"].take();
    if let Some(taken) = taken.as_object_mut() {
        taken.remove("size");
        taken.remove("mode");
    }
    Ok(taken)
}

/// Each spec, with `size` given where it has none, is refused for this one cause.
async fn refused(w: &Widgets, cases: &[(Value, &str)]) -> Result<()> {
    for (spec, cause) in cases {
        let mut spec = spec.clone();
        if spec.get("size").is_none() {
            spec["size"] = 1.into();
        }
        let refusal = w.post(&w.manifest("bad", &spec)).await?.refused(422)?;
        assert_eq!(causes(&refusal), [*cause], "{spec}");
        assert_eq!(refusal.message(), format!("Widget.{} \"bad\" is invalid: {cause}", w.target.group));
    }
    Ok(())
}

async fn unknown_fields_are_pruned(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let object = w.manifest("one", &json!({"size": 1, "more": {"a": 1}}));
    let answer = w.post(&object).await?;
    assert_eq!(answer.header("warning"), "299 - \"unknown field \\\"spec.more\\\"\"");
    assert_eq!(answer.ok()?["spec"].get("more"), None);
    assert_eq!(w.stored("one").await?["spec"].get("more"), None);
    let refusal = t.post(&format!("{}?fieldValidation=Strict", w.list()), &object).await?.refused(400)?;
    let words = "strict decoding error: unknown field \"spec.more\"";
    assert_eq!(refusal.message(), format!("Widget in version \"{BETA}\" cannot be handled as a Widget: {words}"));
    let ignored = t.merge(&format!("{}?fieldValidation=Ignore", w.path("one")), &json!({"spec": {"more": 1}})).await?;
    assert_eq!(ignored.header("warning"), "");
    Ok(())
}

async fn preserved_fields_stay(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let spec = json!({"free": {"a": {"b": [1, {"c": null}]}}});
    assert_eq!(taken(&w, "one", spec.clone()).await?, spec);
    Ok(())
}

async fn defaults_on_create(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    for (name, spec) in [("one", json!({"size": 1})), ("two", json!({"size": 1, "mode": null}))] {
        assert_eq!(w.create(name, &spec).await?["spec"], json!({"size": 1, "mode": "auto"}));
        assert_eq!(w.stored(name).await?["spec"]["mode"], "auto");
    }
    let patched = w.merge("one", &json!({"spec": {"mode": "manual"}})).await?.ok()?;
    assert_eq!(patched["spec"]["mode"], "manual");
    let reset = w.merge("one", &json!({"spec": {"mode": null}})).await?.ok()?;
    assert_eq!(reset["spec"]["mode"], "auto");
    Ok(())
}

async fn defaults_on_read(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    w.create("one", &json!({"size": 1})).await?;
    let mode = json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "auto"}});
    w.merge_crd(&json!({"spec": {"versions": t.define().spec(&mode).versions()}})).await?.ok()?;
    eventually("the default shows", async || Ok(w.read("one").await?["spec"]["mode"] == "auto")).await?;
    assert_eq!(w.stored("one").await?["spec"], json!({"size": 1}));
    w.merge("one", &json!({"metadata": {"labels": {"a": "b"}}})).await?.ok()?;
    assert_eq!(w.stored("one").await?["spec"], json!({"size": 1, "mode": "auto"}));
    Ok(())
}

async fn nested_defaults(t: Target) -> Result<()> {
    let w = t.define().spec(&json!({"config": {"type": "object", "default": {}, "properties": {
        "level": {"type": "integer", "default": 1},
        "inner": {"type": "object", "properties": {"text": {"type": "string", "default": "x"}}},
    }}}));
    let w = w.install().await?;
    assert_eq!(w.create("one", &json!({})).await?["spec"], json!({"config": {"level": 1}}));
    let two = w.create("two", &json!({"config": {"inner": {}}})).await?;
    assert_eq!(two["spec"], json!({"config": {"level": 1, "inner": {"text": "x"}}}));
    assert_eq!(owned(&two, "seed")["f:spec"]["f:config"]["f:inner"], json!({".": {}, "f:text": {}}));
    Ok(())
}

async fn ratchet_by_key(t: Target) -> Result<()> {
    let spec = |maximum: i64| {
        let level = json!({"type": "integer", "maximum": maximum});
        let item = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "level": level, "note": {"type": "string"},
        }});
        json!({
            "keyed": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item,
            },
            "plain": {"type": "array", "items": item},
        })
    };
    let w = t.define().spec(&spec(10)).install().await?;
    let item = |name: &str, level: i64| json!({"name": name, "level": level});
    let bad = json!([item("a", 9), item("b", 1)]);
    w.create("one", &json!({"keyed": bad, "plain": bad})).await?;
    w.merge_crd(&json!({"spec": {"versions": t.define().spec(&spec(5)).versions()}})).await?.ok()?;
    let probe = format!("{}?dryRun=All", w.list());
    let probed = w.manifest("probe", &json!({"plain": [item("a", 9)]}));
    eventually("the new maximum holds", async || Ok(t.post(&probe, &probed).await?.code == 422)).await?;
    for taken in [
        json!([item("a", 9), item("b", 2)]),
        json!([item("b", 2), item("a", 9)]),
        json!([item("b", 2), {"name": "a", "level": 9, "note": "n"}]),
    ] {
        w.merge("one", &json!({"spec": {"keyed": taken}})).await?.ok()?;
    }
    let words = "in body should be less than or equal to 5";
    for (list, value, cause) in [
        ("keyed", json!([item("a", 8)]), format!("spec.keyed[0].level: Invalid value: 8: spec.keyed[0].level {words}")),
        ("keyed", json!([item("c", 9)]), format!("spec.keyed[0].level: Invalid value: 9: spec.keyed[0].level {words}")),
        (
            "plain",
            json!([item("a", 9), item("b", 2)]),
            format!("spec.plain[0].level: Invalid value: 9: spec.plain[0].level {words}"),
        ),
    ] {
        let refusal = w.merge("one", &json!({"spec": {list: value}})).await?.refused(422)?;
        assert_eq!(causes(&refusal), [cause]);
    }
    Ok(())
}

async fn null_is_dropped(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    assert_eq!(taken(&w, "one", json!({"name": null, "void": null})).await?, json!({"void": null}));
    Ok(())
}

async fn missing_is_required(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    for spec in [json!({}), json!({"size": null})] {
        let refusal = w.post(&w.manifest("bad", &spec)).await?.refused(422)?;
        assert_eq!(causes(&refusal), ["spec.size: Required value"]);
        assert_eq!(refusal.status["details"]["causes"][0]["reason"], "FieldValueRequired");
    }
    Ok(())
}

async fn wrong_type(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let words = |field: &str, wanted: &str, got: &str| {
        format!("{field}: Invalid value: \"{got}\": {field} in body must be of type {wanted}: \"{got}\"")
    };
    let cases = [
        (json!({"size": "x"}), words("spec.size", "integer", "string")),
        (json!({"flag": "yes"}), words("spec.flag", "boolean", "string")),
        (json!({"name": 1}), words("spec.name", "string", "integer")),
        (json!({"tags": "a"}), words("spec.tags", "array", "string")),
        (json!({"free": []}), words("spec.free", "object", "array")),
    ];
    let cases: Vec<_> = cases.iter().map(|(spec, cause)| (spec.clone(), cause.as_str())).collect();
    refused(&w, &cases).await
}

async fn numbers(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    assert_eq!(w.create("one", &json!({"size": 1.0})).await?["spec"]["size"], 1);
    let cases = [
        (json!({"size": 11}), "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"),
        (json!({"size": -1}), "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"),
    ];
    refused(&w, &cases).await
}

async fn strings(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let cases = [
        (json!({"name": "toolong"}), "spec.name: Too long: may not be more than 5 bytes"),
        (json!({"name": "X"}), "spec.name: Invalid value: \"X\": spec.name in body should match '^[a-z]*$'"),
        (
            json!({"when": "soon"}),
            "spec.when: Invalid value: \"soon\": spec.when in body must be of type date-time: \"soon\"",
        ),
    ];
    refused(&w, &cases).await?;
    taken(&w, "one", json!({"name": "abc", "when": "2026-12-01T14:02:11Z"})).await.map(drop)
}

async fn enumeration(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let cause = "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"";
    refused(&w, &[(json!({"color": "green"}), cause)]).await?;
    assert_eq!(taken(&w, "one", json!({"color": "blue"})).await?, json!({"color": "blue"}));
    Ok(())
}

async fn int_or_string(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    for (name, port) in [("one", json!(80)), ("two", json!("http"))] {
        assert_eq!(taken(&w, name, json!({"port": port})).await?["port"], port);
    }
    let cause = "spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"";
    refused(&w, &[(json!({"port": true}), cause)]).await
}

async fn lists(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    let cases = [
        (json!({"env": named(&["a", "b", "c"])}), "spec.env: Too many: 3: must have at most 2 items"),
        (json!({"env": named(&["a", "a"])}), "spec.env[1]: Duplicate value: {\"name\":\"a\"}"),
        (json!({"env": [{}]}), "spec.env[0].name: Required value"),
        (json!({"tags": ["a", "b", "a"]}), "spec.tags[2]: Duplicate value: \"a\""),
    ];
    refused(&w, &cases).await
}

async fn maps(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let cause = "spec.extra.a: Invalid value: \"integer\": spec.extra.a in body must be of type string: \"integer\"";
    refused(&w, &[(json!({"extra": {"a": 1}}), cause)]).await?;
    assert_eq!(taken(&w, "one", json!({"extra": {"a": "b"}})).await?, json!({"extra": {"a": "b"}}));
    Ok(())
}

async fn several_at_once(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let spec = json!({"size": 11, "color": "green", "name": "X"});
    let refusal = w.post(&w.manifest("bad", &spec)).await?.refused(422)?;
    // In no order: the schema's properties are a map to the server.
    let mut fields = refusal.causes();
    fields.sort_unstable();
    assert_eq!(fields, ["spec.color", "spec.name", "spec.size"]);
    let start = format!("Widget.{} \"bad\" is invalid: [spec.", t.group);
    assert!(refusal.message().starts_with(&start), "{refusal}");
    Ok(())
}

async fn patched_objects_are_validated(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let one = w.create("one", &json!({"size": 1})).await?;
    w.merge("one", &json!({"spec": {"size": null, "flag": true}})).await?.refused(422)?;
    w.merge("one", &json!({"spec": {"size": 11, "flag": true}})).await?.refused(422)?;
    assert_eq!(w.read("one").await?, one);
    Ok(())
}

async fn status_at_create_is_dropped(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let mut object = w.manifest("one", &json!({"size": 1}));
    object["status"] = json!({"ready": true});
    assert_eq!(w.post(&object).await?.ok()?.get("status"), None);
    Ok(())
}

async fn status_is_apart(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let before = w.create("one", &json!({"size": 1})).await?;
    let patch = json!({
        "status": {"ready": true}, "spec": {"size": 2}, "metadata": {"labels": {"a": "b"}, "finalizers": ["x.test/f"]},
    });
    let after = w.merge_status("ctl", "one", &patch).await?.ok()?;
    assert_eq!((&after["status"], &after["spec"]), (&json!({"ready": true}), &before["spec"]));
    assert_eq!((after["metadata"].get("labels"), after["metadata"].get("finalizers")), (None, None));
    assert_eq!(after["metadata"]["generation"], 1);
    // Ignored, and before 1.36 owned all the same.
    let ignored = owned(&after, "ctl").get("f:metadata").is_some();
    assert_eq!(ignored, t.minor() < 36, "{after}");
    let main = w.merge("one", &json!({"status": {"ready": false}})).await?.ok()?;
    assert_eq!(main, after);
    let read = t.get(&format!("{}/status", w.path("one"))).await?.ok()?;
    assert_eq!(read, after);
    Ok(())
}

async fn spec_is_optional(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let object = json!({"apiVersion": w.api_version(), "kind": "Widget", "metadata": {"name": "one"}});
    assert_eq!(w.post(&object).await?.ok()?.get("spec"), None);
    Ok(())
}
