//! The connection: lists in pages, discovery, and what of a refusal is passed on.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Request, Response};
use kube::client::Body;
use sbx::{
    clock::Clock,
    cluster::{ClusterError, Content, Reader},
    embedded::{Interception, Release, RequestRecord, Server},
    object::{Object, Resource},
};
use serde_json::{Value, json};

/// A reader over a server that answers by path and query, and what was asked of it.
fn reader(answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static) -> (Reader, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (answer, seen) = (Arc::new(answer), Arc::clone(&asked));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
        async move {
            let path = request.uri().to_string();
            seen.lock().expect("nobody panics here").push(path.clone());
            let (code, body) = answer(&path);
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()))?;
            Ok::<_, tower::BoxError>(response)
        }
    });
    (Reader::new(kube::Client::new(service, "default"), Clock::jumping()), asked)
}

fn widgets() -> Resource {
    Resource::new("demo.test", "v1", "widgets", "Widget", true)
}

fn page(uids: &[&str], next: &str) -> (u16, Value) {
    let items: Vec<Value> = uids.iter().map(|uid| json!({"metadata": {"name": uid, "uid": uid}})).collect();
    (200, json!({"metadata": {"continue": next}, "items": items}))
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "code": code, "reason": reason, "message": format!("said {code}")}))
}

async fn list(reader: &Reader) -> Result<Vec<String>, ClusterError> {
    let mut found = Vec::new();
    let mut pages = reader.pages(&widgets(), None, Content::Metadata);
    while let Some(page) = pages.next().await? {
        found.extend(page.iter().map(|object| object.uid().to_owned()));
    }
    Ok(found)
}

#[tokio::test]
async fn a_list_whose_tokens_expire_for_ever_ends() {
    let (reader, asked) =
        reader(|path| if path.contains("continue") { status(410, "Expired") } else { page(&["a"], "next") });
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), list(&reader)).await.expect("it ends");
    assert_eq!(ended.expect_err("it never became whole").code(), 410);
    assert_eq!(asked.lock().expect("nobody panics here").len(), 12, "six beginnings and what came of them");
}

#[tokio::test]
async fn an_object_that_a_list_brings_twice_is_one_object() {
    let expired = AtomicUsize::new(0);
    let (reader, _) = reader(move |path| match path.contains("continue") {
        false => page(&["a", "b"], "next"),
        true if expired.fetch_add(1, Ordering::Relaxed) == 0 => status(410, "Expired"),
        true => page(&["b", "c"], ""),
    });
    assert_eq!(list(&reader).await.expect("it ends"), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_asked_for_at_half_the_size_at_once() {
    let (reader, asked) = reader(|path| {
        let limit = path.split("limit=").nth(1).and_then(|rest| rest.split('&').next()?.parse::<u32>().ok());
        if limit.is_some_and(|limit| limit > 100) { status(504, "Timeout") } else { page(&["a"], "") }
    });
    let began = reader.clock().now();
    assert_eq!(list(&reader).await.expect("a smaller page comes in time"), ["a"]);
    let asked = asked.lock().expect("nobody panics here");
    let limits: Vec<&str> = asked.iter().filter_map(|path| path.split("limit=").nth(1)).collect();
    assert_eq!(limits, ["500", "250", "125", "62"]);
    assert_eq!(reader.clock().now(), began, "nothing was waited for");
}

#[tokio::test]
async fn what_one_version_alone_serves_is_discovered_and_everything_once() {
    let resources = |names: &[&str]| {
        let entry = |name: &&str| json!({"name": name, "kind": name, "namespaced": true, "verbs": ["list"]});
        (200, json!({"resources": names.iter().map(entry).collect::<Vec<_>>()}))
    };
    let (reader, _) = reader(move |path| match path {
        "/apis" => {
            let version = |version: &str| json!({"groupVersion": format!("demo.test/{version}")});
            let versions = [version("v1"), version("v2"), version("v1alpha1")];
            (200, json!({"groups": [{"name": "demo.test", "preferredVersion": version("v2"), "versions": versions}]}))
        }
        "/api/v1" => resources(&["pods"]),
        "/apis/demo.test/v2" => resources(&["widgets"]),
        "/apis/demo.test/v1" => resources(&["widgets", "gadgets"]),
        "/apis/demo.test/v1alpha1" => resources(&["gadgets", "gizmos"]),
        _ => status(404, "NotFound"),
    });
    let found = reader.discover().await.expect("it answers");
    let found: BTreeSet<(String, String)> =
        found.resources.into_iter().map(|resource| (resource.plural, resource.version)).collect();
    let wanted = [("gadgets", "v1"), ("gizmos", "v1alpha1"), ("pods", "v1"), ("widgets", "v2")];
    assert_eq!(found, wanted.map(|(plural, version)| (plural.to_owned(), version.to_owned())).into());
}

/// What a person would see of a refused apply.
async fn refusal_of(object: Value, plural: &str, answer: Interception) -> ClusterError {
    let server = Server::new(Release::v1_36());
    server.intercept(Some(Arc::new(move |request: &RequestRecord| request.dry_run.then(|| answer.clone()))));
    let reader = Reader::new(server.client(), Clock::jumping());
    let kind = object["kind"].as_str().expect("a kind").to_owned();
    let resource = Resource::new("", "v1", plural, &kind, true);
    reader.dry_run_apply(&resource, &Object(object), "sbx", false).await.expect_err("it is refused")
}

#[tokio::test]
async fn a_refusal_quotes_no_value() {
    let object = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "default", "name": "a"}, "data": {"key": "x"}});
    let said = |code: u16, reason: &'static str, message: &str| Interception {
        code,
        reason,
        message: message.into(),
        retry_after: None,
        after: false,
    };
    let typed = "failed to create typed patch object (default/a; /v1, Kind=ConfigMap): .data.key: expected string, \
                 got &value.valueUnstructured{Value:canary}";
    let quoted = r#"a is invalid: data.key: Invalid value: "canary": too short"#;
    for answer in [said(500, "", typed), said(422, "Invalid", quoted)] {
        let refused = refusal_of(object("ConfigMap"), "configmaps", answer).await;
        let shown = format!("{refused} {} {refused:?}", refused.words());
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("data.key"), "the field is what helps: {shown}");
    }
    // A Secret's words are not read at all: nobody knows every form in which they quote.
    for answer in [said(500, "", "cannot make canary a string"), said(400, "BadRequest", "canary is no base64")] {
        let code = answer.code;
        let refused = refusal_of(object("Secret"), "secrets", answer).await;
        let shown = format!("{refused} {} {refused:?}", refused.words());
        assert!(!shown.contains("canary") && shown.contains(&code.to_string()), "{shown}");
    }
    let forbidden = said(403, "Forbidden", "user \"you\" cannot patch secrets");
    let refused = refusal_of(object("Secret"), "secrets", forbidden).await;
    assert!(refused.words().contains("cannot patch secrets"), "what quotes nothing is passed on: {refused}");
}
