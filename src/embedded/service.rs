//! Requests in, answers out: the service under a client.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, RETRY_AFTER, USER_AGENT, WARNING};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::access::Attempt;
use super::json::text;
use super::requests::{Interception, RequestRecord, metrics};
use super::route::{Request, Target, split, unescape};
use super::state::State;
use super::status::{Cause, Named, Refusal};

/// What is sent back.
enum Answer {
    Json(u16, Value),
    Text(String),
}

/// Reads a request whole.
pub(super) async fn read<B>(user: &str, request: http::Request<B>) -> Result<Request, B::Error>
where
    B: http_body::Body,
{
    let (head, body) = request.into_parts();
    let header = |name| head.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let pairs = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    Ok(Request {
        user: user.into(),
        method: head.method.to_string(),
        path: unescape(head.uri.path()),
        query: pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (unescape(key), unescape(value)))
            .collect(),
        accept: header(ACCEPT).unwrap_or_default().into(),
        content_type: header(CONTENT_TYPE).unwrap_or_default().into(),
        user_agent: header(USER_AGENT).unwrap_or_default().into(),
        body: body.collect().await?.to_bytes(),
    })
}

impl State {
    /// Answers one request, and notes it.
    pub(super) fn answer(&mut self, request: &Request) -> http::Response<Full<Bytes>> {
        let mut record = RequestRecord {
            user: request.user.clone(),
            path: request.path.clone(),
            dry_run: request.parameter("dryRun") == "All",
            field_manager: request.parameter("fieldManager").into(),
            ..RequestRecord::default()
        };
        let mut warning = None;
        let answer = self.route(request, &mut record, &mut warning);
        let date = (self.now)().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let mut builder = http::Response::builder().header(DATE, date);
        if let Some(warning) = warning {
            builder = builder.header(WARNING, warning);
        }
        let (code, kind, body) = match answer {
            Ok(Answer::Json(code, body)) => (code, "application/json", body.to_string()),
            Ok(Answer::Text(body)) => (200, "text/plain; version=0.0.4", body),
            Err(refusal) => {
                if let Some(seconds) = refusal.retry_after {
                    builder = builder.header(RETRY_AFTER, seconds);
                }
                let (kind, body) = if refusal.plain {
                    ("text/plain; charset=utf-8", refusal.message)
                } else {
                    ("application/json", refusal.body().to_string())
                };
                (refusal.code, kind, body)
            }
        };
        record.code = code;
        self.requests.push(record);
        builder
            .status(code)
            .header(CONTENT_TYPE, kind)
            .body(Full::new(Bytes::from(body)))
            .expect("a status of three digits and headers of printable text")
    }

    fn route(
        &mut self,
        request: &Request,
        record: &mut RequestRecord,
        warning: &mut Option<String>,
    ) -> Result<Answer, Refusal> {
        let path = request.path.trim_end_matches('/');
        let body = || serde_json::from_slice::<Value>(&request.body).map_err(|e| Refusal::bad_request(e.to_string()));
        let found = split(path);
        if let Some((api_version, parts)) = found.as_ref().filter(|(_, parts)| !parts.is_empty()) {
            if request.method == "POST" {
                match *parts.as_slice() {
                    ["selfsubjectreviews"] => return Ok(Answer::Json(201, self.whoami(request))),
                    ["selfsubjectaccessreviews"] => {
                        return Ok(Answer::Json(201, self.access.review(&request.user, &body()?)));
                    }
                    _ => {}
                }
            }
            let target = self.target(api_version, parts)?;
            return self.resource(&target, request, record, warning);
        }
        record.verb = "get".into();
        let attempt = Attempt { verb: "get", group: "", resource: path, namespace: "", name: "" };
        self.access.check(&request.user, &attempt)?;
        if let Some(answer) = self.intercepted(record, false) {
            return Err(answer);
        }
        let json = match path {
            "/version" => self.version(),
            "/api" => Self::core_versions(),
            "/apis" => self.groups(),
            "/metrics" => return Ok(Answer::Text(metrics(&self.requests))),
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
        json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": self.timestamp()},
            "status": {"userInfo": {"username": request.user, "groups": ["system:authenticated"]}},
        })
    }

    fn resource(
        &mut self,
        target: &Target,
        request: &Request,
        record: &mut RequestRecord,
        warning: &mut Option<String>,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind.clone();
        let verb = match (request.method.as_str(), &target.name) {
            ("GET", None) => "list",
            ("GET", Some(_)) => "get",
            ("POST", None) => "create",
            ("PUT", Some(_)) => "update",
            ("PATCH", Some(_)) => "patch",
            ("DELETE", Some(_)) => "delete",
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
        let deprecated = kind.version(&target.version).is_some_and(|version| version.deprecated);
        if deprecated {
            *warning = Some(format!("299 - \"{} {} is deprecated\"", target.api_version(), kind.kind));
        }
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
        let answer = self.carry_out(target, request, verb)?;
        match self.intercepted(record, true) {
            Some(lost) => Err(lost),
            None => Ok(answer),
        }
    }

    fn carry_out(&mut self, target: &Target, request: &Request, verb: &str) -> Result<Answer, Refusal> {
        let body = || serde_json::from_slice::<Value>(&request.body).map_err(|e| Refusal::bad_request(e.to_string()));
        let options = request.options();
        Ok(match verb {
            "list" => Answer::Json(200, self.list(target, request)?),
            "get" => Answer::Json(200, self.get(target, request)?),
            "create" => Answer::Json(201, self.create(target, &options, body()?)?),
            "update" => Answer::Json(200, self.replace(target, &options, &body()?)?),
            "delete" => {
                let body = if request.body.is_empty() { Value::Null } else { body()? };
                let dry_run = options.dry_run || body["dryRun"] == json!(["All"]);
                Answer::Json(200, self.delete(target, &body, dry_run)?)
            }
            _ => match request.content_type.split(';').next().unwrap_or_default() {
                "application/merge-patch+json" => Answer::Json(200, self.merge(target, &options, &body()?)?),
                "application/apply-patch+yaml" => {
                    if request.parameter("fieldManager").is_empty() {
                        let cause = Cause::required("fieldManager", "is required for apply patch");
                        return Err(Refusal::invalid(&Named::new("meta.k8s.io", "PatchOptions", ""), &[cause]));
                    }
                    let config = configuration(&request.body)?;
                    let force = request.parameter("force") == "true";
                    let (created, object) = self.apply(target, &options, &config, force)?;
                    Answer::Json(if created { 201 } else { 200 }, object)
                }
                _ => return Err(Refusal::unsupported_media_type()),
            },
        })
    }

    fn intercepted(&self, record: &RequestRecord, after: bool) -> Option<Refusal> {
        let Interception { code, reason, message, retry_after, .. } =
            self.intercept.as_ref()?(record).filter(|answer| answer.after == after)?;
        Some(Refusal::other(code, reason, &message, retry_after))
    }
}

/// The object of a server-side apply. JSON is YAML, and all that is sent here.
fn configuration(bytes: &[u8]) -> Result<Value, Refusal> {
    let config =
        serde_json::from_slice(bytes).map_err(|error| Refusal::bad_request(format!("error decoding YAML: {error}")))?;
    if text(&config, "/kind").is_empty() {
        return Err(Refusal::bad_request("Object 'Kind' is missing"));
    }
    Ok(config)
}
