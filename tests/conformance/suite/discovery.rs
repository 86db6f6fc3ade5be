//! What is served: version, groups, resources; and what the server says of itself.

use super::prelude::*;

checks! {
    version: "GET /version names major, minor and gitVersion, to anybody",
    group: "a group lists its served versions, the most stable first",
    groups: "the list of groups holds it, and the built-in ones",
    resources: "a version lists the resource and its subresources: kind, names, scope, verbs",
    core: "/api lists v1, and v1 its resources",
    unserved_version: "an unserved version is not listed and its path is 404",
    unknown_group: "an unknown group is 404 in plain text",
    request_metric: "`apiserver_request_total` counts by version, verb, scope, subresource, trial and code; apply is APPLY",
    forbidden_path: "without the right the metrics are 403, and name the path",
    date: "every answer carries the server's time, to the second",
}

async fn version(t: Target) -> Result<()> {
    for user in ["admin", "nobody"] {
        let version = t.as_user(user).get("/version").await?.ok()?;
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!(t.minor().to_string())));
        let start = format!("v1.{}.", t.minor());
        assert!(version["gitVersion"].as_str().is_some_and(|text| text.starts_with(&start)), "{version}");
    }
    Ok(())
}

/// Discovery follows the definition a moment later.
async fn discovered(t: &Target, path: &str, pointer: &str, wanted: &Value) -> Result<Value> {
    eventually(&format!("{path} says {wanted}"), async || Ok(t.get(path).await?.body.pointer(pointer) == Some(wanted)))
        .await?;
    t.get(path).await?.ok()
}

async fn group(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let version = |w: &Widgets, name: &str| json!({"groupVersion": w.api_version(), "version": name});
    let versions = json!([version(&w, BETA), version(&w.at(ALPHA), ALPHA)]);
    let group = discovered(&t, &format!("/apis/{}", t.group), "/versions", &versions).await?;
    assert_eq!(
        group,
        json!({
            "apiVersion": "v1", "kind": "APIGroup", "name": t.group, "versions": versions,
            "preferredVersion": versions[0],
        })
    );
    Ok(())
}

async fn groups(t: Target) -> Result<()> {
    t.define().install().await?;
    let found = async |name: &str| -> Result<bool> {
        let groups = t.get("/apis").await?.ok()?;
        assert_eq!(groups["kind"], "APIGroupList");
        Ok(groups["groups"].as_array().is_some_and(|groups| groups.iter().any(|group| group["name"] == name)))
    };
    eventually("the group is listed", async || found(&t.group).await).await?;
    for name in ["apps", "apiextensions.k8s.io", "coordination.k8s.io", "authorization.k8s.io"] {
        assert!(found(name).await?, "{name}");
    }
    Ok(())
}

async fn resources(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let path = format!("/apis/{}", w.api_version());
    let list = discovered(&t, &path, "/resources/0/name", &json!("widgets")).await?;
    assert_eq!((&list["kind"], &list["groupVersion"]), (&json!("APIResourceList"), &json!(w.api_version())));
    let mut widgets = list["resources"][0].clone();
    if let Some(widgets) = widgets.as_object_mut() {
        widgets.remove("storageVersionHash");
    }
    assert_eq!(
        widgets,
        json!({
            "name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        })
    );
    assert_eq!(
        list["resources"][1],
        json!({
            "name": "widgets/status", "singularName": "", "namespaced": true, "kind": "Widget",
            "verbs": ["get", "patch", "update"],
        })
    );
    Ok(())
}

async fn core(t: Target) -> Result<()> {
    let versions = t.get("/api").await?.ok()?;
    assert_eq!((&versions["kind"], &versions["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let list = t.get("/api/v1").await?.ok()?;
    let resources = list["resources"].as_array().ok_or("no resources")?;
    for (name, kind, namespaced) in [
        ("namespaces", "Namespace", false),
        ("pods", "Pod", true),
        ("services", "Service", true),
        ("secrets", "Secret", true),
        ("persistentvolumeclaims", "PersistentVolumeClaim", true),
    ] {
        let found = resources.iter().find(|resource| resource["name"] == name).ok_or(name)?;
        assert_eq!((&found["kind"], &found["namespaced"]), (&json!(kind), &json!(namespaced)));
        let verbs = found["verbs"].as_array().ok_or("no verbs")?;
        assert!(["get", "list", "patch"].iter().all(|verb| verbs.contains(&json!(verb))), "{found}");
    }
    Ok(())
}

async fn unserved_version(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    let mut versions = t.define().versions();
    versions[0]["served"] = false.into();
    w.merge_crd(&json!({"spec": {"versions": versions}})).await?.ok()?;
    let only = json!([{"groupVersion": w.api_version(), "version": BETA}]);
    discovered(&t, &format!("/apis/{}", t.group), "/versions", &only).await?;
    let path = format!("/apis/{}", w.at(ALPHA).api_version());
    eventually("the version is gone", async || Ok(t.get(&path).await?.code == 404)).await
}

async fn unknown_group(t: Target) -> Result<()> {
    for path in ["/apis/absent.test", "/apis/absent.test/v1"] {
        assert_eq!(t.get(path).await?.refused(404)?.status, "404 page not found\n");
    }
    Ok(())
}

async fn request_metric(t: Target) -> Result<()> {
    let w = t.define().stores(ALPHA).install().await?.at(ALPHA);
    w.create("one", &json!({"size": 1})).await?;
    w.read("one").await?;
    w.touch("one").await?.ok()?;
    w.touch("absent").await?.refused(404)?;
    w.merge_status("ctl", "one", &json!({})).await?.ok()?;
    w.apply("argo&dryRun=All", "one", &json!({"note": "n"})).await?.ok()?;
    t.get(&w.list()).await?.ok()?;
    let counter = |verb: &str, scope: &str, subresource: &str, trial: &str, code: u16| {
        let group = &t.group;
        format!(
            "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{trial}\",group=\"{group}\",\
             resource=\"widgets\",scope=\"{scope}\",subresource=\"{subresource}\",verb=\"{verb}\",version=\"{ALPHA}\"}} 1"
        )
    };
    let mut wanted = vec![
        counter("POST", "resource", "", "", 201),
        counter("GET", "resource", "", "", 200),
        counter("PATCH", "resource", "", "", 200),
        counter("PATCH", "resource", "", "", 404),
        counter("PATCH", "resource", "status", "", 200),
        counter("APPLY", "resource", "", "All", 200),
        counter("LIST", "namespace", "", "", 200),
    ];
    wanted.sort_unstable();
    let of_group = (format!("group=\"{}\"", t.group), format!("version=\"{ALPHA}\""));
    let mut counted = Vec::new();
    let done = eventually("all are counted", async || {
        let metrics = t.get("/metrics").await?.ok()?;
        let lines = metrics.as_str().unwrap_or_default().lines();
        let counters = lines.filter(|line| line.starts_with("apiserver_request_total{"));
        counted = counters
            .filter(|line| line.contains(&of_group.0) && line.contains(&of_group.1))
            .map(str::to_owned)
            .collect::<Vec<_>>();
        counted.sort_unstable();
        Ok(counted == wanted)
    })
    .await;
    assert_eq!(counted, wanted);
    done
}

async fn forbidden_path(t: Target) -> Result<()> {
    let refusal = t.as_user("nobody").get("/metrics").await?.refused(403)?;
    assert_eq!(refusal.message(), "forbidden: User \"nobody\" cannot get path \"/metrics\"");
    Ok(())
}

async fn date(t: Target) -> Result<()> {
    let w = t.define().install().await?;
    for answer in [w.get("absent").await?, t.get(&w.list()).await?, t.get("/version").await?] {
        let date = jiff::fmt::rfc2822::parse(answer.header("date"))?.timestamp();
        let off = jiff::Timestamp::now().duration_since(date).abs();
        assert!(off < jiff::SignedDuration::from_secs(60), "{}: {date}", answer.request);
    }
    Ok(())
}
