//! A snapshot to a server held in memory: then the same code observes it as observes a cluster.
//!
//! What a snapshot cannot know is chosen on the safe side: a record counts as stored at `from` while
//! `storedVersions` lists it. Conversions are replayed from the recorded pairs.

use std::{
    collections::BTreeMap,
    io::{BufRead, Cursor},
    path::Path,
    sync::Arc,
};

use serde_json::Value;

use super::{Access, Denied, FormatError, Header, Line, Lines, Record, Requests};
use crate::{
    crd::{Crd, crd_resource},
    embedded::{Converter, Release, RequestRecord, Rule, Server},
    object::{Object, split_api_version},
};

/// The cluster before the agent-sandbox upgrade, as the tests build it.
const BUILT_IN: &str = include_str!("built_in.jsonl");

/// Loads a file; `user`: in whose name the plan is made.
///
/// # Errors
/// The file is no snapshot, or is damaged; the line is named.
pub fn load(path: &Path, user: &str) -> Result<(Header, Server), FormatError> {
    fill(path, Lines::open(path)?, user)
}

/// The built-in snapshot.
///
/// # Errors
/// It is damaged, which a test rules out.
pub fn built_in(user: &str) -> Result<(Header, Server), FormatError> {
    let path = Path::new("the built-in snapshot");
    fill(path, Lines::read(path, Cursor::new(BUILT_IN))?, user)
}

fn fill<R: BufRead>(path: &Path, mut lines: Lines<R>, user: &str) -> Result<(Header, Server), FormatError> {
    let header = lines.header.clone();
    let server = Server::new(Release::named(&header.server_version).unwrap_or_else(Release::v1_36));
    let mut loading = Loading { server, header, user: user.into(), plurals: BTreeMap::new(), pairs: BTreeMap::new() };
    loading.cluster();
    let mut number = 1;
    // Objects whose definition stands further down.
    let mut early = Vec::new();
    while let Some(line) = lines.next().transpose()? {
        number += 1;
        match line {
            Line::Object(object) | Line::Metadata(object) if !loading.serves(&object) => early.push((number, object)),
            line => loading.line(line).map_err(|what| fail(path, number, what))?,
        }
    }
    for (number, object) in early {
        loading.object(object).map_err(|what| fail(path, number, what))?;
    }
    loading.convert();
    Ok((loading.header, loading.server))
}

fn fail(path: &Path, line: usize, what: String) -> FormatError {
    FormatError { path: path.into(), line: Some(line), what, hint: None }
}

/// One object at each version.
type Pair = BTreeMap<String, Object>;

struct Loading {
    server: Server,
    header: Header,
    user: String,
    /// Resource by `apiVersion` and kind.
    plurals: BTreeMap<(String, String), String>,
    /// Recorded conversions by CRD and uid.
    pairs: BTreeMap<String, BTreeMap<String, Pair>>,
}

impl Loading {
    /// The namespace whose uid stands for the cluster.
    fn cluster(&self) {
        let namespace = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "kube-system", "uid": self.header.cluster_uid},
        });
        // Every server has namespaces.
        let _ = self.server.put("namespaces", namespace);
    }

    fn line(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Served(served) => {
                for resource in served.resources() {
                    let kind = (resource.api_version(), resource.kind.clone());
                    self.plurals.insert(kind, resource.name());
                }
                Ok(())
            }
            Line::Crd(crd) => self.server.put(&crd_resource().name(), crd.0),
            Line::Record(record) => self.record(record),
            Line::Object(object) | Line::Metadata(object) => self.object(object),
            Line::Denied(denied) => {
                self.denied(&denied);
                Ok(())
            }
            Line::Access(access) => {
                self.access(&access);
                Ok(())
            }
            Line::Requests(requests) => {
                self.requests(&requests);
                Ok(())
            }
            // Checked by the reader, or said of what stands elsewhere.
            Line::Snapshot(_) | Line::Silent(_) | Line::Taken(_) | Line::End(_) => Ok(()),
        }
    }

    /// Whether the server has this object's kind already.
    fn serves(&self, object: &Object) -> bool {
        let kind = (object.api_version().to_owned(), object.kind().to_owned());
        self.plurals.get(&kind).is_some_and(|resource| self.server.serves(resource))
    }

    fn object(&self, object: Object) -> Result<(), String> {
        let kind = (object.api_version().to_owned(), object.kind().to_owned());
        match self.plurals.get(&kind) {
            Some(resource) => self.server.put(resource, object.0),
            None => Err(format!("nothing serves {} {}", kind.0, kind.1)),
        }
    }

    fn record(&mut self, record: Record) -> Result<(), String> {
        let stored = self.server.stored(&crd_resource().name());
        let crd =
            stored.into_iter().find(|stored| stored.key == record.crd).map(|stored| Crd::of(Object(stored.object)));
        let crd = crd.ok_or_else(|| format!("a record of CRD {}, which did not come before it", record.crd))?;
        let (from, to) = (&self.header.from, &self.header.to);
        let version = if crd.stored_versions.contains(from) && record.at.contains_key(from) { from } else { to };
        let Some(object) = record.at.get(version).or_else(|| record.at.values().next()) else {
            return Err(format!("a record of CRD {} at no version", record.crd));
        };
        self.server.put(&record.crd, object.0.clone())?;
        let uid = object.uid().to_owned();
        self.pairs.entry(record.crd).or_default().insert(uid, record.at);
        Ok(())
    }

    /// Replays the recorded conversions of each CRD.
    fn convert(&mut self) {
        for (crd, pairs) in std::mem::take(&mut self.pairs) {
            let pairs = Arc::new(pairs);
            let converter: Converter =
                Arc::new(move |object: &Value, api_version: &str| replay(&pairs, object, api_version));
            self.server.converter(&crd, converter);
        }
    }

    fn denied(&self, denied: &Denied) {
        let parts: Vec<&str> = denied.get.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return self.server.deny(&self.user, Rule::new(&["get"], "", &[&denied.get])),
        };
        let rule = |resource: &str| Rule::new(&["get", "list"], group, &[resource]);
        let rule = match rest {
            ["namespaces", namespace, resource] => rule(resource).within(namespace),
            ["namespaces", namespace, resource, name] => rule(resource).within(namespace).names(&[name]),
            [resource] => rule(resource),
            [resource, name] => rule(resource).names(&[name]),
            _ => return,
        };
        self.server.deny(&self.user, rule);
    }

    fn access(&self, access: &Access) {
        if access.allowed != Some(false) {
            return;
        }
        let mut rule = Rule::new(&[&access.verb], &access.group, &[&access.resource]);
        if let Some(namespace) = &access.namespace {
            rule = rule.within(namespace);
        }
        if let Some(name) = &access.name {
            rule = rule.names(&[name]);
        }
        self.server.deny(&self.user, rule);
    }

    /// The counter of writes at `from`, so that the offline plan says what the live one would.
    fn requests(&self, requests: &Requests) {
        let (plural, group) = requests.resource.split_once('.').unwrap_or((&requests.resource, ""));
        let (verb, apply) = match requests.verb.as_str() {
            "POST" => ("create", false),
            "PUT" => ("update", false),
            "APPLY" => ("patch", true),
            "PATCH" => ("patch", false),
            _ => ("delete", false),
        };
        let request = RequestRecord {
            verb: verb.into(),
            group: group.into(),
            version: self.header.from.clone(),
            resource: plural.into(),
            name: "before".into(),
            apply,
            code: 200,
            ..RequestRecord::default()
        };
        self.server.remember((0..requests.count).map(|_| request.clone()));
    }
}

/// What the webhook made of this record when the snapshot was taken; metadata is the record's own.
fn replay(pairs: &BTreeMap<String, Pair>, object: &Value, api_version: &str) -> Result<Value, String> {
    let object = Object(object.clone());
    let none = || format!("no conversion of {} to {api_version} was recorded", object.reference());
    let pair = pairs.get(object.uid()).ok_or_else(none)?;
    let before = pair.get(split_api_version(object.api_version()).1).ok_or_else(none)?;
    let after = pair.get(split_api_version(api_version).1).ok_or_else(none)?;
    let mut converted = after.clone();
    converted.0["metadata"] = object.0["metadata"].clone();
    // State that the conversion leaves in annotations comes with it; what it takes away goes.
    let annotations = |object: &Object| object.0.pointer("/metadata/annotations").and_then(Value::as_object).cloned();
    let (before, after) = (annotations(before).unwrap_or_default(), annotations(after).unwrap_or_default());
    let mut kept = annotations(&object).unwrap_or_default();
    kept.retain(|name, _| after.contains_key(name) || !before.contains_key(name));
    for (name, value) in after {
        if !before.contains_key(&name) {
            kept.entry(name).or_insert(value);
        }
    }
    if !kept.is_empty() {
        converted.0["metadata"]["annotations"] = kept.into();
    }
    Ok(converted.0)
}
