//! The server's answer, kept whole, and what is read from objects again and again.

use http::HeaderMap;
use serde_json::{Value, json};

use crate::support::Result;
use crate::support::api::Refusal;

/// One answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// Method and path of the request.
    pub(super) request: String,
    /// HTTP status.
    pub(super) code: u16,
    /// Its headers.
    pub(super) headers: HeaderMap,
    /// JSON; a string where it was none.
    pub(super) body: Value,
}

impl Answer {
    /// The object. A refusal is an error in the server's words.
    pub(super) fn ok(self) -> Result<Value> {
        if self.code < 300 { Ok(self.body) } else { Err(self.refusal().into()) }
    }

    /// The refusal; an error when the server did not refuse, or with another code.
    pub(super) fn refused(self, code: u16) -> Result<Refusal> {
        if self.code == code {
            return Ok(self.refusal());
        }
        Err(format!("{}: wanted {code}, got {} {}", self.request, self.code, self.body).into())
    }

    /// A header; empty where there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn refusal(self) -> Refusal {
        Refusal { request: self.request, code: self.code, status: self.body }
    }
}

/// `metadata.resourceVersion`.
pub(super) fn version_of(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// `metadata.uid`.
pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// `metadata.name` of the items of a list.
pub(super) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// The managedFields entries in short, sorted: `seed Update v1alpha1`, `ctl Apply v1beta1 status`.
pub(super) fn managers(object: &Value) -> Vec<String> {
    let short = |entry: &Value| {
        let version = entry["apiVersion"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let words = [&entry["manager"], &entry["operation"], &version.into(), &entry["subresource"]];
        words.iter().filter_map(|word| word.as_str()).collect::<Vec<_>>().join(" ")
    };
    let mut entries: Vec<_> = entries(object).iter().map(short).collect();
    entries.sort();
    entries
}

/// `fieldsV1` of the first entry of a manager; null where it has none.
pub(super) fn owned<'a>(object: &'a Value, manager: &str) -> &'a Value {
    entries(object).iter().find(|entry| entry["manager"] == manager).map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

/// The managedFields.
pub(super) fn entries(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// `field: message` of each cause, in the server's order.
pub(super) fn causes(refusal: &Refusal) -> Vec<String> {
    let causes = refusal.status.pointer("/details/causes").and_then(Value::as_array);
    let line = |cause: &Value| {
        format!("{}: {}", cause["field"].as_str().unwrap_or("-"), cause["message"].as_str().unwrap_or("-"))
    };
    causes.into_iter().flatten().map(line).collect()
}

/// A patch that holds for this very state of the object, with more metadata.
pub(super) fn exactly(object: &Value, metadata: &Value) -> Value {
    let mut patch = json!({"metadata": {"resourceVersion": version_of(object), "uid": uid(object)}});
    for (key, value) in metadata.as_object().into_iter().flatten() {
        patch["metadata"][key] = value.clone();
    }
    patch
}
