//! Everything that looks: GET, LIST, discovery, dry runs, access reviews.

use std::{fmt, time::Duration};

use http::Method;
use serde_json::{Value, json};

use super::{
    ClusterError,
    pages::{Content, Pages},
    transport::{APPLY_PATCH, Call, JSON, MERGE_PATCH, METADATA, Transport, path},
};
use crate::{
    clock::Clock,
    object::{Object, Resource, split_api_version},
};

/// How long a read is repeated while the server is busy or unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

/// Field manager of every write and dry run of our own.
pub(super) const FIELD_MANAGER: &str = "sbx";

/// A view of the cluster that cannot write.
#[derive(Clone)]
pub struct Reader {
    pub(super) transport: Transport,
    pub(super) patience: Duration,
    /// `https://host:port`, where it came from a kubeconfig.
    server: Option<String>,
}

/// Who answers, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// `gitVersion`: `v1.36.1`.
    pub version: String,
    /// uid of namespace `kube-system`, which stands for the cluster; none when it may not be read.
    pub cluster_uid: Option<String>,
    /// The user as the API server sees it; none when it cannot say.
    pub user: Option<String>,
}

/// One question of an access review.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// `get`, `list`, `patch`, `delete`, …
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with subresource: `customresourcedefinitions/status`.
    pub resource: String,
    /// Namespace; none for all, or for cluster-scoped resources.
    pub namespace: Option<String>,
    /// Name; none for any.
    pub name: Option<String>,
}

/// What discovery found.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// Resources that can be listed, each once: at its group's preferred version, or else at the first that
    /// serves it.
    pub resources: Vec<Resource>,
    /// Group versions that did not answer, with the server's words.
    pub unreachable: Vec<(String, String)>,
}

impl Reader {
    /// A reader over a client; the clock follows the server's time.
    pub fn new(client: kube::Client, clock: Clock) -> Self {
        Self { transport: Transport { client, clock }, patience: PATIENCE, server: None }
    }

    /// The same view of a server whose address is known, to be named when it cannot be reached.
    #[must_use]
    pub(super) fn of_server(self, address: String) -> Self {
        Self { server: Some(address), ..self }
    }

    /// The same view, repeating a read for longer while the server is busy.
    #[must_use]
    pub fn patient(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// The clock that follows the server's time.
    pub fn clock(&self) -> &Clock {
        &self.transport.clock
    }

    /// One object; none when it is not there.
    ///
    /// # Errors
    /// The server's, 404 aside.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterError> {
        self.get_as(resource, namespace, name, JSON).await
    }

    /// One object's metadata; none when it is not there. The way to look at a Secret.
    ///
    /// # Errors
    /// The server's, 404 aside.
    pub async fn get_metadata(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterError> {
        self.get_as(resource, namespace, name, METADATA).await
    }

    async fn get_as(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        accept: &'static str,
    ) -> Result<Option<Object>, ClusterError> {
        match self.request(resource, namespace, name, accept).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn request(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        accept: &'static str,
    ) -> Result<Object, ClusterError> {
        let attempt = format!("get {}", resource.object(namespace, name));
        let call = Call::get(attempt, path(resource, namespace, Some(name))).accept(accept);
        let mut object = self.transport.read(&call, self.patience).await?;
        if accept == METADATA {
            // The answer calls itself PartialObjectMetadata.
            object["apiVersion"] = resource.api_version().into();
            object["kind"] = resource.kind.clone().into();
        }
        Ok(Object(object))
    }

    /// One object; none only when the API says that this object is not there.
    ///
    /// A 404 that is no Status says that nobody serves the path (a CRD not yet served by this server, a proxy in
    /// between), and nothing of the object: what acts on an object being gone asks here.
    ///
    /// # Errors
    /// The server's, the object's own 404 aside.
    pub async fn look_for(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        content: Content,
    ) -> Result<Option<Object>, ClusterError> {
        let accept = match content {
            Content::Full => JSON,
            Content::Metadata => METADATA,
        };
        match self.request(resource, namespace, name, accept).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A LIST in pages, over all namespaces or one.
    pub fn pages(&self, resource: &Resource, namespace: Option<&str>, content: Content) -> Pages<'_> {
        Pages::new(&self.transport, resource, namespace, content, self.patience)
    }

    /// Who answers, and who asks.
    ///
    /// # Errors
    /// `/version` does not answer. What the user may not see is left out.
    pub async fn server_facts(&self) -> Result<ServerFacts, ClusterError> {
        let server = self.server.as_ref().map_or_else(String::new, |address| format!(" {address}"));
        let reach = format!("reach the API server{server}");
        let version = self.transport.read(&Call::get(reach, "/version"), self.patience).await?;
        let namespaces = Resource::new("", "v1", "namespaces", "Namespace", false);
        let cluster = match self.get_metadata(&namespaces, None, "kube-system").await {
            Ok(namespace) => namespace.map(|namespace| namespace.uid().to_owned()),
            Err(error) if error.is_forbidden() => None,
            Err(error) => return Err(error),
        };
        let review = Call::new("ask who we are", Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .body(JSON, json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}));
        let review = self.transport.json(&review).await.ok();
        let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
        Ok(ServerFacts {
            version: text(&version, "/gitVersion").unwrap_or_default(),
            cluster_uid: cluster,
            user: review.and_then(|review| text(&review, "/status/userInfo/username")),
        })
    }

    /// Whether the user may do something.
    ///
    /// # Errors
    /// The review itself is refused.
    pub async fn may(&self, access: &Access) -> Result<bool, ClusterError> {
        let (resource, subresource) = access.resource.split_once('/').unwrap_or((&access.resource, ""));
        let attributes = json!({
            "verb": access.verb, "group": access.group, "resource": resource, "subresource": subresource,
            "namespace": access.namespace, "name": access.name,
        });
        let call = Call::new(
            format!("ask whether we may {} {}", access.verb, access.resource),
            Method::POST,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        )
        .body(
            JSON,
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }),
        );
        let review = self.transport.json(&call).await?;
        Ok(review.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }

    /// Dry run of a merge patch: what the object would become.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn dry_run_patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: Value,
    ) -> Result<Object, ClusterError> {
        let attempt = format!("dry-run patch {}", resource.object(namespace, name));
        let call = Call::new(attempt, Method::PATCH, path(resource, namespace, Some(name)))
            .query("dryRun", "All")
            .query("fieldManager", FIELD_MANAGER)
            .body(MERGE_PATCH, patch);
        self.transport.json(&call).await.map(Object)
    }

    /// Dry run of a server-side apply in a field manager's name: what the object would become.
    ///
    /// # Errors
    /// The server's refusal, with its causes by field.
    pub async fn dry_run_apply(
        &self,
        resource: &Resource,
        object: &Object,
        manager: &str,
        force: bool,
    ) -> Result<Object, ClusterError> {
        let call = apply(resource, object, manager, force).query("dryRun", "All");
        self.transport.json(&call).await.map(Object)
    }

    /// Discovery of one group version; none when it is not served.
    ///
    /// # Errors
    /// The server's, 404 aside.
    pub async fn resources_of(&self, api_version: &str) -> Result<Option<Vec<Resource>>, ClusterError> {
        let (group, version) = split_api_version(api_version);
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let list = match self.transport.read(&Call::get(format!("discover {api_version}"), path), self.patience).await {
            Ok(list) => list,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let entries = list.get("resources").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Ok(Some(
            entries
                .iter()
                .filter(|entry| !text(entry, "name").contains('/'))
                .filter(|entry| {
                    let verbs = entry.get("verbs").and_then(Value::as_array);
                    verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"))
                })
                .map(|entry| Resource {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    plural: text(entry, "name"),
                    kind: text(entry, "kind"),
                    namespaced: entry.get("namespaced").and_then(Value::as_bool).unwrap_or(false),
                })
                .collect(),
        ))
    }

    /// Every resource that can be listed, at its group's preferred version where that has it.
    ///
    /// A group that does not answer (a broken aggregated API) is reported, not an error.
    ///
    /// # Errors
    /// The list of groups itself cannot be read.
    pub async fn discover(&self) -> Result<Discovered, ClusterError> {
        let groups = self.transport.read(&Call::get("discover the API groups", "/apis"), self.patience).await?;
        let mut versions = vec!["v1".to_owned()];
        for group in groups.get("groups").and_then(Value::as_array).into_iter().flatten() {
            versions.extend(preferred_first(group));
        }
        let mut found = Discovered::default();
        // One refused group must not cost a retry bound each.
        let quick = self.patient(Duration::ZERO);
        for version in versions {
            match quick.resources_of(&version).await {
                Ok(Some(resources)) => {
                    for resource in resources {
                        let known =
                            |other: &Resource| (&other.group, &other.plural) == (&resource.group, &resource.plural);
                        // Newer kinds and those on their way out are often served at one version alone.
                        if !found.resources.iter().any(known) {
                            found.resources.push(resource);
                        }
                    }
                }
                Ok(None) => {}
                Err(error) => found.unreachable.push((version, error.words())),
            }
        }
        Ok(found)
    }

    /// The API server's metrics as text.
    ///
    /// # Errors
    /// The server's; usually 403.
    pub async fn metrics(&self) -> Result<String, ClusterError> {
        let body = self.transport.bytes(&Call::get("read /metrics", "/metrics").accept("text/plain")).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// Every group version that a group serves, the preferred one first.
fn preferred_first(group: &Value) -> Vec<String> {
    let name = |of: &Value| of.get("groupVersion").and_then(Value::as_str).map(ToOwned::to_owned);
    let mut versions: Vec<String> = group.get("preferredVersion").and_then(name).into_iter().collect();
    for version in group.get("versions").and_then(Value::as_array).into_iter().flatten().filter_map(name) {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    versions
}

/// A server-side apply.
pub(super) fn apply(resource: &Resource, object: &Object, manager: &str, force: bool) -> Call {
    let namespace = object.namespace();
    let attempt = format!("apply {} as {manager}", resource.object(namespace, object.name()));
    Call::new(attempt, Method::PATCH, path(resource, namespace, Some(object.name())))
        .query("fieldManager", manager)
        .query("force", force.to_string())
        .body(APPLY_PATCH, object.0.clone())
}

/// `customresourcedefinitions/status`, `sandboxes.agents.x-k8s.io`: a plural with its group, which is left out where
/// there is no other of that name.
pub fn full_name(group: &str, resource: &str) -> String {
    let (plural, subresource) = resource.split_at(resource.find('/').unwrap_or(resource.len()));
    match group {
        "" => resource.into(),
        "apiextensions.k8s.io" if plural == "customresourcedefinitions" => resource.into(),
        _ => format!("{plural}.{group}{subresource}"),
    }
}

/// `patch customresourcedefinitions/status (widgets.demo.test)`, `get deployments.apps (api) in namespace web`.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, full_name(&self.group, &self.resource))?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}
