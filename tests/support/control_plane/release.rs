//! Which Kubernetes releases the tests run against: one folder of `tests/control-plane/` each.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// A Kubernetes release, named by its folder: `v1.36`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// Major and minor: `v1.36`. Tests are named by it.
    pub name: String,
    /// The version that go.mod asks for: `v1.36.3`.
    pub version: String,
}

impl Release {
    /// Every release that has a module file, oldest first.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut releases = Vec::new();
        for folder in fs::read_dir(modules())? {
            let name = folder?.file_name().to_string_lossy().into_owned();
            if name.starts_with('v') {
                releases.push(Self { version: required_version(&modules().join(&name))?, name });
            }
        }
        releases.sort();
        Ok(releases)
    }

    /// The release of that name; the error lists those there are.
    pub fn named(name: &str) -> io::Result<Self> {
        let all = Self::all()?;
        let known: Vec<_> = all.iter().map(|release| release.name.clone()).collect();
        all.into_iter()
            .find(|release| release.name == name || release.version == name)
            .ok_or_else(|| io::Error::other(format!("no release `{name}`; there are {}", known.join(", "))))
    }

    /// The folder that holds its go.mod.
    pub fn module(&self) -> PathBuf {
        modules().join(&self.name)
    }

    /// The linker flags that make the binaries say which version they are; clients parse it.
    pub fn linker_flags(&self) -> String {
        let (major, minor) = self.name[1..].split_once('.').unwrap_or(("1", "0"));
        let variable = "k8s.io/component-base/version.git";
        format!("-s -w -X {variable}Version={} -X {variable}Major={major} -X {variable}Minor={minor}", self.version)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)
    }
}

/// The folder of the module files.
pub fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane")
}

fn required_version(module: &Path) -> io::Result<String> {
    let text = fs::read_to_string(module.join("go.mod"))?;
    text.lines()
        .find_map(|line| line.trim().trim_start_matches("require ").strip_prefix("k8s.io/kubernetes "))
        .map(|version| version.trim_end_matches("// indirect").trim().to_owned())
        .ok_or_else(|| io::Error::other(format!("{}/go.mod requires no k8s.io/kubernetes", module.display())))
}
