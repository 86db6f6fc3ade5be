//! Requests to an API server as any client may send them: a path, JSON, and the server's own answer.

use std::fmt;

use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};

/// A resource at no particular version, and the paths of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural, lower case.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
}

impl Resource {
    /// A resource by its parts.
    pub const fn new(group: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self { group, plural, kind }
    }

    /// `plural.group`: the name of its CRD.
    pub fn crd(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.into() } else { format!("{}/{version}", self.group) }
    }

    /// The path of its list in every namespace, or of its cluster-scoped objects.
    pub fn all(&self, version: &str) -> String {
        format!("{}/{}", self.root(version), self.plural)
    }

    /// The path of its list in a namespace.
    pub fn list(&self, version: &str, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root(version), self.plural)
    }

    /// The path of one object in a namespace.
    pub fn object(&self, version: &str, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.list(version, namespace))
    }

    fn root(&self, version: &str) -> String {
        let prefix = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{prefix}/{}", self.api_version(version))
    }
}

/// An answer that is no success: the server's words, kept whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Method and path of the request.
    pub request: String,
    /// HTTP status; 0 when there was no answer.
    pub code: u16,
    /// The Status object; a JSON string where the answer was none.
    pub status: Value,
}

impl Refusal {
    /// The server's message, word for word.
    pub fn message(&self) -> &str {
        self.status["message"].as_str().or(self.status.as_str()).unwrap_or_default()
    }

    /// `details.causes[].field`, in the server's order.
    pub fn causes(&self) -> Vec<&str> {
        let causes = self.status.pointer("/details/causes").and_then(Value::as_array);
        causes.into_iter().flatten().filter_map(|cause| cause["field"].as_str()).collect()
    }

    /// No answer at all.
    pub(super) fn no_answer(request: &str, error: impl fmt::Display) -> Self {
        Self { request: request.into(), code: 0, status: Value::String(error.to_string()) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.request, self.code, self.message())
    }
}

impl std::error::Error for Refusal {}

/// The API server as one user sees it. Field managers are named per request, as the clients that the tests play
/// are many.
#[derive(Clone)]
pub struct Api {
    /// For what this type does not offer.
    pub client: kube::Client,
}

impl Api {
    /// GET.
    pub async fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.send(Method::GET, path, "", None).await
    }

    /// The items of a list.
    pub async fn items(&self, path: &str) -> Result<Vec<Value>, Refusal> {
        let list = self.get(path).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// POST, as `manager`.
    pub async fn create(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Refusal> {
        let path = with_query(path, &format!("fieldManager={manager}"));
        self.send(Method::POST, &path, "application/json", Some(object)).await
    }

    /// PUT, as `manager`.
    pub async fn replace(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Refusal> {
        let path = with_query(path, &format!("fieldManager={manager}"));
        self.send(Method::PUT, &path, "application/json", Some(object)).await
    }

    /// PATCH by JSON merge patch, as `manager`.
    pub async fn merge(&self, path: &str, manager: &str, patch: &Value) -> Result<Value, Refusal> {
        let path = with_query(path, &format!("fieldManager={manager}"));
        self.send(Method::PATCH, &path, "application/merge-patch+json", Some(patch)).await
    }

    /// PATCH by server-side apply with force, as `manager`.
    pub async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<Value, Refusal> {
        let path = with_query(path, &format!("fieldManager={manager}&force=true"));
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(object)).await
    }

    /// DELETE in the background, as kubectl does.
    pub async fn delete(&self, path: &str) -> Result<Value, Refusal> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        self.send(Method::DELETE, path, "application/json", Some(&options)).await
    }

    /// DELETE where an absent object is as good as a deleted one.
    pub async fn delete_if_there(&self, path: &str) -> Result<(), Refusal> {
        match self.delete(path).await {
            Err(refusal) if refusal.code != 404 => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Any request; an answer of 300 or more is an error that keeps the server's words.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refusal> {
        let what = format!("{method} {path}");
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let request = request.body(bytes.into()).map_err(|error| Refusal::no_answer(&what, error))?;
        let response = self.client.send(request).await.map_err(|error| Refusal::no_answer(&what, error))?;
        let code = response.status();
        let body = response.into_body().collect().await.map_err(|error| Refusal::no_answer(&what, error))?.to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
        let answer = serde_json::from_slice(&body).unwrap_or_else(|_| text());
        if code.is_success() { Ok(answer) } else { Err(Refusal { request: what, code: code.as_u16(), status: answer }) }
    }
}

fn with_query(path: &str, query: &str) -> String {
    format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' })
}
