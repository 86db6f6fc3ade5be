//! The file: one JSON value a line, each named by what it is. Knows no cluster.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SCHEMA;
use crate::{
    cluster::{self, Status},
    object::{Object, Resource, split_api_version},
};

/// Longest line that is read: an object is at most a few MiB, and a record holds it at each version.
const LINE_LIMIT: u64 = 64 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The first one.
    Snapshot(Header),
    /// What a group version serves.
    Served(Served),
    /// A group version that did not answer, with the server's words.
    Silent(BTreeMap<String, String>),
    /// A CRD.
    Crd(Object),
    /// An object of the upgrade's kinds.
    Record(Record),
    /// Any other object.
    Object(Object),
    /// Metadata of any other object.
    Metadata(Object),
    /// A read that was answered.
    Taken(Taken),
    /// A read that was refused.
    Denied(Denied),
    /// Answer to an access review.
    Access(Access),
    /// Writes at the version that goes, as the API server counts them.
    Requests(Requests),
    /// The last one.
    End(End),
}

/// When it was taken, of which cluster, for which runbook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// When, by the server's clock.
    pub taken_at: Timestamp,
    /// kubeconfig context.
    pub context: String,
    /// uid of namespace `kube-system`; none when it could not be read.
    pub cluster_uid: Option<String>,
    /// `v1.36.1`.
    pub server_version: String,
    /// The user as the API server sees it.
    pub user: Option<String>,
    /// The runbook it was taken for.
    pub runbook: RunbookIdentity,
    /// Version that goes.
    pub from: String,
    /// Version that stays.
    pub to: String,
    /// CRDs of the upgrade, in the runbook's order.
    pub crds: Vec<String>,
}

/// Which runbook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunbookIdentity {
    /// Its title.
    pub title: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// What a group version serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// `apps/v1`.
    pub api_version: String,
    /// Whether the server prefers this version of the group.
    pub preferred: bool,
    /// Its resources that can be listed; none: it is not served.
    pub resources: Option<Vec<ServedResource>>,
}

/// One resource of a group version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedResource {
    /// Plural.
    pub plural: String,
    /// Kind.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// An object of the upgrade's kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its CRD.
    pub crd: String,
    /// The object by version.
    pub at: BTreeMap<String, Object>,
    /// Why it could not be read at a version, in the server's words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, Refusal>,
}

/// A read that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// URL path.
    pub get: String,
    /// Whether the whole objects were read; else their metadata.
    pub whole: bool,
    /// How many objects of it stand in this file.
    pub objects: usize,
}

/// A read that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// URL path.
    pub get: String,
    /// Whether only the whole objects were refused; else their metadata too.
    pub whole: bool,
    /// What the server said.
    pub refusal: Refusal,
}

/// The server's error, as far as it is acted upon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: String,
    /// The server's own words.
    pub message: String,
}

/// Answer to an access review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// `get`, `list`, `patch`, …
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with subresource.
    pub resource: String,
    /// Namespace; none for all.
    pub namespace: Option<String>,
    /// Name; none for any.
    pub name: Option<String>,
    /// Whether it is allowed; none: the review failed.
    pub allowed: Option<bool>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// Writes of one verb at the version that goes, on one resource, since the API server started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// `plural.group`.
    pub resource: String,
    /// `POST`, `PATCH`, …
    pub verb: String,
    /// How many.
    pub count: u64,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Lines before this one.
    pub lines: usize,
}

impl Served {
    /// Its resources, as the cluster names them.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        let (group, version) = split_api_version(&self.api_version);
        let resources = self.resources.iter().flatten();
        resources.map(move |found| Resource::new(group, version, &found.plural, &found.kind, found.namespaced))
    }
}

impl From<&Resource> for ServedResource {
    fn from(resource: &Resource) -> Self {
        Self { plural: resource.plural.clone(), kind: resource.kind.clone(), namespaced: resource.namespaced }
    }
}

impl From<&Status> for Refusal {
    fn from(status: &Status) -> Self {
        Self { code: status.code, reason: status.reason.clone(), message: status.message.clone() }
    }
}

impl Access {
    /// The question.
    pub fn question(&self) -> cluster::Access {
        let Self { verb, group, resource, namespace, name, .. } = self.clone();
        cluster::Access { verb, group, resource, namespace, name }
    }
}

/// A snapshot being written; it has its name only once it is whole and on disk.
pub(super) struct LineWriter {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
    lines: usize,
    bytes: u64,
}

impl LineWriter {
    /// Starts a file for its owner alone.
    pub(super) fn start(path: &Path) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // Made anew: what an older file allows others must not last.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        Ok(Self { path: path.into(), part, out: BufWriter::new(file), lines: 0, bytes: 0 })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.lines += 1;
        self.bytes += text.len() as u64;
        self.out.write_all(&text)
    }

    /// Ends the file and puts it on disk under its name; how many bytes it has.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.add(&Line::End(End { lines: self.lines }))?;
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        fs::rename(&self.part, &self.path)?;
        Ok(self.bytes)
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        // Finished, it has its name; else nobody wants half of it.
        drop(fs::remove_file(&self.part));
    }
}

/// What is wrong with a snapshot, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {what}", path.display(), line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct FormatError {
    /// The file.
    pub path: PathBuf,
    /// The line, where it is about one.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A snapshot being read, line by line behind its header. The end is checked, not returned.
pub struct Lines<R = BufReader<File>> {
    path: PathBuf,
    /// Its header.
    pub header: Header,
    input: R,
    read: usize,
    ended: bool,
}

impl Lines {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// It cannot be read, is no snapshot, or one of another schema.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let file = File::open(path).map_err(|error| FormatError {
            path: path.into(),
            line: None,
            what: error.to_string(),
            hint: None,
        })?;
        Self::read(path, BufReader::new(file))
    }
}

impl<R: BufRead> Lines<R> {
    /// Reads the header from any input; `path` is for messages.
    ///
    /// # Errors
    /// As [`Lines::open`].
    pub fn read(path: &Path, mut input: R) -> Result<Self, FormatError> {
        let fail = |what: String, hint: Option<&str>| FormatError {
            path: path.into(),
            line: Some(1),
            what,
            hint: hint.map(Into::into),
        };
        let is_none = || fail("this is no snapshot".into(), Some("`sbx snapshot RUNBOOK -o FILE` takes one"));
        let text = next_line(&mut input).map_err(|what| fail(what, None))?.ok_or_else(is_none)?;
        let value: Value = serde_json::from_slice(&text).map_err(|_| is_none())?;
        let schema = value.pointer("/snapshot/schema").and_then(Value::as_str).ok_or_else(is_none)?;
        if schema != SCHEMA {
            let what = format!("schema `{}`; this version reads `{SCHEMA}`", shown(schema));
            return Err(fail(what, Some("take it again with this version, or read it with the one that took it")));
        }
        match serde_json::from_value(value) {
            Ok(Line::Snapshot(header)) => Ok(Self { path: path.into(), header, input, read: 1, ended: false }),
            Ok(_) => Err(is_none()),
            Err(error) => Err(fail(format!("the header is damaged: {error}"), None)),
        }
    }

    fn fail(&self, what: String, hint: Option<&str>) -> FormatError {
        FormatError { path: self.path.clone(), line: Some(self.read), what, hint: hint.map(Into::into) }
    }

    fn next_line(&mut self) -> Result<Option<Line>, FormatError> {
        const CUT: &str = "copy or take it again";
        self.read += 1;
        let Some(text) = next_line(&mut self.input).map_err(|what| self.fail(what, None))? else {
            if self.ended {
                return Ok(None);
            }
            self.read -= 1;
            return Err(self.fail("the file ends here, without its last line: it is cut off".into(), Some(CUT)));
        };
        if self.ended {
            return Err(self.fail("something follows the last line".into(), Some(CUT)));
        }
        match serde_json::from_slice(&text) {
            Ok(Line::Snapshot(_)) => Err(self.fail("a second header".into(), Some("one file holds one snapshot"))),
            Ok(Line::End(end)) => {
                self.ended = true;
                let before = self.read - 1;
                if end.lines != before {
                    let what = format!("{before} lines came before this one, which says {}", end.lines);
                    return Err(self.fail(what, Some(CUT)));
                }
                self.next_line()
            }
            Ok(line) => Ok(Some(line)),
            Err(error) if error.is_eof() => Err(self.fail("the line is cut off".into(), Some(CUT))),
            Err(error) => Err(self.fail(format!("no line of a snapshot: {error}"), None)),
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}

/// The next line that is not empty; none at the end.
fn next_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut text = Vec::new();
    let read = io::Read::take(&mut *input, LINE_LIMIT).read_until(b'\n', &mut text);
    let read = read.map_err(|error| error.to_string())?;
    if read as u64 == LINE_LIMIT {
        return Err("a line of more than 64 MiB, which no snapshot has".into());
    }
    Ok((read > 0).then_some(text))
}

/// A short piece of foreign text for a message.
fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn header() -> Header {
        Header {
            schema: SCHEMA.into(),
            taken_at: "2026-12-01T14:02:11Z".parse().expect("a time"),
            context: "admin@pitower".into(),
            cluster_uid: None,
            server_version: "v1.36.1".into(),
            user: Some("admin".into()),
            runbook: RunbookIdentity { title: "t".into(), sha256: "00".into() },
            from: "v1alpha1".into(),
            to: "v1beta1".into(),
            crds: vec!["widgets.demo.test".into()],
        }
    }

    fn written(lines: &[Line]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.snapshot");
        let mut writer = LineWriter::start(&path).expect("a file");
        for line in lines {
            writer.add(line).expect("written");
        }
        assert!(!path.exists(), "nothing has its name before it is whole");
        let bytes = writer.finish().expect("finished");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(bytes, text.len() as u64);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        text
    }

    fn read(text: &str) -> Result<Vec<Line>, String> {
        let shown = |error: FormatError| error.to_string();
        Lines::read(Path::new("x"), text.as_bytes()).map_err(shown)?.collect::<Result<_, _>>().map_err(shown)
    }

    #[test]
    fn what_is_written_is_read() {
        let object = Object(json!({"kind": "X", "a": [1.5, null, "\n"]}));
        let record = Record {
            crd: "widgets.demo.test".into(),
            at: BTreeMap::from([("v1beta1".into(), object.clone())]),
            unreadable: BTreeMap::from([(
                "v1alpha1".into(),
                Refusal { code: 500, reason: "InternalError".into(), message: "m".into() },
            )]),
        };
        let lines = [Line::Crd(object.clone()), Line::Record(record), Line::Metadata(object)];
        let mut all = vec![Line::Snapshot(header())];
        all.extend(lines.clone());
        let text = written(&all);
        assert_eq!(read(&text), Ok(lines.to_vec()));
        assert!(text.ends_with("{\"end\":{\"lines\":4}}\n"), "{text}");
    }

    #[test]
    fn a_file_left_half_written_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = LineWriter::start(&folder.path().join("x")).expect("a file");
        writer.add(&Line::Snapshot(header())).expect("written");
        drop(writer);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn what_is_wrong_names_the_line() {
        let whole = written(&[Line::Snapshot(header()), Line::Crd(Object(json!({}))), Line::Crd(Object(json!({})))]);
        let lines: Vec<&str> = whole.lines().collect();
        let cut = |bytes: usize| whole[..whole.len() - bytes].to_owned();
        let table = [
            (String::new(), "x:1: this is no snapshot"),
            ("{\"kind\": \"List\"}".into(), "x:1: this is no snapshot"),
            ("title = \"a runbook\"".into(), "x:1: this is no snapshot"),
            (
                whole.replace("snapshot/1", "snapshot/2"),
                "x:1: schema `sbx.snapshot/2`; this version reads `sbx.snapshot/1`",
            ),
            (
                whole.replace("\"context\":\"admin@pitower\",", ""),
                "x:1: the header is damaged: missing field `context`",
            ),
            (cut(20), "x:3: the file ends here, without its last line: it is cut off"),
            (cut(5), "x:4: the line is cut off"),
            ([lines[0], lines[1], lines[3]].join("\n"), "x:3: 2 lines came before this one, which says 3"),
            (format!("{whole}{}", lines[1]), "x:5: something follows the last line"),
            ([lines[0], lines[0]].join("\n"), "x:2: a second header"),
            ([lines[0], "{\"crt\": {}}"].join("\n"), "x:2: no line of a snapshot: unknown variant `crt`"),
            ([lines[0], "x"].join("\n"), "x:2: no line of a snapshot: expected value"),
        ];
        for (text, wanted) in table {
            let found = read(&text).expect_err(wanted);
            assert!(found.starts_with(wanted), "{found}");
        }
    }
}
