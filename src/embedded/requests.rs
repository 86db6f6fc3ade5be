//! What was asked and answered: an audit log, and the metric made from it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// One request and the code of its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRecord {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Version asked for.
    pub version: String,
    /// Plural; empty for a path that is no resource.
    pub resource: String,
    /// `status`; empty for the main resource.
    pub subresource: String,
    /// Namespace; empty for all, or for none.
    pub namespace: String,
    /// Name; empty for a list.
    pub name: String,
    /// Path, without the query.
    pub path: String,
    /// Whether it was server-side apply.
    pub apply: bool,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// Whether metadata alone was asked for.
    pub metadata_only: bool,
    /// The field manager it names; empty for none.
    pub field_manager: String,
    /// HTTP status of the answer; 0 while it is under way.
    pub code: u16,
}

/// An answer in place of the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interception {
    /// HTTP status.
    pub code: u16,
    /// Reason of the Status.
    pub reason: &'static str,
    /// Message of the Status.
    pub message: String,
    /// Seconds of a `Retry-After` header.
    pub retry_after: Option<u32>,
    /// Whether the request was carried out nevertheless, and only its answer lost.
    pub after: bool,
}

/// Decides about each request whether something else is answered.
pub type Intercept = Arc<dyn Fn(&RequestRecord) -> Option<Interception> + Send + Sync>;

impl RequestRecord {
    /// Whether it may have changed something.
    pub fn writes(&self) -> bool {
        !self.dry_run && matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete")
    }
}

/// `apiserver_request_total`, in the text format of the metrics path. `before`: what was counted elsewhere.
pub(super) fn metrics(requests: &[RequestRecord], before: &[(RequestRecord, u64)]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let all = before.iter().map(|(request, times)| (request, *times));
    let all = all.chain(requests.iter().map(|request| (request, 1)));
    for (request, times) in all.filter(|(request, _)| !request.resource.is_empty()) {
        let verb = match request.verb.as_str() {
            "create" => "POST".into(),
            "update" => "PUT".into(),
            "patch" if request.apply => "APPLY".into(),
            other => other.to_uppercase(),
        };
        let scope = match (request.name.is_empty(), request.namespace.is_empty()) {
            (true, _) if request.verb == "create" => "resource",
            (false, _) => "resource",
            (true, false) => "namespace",
            (true, true) => "cluster",
        };
        let labels = format!(
            "code=\"{}\",component=\"apiserver\",dry_run=\"{}\",group=\"{}\",resource=\"{}\",scope=\"{scope}\",\
             subresource=\"{}\",verb=\"{verb}\",version=\"{}\"",
            request.code,
            if request.dry_run { "All" } else { "" },
            request.group,
            request.resource,
            request.subresource,
            request.version,
        );
        *counts.entry(labels).or_default() += times;
    }
    let mut text = String::from(
        "# HELP apiserver_request_total [STABLE] Counter of apiserver requests broken out for each verb, dry run \
         value, group, version, resource, scope, component, and HTTP response code.\n\
         # TYPE apiserver_request_total counter\n",
    );
    for (labels, count) in counts {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "apiserver_request_total{{{labels}}} {count}");
    }
    text
}
