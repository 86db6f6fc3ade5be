//! LIST in pages, so that memory stays flat and no request outlives its deadline.

use std::time::Duration;

use serde_json::Value;

use super::{
    ClusterError,
    transport::{Call, JSON, METADATA_LIST, Transport, path},
};
use crate::object::{Object, Resource, api_version};

/// Objects a page asks for at first; halved when the server times out.
const PAGE: u32 = 500;

/// How much of each object a list brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The whole object.
    Full,
    /// Metadata alone.
    Metadata,
}

/// A list under way.
pub struct Pages<'a> {
    pub(super) transport: &'a Transport,
    pub(super) resource: Resource,
    pub(super) namespace: Option<String>,
    pub(super) content: Content,
    pub(super) patience: Duration,
    pub(super) limit: u32,
    pub(super) token: Option<String>,
    pub(super) ended: bool,
    /// Set when a token expired and the list went on from a newer state: not one snapshot.
    pub mixed: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        transport: &'a Transport,
        resource: &Resource,
        namespace: Option<&str>,
        content: Content,
        patience: Duration,
    ) -> Self {
        Self {
            transport,
            resource: resource.clone(),
            namespace: namespace.map(Into::into),
            content,
            patience,
            limit: PAGE,
            token: None,
            ended: false,
            mixed: false,
        }
    }

    /// The next page; none at the end. Items carry `apiVersion` and `kind`, which lists leave out.
    ///
    /// An expired token (410) goes on with the one the server offers: objects may then be seen
    /// twice, so key what you count by uid.
    ///
    /// # Errors
    /// The server's. A failed list is never an empty one.
    pub async fn next(&mut self) -> Result<Option<Vec<Object>>, ClusterError> {
        while !self.ended {
            let accept = match self.content {
                Content::Full => JSON,
                Content::Metadata => METADATA_LIST,
            };
            let attempt = match &self.namespace {
                Some(namespace) => format!("list {} in namespace {namespace}", self.resource),
                None => format!("list {}", self.resource),
            };
            let mut call = Call::get(attempt, path(&self.resource, self.namespace.as_deref(), None))
                .accept(accept)
                .query("limit", self.limit.to_string());
            if let Some(token) = &self.token {
                call = call.query("continue", token.clone());
            }
            match self.transport.read(&call, self.patience).await {
                Ok(mut list) => {
                    self.token = list
                        .pointer("/metadata/continue")
                        .and_then(Value::as_str)
                        .filter(|token| !token.is_empty())
                        .map(Into::into);
                    self.ended = self.token.is_none();
                    return Ok(Some(self.items(&mut list)));
                }
                Err(error) if error.is_expired() && self.token.is_some() => {
                    self.token = error.status().and_then(|status| status.continue_token.clone());
                    self.mixed = true;
                }
                Err(error) if error.code() == 504 && self.limit > 1 => self.limit /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn items(&self, list: &mut Value) -> Vec<Object> {
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let version = api_version(&self.resource.group, &self.resource.version);
        items
            .into_iter()
            .map(|mut item| {
                if let Some(item) = item.as_object_mut() {
                    item.insert("apiVersion".into(), version.clone().into());
                    item.insert("kind".into(), self.resource.kind.clone().into());
                }
                Object(item)
            })
            .collect()
    }
}
