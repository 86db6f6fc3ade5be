//! One request and its answer: JSON in, JSON or the server's error out.

use std::time::Duration;

use http::{Method, Request, header};
use http_body_util::BodyExt;
use jiff::{Timestamp, fmt::rfc2822};
use kube::client::Body;
use serde_json::Value;

use super::{
    ClusterError,
    error::{Fault, chain, read_status},
};
use crate::{clock::Clock, object::Resource};

/// Longest a single request may take; the API server gives up on its own after 60 s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(70);

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// Metadata-only answers: neither spec nor data of any object leaves the server.
pub(super) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What a request sends.
pub(super) struct Call {
    attempt: String,
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    accept: &'static str,
    content_type: &'static str,
    body: Option<Value>,
}

impl Call {
    pub(super) fn get(attempt: impl Into<String>, path: impl Into<String>) -> Self {
        Self::new(attempt, Method::GET, path)
    }

    pub(super) fn new(attempt: impl Into<String>, method: Method, path: impl Into<String>) -> Self {
        Self {
            attempt: attempt.into(),
            method,
            path: path.into(),
            query: Vec::new(),
            accept: JSON,
            content_type: JSON,
            body: None,
        }
    }

    /// What it attempts, in words.
    pub(super) fn attempt(&self) -> &str {
        &self.attempt
    }

    pub(super) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(super) fn query(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query.push((key, value.into()));
        self
    }

    pub(super) fn body(mut self, content_type: &'static str, body: Value) -> Self {
        self.content_type = content_type;
        self.body = Some(body);
        self
    }
}

/// URL path of a resource's collection, or of one object in it.
pub(super) fn path(resource: &Resource, namespace: Option<&str>, name: Option<&str>) -> String {
    resource.path(namespace, name)
}

/// A connection, and the clock that follows the server's time.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) client: kube::Client,
    pub(super) clock: Clock,
}

impl Transport {
    /// Sends once; never retries.
    ///
    /// # Errors
    /// [`Fault::Status`] for any answer that is not 2xx, [`Fault::Transport`] or [`Fault::Timeout`] without one.
    pub(super) async fn bytes(&self, call: &Call) -> Result<Vec<u8>, ClusterError> {
        let fail = |fault| ClusterError { attempt: call.attempt.clone(), fault };
        let mut uri = call.path.clone();
        for (index, (key, value)) in call.query.iter().enumerate() {
            uri.push(if index == 0 { '?' } else { '&' });
            uri.push_str(key);
            uri.push('=');
            uri.push_str(&escape_query(value));
        }
        let body = call.body.as_ref().map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = Request::builder()
            .method(call.method.clone())
            .uri(uri)
            .header(header::ACCEPT, call.accept)
            .header(header::CONTENT_TYPE, call.content_type)
            .body(Body::from(body))
            .map_err(|error| fail(Fault::Transport(error.to_string())))?;
        let exchange = async {
            let reply = self.client.send(request).await.map_err(|error| fail(Fault::Transport(chain(&error))))?;
            let (head, body) = reply.into_parts();
            let body = body.collect().await.map_err(|error| fail(Fault::Transport(chain(&error))))?.to_bytes();
            Ok((head, body))
        };
        let (head, body) = tokio::time::timeout(REQUEST_TIMEOUT, exchange)
            .await
            .map_err(|_| fail(Fault::Timeout(REQUEST_TIMEOUT.as_secs())))??;
        if let Some(date) = head.headers.get(header::DATE).and_then(|date| parse_date(date.to_str().ok()?)) {
            self.clock.follow(date);
        }
        if head.status.is_success() {
            return Ok(body.to_vec());
        }
        let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut status = read_status(head.status.as_u16(), &body, retry_after);
        if is_about_secrets(&call.path) {
            status.withhold_words();
        }
        Err(fail(Fault::Status(Box::new(status))))
    }

    /// Sends once and reads JSON.
    ///
    /// # Errors
    /// Those of [`Transport::bytes`], and [`Fault::Decode`].
    pub(super) async fn json(&self, call: &Call) -> Result<Value, ClusterError> {
        let body = self.bytes(call).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ClusterError { attempt: call.attempt.clone(), fault: Fault::Decode(error.to_string()) })
    }

    /// Sends a read, and again while the server is busy or does not answer, up to `patience`.
    ///
    /// # Errors
    /// The last answer's.
    pub(super) async fn read(&self, call: &Call, patience: Duration) -> Result<Value, ClusterError> {
        self.read_unless(call, patience, |_| false).await
    }

    /// Like [`Transport::read`], but hands an answer back at once that is better asked in another way.
    ///
    /// # Errors
    /// The last answer's.
    pub(super) async fn read_unless(
        &self,
        call: &Call,
        patience: Duration,
        hand_back: impl Fn(&ClusterError) -> bool,
    ) -> Result<Value, ClusterError> {
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_millis(100);
        loop {
            let error = match self.json(call).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let asked = error.status().and_then(|status| status.retry_after).map(Duration::from_secs);
            let wait = asked.unwrap_or(pause).min(Duration::from_secs(10));
            let again = error.is_busy() || error.code() == 504 || error.is_unanswered();
            if !again || hand_back(&error) || waited + wait > patience {
                return Err(error);
            }
            self.clock.sleep(wait).await;
            waited += wait;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }
}

/// Whether a path leads to Secrets of the core group.
fn is_about_secrets(path: &str) -> bool {
    path.starts_with("/api/v1/") && path.split('/').any(|part| part == "secrets")
}

fn parse_date(text: &str) -> Option<Timestamp> {
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

fn escape_query(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
