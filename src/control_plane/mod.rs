//! A real etcd and kube-apiserver on loopback: free ports, a folder of their own, gone with the program.
//!
//! In: their binaries and an empty folder. Out: clients, and the stored bytes. etcd starts first and can be
//! filled before any API server has looked at it. Whatever ends the program, `kill -9` included, ends the
//! servers, and then the folder goes too. Knows nothing of what it is started for.

#![expect(clippy::disallowed_types, reason = "a client of this server is what a test or a rehearsal asks it for")]

mod binaries;
mod certificates;
mod etcd;
mod files;
mod process;

use std::{
    fs, io,
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{Instant, sleep};

pub use binaries::{ASSETS, Binaries};
pub use etcd::Etcd;
pub use process::Process;

use files::Files;

/// How long a server may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often ports are looked for anew where another program was faster.
const PORTS: usize = 3;

/// Who may sign in.
#[derive(Clone, Copy, Debug)]
pub struct Users<'a> {
    /// Users and the group of each.
    pub groups: &'a [(&'a str, &'a str)],
    /// The context of their kubeconfigs.
    pub context: &'a str,
}

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// The binaries are not there.
    #[error("{0}")]
    NoBinaries(String),
    /// A server did not become ready.
    #[error("start {program}: {why}; its last log lines:\n{log}")]
    NotReady {
        /// Which one.
        program: &'static str,
        /// What it did instead.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// A server did not do as asked.
    #[error("{attempt}: {why}")]
    Asked {
        /// What was asked.
        attempt: String,
        /// Its answer.
        why: String,
    },
    /// A local file or process.
    #[error("{attempt}: {source}")]
    Local {
        /// What was attempted.
        attempt: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl ControlPlaneError {
    fn asked(attempt: &str, why: String) -> Self {
        Self::Asked { attempt: attempt.into(), why }
    }

    fn local(attempt: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Local { attempt, source }
    }

    /// Whether another program has the port.
    fn is_port_taken(&self) -> bool {
        matches!(self, Self::NotReady { log, .. } if log.contains("address already in use"))
    }
}

/// A control plane. Dropping it stops the servers; their folder is the caller's.
pub struct ControlPlane {
    /// The stored bytes.
    pub etcd: Etcd,
    binaries: Binaries,
    files: Files,
    etcd_url: String,
    /// Of the API server, once it has started.
    port: Option<u16>,
    // Dropped in this order.
    api_server: Option<Process>,
    etcd_server: Process,
}

impl ControlPlane {
    /// Starts etcd, with nothing in it, and waits until it answers. `root`: an empty folder.
    ///
    /// # Errors
    /// It does not become ready; the end of its log is part of the error.
    pub async fn start_store(binaries: &Binaries, root: &Path, users: &Users<'_>) -> Result<Self, ControlPlaneError> {
        let files =
            Files::write(root, users).map_err(ControlPlaneError::local("write the files of the control plane"))?;
        let mut started = start_etcd(binaries, root).await;
        for _ in 1..PORTS {
            if !started.as_ref().is_err_and(ControlPlaneError::is_port_taken) {
                break;
            }
            started = start_etcd(binaries, root).await;
        }
        let (etcd_server, etcd, etcd_url) = started?;
        Ok(Self { etcd, binaries: binaries.clone(), files, etcd_url, port: None, api_server: None, etcd_server })
    }

    /// Starts the API server and waits for `/readyz`. Started again, it keeps its address. `more`: further
    /// arguments.
    ///
    /// # Errors
    /// It does not become ready; the end of its log is part of the error.
    pub async fn start_api_server(&mut self, more: &[String]) -> Result<(), ControlPlaneError> {
        if let Some(port) = self.port {
            return self.start_api_server_at(port, more).await;
        }
        let mut started = Ok(());
        for _ in 0..PORTS {
            let [port] = free_ports()?;
            started = self.start_api_server_at(port, more).await;
            match &started {
                Ok(()) => self.port = Some(port),
                Err(error) if error.is_port_taken() => continue,
                Err(_) => {}
            }
            break;
        }
        started
    }

    async fn start_api_server_at(&mut self, port: u16, more: &[String]) -> Result<(), ControlPlaneError> {
        const PROGRAM: &str = "kube-apiserver";
        self.api_server = None;
        let client = self.client_at(self.files.first_user(), port).await?;
        let arguments = [self.api_server_arguments(port), more.to_vec()].concat();
        let mut server = Process::start(PROGRAM, &self.files.path(""), &self.binaries.api_server, &arguments)
            .map_err(ControlPlaneError::local("start kube-apiserver"))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let servers = self.etcd_server.check().and_then(|()| server.check());
            let request = http::Request::get("/readyz").body(Vec::new());
            let request =
                request.map_err(|error| ControlPlaneError::asked("ask whether it is ready", error.to_string()))?;
            match client.request_text(request).await {
                Ok(text) if text.trim() == "ok" => break,
                _ if servers.is_err() || Instant::now() > deadline => {
                    let why = servers.err().map_or_else(not_ready, |error| error.to_string());
                    return Err(ControlPlaneError::NotReady { program: PROGRAM, why, log: self.log(PROGRAM) });
                }
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
        self.api_server = Some(server);
        Ok(())
    }

    /// Stops the API server; etcd and what it holds stay.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// The address of the API server; before it has started nobody listens there.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port.unwrap_or_default())
    }

    /// Writes a kubeconfig that signs in as `user`, and returns its path.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn kubeconfig(&self, user: &str) -> io::Result<PathBuf> {
        self.files.write_kubeconfig(user, &self.url())
    }

    /// A client that signs in as `user`. It sends every request once: a 429 is an answer.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub async fn client(&self, user: &str) -> Result<kube::Client, ControlPlaneError> {
        self.client_at(user, self.port.unwrap_or_default()).await
    }

    async fn client_at(&self, user: &str, port: u16) -> Result<kube::Client, ControlPlaneError> {
        use_ring();
        let fail = |why: String| ControlPlaneError::asked(&format!("sign in as {user}"), why);
        let text = self.files.kubeconfig(user, &format!("https://127.0.0.1:{port}"));
        let file = kube::config::Kubeconfig::from_yaml(&text).map_err(|error| fail(error.to_string()))?;
        let options = kube::config::KubeConfigOptions::default();
        let mut config =
            kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| fail(error.to_string()))?;
        config.default_retry = false;
        kube::Client::try_from(config).map_err(|error| fail(error.to_string()))
    }

    /// The end of a server's log, by the name of its program.
    pub fn log(&self, program: &str) -> String {
        log_end(&self.files.path(&format!("{program}.log")))
    }

    fn api_server_arguments(&self, port: u16) -> Vec<String> {
        let path = |name: &str| self.files.path(name).display().to_string();
        vec![
            format!("--etcd-servers={}", self.etcd_url),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", path("server.crt")),
            format!("--tls-private-key-file={}", path("server.key")),
            format!("--cert-dir={}", path("certificates")),
            "--service-account-issuer=https://rehearsal.invalid".into(),
            format!("--service-account-key-file={}", path("server.crt")),
            format!("--service-account-signing-key-file={}", path("server.key")),
            format!("--token-auth-file={}", path("tokens.csv")),
            format!("--audit-policy-file={}", path("audit-policy.yaml")),
            format!("--audit-log-path={}", path("audit.log")),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
            "--endpoint-reconciler-type=none".into(),
            "--disable-admission-plugins=ServiceAccount".into(),
            "--profiling=false".into(),
        ]
    }
}

/// rustls takes the provider of its cryptography from the process; kube and the webhook use the same one.
pub fn use_ring() {
    // Somebody was there before: then it is theirs that is used.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

async fn start_etcd(binaries: &Binaries, root: &Path) -> Result<(Process, Etcd, String), ControlPlaneError> {
    const PROGRAM: &str = "etcd";
    let [client, peer] = free_ports()?;
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let arguments = [
        format!("--data-dir={}", root.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ];
    let etcd = Etcd::new(&client)?;
    let mut server =
        Process::start(PROGRAM, root, &binaries.etcd, &arguments).map_err(ControlPlaneError::local("start etcd"))?;
    let deadline = Instant::now() + PATIENCE;
    while etcd.call("/v3/maintenance/status", &serde_json::json!({})).await.is_err() {
        let ended = server.check();
        if ended.is_err() || Instant::now() > deadline {
            let why = ended.err().map_or_else(not_ready, |error| error.to_string());
            let log = log_end(&root.join("etcd.log"));
            return Err(ControlPlaneError::NotReady { program: PROGRAM, why, log });
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok((server, etcd, client))
}

fn not_ready() -> String {
    format!("not ready within {} s", PATIENCE.as_secs())
}

fn log_end(path: &Path) -> String {
    const LINES: usize = 15;
    let log = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Ports that were free a moment ago; all are held until each is known, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N], ControlPlaneError> {
    let fail = ControlPlaneError::local("find a free port");
    let listeners: Vec<_> =
        (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<io::Result<_>>().map_err(&fail)?;
    let ports: io::Result<Vec<_>> = listeners.iter().map(|held| held.local_addr().map(|at| at.port())).collect();
    ports.map_err(&fail)?.try_into().map_err(|_| fail(io::Error::other("ports were lost")))
}
