//! Whose field it is: what apply removes, and how lists and maps are divided among managers.

use super::prelude::*;

checks! {
    given_up_is_removed: "a field that its only owner leaves out is removed",
    shared_is_kept: "a field that another manager owns, too, stays until the last gives it up",
    updated_since_is_kept: "a field that was changed by an update since is no longer the applier's to remove",
    list_items_by_key: "items of a map list are owned one by one; each manager removes its own",
    conflict_in_a_list_item: "a conflict in an item names it by its key",
    ambiguous_items: "an item that is applied twice, or without its key, is 500 and named",
    atomic_list: "an atomic list, and one of no declared type, is owned and replaced whole",
    set_items: "items of a set are shared; one goes when no manager names it any more",
    map_keys: "keys of a map are owned one by one; an atomic map whole",
    free_form: "under preserve-unknown-fields ownership goes as deep as the value",
    labels_and_finalizers: "labels, annotations and finalizers are divided in the same way",
    order_of_items: "applied items come in the applier's order; those of others keep their place before what followed them",
    parents_of_updates: "an update owns the maps and lists it makes, an apply only what it names; giving up leaves the rest",
    fields_of_items_move: "an update takes a field of an item, and an item that is removed from everybody",
    key_with_a_default: "a key that has a default identifies the item also where it is left out",
    empty_values: "empty maps are owned, empty keyed lists are not; given up, only what nobody else owns goes",
    given_up_default_returns: "a removed field that has a default falls back to it",
}

async fn widgets(t: &Target) -> Result<Widgets> {
    t.define()
        .spec(&json!({
            "size": {"type": "integer"},
            "mode": {"type": "string", "default": "auto"},
            "env": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "value": {"type": "string"},
                }},
            },
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "required": ["port", "protocol"], "properties": {
                    "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"},
                }},
            },
            "pair": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
            "args": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "extra": {"type": "object", "additionalProperties": {"type": "string"}},
            "selector": {
                "type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }))
        .install()
        .await
}

/// The spec after an apply, without its default.
async fn applied(w: &Widgets, manager: &str, spec: Value) -> Result<Value> {
    let mut spec = w.apply(manager, "one", &spec).await?.ok()?["spec"].take();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("mode");
    }
    Ok(spec)
}

async fn given_up_is_removed(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"size": 1, "args": ["a"]})).await?;
    assert_eq!(applied(&w, "argo", json!({"size": 1})).await?, json!({"size": 1}));
    assert_eq!(owned(&w.read("one").await?, "argo"), &json!({"f:spec": {"f:size": {}}}));
    Ok(())
}

async fn shared_is_kept(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"size": 1})).await?;
    applied(&w, "flux", json!({"size": 1})).await?;
    assert_eq!(applied(&w, "argo", json!({"args": ["a"]})).await?, json!({"size": 1, "args": ["a"]}));
    assert_eq!(applied(&w, "flux", json!({})).await?, json!({"args": ["a"]}));
    Ok(())
}

async fn updated_since_is_kept(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"size": 1, "args": ["a"]})).await?;
    w.merge_by("ctl", "one", &json!({"spec": {"size": 2}})).await?.ok()?;
    assert_eq!(applied(&w, "argo", json!({"args": ["a"]})).await?, json!({"size": 2, "args": ["a"]}));
    Ok(())
}

async fn list_items_by_key(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let item = |name: &str| json!({"name": name, "value": "1"});
    applied(&w, "argo", json!({"env": [item("a"), item("b")]})).await?;
    let both = applied(&w, "flux", json!({"env": [item("c")]})).await?;
    assert_eq!(both, json!({"env": [item("a"), item("b"), item("c")]}));
    assert_eq!(
        owned(&w.read("one").await?, "flux"),
        &json!({"f:spec": {"f:env": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:value": {}}}}})
    );
    let less = applied(&w, "argo", json!({"env": [item("b")]})).await?;
    assert_eq!(less, json!({"env": [item("b"), item("c")]}));
    Ok(())
}

async fn conflict_in_a_list_item(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"env": [{"name": "a", "value": "1"}]})).await?;
    let refusal = w.apply("flux", "one", &json!({"env": [{"name": "a", "value": "2"}]})).await?.refused(409)?;
    assert_eq!(causes(&refusal), [".spec.env[name=\"a\"].value: conflict with \"argo\""]);
    Ok(())
}

async fn ambiguous_items(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let words = format!("failed to create typed patch object (/one; {}, Kind=Widget): .spec", w.api_version());
    for (spec, why) in [
        (json!({"env": [{"name": "a"}, {"name": "a"}]}), "env: duplicate entries for key [name=\"a\"]"),
        (json!({"tags": ["a", "a"]}), "tags: duplicate entries for key [=\"a\"]"),
        (
            json!({"env": [{"value": "1"}]}),
            "env: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't \
             have default values for any key fields)",
        ),
    ] {
        let refusal = w.apply("argo", "one", &spec).await?.refused(500)?;
        assert_eq!(refusal.message(), format!("{words}.{why}"));
    }
    Ok(())
}

async fn atomic_list(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    for list in ["args", "plain"] {
        applied(&w, "argo", json!({list: ["a", "b"]})).await?;
        let refusal = w.apply("flux", "one", &json!({list: ["b", "c"]})).await?.refused(409)?;
        assert_eq!(refusal.causes(), [format!(".spec.{list}")]);
        let forced = applied(&w, "flux&force=true", json!({list: ["b", "c"]})).await?;
        assert_eq!(forced, json!({list: ["b", "c"]}));
        assert_eq!(owned(&w.read("one").await?, "flux"), &json!({"f:spec": {format!("f:{list}"): {}}}));
        w.delete("one", &json!({})).await?.ok()?;
    }
    Ok(())
}

async fn set_items(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"tags": ["a", "b"]})).await?;
    assert_eq!(applied(&w, "flux", json!({"tags": ["b", "c"]})).await?, json!({"tags": ["a", "b", "c"]}));
    assert_eq!(owned(&w.read("one").await?, "flux"), &json!({"f:spec": {"f:tags": {"v:\"b\"": {}, "v:\"c\"": {}}}}));
    assert_eq!(applied(&w, "argo", json!({"tags": ["a"]})).await?, json!({"tags": ["a", "b", "c"]}));
    assert_eq!(applied(&w, "flux", json!({"tags": ["c"]})).await?, json!({"tags": ["a", "c"]}));
    Ok(())
}

async fn map_keys(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"extra": {"a": "1"}, "selector": {"a": "1"}})).await?;
    let both = applied(&w, "flux", json!({"extra": {"b": "2"}})).await?;
    assert_eq!(both["extra"], json!({"a": "1", "b": "2"}));
    assert_eq!(owned(&w.read("one").await?, "argo"), &json!({"f:spec": {"f:extra": {"f:a": {}}, "f:selector": {}}}));
    let refusal = w.apply("flux", "one", &json!({"selector": {"b": "2"}})).await?.refused(409)?;
    assert_eq!(refusal.causes(), [".spec.selector"]);
    assert_eq!(applied(&w, "argo", json!({})).await?, json!({"extra": {"b": "2"}}));
    Ok(())
}

async fn free_form(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"free": {"a": {"b": 1}, "list": [{"name": "x"}]}})).await?;
    assert_eq!(
        owned(&w.read("one").await?, "argo"),
        &json!({"f:spec": {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:list": {}}}})
    );
    let both = applied(&w, "flux", json!({"free": {"a": {"c": 2}}})).await?;
    assert_eq!(both["free"]["a"], json!({"b": 1, "c": 2}));
    assert_eq!(applied(&w, "argo", json!({})).await?, json!({"free": {"a": {"c": 2}}}));
    Ok(())
}

async fn labels_and_finalizers(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let object = |label: &str, finalizer: &str| {
        let mut object = w.manifest("one", &json!({}));
        object["metadata"]["labels"] = json!({label: "1"});
        object["metadata"]["finalizers"] = json!([finalizer]);
        object
    };
    w.apply_object("argo", &object("a", "x.test/a")).await?.ok()?;
    let both = w.apply_object("flux", &object("b", "x.test/b")).await?.ok()?;
    assert_eq!(both["metadata"]["labels"], json!({"a": "1", "b": "1"}));
    assert_eq!(both["metadata"]["finalizers"], json!(["x.test/a", "x.test/b"]));
    assert_eq!(
        owned(&both, "flux"),
        &json!({"f:metadata": {"f:labels": {"f:b": {}}, "f:finalizers": {"v:\"x.test/b\"": {}}}, "f:spec": {}})
    );
    let less = w.apply("argo", "one", &json!({})).await?.ok()?;
    assert_eq!(
        (&less["metadata"]["labels"], &less["metadata"]["finalizers"]),
        (&json!({"b": "1"}), &json!(["x.test/b"]))
    );
    Ok(())
}

async fn order_of_items(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let steps = [
        ("argo", vec!["a", "b", "c"], vec!["a", "b", "c"]),
        ("argo", vec!["c", "a", "b"], vec!["c", "a", "b"]),
        ("flux", vec!["x", "b"], vec!["c", "a", "x", "b"]),
        ("flux", vec!["b", "x"], vec!["c", "a", "b", "x"]),
        ("argo", vec!["a", "z", "c"], vec!["a", "b", "x", "z", "c"]),
        ("argo", vec!["c"], vec!["b", "x", "c"]),
        ("flux", vec![], vec!["c"]),
    ];
    let items = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    for (manager, sent, expected) in steps {
        let spec = applied(&w, manager, json!({"env": items(&sent)})).await?;
        assert_eq!(spec["env"], items(&expected), "{manager} {sent:?}");
    }
    assert_eq!(applied(&w, "argo", json!({})).await?, json!({}));
    Ok(())
}

async fn parents_of_updates(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let spec = json!({"extra": {"a": "1"}, "pair": {"x": 1}, "env": [{"name": "a", "value": "1"}]});
    let made = w.create("one", &spec).await?;
    let env = json!({".": {}, "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:value": {}}});
    let all = json!({"f:spec": {
        ".": {}, "f:mode": {}, "f:extra": {".": {}, "f:a": {}}, "f:pair": {".": {}, "f:x": {}}, "f:env": env,
    }});
    assert_eq!(owned(&made, "seed"), &all);
    applied(&w, "argo", json!({"extra": {"b": "2"}, "pair": {"y": 2}, "env": [{"name": "b"}]})).await?;
    assert_eq!(applied(&w, "argo", json!({})).await?, spec);
    assert_eq!(owned(&w.read("one").await?, "seed"), &all);
    let removed = w.merge_by("ctl", "one", &json!({"spec": {"extra": null}})).await?.ok()?;
    assert_eq!(owned(&removed, "seed")["f:spec"].get("f:extra"), None);
    assert_eq!(owned(&removed, "ctl"), &json!(null), "who removes owns nothing");
    Ok(())
}

async fn fields_of_items_move(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    w.create("one", &json!({"env": [{"name": "a", "value": "1"}]})).await?;
    let changed = json!({"spec": {"env": [{"name": "a", "value": "2"}, {"name": "b"}]}});
    let changed = w.merge_by("ctl", "one", &changed).await?.ok()?;
    let (a, b) = ("k:{\"name\":\"a\"}", "k:{\"name\":\"b\"}");
    assert_eq!(owned(&changed, "seed")["f:spec"]["f:env"], json!({".": {}, a: {".": {}, "f:name": {}}}));
    assert_eq!(owned(&changed, "ctl"), &json!({"f:spec": {"f:env": {a: {"f:value": {}}, b: {".": {}, "f:name": {}}}}}));
    let removed = w.merge_by("third", "one", &json!({"spec": {"env": [{"name": "b"}]}})).await?.ok()?;
    assert_eq!(owned(&removed, "seed")["f:spec"]["f:env"], json!({}));
    assert_eq!(owned(&removed, "ctl"), &json!({"f:spec": {"f:env": {b: {".": {}, "f:name": {}}}}}));
    Ok(())
}

async fn key_with_a_default(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    applied(&w, "argo", json!({"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]})).await?;
    let (tcp, udp) = ("k:{\"port\":80,\"protocol\":\"TCP\"}", "k:{\"port\":80,\"protocol\":\"UDP\"}");
    assert_eq!(
        owned(&w.read("one").await?, "argo")["f:spec"]["f:ports"],
        json!({tcp: {".": {}, "f:port": {}}, udp: {".": {}, "f:port": {}, "f:protocol": {}}})
    );
    let named = applied(&w, "flux", json!({"ports": [{"port": 80, "protocol": "TCP", "name": "web"}]})).await?;
    assert_eq!(named["ports"][0], json!({"port": 80, "protocol": "TCP", "name": "web"}));
    let twice = json!({"ports": [{"port": 80}, {"port": 80}]});
    let refusal = w.post(&w.manifest("two", &twice)).await?.refused(422)?;
    assert_eq!(causes(&refusal), ["spec.ports[1]: Duplicate value: {\"port\":80,\"protocol\":\"TCP\"}"]);
    Ok(())
}

async fn empty_values(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let empty = json!({"extra": {}, "env": [], "pair": {}});
    assert_eq!(applied(&w, "argo", empty.clone()).await?, empty);
    assert_eq!(owned(&w.read("one").await?, "argo"), &json!({"f:spec": {"f:extra": {}, "f:pair": {}}}));
    applied(&w, "flux", json!({"extra": {}})).await?;
    assert_eq!(applied(&w, "argo", json!({})).await?, json!({"extra": {}, "env": []}));
    let made = w.create("two", &empty).await?;
    assert_eq!(
        owned(&made, "seed"),
        &json!({"f:spec": {".": {}, "f:mode": {}, "f:extra": {}, "f:env": {}, "f:pair": {}}})
    );
    Ok(())
}

async fn given_up_default_returns(t: Target) -> Result<()> {
    let w = widgets(&t).await?;
    let manual = w.apply("argo", "one", &json!({"mode": "manual"})).await?.ok()?;
    assert_eq!(manual["spec"]["mode"], "manual");
    let given_up = w.apply("argo", "one", &json!({"size": 1})).await?.ok()?;
    assert_eq!(given_up["spec"], json!({"size": 1, "mode": "auto"}));
    assert_eq!(owned(&given_up, "argo"), &json!({"f:spec": {"f:size": {}}}));
    Ok(())
}
