//! Finds etcd and kube-apiserver, or builds them once from their Go modules.
//!
//! First the folder that `KUBEBUILDER_ASSETS` names, then the per-user cache, then `go`. The cache is keyed
//! by version and by what the binaries are made of, so a second clone does not build again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, io};

use sha2::{Digest, Sha256};

use super::release::{Release, modules};

/// The binaries of one release.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The store.
    pub etcd: PathBuf,
    /// The API server.
    pub api_server: PathBuf,
    /// The controllers, where the release builds them.
    pub controller_manager: Option<PathBuf>,
}

/// Where the binaries of a release would come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The folder of `KUBEBUILDER_ASSETS`.
    Assets(PathBuf),
    /// The cache of an earlier build.
    Cache,
    /// A build that is still to be done.
    Go,
    /// Nowhere; the text says why.
    Nowhere(String),
}

/// Leaving a test out is a failure where this is set.
pub fn required() -> bool {
    env::var_os("SBX_REQUIRE_CONTROL_PLANE").is_some_and(|value| value == "1")
}

/// Where the binaries of `release` would come from.
pub fn origin(release: &Release) -> Origin {
    let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = &assets
        && assets_version(folder).is_some_and(|version| version.starts_with(&format!("{}.", release.name)))
    {
        return Origin::Assets(folder.clone());
    }
    if etcd_cache().is_ok_and(|folder| folder.exists()) && release_cache(release).is_ok_and(|folder| folder.exists()) {
        return Origin::Cache;
    }
    if assets.is_some() && !required() {
        return Origin::Nowhere(format!("KUBEBUILDER_ASSETS holds no kube-apiserver {}", release.name));
    }
    match Command::new("go").arg("version").output() {
        Ok(output) if output.status.success() => Origin::Go,
        _ => Origin::Nowhere("neither `go` nor KUBEBUILDER_ASSETS is there".into()),
    }
}

/// The binaries of `release`, built where there are none yet. One build at a time.
pub fn binaries(release: &Release) -> io::Result<Binaries> {
    static ONE_BUILD: Mutex<()> = Mutex::new(());
    let (etcd, folder) = match origin(release) {
        Origin::Nowhere(why) => return Err(io::Error::other(format!("no control plane {release}: {why}"))),
        Origin::Assets(folder) => (folder.clone(), folder),
        Origin::Cache => (etcd_cache()?, release_cache(release)?),
        Origin::Go => {
            let _guard = ONE_BUILD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (etcd, folder) = (etcd_cache()?, release_cache(release)?);
            build(&modules().join("etcd"), ETCD_FLAGS, &etcd)?;
            build(&release.module(), &release.linker_flags(), &folder)?;
            (etcd, folder)
        }
    };
    let controllers = folder.join("kube-controller-manager");
    Ok(Binaries {
        etcd: etcd.join("etcd"),
        api_server: folder.join("kube-apiserver"),
        controller_manager: controllers.exists().then_some(controllers),
    })
}

const ETCD_FLAGS: &str = "-s -w";

/// `v1.36.1`, as the API server of that folder says itself.
fn assets_version(folder: &Path) -> Option<String> {
    let output = Command::new(folder.join("kube-apiserver")).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().strip_prefix("Kubernetes ")?.to_owned())
}

fn etcd_cache() -> io::Result<PathBuf> {
    cache_folder("etcd", &modules().join("etcd"), ETCD_FLAGS)
}

fn release_cache(release: &Release) -> io::Result<PathBuf> {
    cache_folder(&release.version, &release.module(), &release.linker_flags())
}

fn cache_folder(name: &str, module: &Path, flags: &str) -> io::Result<PathBuf> {
    let root = env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = root
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor a home folder is set"))?;
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        hash.update(fs::read(module.join(file))?);
    }
    hash.update(flags);
    let [a, b, c, d, ..]: [u8; 32] = hash.finalize().into();
    let key = format!("{:08x}", u32::from_be_bytes([a, b, c, d]));
    Ok(root.join("sbx/control-plane").join(format!("{name}-{key}")))
}

/// Builds the tools of `module` into `folder`: into a folder of its own first, so that an interrupted build
/// never passes for a whole one.
fn build(module: &Path, flags: &str, folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("building {name} of the test control plane (minutes when nothing is cached) ...");
    let unfinished = folder.with_file_name(format!(".{name}.{}", std::process::id()));
    fs::create_dir_all(&unfinished)?;
    let status = Command::new("go")
        .args(["build", "-trimpath", "-mod=readonly", "-ldflags", flags, "-o"])
        .arg(unfinished.join(""))
        .arg("tool")
        .env("GOWORK", "off")
        .current_dir(module)
        .status()?;
    if !status.success() {
        fs::remove_dir_all(&unfinished)?;
        return Err(io::Error::other(format!("`go build tool` in {} failed: {status}", module.display())));
    }
    // etcd's package is called `server`, and so is what Go makes of it.
    if unfinished.join("server").exists() {
        fs::rename(unfinished.join("server"), unfinished.join("etcd"))?;
    }
    match fs::rename(&unfinished, folder) {
        Err(_) if folder.exists() => fs::remove_dir_all(&unfinished), // another process was faster
        done => done,
    }
}
