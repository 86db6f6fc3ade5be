//! The server held in memory, on a port of loopback, for the built program.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use sbx::{embedded::Server, snapshot};

/// Steps enough to reach both kinds of questions.
const RUNBOOK: &str = r#"
title = "drop v1alpha1"

[cluster]
context = "admin@pitower"

[upgrade]
from = "v1alpha1"
to   = "v1beta1"
crds = [
  "sandboxwarmpools.extensions.agents.x-k8s.io",
  "sandboxtemplates.extensions.agents.x-k8s.io",
  "sandboxes.agents.x-k8s.io",
  "sandboxclaims.extensions.agents.x-k8s.io",
]
deployer = "argocd-controller"

[[step]]
id = "backup"
[step.backup]
to = "backups/{run}"

[[step]]
id = "migrate"
needs = ["backup"]
[step.migrate]
settle = "0s"

[[step]]
id = "release"
needs = ["migrate"]
[step.release]

[[step]]
id = "merge"
needs = ["release"]
[step.merge]
"#;

/// A served cluster, and a folder with a kubeconfig and a runbook for it.
pub(super) struct Served {
    pub(super) server: Server,
    folder: tempfile::TempDir,
    silence: Arc<Silence>,
}

/// Whether patches go unanswered, and how many of records do.
#[derive(Default)]
struct Silence {
    kept: AtomicBool,
    unanswered: AtomicUsize,
}

impl Served {
    pub(super) fn start() -> Self {
        let (header, server) = snapshot::built_in("you").expect("the built-in snapshot is sound");
        // What the snapshot says was asked before is none of ours.
        server.clear_requests();
        let began = Instant::now();
        server.set_clock(Arc::new(move || header.taken_at + began.elapsed()));
        let folder = tempfile::tempdir().expect("a folder");
        let silence = Arc::new(Silence::default());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("it can");
        let address = listener.local_addr().expect("an address");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: admin@pitower, context: {{cluster: c, user: u}}}}]\n"
        );
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).expect("it is written");
        std::fs::write(folder.path().join("runbook.toml"), RUNBOOK).expect("it is written");
        let (held, kept) = (server.clone(), Arc::clone(&silence));
        // It ends with the test's process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(accept(listener, held, kept));
        });
        Self { server, folder, silence }
    }

    /// Where the program runs.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.folder().join("kubeconfig")
    }

    /// From now on no patch is answered.
    pub(super) fn answer_no_patch(&self) {
        self.silence.kept.store(true, Ordering::Relaxed);
    }

    /// Patches of records that have come and were not answered.
    pub(super) fn unanswered(&self) -> usize {
        self.silence.unanswered.load(Ordering::Relaxed)
    }

    /// What was written, leases and questions about rights aside.
    pub(super) fn writes(&self) -> usize {
        let asked = self.server.requests();
        let written = asked.iter().filter(|request| request.writes() && !request.resource.starts_with("selfsubject"));
        written.filter(|request| request.resource != "leases").count()
    }

    /// Who holds the lock.
    pub(super) fn holder(&self) -> Option<String> {
        let leases = self.server.stored("leases.coordination.k8s.io");
        let lease = leases.iter().find(|lease| lease.key.starts_with("default/sbx-"))?;
        lease.object["spec"]["holderIdentity"].as_str().map(Into::into)
    }
}

async fn accept(listener: std::net::TcpListener, server: Server, silence: Arc<Silence>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (client, silence) = (server.client_as("you"), Arc::clone(&silence));
        let service =
            service_fn(move |request: Request<Incoming>| answer(client.clone(), Arc::clone(&silence), request));
        tokio::spawn(async move {
            // A client that goes away ends its connection.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    client: kube::Client,
    silence: Arc<Silence>,
    request: Request<Incoming>,
) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let dry_run = head.uri.query().is_some_and(|query| query.contains("dryRun"));
    if silence.kept.load(Ordering::Relaxed) && head.method == Method::PATCH && !dry_run {
        if head.uri.path().contains("agents.x-k8s.io/") {
            silence.unanswered.fetch_add(1, Ordering::Relaxed);
        }
        std::future::pending::<()>().await;
    }
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let answer = client.send(Request::from_parts(head, Body::from(body.to_vec()))).await.expect("it answers");
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("a body in memory").to_bytes();
    Ok(Response::from_parts(head, Full::new(body)))
}
