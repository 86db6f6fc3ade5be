//! etcd and kube-apiserver on loopback: free ports, a folder of their own, gone with the tests.

mod audit;
mod binaries;
mod etcd;
mod files;
mod process;
mod release;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

pub use audit::AuditEvent;
pub use binaries::{Binaries, Origin, binaries, origin, required};
pub use etcd::{Etcd, RawRecord};
pub use files::{CONTEXT, USERS};
pub use release::Release;

use super::Result;
use super::api::Api;
use files::Files;
use process::Process;

/// A running control plane. Dropping it stops the servers and removes their folder.
pub struct ControlPlane {
    /// The release that runs.
    pub release: Release,
    /// The stored bytes.
    pub etcd: Etcd,
    binaries: Binaries,
    files: Files,
    port: u16,
    etcd_url: String,
    clients: Mutex<BTreeMap<String, Api>>,
    /// Further arguments of the API server.
    more: Vec<String>,
    // Dropped in this order: the servers before their folder.
    controllers: Option<Process>,
    api_server: Option<Process>,
    etcd_server: Process,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a release and waits until it is ready.
    pub async fn start(release: &Release) -> Result<Self> {
        let binaries = binaries(release)?;
        for _ in 0..2 {
            // Another process may take a free port before the server does: then once more.
            match Self::start_on_free_ports(release, &binaries).await {
                Err(error) if error.to_string().contains("address already in use") => {}
                done => return done,
            }
        }
        Self::start_on_free_ports(release, &binaries).await
    }

    async fn start_on_free_ports(release: &Release, binaries: &Binaries) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sbx-control-plane-").tempdir()?;
        let root = folder.path();
        let files = Files::write(root)?;
        let [client, peer, port] = free_ports()?;
        let etcd_url = format!("http://127.0.0.1:{client}");
        let arguments = etcd_arguments(root, &etcd_url, &format!("http://127.0.0.1:{peer}"));
        let mut plane = Self {
            release: release.clone(),
            etcd: Etcd::new(&etcd_url)?,
            etcd_server: Process::start("etcd", root, &binaries.etcd, &arguments)?,
            binaries: binaries.clone(),
            files,
            port,
            etcd_url,
            clients: Mutex::default(),
            more: Vec::new(),
            controllers: None,
            api_server: None,
            folder,
        };
        plane.start_api_server().await?;
        Ok(plane)
    }

    /// Starts the API server, where it was stopped, and waits for `/readyz`.
    pub async fn start_api_server(&mut self) -> Result<()> {
        let arguments = [self.api_server_arguments(), self.more.clone()].concat();
        let server = Process::start("kube-apiserver", self.folder.path(), &self.binaries.api_server, &arguments)?;
        let server = self.api_server.insert(server);
        let deadline = Instant::now() + Duration::from_secs(90);
        let api = client(&self.files, "cluster", self.port).await?;
        loop {
            let servers = self.etcd_server.check().and_then(|()| server.check());
            let answer = api.client.request_text(http::Request::get("/readyz").body(Vec::new())?).await;
            match answer {
                Ok(text) if text.trim() == "ok" => return Ok(()),
                _ if servers.is_err() || Instant::now() > deadline => {
                    let what = servers.err().map_or("not ready within 90 s".into(), |error| error.to_string());
                    return Err(format!("kube-apiserver {}: {what}\n{}", self.release, self.logs()).into());
                }
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Stops the API server; etcd and what it holds stay.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Restarts the API server so that it reads from etcd alone: one with a cache goes on answering from what it
    /// converted while the conversion still worked.
    pub async fn restart_without_cache(&mut self) -> Result<()> {
        self.stop_api_server();
        self.more = vec!["--watch-cache=false".into()];
        self.start_api_server().await
    }

    /// Starts kube-controller-manager with these controllers, such as `garbage-collector-controller` and
    /// `namespace-controller`.
    pub fn start_controllers(&mut self, controllers: &[&str]) -> Result<()> {
        let program = self.binaries.controller_manager.clone().ok_or("this release has no kube-controller-manager")?;
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig("cluster")?.display()),
            format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let process = Process::start("kube-controller-manager", self.folder.path(), &program, &arguments)?;
        self.controllers = Some(process);
        Ok(())
    }

    /// The folder of its files, for what a test wants to lie beside them.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// A kubeconfig that signs in as `user`; its context is [`CONTEXT`].
    pub fn kubeconfig(&self, user: &str) -> io::Result<PathBuf> {
        self.files.kubeconfig(user, &self.url())
    }

    /// The API server as `user` sees it.
    pub async fn api(&self, user: &str) -> Result<Api> {
        let mut clients = self.clients.lock().await;
        if let Some(api) = clients.get(user) {
            return Ok(api.clone());
        }
        let api = client(&self.files, user, self.port).await?;
        clients.insert(user.into(), api.clone());
        Ok(api)
    }

    /// The stored records of a custom resource, such as `sandboxes.agents.x-k8s.io`: what etcd really holds.
    pub async fn raw_records(&self, crd: &str) -> Result<Vec<RawRecord>> {
        let (plural, group) = crd.split_once('.').ok_or_else(|| format!("`{crd}` is no name of a CRD"))?;
        self.etcd.range(&format!("/registry/{group}/{plural}/")).await
    }

    /// Every request that `user` has been answered so far.
    pub async fn audit(&self, user: &str) -> Result<Vec<AuditEvent>> {
        // The log is written in order of the answers, a little after them: a last request marks the end.
        let mark = format!("/version?until={:?}", std::time::Instant::now()).replace([' ', '{', '}', ':'], "");
        self.api("cluster").await?.get(&mark).await?;
        for _ in 0..200 {
            let log = fs::read_to_string(self.files.path("audit.log")).unwrap_or_default();
            let events = audit::parse(&log);
            if events.iter().any(|event| event.uri == mark) {
                return Ok(events.into_iter().filter(|event| event.user == user).collect());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err("the audit log does not show the last request".into())
    }

    /// The ends of the servers' logs, for the message of a failure.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for name in ["etcd", "kube-apiserver", "kube-controller-manager"] {
            let log = fs::read_to_string(self.files.path(&format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(15)..].join("\n");
            text = format!("{text}--- end of {name}.log\n{end}\n");
        }
        text
    }

    fn api_server_arguments(&self) -> Vec<String> {
        let path = |name: &str| self.files.path(name).display().to_string();
        vec![
            format!("--etcd-servers={}", self.etcd_url),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.port),
            format!("--tls-cert-file={}", path("server.crt")),
            format!("--tls-private-key-file={}", path("server.key")),
            format!("--cert-dir={}", path("certificates")),
            "--service-account-issuer=https://pitower.test".into(),
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
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

async fn client(files: &Files, user: &str, port: u16) -> Result<Api> {
    use_ring();
    let path = files.kubeconfig(user, &format!("https://127.0.0.1:{port}"))?;
    let kubeconfig = kube::config::Kubeconfig::read_from(path)?;
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_retry = false; // a 429 is an answer that the tests want to see
    Ok(Api { client: kube::Client::try_from(config)? })
}

fn etcd_arguments(root: &Path, client: &str, peer: &str) -> Vec<String> {
    [
        format!("--data-dir={}", root.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ]
    .into()
}

/// Ports that were free a moment ago; all are held until each is known, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listeners: Vec<_> = (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<io::Result<_>>()?;
    let ports: Vec<_> =
        listeners.iter().map(|held| held.local_addr().map(|at| at.port())).collect::<io::Result<_>>()?;
    ports.try_into().map_err(|_| "ports were lost".into())
}
