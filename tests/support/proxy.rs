//! A proxy between `sbx` and the API server: it sees each request as it was sent, lets a test act at that very
//! moment, and answers in the server's place or loses its answer.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Result;
use super::control_plane::ControlPlane;

/// A request as it was sent.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// Body; null where there was none.
    pub body: Value,
}

/// What becomes of a request.
pub enum Fate {
    /// The server answers.
    Passes,
    /// The server answers, and this happens before its answer arrives.
    Then(BoxFuture<'static, Result<()>>),
    /// The server carries it out; the connection breaks before the answer arrives.
    AnswerLost,
    /// The server never sees it.
    Answered {
        /// HTTP status.
        code: u16,
        /// Reason of the Status.
        reason: &'static str,
        /// Seconds of a `Retry-After` header.
        retry_after: Option<u32>,
    },
}

/// Decides about each request, one after the other. What a rule awaits happens before the server sees the request.
pub type Rule = Box<dyn FnMut(&Asked) -> BoxFuture<'static, Result<Fate>> + Send>;

/// A running proxy, signed in as `admin`; dropping it stops it.
pub struct Proxy {
    /// A kubeconfig that leads to it.
    pub kubeconfig: PathBuf,
    seen: Arc<Seen>,
    listening: JoinHandle<()>,
}

struct Seen {
    client: kube::Client,
    rule: Mutex<Rule>,
    /// Every request that is no read.
    writes: Mutex<Vec<Asked>>,
    /// What rules ran into.
    errors: Mutex<Vec<String>>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Proxy {
    /// Starts one in front of a control plane.
    pub async fn start(plane: &ControlPlane, rule: Rule) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let kubeconfig = plane.folder().join("admin-by-proxy.kubeconfig");
        let direct = std::fs::read_to_string(plane.kubeconfig("admin")?)?;
        std::fs::write(&kubeconfig, direct.replace(&plane.url(), &url))?;
        let seen = Arc::new(Seen {
            client: plane.api("admin").await?.client,
            rule: Mutex::new(rule),
            writes: Mutex::default(),
            errors: Mutex::default(),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&seen)));
        Ok(Self { kubeconfig, seen, listening })
    }

    /// Every request so far that is no read, dry runs included.
    pub fn writes(&self) -> Vec<Asked> {
        lock(&self.seen.writes).clone()
    }

    /// Fails where a rule failed.
    pub fn went_well(&self) -> Result<()> {
        let errors = lock(&self.seen.errors);
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n").into()) }
    }
}

fn lock<T: ?Sized>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Asked {
    /// Whether it changes something that stays.
    pub fn writes(&self) -> bool {
        let groups = ["authorization", "authentication"];
        let review = groups.iter().any(|group| self.uri.path().starts_with(&format!("/apis/{group}.k8s.io/")));
        self.method != Method::GET && !review && !self.has("dryRun=All")
    }

    /// Whether it is a write by this method to this path.
    pub fn is(&self, method: &Method, path: &str) -> bool {
        self.method == *method && self.uri.path() == path && self.writes()
    }

    /// Whether its query holds this parameter.
    pub fn has(&self, parameter: &str) -> bool {
        self.uri.query().is_some_and(|query| query.split('&').any(|part| part == parameter))
    }

    /// The value of a parameter of its query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parts = self.uri.query()?.split('&');
        parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    }
}

async fn listen(listener: TcpListener, seen: Arc<Seen>) {
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            let service = service_fn(|request| seen.answer(request));
            // A lost answer ends the connection with an error, as it should.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl Seen {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let sent = serde_json::from_slice(&body).unwrap_or_default();
        let asked = Asked { method: head.method, uri: head.uri, body: sent };
        let rule = lock(&self.rule)(&asked);
        let fate = self.noted(rule.await)?;
        if asked.method != Method::GET {
            lock(&self.writes).push(asked.clone());
        }
        if let Fate::Answered { code, reason, retry_after } = fate {
            return status(code, reason, retry_after);
        }
        let answer = self.forward(&asked, &head.headers, body).await?;
        match fate {
            Fate::AnswerLost => Err("the answer is lost".into()),
            Fate::Then(happens) => self.noted(happens.await).map(|()| answer),
            Fate::Passes | Fate::Answered { .. } => Ok(answer),
        }
    }

    fn noted<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| lock(&self.errors).push(error.to_string()))
    }

    async fn forward(&self, asked: &Asked, headers: &HeaderMap, body: Bytes) -> Result<Response<Full<Bytes>>> {
        let mut request = Request::builder().method(&asked.method).uri(&asked.uri);
        for name in [header::ACCEPT, header::CONTENT_TYPE, header::USER_AGENT] {
            if let Some(value) = headers.get(&name) {
                request = request.header(name, value);
            }
        }
        let answer = self.client.send(request.body(kube::client::Body::from(body))?).await?;
        let mut response = Response::builder().status(answer.status());
        for name in [header::CONTENT_TYPE, header::RETRY_AFTER, header::DATE] {
            if let Some(value) = answer.headers().get(&name) {
                response = response.header(name, value);
            }
        }
        let body = answer.into_body().collect().await?.to_bytes();
        Ok(response.body(Full::new(body))?)
    }
}

fn status(code: u16, reason: &str, retry_after: Option<u32>) -> Result<Response<Full<Bytes>>> {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("the proxy says {code}"),
    });
    let mut response = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    Ok(response.body(Full::new(Bytes::from(body.to_string())))?)
}
