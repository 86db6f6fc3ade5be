//! The API server's audit log: who asked what, and what the answer was.

use serde_json::Value;

/// One answered request.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    /// User, as the API server saw it.
    pub user: String,
    /// What the client called itself.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, ...
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// API group; empty for the core group and for paths that are no resource.
    pub group: String,
    /// Version asked for.
    pub version: String,
    /// Plural; empty for paths that are no resource.
    pub resource: String,
    /// Subresource; empty for the main resource.
    pub subresource: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Object; empty where the request named none.
    pub name: String,
    /// HTTP status of the answer.
    pub code: u64,
    /// The event as it was logged.
    pub raw: Value,
}

impl AuditEvent {
    fn parse(line: &str) -> Option<Self> {
        let raw: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| raw.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            user: text("/user/username"),
            user_agent: text("/userAgent"),
            verb: text("/verb"),
            uri: text("/requestURI"),
            group: text("/objectRef/apiGroup"),
            version: text("/objectRef/apiVersion"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: raw.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
            raw,
        })
    }

    /// Whether it was only a trial: `dryRun=All`.
    pub fn dry_run(&self) -> bool {
        self.uri.split(['?', '&']).any(|part| part == "dryRun=All")
    }

    /// Whether it asked to change something that stays: neither a dry run nor an access review.
    pub fn writes(&self) -> bool {
        let verb = matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
        let review = self.group == "authorization.k8s.io" || self.group == "authentication.k8s.io";
        verb && !self.dry_run() && !review
    }
}

/// The finished requests of a log, in its order. A watch is logged twice; its start is left out.
pub(super) fn parse(log: &str) -> Vec<AuditEvent> {
    log.lines().filter_map(AuditEvent::parse).filter(|event| event.raw["stage"] != "ResponseStarted").collect()
}
