//! A server under test: what it must offer beside HTTP, and requests to it.

use std::sync::Arc;

use futures::future::LocalBoxFuture;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use serde_json::Value;

use super::answer::Answer;
use super::define::Definition;
use crate::support::webhook::Converter;
use crate::support::{Error, Result};

/// JSON merge patch.
const MERGE: &str = "application/merge-patch+json";
/// Server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// What a server offers beside HTTP.
pub trait Server: Send + Sync {
    /// Which Kubernetes 1.MINOR it is, or follows.
    fn minor(&self) -> u32;

    /// A client that signs in as `user`: `admin` may do anything, `nobody` nothing.
    fn client(&self, user: &'static str) -> LocalBoxFuture<'_, Result<kube::Client>>;

    /// The stored records of a definition, as `namespace/name` and the object in its stored version.
    fn stored<'a>(&'a self, crd: &'a str) -> LocalBoxFuture<'a, Result<Vec<(String, Value)>>>;

    /// A definition was created. A kube-apiserver holds creates of its objects back for two seconds, as another one may
    /// not serve it yet; whoever knows that there is no other may lift that.
    fn defined<'a>(&'a self, crd: &'a str) -> LocalBoxFuture<'a, Result<()>>;

    /// Forgets every revision before the current one.
    fn compact(&self) -> LocalBoxFuture<'_, Result<()>>;

    /// Converts the objects of a group by `convert` from now on, where the definition points at the answer: a
    /// `spec.conversion.webhook.clientConfig` that works.
    fn convert(&self, group: &str, convert: Converter) -> Value;
}

/// The server, as one check sees it.
#[derive(Clone)]
pub struct Target {
    pub(super) server: Arc<dyn Server>,
    /// The API group that this check alone uses.
    pub(super) group: String,
    user: &'static str,
}

impl Target {
    /// For the check of that name.
    pub(super) fn new(server: &Arc<dyn Server>, module: &str, name: &str) -> Self {
        let mut label = format!("{module}-{name}").replace('_', "-");
        label.truncate(60);
        Self { server: Arc::clone(server), group: format!("{}.test", label.trim_end_matches('-')), user: "admin" }
    }

    /// Which Kubernetes 1.MINOR this is.
    pub(super) fn minor(&self) -> u32 {
        self.server.minor()
    }

    /// The same server, for another user.
    pub(super) fn as_user(&self, user: &'static str) -> Self {
        Self { user, ..self.clone() }
    }

    /// A definition to be installed: see [`Definition`].
    pub(super) fn define(&self) -> Definition {
        Definition::new(self.clone())
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, &[], None).await
    }

    /// GET in another form, such as `PartialObjectMetadata`.
    pub(super) async fn get_as(&self, path: &str, kind: &str) -> Result<Answer> {
        self.send(Method::GET, path, &[(header::ACCEPT, &form(kind))], None).await
    }

    pub(super) async fn post(&self, path: &str, object: &Value) -> Result<Answer> {
        self.send(Method::POST, path, &[(header::CONTENT_TYPE, "application/json")], Some(object)).await
    }

    pub(super) async fn put(&self, path: &str, object: &Value) -> Result<Answer> {
        self.send(Method::PUT, path, &[(header::CONTENT_TYPE, "application/json")], Some(object)).await
    }

    pub(super) async fn merge(&self, path: &str, patch: &Value) -> Result<Answer> {
        self.send(Method::PATCH, path, &[(header::CONTENT_TYPE, MERGE)], Some(patch)).await
    }

    /// Merge patch, answered in another form.
    pub(super) async fn merge_as(&self, path: &str, kind: &str, patch: &Value) -> Result<Answer> {
        let headers = [(header::CONTENT_TYPE, MERGE), (header::ACCEPT, &form(kind))];
        self.send(Method::PATCH, path, &headers, Some(patch)).await
    }

    /// Server-side apply; manager and force are in the path's query.
    pub(super) async fn apply(&self, path: &str, object: &Value) -> Result<Answer> {
        self.send(Method::PATCH, path, &[(header::CONTENT_TYPE, APPLY)], Some(object)).await
    }

    pub(super) async fn delete(&self, path: &str, options: &Value) -> Result<Answer> {
        self.send(Method::DELETE, path, &[(header::CONTENT_TYPE, "application/json")], Some(options)).await
    }

    /// Any request.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(header::HeaderName, &str)],
        body: Option<&Value>,
    ) -> Result<Answer> {
        let what = format!("{method} {path}");
        let failed = |error: &dyn std::fmt::Display| Error::from(format!("{what}: {error}"));
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        if !headers.iter().any(|(name, _)| name == header::ACCEPT) {
            request = request.header(header::ACCEPT, "application/json");
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(body.into()).map_err(|error| failed(&error))?;
        let client = self.server.client(self.user).await?;
        let response = client.send(request).await.map_err(|error| failed(&error))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| failed(&error))?.to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { request: what, code: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// The first events of a watch.
    pub(super) async fn watch(&self, path: &str, count: usize) -> Result<Vec<Value>> {
        self.watch_as(path, count, None).await
    }

    /// The first events of a watch, with objects in another form.
    pub(super) async fn watch_as(&self, path: &str, count: usize, kind: Option<&str>) -> Result<Vec<Value>> {
        let and = if path.contains('?') { '&' } else { '?' };
        let accept = kind.map_or_else(|| "application/json".into(), form);
        let request = Request::get(format!("{path}{and}watch=true&timeoutSeconds=20")).header(header::ACCEPT, accept);
        let request = request.body(Vec::new().into())?;
        let response = self.server.client(self.user).await?.send(request).await?;
        let (mut body, mut bytes, mut events) = (response.into_body(), Vec::new(), Vec::new());
        while events.len() < count {
            let frame = body.frame().await.ok_or_else(|| format!("{path}: the watch ended after {events:?}"))??;
            bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = bytes.drain(..=end).collect();
                events.push(serde_json::from_slice(&line)?);
            }
        }
        Ok(events)
    }
}

fn form(kind: &str) -> String {
    format!("application/json;as={kind};g=meta.k8s.io;v=v1")
}
