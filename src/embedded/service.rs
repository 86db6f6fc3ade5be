//! HTTP in, HTTP out: the service under a client.

use std::convert::Infallible;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, RETRY_AFTER, USER_AGENT, WARNING};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};

use super::dispatch::Answer;
use super::requests::RequestRecord;
use super::route::{Request, unescape};
use super::state::State;

/// The body of an answer; a watch goes on.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

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
    /// Answers one request, notes it, and tells those who watch.
    pub(super) fn answer(&mut self, request: &Request) -> http::Response<Body> {
        let mut record = RequestRecord {
            user: request.user.clone(),
            path: request.path.clone(),
            dry_run: request.parameter("dryRun") == "All",
            metadata_only: request.accept.contains("as=PartialObjectMetadata"),
            field_manager: request.parameter("fieldManager").into(),
            ..RequestRecord::default()
        };
        self.warnings.clear();
        let answer = self.route(request, &mut record);
        self.publish();
        let date = (self.now)().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let mut builder = http::Response::builder().header(DATE, date);
        for warning in self.warnings.drain(..) {
            builder = builder.header(WARNING, format!("299 - {warning:?}"));
        }
        let (code, kind, body) = match answer {
            Ok(Answer::Json(code, body)) => (code, "application/json", whole(body.to_string())),
            Ok(Answer::Text(body)) => (200, "text/plain; version=0.0.4", whole(body)),
            Ok(Answer::Watch(watch)) => {
                let events = watch.events.take_until(tokio::time::sleep(watch.lasts));
                let frames = events.map(|event| Ok(Frame::data(event)));
                (200, "application/json", StreamBody::new(frames).boxed_unsync())
            }
            Err(refusal) => {
                if let Some(seconds) = refusal.retry_after {
                    builder = builder.header(RETRY_AFTER, seconds);
                }
                let (kind, body) = if refusal.plain {
                    ("text/plain; charset=utf-8", refusal.message)
                } else {
                    ("application/json", refusal.body().to_string())
                };
                (refusal.code, kind, whole(body))
            }
        };
        record.code = code;
        self.requests.push(record);
        builder
            .status(code)
            .header(CONTENT_TYPE, kind)
            .body(body)
            .expect("a status of three digits and headers of printable text")
    }
}

fn whole(body: String) -> Body {
    Full::new(Bytes::from(body)).boxed_unsync()
}
