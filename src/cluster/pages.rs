//! LIST in pages, so that memory stays flat and no request outlives its deadline.

use std::{collections::HashSet, time::Duration};

use serde_json::Value;

use super::{
    ClusterError,
    transport::{Call, JSON, METADATA_LIST, Transport, path},
};
use crate::object::{Object, Resource, api_version};

/// Objects a page asks for at first; halved when the server times out.
const PAGE: u32 = 500;

/// Tokens that may expire without a page in between, and starts from the beginning.
const RESTARTS: u32 = 5;

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
    transport: &'a Transport,
    resource: Resource,
    namespace: Option<String>,
    content: Content,
    patience: Duration,
    limit: u32,
    token: Option<String>,
    ended: bool,
    /// uids that were handed out.
    seen: HashSet<String>,
    /// Tokens that expired since the last page.
    expired: u32,
    /// Times it had to begin again.
    restarts: u32,
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
            seen: HashSet::new(),
            expired: 0,
            restarts: 0,
            mixed: false,
        }
    }

    /// Asks for at most this many objects a page.
    #[must_use]
    pub fn at_most(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// The next page; none at the end. Items carry `apiVersion` and `kind`, which lists leave out.
    ///
    /// An expired token (410) goes on with the one the server offers, or from the beginning: the server
    /// may then send an object twice, and it is handed out once.
    ///
    /// # Errors
    /// The server's. A failed list is never an empty one. A list whose tokens expire again and again ends.
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
            // A page that takes too long is asked for again at half the size, not at the same.
            let too_much = self.limit > 1;
            match self.transport.read_unless(&call, self.patience, |error| too_much && error.is_timeout()).await {
                Ok(mut list) => {
                    self.token = list
                        .pointer("/metadata/continue")
                        .and_then(Value::as_str)
                        .filter(|token| !token.is_empty())
                        .map(Into::into);
                    self.ended = self.token.is_none();
                    self.expired = 0;
                    return Ok(Some(self.items(&mut list)));
                }
                Err(error) if error.is_expired() && self.token.is_some() => {
                    self.token = error.status().and_then(|status| status.continue_token.clone());
                    self.mixed = true;
                    self.expired += 1;
                    self.restarts += u32::from(self.token.is_none());
                    if self.expired > RESTARTS || self.restarts > RESTARTS {
                        return Err(error);
                    }
                }
                Err(error) if too_much && error.is_timeout() => self.limit /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn items(&mut self, list: &mut Value) -> Vec<Object> {
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let version = api_version(&self.resource.group, &self.resource.version);
        let Self { seen, resource, .. } = self;
        items
            .into_iter()
            .map(|mut item| {
                if let Some(item) = item.as_object_mut() {
                    item.insert("apiVersion".into(), version.clone().into());
                    item.insert("kind".into(), resource.kind.clone().into());
                }
                Object(item)
            })
            .filter(|object| object.uid().is_empty() || seen.insert(object.uid().to_owned()))
            .collect()
    }
}
