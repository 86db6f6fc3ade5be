//! The conversion webhook of agent-sandbox v0.5.6, and the ways in which one fails.

mod certificates;
mod convert;

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use certificates::Certificates;
pub use convert::{SHADOW_POOL, convert, state_annotation};

use super::{Result, control_plane::use_ring};

/// How it behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It converts.
    Converts,
    /// Nobody listens: connections are refused.
    Stopped,
    /// It answers with an error wherever an object of this name is among those to convert.
    FailsFor(String),
    /// Its certificate is no longer valid.
    Expired,
    /// It converts after a while.
    Slow(Duration),
}

/// One object in another version. The error is what the webhook answers.
pub type Converter = Arc<dyn Fn(&Value, &str) -> std::result::Result<Value, String> + Send + Sync>;

/// A running webhook; dropping it stops it.
pub struct Webhook {
    /// The port it listens on, on the loopback address.
    pub port: u16,
    /// Its certificates.
    pub certificates: Arc<Certificates>,
    mode: watch::Sender<Mode>,
    work: Arc<Work>,
}

/// What it does for every connection.
struct Work {
    convert: Converter,
    reviews: AtomicU64,
}

impl Webhook {
    /// Starts one that answers for `host`, such as `<service>.<namespace>.svc`, and converts as agent-sandbox does.
    pub async fn start(host: &str) -> Result<Self> {
        Self::start_with(host, Arc::new(convert)).await
    }

    /// Starts one that converts by any function.
    pub async fn start_with(host: &str, convert: Converter) -> Result<Self> {
        use_ring();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (mode, modes) = watch::channel(Mode::Converts);
        let certificates = Arc::new(Certificates::new(host)?);
        let work = Arc::new(Work { convert, reviews: AtomicU64::new(0) });
        tokio::spawn(listen(listener, modes, Arc::clone(&certificates), Arc::clone(&work)));
        Ok(Self { port, certificates, mode, work })
    }

    /// Behaves differently from now on; open connections are closed.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// How many reviews it has answered.
    pub fn reviews(&self) -> u64 {
        self.work.reviews.load(Ordering::Relaxed)
    }
}

/// Serves until the [`Webhook`] is dropped. While it is stopped the port is closed.
async fn listen(
    mut listener: TcpListener,
    mut modes: watch::Receiver<Mode>,
    certificates: Arc<Certificates>,
    work: Arc<Work>,
) {
    let Ok(address) = listener.local_addr() else { return };
    loop {
        let mode = modes.borrow_and_update().clone();
        if mode == Mode::Stopped {
            drop(listener);
            if modes.wait_for(|mode| *mode != Mode::Stopped).await.is_err() {
                return;
            }
            let Ok(again) = TcpListener::bind(address).await else { return };
            listener = again;
            continue;
        }
        let tls = if mode == Mode::Expired { &certificates.expired } else { &certificates.valid };
        let acceptor = TlsAcceptor::from(Arc::clone(tls));
        loop {
            tokio::select! {
                changed = modes.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    let served = serve(stream, acceptor.clone(), mode.clone(), Arc::clone(&work));
                    let mut modes = modes.clone();
                    tokio::spawn(async move {
                        tokio::select! { () = served => {}, _ = modes.changed() => {} }
                    });
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, mode: Mode, work: Arc<Work>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(|request: Request<Incoming>| {
        let (mode, work) = (mode.clone(), Arc::clone(&work));
        async move {
            if let Mode::Slow(delay) = mode {
                tokio::time::sleep(delay).await;
            }
            let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            work.reviews.fetch_add(1, Ordering::Relaxed);
            let answer = review(&body, &mode, &work.convert).to_string();
            let response = Response::builder().header("content-type", "application/json");
            Ok::<_, Infallible>(response.body(Full::new(Bytes::from(answer))).unwrap_or_default())
        }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Answers a `ConversionReview`. One object that cannot be converted fails the whole review.
fn review(body: &[u8], mode: &Mode, convert: &Converter) -> Value {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().map_or(&[][..], Vec::as_slice);
    let converted: std::result::Result<Vec<Value>, String> = objects
        .iter()
        .map(|object| match mode {
            Mode::FailsFor(name) if object["metadata"]["name"] == name.as_str() => {
                Err(format!("panic in conversion of {name}: assignment to entry in nil map"))
            }
            _ => convert(object, wanted),
        })
        .collect();
    let response = match converted {
        Ok(objects) => {
            json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects})
        }
        Err(message) => json!({"uid": request["uid"], "result": {"status": "Failure", "message": message}}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
}
