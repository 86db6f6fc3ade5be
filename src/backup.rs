//! Backup files: a folder of JSON lines and a manifest that says what must be in them.
//!
//! ```text
//! <folder>/            0700
//!   .gitignore         *: records can hold secrets
//!   manifest.json      what is covered, and the SHA-256 of every other file; written last
//!   crds.json          the CRDs with their managedFields
//!   <crd>.<version>.json   every object at one served version
//!   children.json      the ownerReferences that will change
//!   deletes.json       what later steps delete
//! ```
//!
//! Every data file holds one object a line, which `kubectl apply -f` reads as it is. A folder
//! without a manifest is a backup that was never finished. Knows no cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::object::Object;

const MANIFEST: &str = "manifest.json";

/// What a backup covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `sbx.backup/1`: another major is another layout.
    pub schema: String,
    /// uid of namespace `kube-system`; empty when it could not be read.
    pub cluster_uid: String,
    /// kubeconfig context.
    pub context: String,
    /// Run that took it.
    pub run: String,
    /// When it was first taken.
    pub taken_at: Timestamp,
    /// Data files.
    pub files: Vec<DataFile>,
    /// Covered uids by CRD.
    pub records: BTreeMap<String, BTreeSet<String>>,
    /// uids of children whose ownerReferences are kept.
    pub children: BTreeSet<String>,
    /// uids by deleting step, as they matched when the backup was first taken.
    pub deletes: BTreeMap<String, BTreeSet<String>>,
    /// uids of the CRDs by name: one that was created again is another CRD. Empty in older backups.
    #[serde(default)]
    pub crds: BTreeMap<String, String>,
}

impl Manifest {
    /// Whether it is a backup of this cluster; by context where a uid is not known.
    fn is_of(&self, cluster_uid: &str, context: &str) -> bool {
        if cluster_uid.is_empty() || self.cluster_uid.is_empty() {
            self.context == context
        } else {
            self.cluster_uid == cluster_uid
        }
    }
}

/// One data file, as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Name in the folder.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Objects in it.
    pub objects: usize,
}

/// What a search for a backup comes to.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The newest backup of this cluster whose files are all as the manifest says.
    pub verified: Option<(PathBuf, Manifest)>,
    /// A newer one that is not as its manifest says, and what is wrong with it.
    pub broken: Option<(PathBuf, String)>,
    /// Folders without a manifest: never finished.
    pub unfinished: Vec<PathBuf>,
    /// The one folder there is, where the pattern has no `{run}`, when it holds another cluster's backup.
    pub foreign: Option<PathBuf>,
}

/// The folder of a run: `{run}` in the pattern becomes the run's id.
pub fn folder(pattern: &str, run: &str, working_dir: &Path) -> PathBuf {
    working_dir.join(pattern.replace("{run}", run))
}

/// Looks for backups of a cluster where the pattern would have put them.
pub fn find(pattern: &str, working_dir: &Path, cluster_uid: &str, context: &str) -> Found {
    let mut found = Found::default();
    let mut known = Vec::new();
    for folder in candidates(pattern, working_dir) {
        match read_manifest(&folder) {
            Ok(Some(manifest)) => {
                if manifest.is_of(cluster_uid, context) {
                    known.push((manifest.taken_at, folder, manifest));
                } else if !pattern.contains("{run}") {
                    found.foreign = Some(folder);
                }
            }
            Ok(None) => found.unfinished.push(folder),
            // Nobody can tell whose it is, so it counts.
            Err(what) => found.broken = Some((folder, what)),
        }
    }
    known.sort_by_key(|(taken_at, ..)| *taken_at);
    if let Some((_, folder, manifest)) = known.pop() {
        match verify(&folder, &manifest) {
            Ok(()) => found.verified = Some((folder, manifest)),
            Err(what) => found.broken = Some((folder, what)),
        }
    }
    found
}

/// The manifest of this cluster's newest backup, its files unread.
pub fn newest(pattern: &str, working_dir: &Path, cluster_uid: &str, context: &str) -> Option<Manifest> {
    let manifests = candidates(pattern, working_dir).into_iter().filter_map(|folder| read_manifest(&folder).ok()?);
    manifests.filter(|manifest| manifest.is_of(cluster_uid, context)).max_by_key(|manifest| manifest.taken_at)
}

fn candidates(pattern: &str, working_dir: &Path) -> Vec<PathBuf> {
    let path = working_dir.join(pattern);
    let Some((before, after)) = pattern.rsplit('/').next().and_then(|last| last.split_once("{run}")) else {
        return Some(path).filter(|path| path.is_dir()).into_iter().collect();
    };
    let parent = path.parent().unwrap_or(working_dir);
    let mut folders: Vec<PathBuf> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.len() > before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn read_manifest(folder: &Path) -> Result<Option<Manifest>, String> {
    let path = folder.join(MANIFEST);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{MANIFEST} cannot be read: {error}")),
    };
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| format!("{MANIFEST} is not a backup's: {error}"))?;
    if manifest.schema == "sbx.backup/1" {
        Ok(Some(manifest))
    } else {
        Err(format!("{MANIFEST} has schema `{}`; this version reads sbx.backup/1", manifest.schema))
    }
}

/// Reads every file again and compares it with the manifest.
///
/// # Errors
/// What is wrong, naming the file.
pub fn verify(folder: &Path, manifest: &Manifest) -> Result<(), String> {
    for file in &manifest.files {
        let name = &file.name;
        let open = File::open(folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
        let mut reader = BufReader::new(open);
        let (mut hash, mut bytes, mut objects) = (Sha256::new(), 0, 0);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(|error| format!("{name}: {error}"))?;
            if read == 0 {
                break;
            }
            hash.update(&line);
            bytes += read as u64;
            objects += 1;
        }
        if bytes != file.bytes {
            return Err(format!("{name} has {bytes} bytes, the manifest says {}", file.bytes));
        }
        if hex(&hash.finalize()) != file.sha256 {
            return Err(format!("{name} was altered: its SHA-256 is not the manifest's"));
        }
        if objects != file.objects {
            return Err(format!("{name} holds {objects} objects, the manifest says {}", file.objects));
        }
    }
    Ok(())
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes the folder, for its owner alone, with a `.gitignore` of `*`.
///
/// # Errors
/// The file system's.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    if !folder.is_dir() {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    private(&folder.join(".gitignore"))?.write_all(b"*\n")
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// A data file being written; it has its name only once it is whole and on disk.
pub struct DataWriter {
    folder: PathBuf,
    name: String,
    out: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
    objects: usize,
}

impl DataWriter {
    /// Starts a file in a backup's folder.
    ///
    /// # Errors
    /// The file system's.
    pub fn start(folder: &Path, name: &str) -> io::Result<Self> {
        let out = BufWriter::new(private(&folder.join(format!("{name}.part")))?);
        Ok(Self { folder: folder.into(), name: name.into(), out, hash: Sha256::new(), bytes: 0, objects: 0 })
    }

    /// Adds an object.
    ///
    /// # Errors
    /// The file system's.
    pub fn add(&mut self, object: &Object) -> io::Result<()> {
        let mut line = object.0.to_string().into_bytes();
        line.push(b'\n');
        self.hash.update(&line);
        self.bytes += line.len() as u64;
        self.objects += 1;
        self.out.write_all(&line)
    }

    /// Puts the file on disk under its name.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(self) -> io::Result<DataFile> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(self.folder.join(format!("{}.part", self.name)), self.folder.join(&self.name))?;
        let sha256 = hex(&self.hash.finalize());
        Ok(DataFile { name: self.name, sha256, bytes: self.bytes, objects: self.objects })
    }
}

/// Writes the manifest, then reads the whole backup again.
///
/// # Errors
/// The file system's, or what does not match.
pub fn seal(folder: &Path, manifest: &Manifest) -> Result<(), String> {
    let part = folder.join(format!("{MANIFEST}.part"));
    let write = || -> io::Result<()> {
        let mut file = private(&part)?;
        file.write_all(&serde_json::to_vec_pretty(manifest)?)?;
        file.sync_all()?;
        fs::rename(&part, folder.join(MANIFEST))?;
        // The renames themselves must survive a power cut.
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| format!("{MANIFEST}: {error}"))?;
    match read_manifest(folder)? {
        Some(read) if read == *manifest => verify(folder, manifest),
        _ => Err(format!("{MANIFEST} does not read back as written")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(cluster_uid: &str) -> Manifest {
        Manifest {
            schema: "sbx.backup/1".into(),
            cluster_uid: cluster_uid.into(),
            context: "home".into(),
            run: "r".into(),
            taken_at: Timestamp::UNIX_EPOCH,
            files: Vec::new(),
            records: BTreeMap::new(),
            children: BTreeSet::new(),
            deletes: BTreeMap::new(),
            crds: BTreeMap::from([("widgets.demo.test".into(), "uid-1".into())]),
        }
    }

    #[test]
    fn one_folder_for_every_run_may_hold_another_clusters_backup() {
        let here = std::env::temp_dir().join(format!("sbx-backup-{}", std::process::id()));
        create_folder(&here.join("b")).and_then(|()| create_folder(&here.join("b-1"))).expect("a folder");
        for folder in ["b", "b-1"] {
            seal(&here.join(folder), &manifest("one")).expect("written");
        }
        assert_eq!(find("b", &here, "two", "home").foreign, Some(here.join("b")));
        assert_eq!(find("b", &here, "one", "home").foreign, None);
        assert_eq!(find("b-{run}", &here, "two", "home").foreign, None);
        let held = newest("b-{run}", &here, "one", "home").expect("one of this cluster");
        assert_eq!(held.crds["widgets.demo.test"], "uid-1");
        assert!(newest("b-{run}", &here, "two", "home").is_none());
        fs::remove_dir_all(here).expect("removed");
    }

    #[test]
    fn a_manifest_of_before_names_no_crds() {
        let mut old = serde_json::to_value(manifest("one")).expect("JSON");
        old.as_object_mut().expect("an object").remove("crds");
        let read: Manifest = serde_json::from_value(old).expect("a manifest");
        assert!(read.crds.is_empty());
    }
}
