//! From a path and a method to the verb that carries it out.

use serde_json::{Value, json};

use super::accept::body;
use super::access::Attempt;
use super::json::text;
use super::list::{metadata_of, partial};
use super::requests::{Interception, RequestRecord, metrics};
use super::route::{Request, Target, split};
use super::state::State;
use super::status::{Cause, Named, Refusal};
use super::watch::Watch;

/// What is sent back.
pub(super) enum Answer {
    Json(u16, Value),
    Text(String),
    Watch(Watch),
}

/// Paths that every user may read.
const OPEN: &[&str] = &["/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version"];

impl State {
    /// Carries out a request; `record` is filled in on the way.
    pub(super) fn route(&mut self, request: &Request, record: &mut RequestRecord) -> Result<Answer, Refusal> {
        let path = request.path.trim_end_matches('/');
        let found = split(path);
        if let Some((api_version, parts)) = found.as_ref().filter(|(_, parts)| !parts.is_empty()) {
            if request.method == "POST" {
                let review = matches!(*parts.as_slice(), ["selfsubjectreviews" | "selfsubjectaccessreviews"]);
                if let Some(answer) = self.intercepted(record, false).filter(|_| review) {
                    return Err(answer);
                }
                match *parts.as_slice() {
                    ["selfsubjectreviews"] => return Ok(Answer::Json(201, self.whoami(request))),
                    ["selfsubjectaccessreviews"] => {
                        return Ok(Answer::Json(201, self.access.review(&request.user, &body(request, "body")?)));
                    }
                    _ => {}
                }
            }
            let target = match self.target(api_version, parts) {
                Ok(target) => target,
                Err(refusal) => {
                    let read = if request.method == "GET" { "get" } else { "" };
                    record.verb = read.into();
                    return Err(self.intercepted(record, false).unwrap_or(refusal));
                }
            };
            return self.resource(&target, request, record);
        }
        record.verb = "get".into();
        if !OPEN.iter().any(|open| path == *open || path.starts_with(&format!("{open}/"))) {
            let attempt = Attempt { verb: "get", group: "", resource: path, namespace: "", name: "" };
            self.access.check(&request.user, &attempt)?;
        }
        if let Some(answer) = self.intercepted(record, false) {
            return Err(answer);
        }
        let json = match path {
            "/version" => self.version(),
            "/api" => Self::core_versions(),
            "/apis" => self.groups(),
            "/metrics" => return Ok(Answer::Text(metrics(&self.requests, &self.counted))),
            "/readyz" | "/livez" | "/healthz" => return Ok(Answer::Text("ok".into())),
            _ => match (found, path.strip_prefix("/apis/")) {
                (Some((api_version, _)), _) => self.resources(api_version)?,
                (None, Some(group)) => self.group(group)?,
                (None, None) => return Err(Refusal::page_not_found()),
            },
        };
        Ok(Answer::Json(200, json))
    }

    fn whoami(&self, request: &Request) -> Value {
        let mut groups = vec!["system:authenticated"];
        if request.user == super::ADMIN {
            groups.insert(0, "system:masters");
        }
        json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": self.timestamp()},
            "status": {"userInfo": {"username": request.user, "uid": request.user, "groups": groups}},
        })
    }

    fn resource(&mut self, target: &Target, request: &Request, record: &mut RequestRecord) -> Result<Answer, Refusal> {
        let kind = target.kind.clone();
        let watched = matches!(request.parameter("watch"), "true" | "1");
        let verb = match (request.method.as_str(), &target.name) {
            ("GET", None) if watched => "watch",
            ("GET", None) => "list",
            ("GET", Some(_)) => "get",
            ("POST", None) => "create",
            ("PUT", Some(_)) => "update",
            ("PATCH", Some(_)) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            _ => return Err(Refusal::method_not_allowed()),
        };
        record.verb = verb.into();
        record.group.clone_from(&kind.group);
        record.version.clone_from(&target.version);
        record.resource.clone_from(&kind.plural);
        record.subresource = target.subresource().into();
        record.namespace = target.namespace.clone().unwrap_or_default();
        record.name = target.object_name().into();
        record.apply = verb == "patch" && request.content_type.starts_with("application/apply-patch");
        let mut resource = kind.plural.clone();
        if !record.subresource.is_empty() {
            resource = format!("{resource}/{}", record.subresource);
        }
        self.access.check(
            &request.user,
            &Attempt {
                verb,
                group: &kind.group,
                resource: &resource,
                namespace: &record.namespace,
                name: &record.name,
            },
        )?;
        if let Some(answer) = self.intercepted(record, false) {
            return Err(answer);
        }
        if kind.version(&target.version).is_some_and(|version| version.deprecated) {
            self.warnings.push(format!("{} {} is deprecated", target.api_version(), kind.kind));
        }
        let answer = self.carry_out(target, request, verb)?;
        match self.intercepted(record, true) {
            Some(lost) => Err(lost),
            None => Ok(answer),
        }
    }

    fn carry_out(&mut self, target: &Target, request: &Request, verb: &str) -> Result<Answer, Refusal> {
        if matches!(verb, "create" | "update" | "patch" | "delete") {
            request.check_options(verb)?;
        }
        let options = request.options();
        let deletion = || if request.body.is_empty() { Ok(Value::Null) } else { body(request, "body") };
        let (code, object) = match verb {
            "watch" => return Ok(Answer::Watch(self.watch(target, request)?)),
            "list" => return Ok(Answer::Json(200, self.list(target, request)?)),
            "delete" | "deletecollection" => {
                let body = deletion()?;
                // With a body the query does not count: `dryRun=All` beside empty options deletes.
                let dry_run = if body.is_null() { options.dry_run } else { body["dryRun"] == json!(["All"]) };
                let answer = if verb == "delete" {
                    self.delete(target, &body, dry_run)?
                } else {
                    self.delete_collection(target, request, &body, dry_run)?
                };
                return Ok(Answer::Json(200, answer));
            }
            "get" => (200, self.get(target)?),
            "create" => (201, self.create(target, &options, body(request, "body")?)?),
            "update" => (200, self.replace(target, &options, &body(request, "body")?)?),
            _ => match request.content_type.split(';').next().unwrap_or_default() {
                "application/merge-patch+json" => (200, self.merge(target, &options, &body(request, "patch")?)?),
                "application/apply-patch+yaml" => {
                    // JSON is YAML, and all that is sent here.
                    let config = body(request, "YAML")?;
                    if text(&config, "/kind").is_empty() {
                        return Err(Refusal::bad_request("Object 'Kind' is missing"));
                    }
                    let force = request.parameter("force") == "true";
                    let (created, object) = self.apply(target, &options, &config, force)?;
                    (if created { 201 } else { 200 }, object)
                }
                _ => return Err(Refusal::unsupported_media_type()),
            },
        };
        let object = if partial(&request.accept) { metadata_of(&object) } else { object };
        Ok(Answer::Json(code, object))
    }

    fn intercepted(&self, record: &RequestRecord, after: bool) -> Option<Refusal> {
        let Interception { code, reason, message, retry_after, .. } =
            self.intercept.as_ref()?(record).filter(|answer| answer.after == after)?;
        Some(Refusal::other(code, reason, &message, retry_after))
    }
}

impl Request {
    /// Whether the options of a write make sense.
    fn check_options(&self, verb: &str) -> Result<(), Refusal> {
        let mut causes = Vec::new();
        let apply = self.content_type.starts_with("application/apply-patch");
        if verb == "patch" && apply && self.parameter("fieldManager").is_empty() {
            causes.push(Cause::required("fieldManager", "is required for apply patch"));
        }
        if verb == "patch" && !apply && self.parameter("force") == "true" {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        let dry_run = self.parameter("dryRun");
        if !matches!(dry_run, "" | "All") {
            causes.push(Cause::unsupported("dryRun", &json!([dry_run]), &["All".into()]));
        }
        let validation = self.parameter("fieldValidation");
        if !matches!(validation, "" | "Ignore" | "Strict" | "Warn") {
            let known = ["".into(), "Ignore".into(), "Strict".into(), "Warn".into()];
            causes.push(Cause::unsupported("fieldValidation", &validation.into(), &known));
        }
        if causes.is_empty() {
            return Ok(());
        }
        let options = match verb {
            "create" => "CreateOptions",
            "update" => "UpdateOptions",
            "delete" => "DeleteOptions",
            _ => "PatchOptions",
        };
        Err(Refusal::invalid(&Named::new("meta.k8s.io", options, ""), &causes))
    }
}
