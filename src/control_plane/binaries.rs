//! Where etcd and kube-apiserver are.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::ControlPlaneError;

/// The variable that names the folder of the binaries, as setup-envtest has it.
pub const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The programs of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The store.
    pub etcd: PathBuf,
    /// The API server.
    pub api_server: PathBuf,
}

impl Binaries {
    /// Those in the folder that `KUBEBUILDER_ASSETS` names.
    ///
    /// # Errors
    /// It is not set, or the folder lacks one; what to do is part of the text.
    pub fn of_assets() -> Result<Self, ControlPlaneError> {
        match env::var_os(ASSETS).filter(|value| !value.is_empty()) {
            Some(folder) => Self::in_folder(Path::new(&folder)),
            None => Err(ControlPlaneError::NoBinaries(format!("{ASSETS} is not set"))),
        }
    }

    /// Those in a folder.
    ///
    /// # Errors
    /// The folder lacks one.
    pub fn in_folder(folder: &Path) -> Result<Self, ControlPlaneError> {
        let find = |name: &str| {
            let path = folder.join(name);
            let missing = || ControlPlaneError::NoBinaries(format!("{ASSETS} holds no {name}: {}", folder.display()));
            path.is_file().then_some(path).ok_or_else(missing)
        };
        Ok(Self { etcd: find("etcd")?, api_server: find("kube-apiserver")? })
    }
}
