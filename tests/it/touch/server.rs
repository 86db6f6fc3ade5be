//! An API server of one object, which answers each PATCH as it is told to.

use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

pub(super) const PATH: &str = "/apis/demo.test/v1beta1/namespaces/ns/widgets/w";

/// What becomes of one PATCH.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// It is written.
    Written,
    /// It changes nothing that is stored.
    Unchanged,
    /// It is written, and the answer is a 500.
    AnswerLost,
    /// Somebody else writes first: 409.
    Overtaken,
    /// The object is deleted first: 404.
    Deleted,
    /// It is deleted and created again first: 422 on `metadata.uid`.
    Recreated,
    /// Deleted and created again, and the server compares the resourceVersion first: 409.
    RecreatedQuietly,
    /// No answer at all.
    Silence,
    /// This code, and the seconds after which to come back.
    Answer(u16, Option<u64>),
    /// Nobody serves the path: 404 in plain text, to this and to the next look.
    Unserved,
    /// 429 of a watch cache that cannot start.
    Initializing,
}

#[derive(Debug)]
struct State {
    object: Option<Value>,
    version: u64,
    patches: Vec<Value>,
    fates: Vec<Fate>,
    unserved: bool,
}

/// The server; clones are the same one.
#[derive(Clone)]
pub(super) struct Server(Arc<Mutex<State>>);

impl Server {
    /// Answers the first PATCH by the first fate and so on; the last fate stays.
    pub(super) fn new(fates: &[Fate]) -> Self {
        let object = object("uid-1", 10);
        Self(Arc::new(Mutex::new(State {
            object: Some(object),
            version: 10,
            patches: vec![],
            fates: fates.to_vec(),
            unserved: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the state")
    }

    /// Every PATCH that came in.
    pub(super) fn patches(&self) -> Vec<Value> {
        self.state().patches.clone()
    }

    /// The object as it is now.
    pub(super) fn object(&self) -> Option<Value> {
        self.state().object.clone()
    }

    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                assert_eq!(head.uri.path(), PATH);
                match server.answer(&head.method, &body) {
                    Some((code, retry_after, answer)) => {
                        let mut response = Response::builder().status(code);
                        if let Some(seconds) = retry_after {
                            response = response.header("retry-after", seconds.to_string());
                        }
                        let text = answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
                        Ok::<_, tower::BoxError>(response.body(Body::from(text.into_bytes()))?)
                    }
                    None => Err("connection reset by peer".into()),
                }
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &Method, body: &[u8]) -> Option<(u16, Option<u64>, Value)> {
        let mut state = self.state();
        if method == Method::GET && std::mem::take(&mut state.unserved) {
            return Some((404, None, "404 page not found".into()));
        }
        if method == Method::GET {
            return Some(
                state.object.clone().map_or_else(|| status(404, "NotFound", None), |object| (200, None, object)),
            );
        }
        assert_eq!(method, Method::PATCH, "a touch reads and patches, and nothing else");
        let patch: Value = serde_json::from_slice(body).expect("a patch is JSON");
        let fate = *state.fates.get(state.patches.len()).or(state.fates.last()).expect("at least one fate");
        state.patches.push(patch.clone());
        let refused = |code, reason, field| Some(status(code, reason, field));
        match fate {
            Fate::Written => Some((200, None, state.write(&patch))),
            Fate::Unchanged => Some((200, None, state.object.clone().expect("it is there"))),
            Fate::AnswerLost => {
                state.write(&patch);
                refused(500, "InternalError", None)
            }
            Fate::Overtaken => {
                state.write(&json!({"metadata": {"labels": {"somebody": "else"}}}));
                refused(409, "Conflict", None)
            }
            Fate::Deleted => {
                state.object = None;
                refused(404, "NotFound", None)
            }
            Fate::Recreated | Fate::RecreatedQuietly => {
                state.object = Some(object("uid-2", 99));
                match fate {
                    Fate::Recreated => refused(422, "Invalid", Some("metadata.uid")),
                    _ => refused(409, "Conflict", None),
                }
            }
            Fate::Silence => None,
            Fate::Unserved => {
                state.unserved = true;
                Some((404, None, "404 page not found".into()))
            }
            Fate::Answer(code, retry_after) => {
                let (code, _, answer) = status(code, "Told", Some("spec.size").filter(|_| code == 422));
                Some((code, retry_after, answer))
            }
            Fate::Initializing => {
                let (_, _, mut answer) = status(429, "TooManyRequests", None);
                answer["message"] = "storage is (re)initializing".into();
                Some((429, Some(1), answer))
            }
        }
    }
}

impl State {
    fn write(&mut self, patch: &Value) -> Value {
        self.version += 1;
        let object = self.object.as_mut().expect("it is there");
        merge(object, patch);
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object.clone()
    }
}

fn object(uid: &str, version: u64) -> Value {
    json!({
        "apiVersion": "demo.test/v1beta1", "kind": "Widget", "data": {"secret": "canary"},
        "metadata": {"namespace": "ns", "name": "w", "uid": uid, "resourceVersion": version.to_string()},
    })
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    for (key, value) in patch {
        merge(&mut into[key], value);
    }
}

fn status(code: u16, reason: &str, field: Option<&str>) -> (u16, Option<u64>, Value) {
    let causes: Vec<Value> =
        field.iter().map(|field| json!({"field": field, "message": "field is immutable"})).collect();
    let answer = json!({
        "kind": "Status", "code": code, "reason": reason, "message": format!("said {code}"),
        "details": {"causes": causes},
    });
    (code, None, answer)
}
