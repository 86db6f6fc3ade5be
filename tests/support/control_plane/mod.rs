//! etcd and kube-apiserver on loopback: free ports, a folder of their own, gone with the tests.

mod audit;
mod binaries;
mod etcd;
mod release;
mod users;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use sbx::control_plane::{self as servers, Process, Users};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::time::sleep;

pub use audit::AuditEvent;
pub use binaries::{Binaries, Origin, binaries, origin, required};
pub use etcd::{Etcd, RawRecord};
pub use release::Release;
pub use sbx::control_plane::use_ring;
pub use users::{CONTEXT, USERS};

use super::Result;
use super::api::Api;

/// A running control plane. Dropping it stops the servers and removes their folder.
pub struct ControlPlane {
    /// The release that runs.
    pub release: Release,
    /// The stored bytes.
    pub etcd: Etcd,
    binaries: Binaries,
    clients: Mutex<BTreeMap<String, Api>>,
    /// Further arguments of the API server.
    more: Vec<String>,
    // Dropped in this order: the servers before their folder.
    controllers: Option<Process>,
    servers: servers::ControlPlane,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a release and waits until it is ready.
    pub async fn start(release: &Release) -> Result<Self> {
        let binaries = binaries(release)?;
        let folder = tempfile::Builder::new().prefix("sbx-control-plane-").tempdir()?;
        let users = Users { groups: USERS, context: CONTEXT };
        let programs = servers::Binaries { etcd: binaries.etcd.clone(), api_server: binaries.api_server.clone() };
        let servers = servers::ControlPlane::start_store(&programs, folder.path(), &users).await?;
        let mut plane = Self {
            release: release.clone(),
            etcd: Etcd::new(servers.etcd.clone()),
            binaries,
            clients: Mutex::default(),
            more: Vec::new(),
            controllers: None,
            servers,
            folder,
        };
        plane.start_api_server().await?;
        Ok(plane)
    }

    /// Starts the API server, where it was stopped, and waits for `/readyz`.
    pub async fn start_api_server(&mut self) -> Result<()> {
        Ok(self.servers.start_api_server(&self.more).await?)
    }

    /// Stops the API server; etcd and what it holds stay.
    pub fn stop_api_server(&mut self) {
        self.servers.stop_api_server();
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
        self.servers.url()
    }

    /// A kubeconfig that signs in as `user`; its context is [`CONTEXT`].
    pub fn kubeconfig(&self, user: &str) -> io::Result<PathBuf> {
        self.servers.kubeconfig(user)
    }

    /// The API server as `user` sees it.
    pub async fn api(&self, user: &str) -> Result<Api> {
        let mut clients = self.clients.lock().await;
        if let Some(api) = clients.get(user) {
            return Ok(api.clone());
        }
        let api = Api { client: self.servers.client(user).await? };
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
            let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
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
            text = format!("{text}--- end of {name}.log\n{}\n", self.servers.log(name));
        }
        text
    }
}
