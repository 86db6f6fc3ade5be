//! What the server offers beside its API: records, clocks, faults, rights. What it does with requests is what the
//! conformance suite asks of every API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Interception, Release, Rule, Server};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD: &str = "widgets.demo.test";
const MERGE: &str = "application/merge-patch+json";

/// A definition of Widgets that stores this one of `v1alpha1` and `v1beta1`.
fn widgets(stores: &str, webhook: bool) -> Value {
    let version = |name: &str| {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
        json!({
            "name": name, "served": true, "storage": name == stores, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        })
    };
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": CRD},
        "spec": {
            "group": "demo.test", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1alpha1"), version("v1beta1")],
        },
    });
    if webhook {
        let config = json!({"url": "https://hook.test/convert"});
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
        });
    }
    crd
}

fn widget(name: &str, version: &str) -> Value {
    let api_version = format!("demo.test/{version}");
    json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, "spec": {}})
}

fn path(name: &str) -> String {
    format!("/apis/demo.test/v1beta1/namespaces/default/widgets/{name}")
}

struct Reply {
    code: u16,
    date: String,
    body: Value,
}

async fn send(server: &Server, user: &str, method: &str, path: &str, body: &Value) -> Reply {
    let kind = if method == "PATCH" { MERGE } else { "application/json" };
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind).body(bytes.into());
    let reply = server.client_as(user).send(request.expect("a request")).await.expect("an answer");
    let (head, body) = reply.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let date = head.headers["date"].to_str().expect("text").to_owned();
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    Reply { code: head.status.as_u16(), date, body: serde_json::from_slice(&body).unwrap_or_else(|_| text()) }
}

/// A server with the definition and one Widget `one`, both written by requests.
async fn server(stores: &str, webhook: bool) -> Server {
    let server = Server::new(Release::v1_36());
    assert_eq!(send(&server, "admin", "POST", CRDS, &widgets(stores, webhook)).await.code, 201);
    let list = format!("/apis/demo.test/{stores}/namespaces/default/widgets");
    assert_eq!(send(&server, "admin", "POST", &list, &widget("one", stores)).await.code, 201);
    server
}

async fn store(server: &Server, version: &str) {
    let versions = widgets(version, false)["spec"]["versions"].clone();
    let patch = json!({"spec": {"versions": versions}});
    assert_eq!(send(server, "admin", "PATCH", &format!("{CRDS}/{CRD}"), &patch).await.code, 200);
}

fn stored(server: &Server) -> Vec<(String, String)> {
    let records = server.stored(CRD);
    records.iter().map(|record| (record.key.clone(), record.version().to_owned())).collect()
}

#[tokio::test]
async fn a_record_put_raw_is_taken_as_it_is() {
    let server = Server::new(Release::v1_36());
    let crds = "customresourcedefinitions.apiextensions.k8s.io";
    assert_eq!(server.put(crds, widgets("v1beta1", false)), Ok(()));
    let mut old = widget("old", "v1alpha1");
    old["metadata"]["uid"] = "u-1".into();
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    assert_eq!(server.put(CRD, old), Ok(()));
    assert_eq!(stored(&server), [("default/old".to_owned(), "v1alpha1".to_owned())]);
    let read = send(&server, "admin", "GET", &path("old"), &Value::Null).await.body;
    assert_eq!((&read["apiVersion"], &read["metadata"]["uid"]), (&json!("demo.test/v1beta1"), &json!("u-1")));
    assert!(server.put("gadgets.demo.test", json!({})).is_err_and(|error| error.contains("no resource")));
    assert!(server.put(CRD, json!({})).is_err_and(|error| error.contains("without a name")));
}

#[tokio::test]
async fn a_webhook_lives_as_long_as_it_is_played() {
    let server = server("v1alpha1", true).await;
    let get = async || send(&server, "admin", "GET", &path("one"), &Value::Null).await;
    let gone = get().await;
    assert_eq!(gone.code, 500);
    let words = "conversion webhook for demo.test/v1alpha1, Kind=Widget failed: Post \
                 \"https://hook.test/convert?timeout=30s\": dial tcp 127.0.0.1:443: connect: connection refused";
    assert_eq!(gone.body["message"], words);
    server.converter(
        CRD,
        Arc::new(|object, version| {
            let mut object = object.clone();
            object["apiVersion"] = version.into();
            object["spec"]["converted"] = true.into();
            Ok(object)
        }),
    );
    assert_eq!(get().await.body["spec"]["converted"], true);
    server.stop_converter(CRD);
    assert_eq!(get().await.code, 500);
}

#[tokio::test]
async fn a_storage_version_can_be_noticed_late() {
    let clock = Arc::new(AtomicI64::new(1_800_000_000));
    let server = server("v1alpha1", false).await;
    let now = clock.clone();
    let time = move || Timestamp::from_second(now.load(Ordering::SeqCst)).expect("a time");
    server.set_clock(Arc::new(time));
    server.settle_after(Duration::from_secs(30));
    store(&server, "v1beta1").await;
    let touch = async || send(&server, "admin", "PATCH", &path("one"), &json!({})).await;
    let before = touch().await;
    assert_eq!((stored(&server)[0].1.as_str(), before.date.as_str()), ("v1alpha1", "Fri, 15 Jan 2027 08:00:00 GMT"));
    clock.fetch_add(31, Ordering::SeqCst);
    let after = touch().await;
    assert_eq!((stored(&server)[0].1.as_str(), after.date.as_str()), ("v1beta1", "Fri, 15 Jan 2027 08:00:31 GMT"));
    assert_ne!(before.body["metadata"]["resourceVersion"], after.body["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn an_answer_can_be_another_or_be_lost() {
    let server = server("v1beta1", false).await;
    let answer = |code, after| Interception { code, reason: "", message: "out".into(), retry_after: None, after };
    for (after, labels) in [(false, Value::Null), (true, json!({"a": "b"}))] {
        server.intercept(Some(Arc::new(move |request| (request.verb == "patch").then(|| answer(503, after)))));
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(send(&server, "admin", "PATCH", &path("one"), &label).await.code, 503);
        server.intercept(None);
        let read = send(&server, "admin", "GET", &path("one"), &Value::Null).await.body;
        assert_eq!(read["metadata"]["labels"], labels, "carried out: {after}");
    }
}

#[tokio::test]
async fn rights_and_requests_are_noted() {
    let server = server("v1beta1", false).await;
    server.grant("reader", vec![Rule::new(&["get"], "demo.test", &["widgets"]).names(&["one"])]);
    server.deny("almost", Rule::new(&["delete"], "demo.test", &["widgets"]));
    server.clear_requests();
    for (user, method, name, code) in [
        ("reader", "GET", "one", 200),
        ("reader", "GET", "two", 403),
        ("reader", "PATCH", "one", 403),
        ("almost", "PATCH", "one", 200),
        ("almost", "DELETE", "one", 403),
    ] {
        assert_eq!(send(&server, user, method, &path(name), &json!({})).await.code, code, "{user} {method} {name}");
    }
    let seen: Vec<_> = server.requests().into_iter().map(|r| (r.user, r.verb, r.version, r.name, r.code)).collect();
    assert_eq!(seen.len(), 5);
    assert_eq!(seen[3], ("almost".into(), "patch".into(), "v1beta1".into(), "one".into(), 200));
    let metrics = send(&server, "admin", "GET", "/metrics", &Value::Null).await.body;
    let line = "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"demo.test\",\
                resource=\"widgets\",scope=\"resource\",subresource=\"\",verb=\"PATCH\",version=\"v1beta1\"} 1";
    assert!(metrics.as_str().is_some_and(|text| text.lines().any(|it| it == line)), "{metrics}");
}

#[test]
fn releases_are_known_by_their_version() {
    for (version, minor) in [("v1.36.1", Some(36)), ("v1.34.4+k3s1", Some(34)), ("v1.37", Some(37)), ("v2.0.0", None)] {
        assert_eq!(Release::named(version).map(|release| release.minor), minor, "{version}");
    }
}
