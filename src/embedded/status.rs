//! What the server says when it refuses: a `Status` object, or the plain text of a path it does not serve.

use serde_json::{Value, json};

/// One cause of an invalid object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// `FieldValueInvalid` and its like.
    pub(super) reason: &'static str,
    /// Path of the field, without a leading dot.
    pub(super) field: String,
    /// What is wrong, without the field.
    pub(super) body: String,
}

impl Cause {
    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueRequired", field: field.into(), body: joined("Required value", detail) }
    }

    pub(super) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self { reason: "FieldValueInvalid", field: field.into(), body: format!("Invalid value: {value}: {detail}") }
    }

    pub(super) fn wrong_type(field: impl Into<String>, found: &str, detail: &str) -> Self {
        let body = format!("Invalid value: \"{found}\": {detail}");
        Self { reason: "FieldValueTypeInvalid", field: field.into(), body }
    }

    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), body: joined("Forbidden", detail) }
    }

    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueDuplicate", field: field.into(), body: format!("Duplicate value: {value}") }
    }

    pub(super) fn unsupported(field: impl Into<String>, value: &Value, supported: &[Value]) -> Self {
        let supported: Vec<_> = supported.iter().map(ToString::to_string).collect();
        let body = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported", field: field.into(), body }
    }

    pub(super) fn too_long(field: impl Into<String>, most: u64) -> Self {
        let body = format!("Too long: may not be more than {most} bytes");
        Self { reason: "FieldValueTooLong", field: field.into(), body }
    }

    pub(super) fn text(&self) -> String {
        format!("{}: {}", self.field, self.body)
    }
}

fn joined(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.into() } else { format!("{what}: {detail}") }
}

/// An answer that is no success.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) details: Value,
    /// Seconds of the `Retry-After` header.
    pub(super) retry_after: Option<u32>,
    /// `metadata.continue`, of an expired list.
    pub(super) continue_token: Option<String>,
    /// Plain text instead of a Status.
    pub(super) plain: bool,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let (details, retry_after, continue_token) = (Value::Null, None, None);
        Self { code, reason, message: message.into(), details, retry_after, continue_token, plain: false }
    }

    /// A path that no resource has.
    pub(super) fn page_not_found() -> Self {
        Self { plain: true, ..Self::new(404, "NotFound", "404 page not found\n") }
    }

    /// A resource that a built-in group does not have.
    pub(super) fn no_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: json!({}), ..Self::new(404, "NotFound", message) }
    }

    pub(super) fn not_found(resource: &Named) -> Self {
        let message = format!("{} not found", resource.quoted());
        Self { details: resource.details(), ..Self::new(404, "NotFound", message) }
    }

    pub(super) fn already_exists(resource: &Named) -> Self {
        let message = format!("{} already exists", resource.quoted());
        Self { details: resource.details(), ..Self::new(409, "AlreadyExists", message) }
    }

    pub(super) fn conflict(resource: &Named, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", resource.quoted());
        Self { details: resource.details(), ..Self::new(409, "Conflict", message) }
    }

    /// The object changed since the resourceVersion that the request names.
    pub(super) fn modified(resource: &Named) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, why)
    }

    /// Server-side apply would take fields of others: `(manager, field path)`.
    pub(super) fn apply_conflict(conflicts: &[(String, String)]) -> Self {
        let message = if let [(manager, path)] = conflicts {
            format!("Apply failed with 1 conflict: conflict with {manager}: {path}")
        } else {
            let mut lines = vec![format!("Apply failed with {} conflicts: ", conflicts.len())];
            let mut last = None;
            for (manager, path) in conflicts {
                if last.replace(manager) != Some(manager) {
                    lines.push(format!("conflicts with {manager}:"));
                }
                lines.push(format!("- {path}"));
            }
            let first = lines.remove(0);
            format!("{first}{}", lines.join("\n"))
        };
        let causes: Vec<_> = conflicts
            .iter()
            .map(|(manager, path)| {
                json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
            })
            .collect();
        Self { details: json!({"causes": causes}), ..Self::new(409, "Conflict", message) }
    }

    /// `kind` stands where the resource would: `Widget.demo.test "a" is invalid`.
    pub(super) fn invalid(kind: &Named, causes: &[Cause]) -> Self {
        let mut texts: Vec<_> = Vec::new();
        for text in causes.iter().map(Cause::text) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = if let [text] = texts.as_slice() { text.clone() } else { format!("[{}]", texts.join(", ")) };
        let mut details = kind.details();
        details["causes"] = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.body, "field": cause.field}))
            .collect();
        Self { details, ..Self::new(422, "Invalid", format!("{} is invalid: {text}", kind.quoted())) }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn forbidden(resource: &Named, why: &str) -> Self {
        let what = if resource.name.is_empty() { resource.resource() } else { resource.quoted() };
        Self { details: resource.details(), ..Self::new(403, "Forbidden", format!("{what} is forbidden: {why}")) }
    }

    pub(super) fn forbidden_path(why: &str) -> Self {
        Self { details: json!({}), ..Self::new(403, "Forbidden", format!("forbidden: {why}")) }
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/merge-patch+json, application/apply-patch+yaml",
        )
    }

    /// A list whose snapshot is gone; `rest` goes on from a newer state.
    pub(super) fn expired(rest: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter, or use the continue token in this response to retrieve \
                       the remainder of the results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time the first chunk was \
                       returned and now may show up in the list.";
        Self { continue_token: Some(rest), ..Self::new(410, "Expired", message) }
    }

    /// A watch from before what is remembered.
    pub(super) fn too_old(revision: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {revision} ({oldest})"))
    }

    /// The watch cache of a resource does not start.
    pub(super) fn initializing(why: &str) -> Self {
        let details = json!({"retryAfterSeconds": 1});
        let message = format!("storage is (re)initializing: {why}");
        Self { details, retry_after: Some(1), ..Self::new(429, "TooManyRequests", message) }
    }

    /// Records of a list that cannot be read: their keys and what is wrong.
    pub(super) fn unreadable_list(resource: &Named, errors: &[(String, String)]) -> Self {
        let more = match errors.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let first = errors.first().map_or("", |(_, error)| error);
        let plural = resource.resource();
        let message = format!("failed to read one or more {plural} from the storage: {first}{more}");
        let mut details = resource.details();
        details["name"] = "list".into();
        details["causes"] = errors
            .iter()
            .map(|(key, error)| json!({"reason": "UnexpectedServerResponse", "message": error, "field": key}))
            .collect();
        Self { details, ..Self::new(500, "StorageReadError", message) }
    }

    pub(super) fn internal(error: &str) -> Self {
        let details = json!({"causes": [{"message": error}]});
        Self { details, ..Self::new(500, "InternalError", format!("Internal error occurred: {error}")) }
    }

    /// An error that is no Status inside the server: 500 with its bare words.
    pub(super) fn untyped(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// An answer of a test's choosing.
    pub(super) fn other(code: u16, reason: &'static str, message: &str, retry_after: Option<u32>) -> Self {
        Self { retry_after, ..Self::new(code, reason, message) }
    }

    pub(super) fn body(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = token.clone().into();
        }
        status
    }
}

/// What a refusal is about. `plural` holds the kind where the server says the kind.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) name: String,
}

impl Named {
    pub(super) fn new(group: &str, plural: &str, name: &str) -> Self {
        Self { group: group.into(), plural: plural.into(), name: name.into() }
    }

    fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn quoted(&self) -> String {
        format!("{} {:?}", self.resource(), self.name)
    }

    fn details(&self) -> Value {
        let mut details = json!({"kind": self.plural});
        for (key, value) in [("group", &self.group), ("name", &self.name)] {
            if !value.is_empty() {
                details[key] = value.clone().into();
            }
        }
        details
    }
}
