//! Everything that changes the cluster. Only apply gets a [`Writer`].

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::Method;
use serde_json::{Value, json};

use super::{
    ClusterError, Reader,
    read::{FIELD_MANAGER, apply},
    transport::{Call, JSON, MERGE_PATCH, path},
};
use crate::object::{Object, Resource};

/// A view of the cluster that can write. Each method sends exactly one request and never retries:
/// what to do about an answer is the step's decision.
#[derive(Clone)]
pub struct Writer {
    reader: Reader,
    in_flight: InFlight,
}

/// Writes that were sent and not answered yet, each as what was attempted.
#[derive(Clone, Debug, Default)]
struct InFlight(Arc<Mutex<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    next: u64,
    attempts: BTreeMap<u64, String>,
}

/// One write under way; over when it is dropped, however that came.
struct Underway<'a> {
    of: &'a InFlight,
    number: u64,
}

impl InFlight {
    fn sent(&self) -> MutexGuard<'_, Sent> {
        // Every entry is whole whatever its last writer did.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, attempt: &str) -> Underway<'_> {
        let mut sent = self.sent();
        sent.next += 1;
        let number = sent.next;
        sent.attempts.insert(number, attempt.into());
        Underway { of: self, number }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.of.sent().attempts.remove(&self.number);
    }
}

impl Writer {
    /// The right to write, over a reader.
    pub fn new(reader: Reader) -> Self {
        Self { reader, in_flight: InFlight::default() }
    }

    /// What was sent and not answered yet: `patch Sandbox team-a/s1`. Clones see the same.
    pub fn in_flight(&self) -> Vec<String> {
        self.in_flight.sent().attempts.values().cloned().collect()
    }

    async fn send(&self, call: &Call) -> Result<Object, ClusterError> {
        let _underway = self.in_flight.begin(call.attempt());
        self.reader.transport.json(call).await.map(Object)
    }

    /// The view that cannot write.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Merge patch of the main resource. Put `metadata.uid` and `metadata.resourceVersion` in it:
    /// they are its preconditions.
    ///
    /// # Errors
    /// The server's.
    pub async fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: Value,
    ) -> Result<Object, ClusterError> {
        self.send_patch(resource, namespace, name, None, patch).await
    }

    /// Merge patch of `/status`.
    ///
    /// # Errors
    /// The server's.
    pub async fn patch_status(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: Value,
    ) -> Result<Object, ClusterError> {
        self.send_patch(resource, namespace, name, Some("status"), patch).await
    }

    async fn send_patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
        patch: Value,
    ) -> Result<Object, ClusterError> {
        let mut target = path(resource, namespace, Some(name));
        let mut attempt = format!("patch {}", resource.object(namespace, name));
        if let Some(subresource) = subresource {
            target = format!("{target}/{subresource}");
            attempt = format!("{attempt} ({subresource})");
        }
        let call =
            Call::new(attempt, Method::PATCH, target).query("fieldManager", FIELD_MANAGER).body(MERGE_PATCH, patch);
        self.send(&call).await
    }

    /// Server-side apply in our own name.
    ///
    /// # Errors
    /// The server's; 409 names the managers whose fields it would take.
    pub async fn apply(&self, resource: &Resource, object: &Object, force: bool) -> Result<Object, ClusterError> {
        self.send(&apply(resource, object, FIELD_MANAGER, force)).await
    }

    /// Server-side apply in another manager's name, taking fields over: what a rehearsal plays.
    ///
    /// # Errors
    /// The server's.
    pub async fn apply_as(&self, resource: &Resource, object: &Object, manager: &str) -> Result<Object, ClusterError> {
        self.send(&apply(resource, object, manager, true)).await
    }

    /// Deletes exactly this object in exactly this state.
    ///
    /// # Errors
    /// The server's: 404 gone, 409 changed or re-created since.
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), ClusterError> {
        let attempt = format!("delete {}", resource.object(namespace, name));
        let call = Call::new(attempt, Method::DELETE, path(resource, namespace, Some(name))).body(
            JSON,
            json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
                "preconditions": {"uid": uid, "resourceVersion": resource_version},
            }),
        );
        let _underway = self.in_flight.begin(call.attempt());
        self.reader.transport.bytes(&call).await.map(drop)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// The server's: 409 when it exists.
    pub async fn create(&self, resource: &Resource, object: &Object) -> Result<Object, ClusterError> {
        let attempt = format!("create {}", object.reference());
        let call = Call::new(attempt, Method::POST, path(resource, object.namespace(), None))
            .query("fieldManager", FIELD_MANAGER)
            .body(JSON, object.0.clone());
        self.send(&call).await
    }

    /// Replaces an object; its `metadata.resourceVersion` is the precondition.
    ///
    /// # Errors
    /// The server's: 409 when it changed since.
    pub async fn replace(&self, resource: &Resource, object: &Object) -> Result<Object, ClusterError> {
        let attempt = format!("replace {}", object.reference());
        let call = Call::new(attempt, Method::PUT, path(resource, object.namespace(), Some(object.name())))
            .query("fieldManager", FIELD_MANAGER)
            .body(JSON, object.0.clone());
        self.send(&call).await
    }
}
