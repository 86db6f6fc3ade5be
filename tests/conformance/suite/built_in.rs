//! Built-in kinds, as far as `sbx` meets them: namespaces, children, clients, the lock, what is cleaned up.

use super::prelude::*;

checks! {
    namespace: "a namespace is Active and labelled by its name; `kube-system` has a uid",
    terminating_name_is_taken: "the name of a terminating namespace is taken",
    child_is_relabelled: "a child's ownerReferences are rewritten by merge patch, with its resourceVersion; stale is 409",
    children_as_metadata: "children of any kind are listed as metadata alone",
    secret: "a Secret is created, read, and deleted by uid and resourceVersion; its data stays as it is",
    secret_put: "a Secret's PUT needs no resourceVersion",
    deployment: "a Deployment's generation follows its spec; its status is written apart",
    lease: "a Lease is created once, renewed with its resourceVersion, and lost to a faster one: 409",
    rbac: "a Role and a RoleBinding are created, read and deleted",
    applied: "server-side apply works on built-in kinds, containers by name",
    absent_kind: "a built-in resource that does not exist is 404 as a Status",
}

const DEFAULT: &str = "/api/v1/namespaces/default";

async fn namespace(t: Target) -> Result<()> {
    let path = "/api/v1/namespaces/kube-system";
    eventually("kube-system", async || Ok(t.get(path).await?.code == 200)).await?;
    let system = t.get(path).await?.ok()?;
    assert_ne!(uid(&system), "");
    assert_eq!(system["metadata"]["labels"]["kubernetes.io/metadata.name"], "kube-system");
    assert_eq!((&system["status"]["phase"], &system["spec"]["finalizers"]), (&json!("Active"), &json!(["kubernetes"])));
    Ok(())
}

async fn terminating_name_is_taken(t: Target) -> Result<()> {
    let name = "built-in-terminating";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    t.post("/api/v1/namespaces", &namespace).await?.ok()?;
    t.delete(&format!("/api/v1/namespaces/{name}"), &json!({})).await?.ok()?;
    let refusal = t.post("/api/v1/namespaces", &namespace).await?.refused(409)?;
    assert_eq!(refusal.status["reason"], "AlreadyExists");
    assert_eq!(refusal.message(), format!("object is being deleted: namespaces \"{name}\" already exists"));
    Ok(())
}

fn secret_named(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"key": "dmFsdWU="}})
}

async fn child_is_relabelled(t: Target) -> Result<()> {
    let owner = |version: &str| json!({"apiVersion": format!("{}/{version}", t.group), "kind": "Widget", "name": "one", "uid": "u-1"});
    let mut object = secret_named("built-in-child");
    object["metadata"]["ownerReferences"] = json!([owner(ALPHA)]);
    let child = t.post(&format!("{DEFAULT}/secrets"), &object).await?.ok()?;
    let path = format!("{DEFAULT}/secrets/built-in-child");
    let patch = exactly(&child, &json!({"ownerReferences": [owner(BETA)]}));
    let relabelled = t.merge(&path, &patch).await?.ok()?;
    assert_eq!(relabelled["metadata"]["ownerReferences"], json!([owner(BETA)]));
    let refusal = t.merge(&path, &exactly(&child, &json!({"ownerReferences": []}))).await?.refused(409)?;
    assert_eq!(
        refusal.message(),
        "Operation cannot be fulfilled on secrets \"built-in-child\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    t.merge(&path, &json!({"metadata": {"uid": "other"}})).await?.refused(422)?;
    Ok(())
}

async fn children_as_metadata(t: Target) -> Result<()> {
    let spec = json!({"containers": [{"name": "main", "image": "example.dev/none:1"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "built-in-pod"}, "spec": spec});
    let pod = t.post(&format!("{DEFAULT}/pods"), &pod).await?.ok()?;
    let list = t.get_as("/api/v1/pods?limit=500", "PartialObjectMetadataList").await?.ok()?;
    let items = list["items"].as_array().ok_or("no items")?;
    let found = items.iter().find(|item| item["metadata"]["name"] == "built-in-pod").ok_or("no pod")?;
    assert_eq!((&found["metadata"]["uid"], found.get("spec")), (&pod["metadata"]["uid"], None));
    Ok(())
}

async fn secret(t: Target) -> Result<()> {
    let name = "built-in-secret";
    let made = t.post(&format!("{DEFAULT}/secrets"), &secret_named(name)).await?.ok()?;
    assert_eq!((&made["type"], &made["data"]), (&json!("Opaque"), &json!({"key": "dmFsdWU="})));
    let path = format!("{DEFAULT}/secrets/{name}");
    let refusal = t.delete(&path, &json!({"preconditions": {"uid": "other"}})).await?.refused(409)?;
    let start = format!("Operation cannot be fulfilled on Secret \"{name}\": the UID in the precondition (other)");
    assert!(refusal.message().starts_with(&start), "{refusal}");
    let options = json!({"preconditions": {"uid": uid(&made), "resourceVersion": version_of(&made)}});
    let deleted = t.delete(&path, &options).await?.ok()?;
    assert_eq!(deleted["details"], json!({"name": name, "kind": "secrets", "uid": uid(&made)}));
    let refusal = t.get(&path).await?.refused(404)?;
    assert_eq!(refusal.message(), format!("secrets \"{name}\" not found"));
    Ok(())
}

async fn secret_put(t: Target) -> Result<()> {
    let mut object = secret_named("built-in-put");
    let made = t.post(&format!("{DEFAULT}/secrets"), &object).await?.ok()?;
    let path = format!("{DEFAULT}/secrets/built-in-put");
    object["data"]["more"] = "YQ==".into();
    let put = t.put(&path, &object).await?.ok()?;
    assert_eq!((uid(&put), &put["data"]), (uid(&made), &json!({"key": "dmFsdWU=", "more": "YQ=="})));
    object["metadata"]["resourceVersion"] = version_of(&made).into();
    object["data"]["more"] = "Yg==".into();
    t.put(&path, &object).await?.refused(409)?;
    Ok(())
}

async fn deployment(t: Target) -> Result<()> {
    let list = "/apis/apps/v1/namespaces/default/deployments";
    let container = |tag: &str| json!([{"name": "main", "image": format!("example.dev/client:{tag}")}]);
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "built-in-client"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "client"}},
            "template": {"metadata": {"labels": {"app": "client"}}, "spec": {"containers": container("1")}},
        },
    });
    assert_eq!(t.post(list, &object).await?.ok()?["metadata"]["generation"], 1);
    let path = format!("{list}/built-in-client");
    let patch = json!({"spec": {"template": {"spec": {"containers": container("2")}}}});
    assert_eq!(t.merge(&path, &patch).await?.ok()?["metadata"]["generation"], 2);
    let status = json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
    let written = t.merge(&format!("{path}/status"), &json!({"status": status})).await?.ok()?;
    assert_eq!((&written["status"], &written["metadata"]["generation"]), (&status, &json!(2)));
    let main = t.merge(&path, &json!({"status": {"replicas": 9}})).await?.ok()?;
    assert_eq!(main["status"], status);
    Ok(())
}

async fn lease(t: Target) -> Result<()> {
    let list = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "built-in-lock"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 30, "renewTime": "2026-12-01T14:02:11.000000Z"},
    });
    let mut mine = t.post(list, &object).await?.ok()?;
    assert_eq!(mine["spec"], object["spec"]);
    assert_eq!(t.post(list, &object).await?.refused(409)?.status["reason"], "AlreadyExists");
    let path = format!("{list}/built-in-lock");
    mine["spec"]["holderIdentity"] = "you".into();
    t.put(&path, &mine).await?.ok()?;
    mine["spec"]["holderIdentity"] = "they".into();
    assert_eq!(t.put(&path, &mine).await?.refused(409)?.status["reason"], "Conflict");
    let cleared = t.merge(&path, &json!({"spec": {"holderIdentity": null}})).await?.ok()?;
    assert_eq!(cleared["spec"].get("holderIdentity"), None);
    Ok(())
}

async fn rbac(t: Target) -> Result<()> {
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let meta = |kind: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "built-in"}});
    let mut role = meta("Role");
    role["rules"] = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let mut binding = meta("RoleBinding");
    binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "built-in"});
    for (plural, object, field) in [("roles", role, "rules"), ("rolebindings", binding, "roleRef")] {
        let list = format!("{root}/{plural}");
        t.post(&list, &object).await?.ok()?;
        let path = format!("{list}/built-in");
        assert_eq!(t.get(&path).await?.ok()?[field], object[field]);
        t.delete(&path, &json!({})).await?.ok()?;
        t.get(&path).await?.refused(404)?;
    }
    Ok(())
}

async fn applied(t: Target) -> Result<()> {
    let path = "/apis/apps/v1/namespaces/default/deployments/built-in-applied";
    let object = |containers: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "built-in-applied"},
            "spec": {
                "selector": {"matchLabels": {"app": "applied"}},
                "template": {"metadata": {"labels": {"app": "applied"}}, "spec": {"containers": containers}},
            },
        })
    };
    let image = |name: &str, tag: &str| json!({"name": name, "image": format!("example.dev/{name}:{tag}")});
    let first = object(json!([image("main", "1"), image("side", "1")]));
    let made = t.apply(&format!("{path}?fieldManager=argo&force=true"), &first).await?;
    assert_eq!(made.code, 201);
    assert_eq!(managers(&made.ok()?), ["argo Apply v1"]);
    let next = object(json!([image("main", "2")]));
    let now = t.apply(&format!("{path}?fieldManager=argo&force=true"), &next).await?.ok()?;
    let containers = now["spec"]["template"]["spec"]["containers"].as_array().ok_or("no containers")?;
    assert_eq!((containers.len(), &containers[0]["image"]), (1, &json!("example.dev/main:2")));
    Ok(())
}

async fn absent_kind(t: Target) -> Result<()> {
    for path in ["/api/v1/things", "/apis/apps/v1/things"] {
        let refusal = t.get(path).await?.refused(404)?;
        assert_eq!(refusal.message(), "the server could not find the requested resource");
        assert_eq!((&refusal.status["reason"], &refusal.status["details"]), (&json!("NotFound"), &json!({})));
    }
    Ok(())
}
