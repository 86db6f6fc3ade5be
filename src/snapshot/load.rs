//! A snapshot to a server held in memory: then the same code observes it as observes a cluster.
//!
//! What a snapshot cannot know is chosen on the safe side: a record counts as stored at `from` while
//! `storedVersions` lists it. Conversions are replayed from the recorded pairs.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, Cursor},
    path::Path,
    sync::Arc,
};

use serde_json::Value;

use super::{Access, Denied, FormatError, Header, Line, Lines, Record, Requests, Served, offline::Recorded};
use crate::{
    crd::{Crd, crd_resource},
    embedded::{Converter, Release, RequestRecord, Rule, Server},
    object::{Object, split_api_version},
    runbook::NamedObject,
    steps::well_known,
};

/// The cluster before the agent-sandbox upgrade, as the tests build it.
const BUILT_IN: &str = include_str!("built_in.jsonl");

/// No annotation is larger: what an API server stores in a record is limited.
const ANNOTATIONS: usize = 4 << 20;

/// Loads a file; `user`: in whose name the plan is made.
///
/// # Errors
/// The file is no snapshot, or is damaged; the line is named.
pub fn load(path: &Path, user: &str) -> Result<(Header, Server), FormatError> {
    let (header, server, _) = fill(path, Lines::open(path)?, Some(user))?;
    Ok((header, server))
}

/// The built-in snapshot.
///
/// # Errors
/// It is damaged, which a test rules out.
pub fn built_in(user: &str) -> Result<(Header, Server), FormatError> {
    let path = Path::new("the built-in snapshot");
    let (header, server, _) = fill(path, Lines::read(path, Cursor::new(BUILT_IN))?, Some(user))?;
    Ok((header, server))
}

/// Loads a snapshot. `user`: who may not do what it says was denied; none: its own user, who is answered
/// every refusal word for word.
pub(super) fn fill<R: BufRead>(
    path: &Path,
    mut lines: Lines<R>,
    user: Option<&str>,
) -> Result<(Header, Server, Recorded), FormatError> {
    let header = lines.header.clone();
    let server = Server::new(Release::named(&header.server_version).unwrap_or_else(Release::v1_36));
    let asker = header.user.clone().unwrap_or_default();
    let mut loading = Loading {
        server,
        header,
        user: user.map_or(asker, ToOwned::to_owned),
        replays: user.is_none(),
        plurals: BTreeMap::new(),
        stored: BTreeMap::new(),
        pairs: BTreeMap::new(),
        recorded: Recorded::default(),
    };
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
    loading.kinds();
    for (number, object) in early {
        loading.object(object).map_err(|what| fail(path, number, what))?;
    }
    loading.convert();
    Ok((loading.header, loading.server, loading.recorded))
}

fn fail(path: &Path, line: usize, what: String) -> FormatError {
    FormatError { path: path.into(), line: Some(line), what, hint: None }
}

/// One object as it was converted.
struct Pair {
    /// At each version.
    at: BTreeMap<String, Object>,
    /// Versions to which it was not, and what the webhook said.
    failed: BTreeMap<String, String>,
}

struct Loading {
    server: Server,
    header: Header,
    user: String,
    /// Whether refusals are answered word for word.
    replays: bool,
    /// Resource by `apiVersion` and kind.
    plurals: BTreeMap<(String, String), String>,
    /// The version that records of each CRD count as stored at.
    stored: BTreeMap<String, Crd>,
    /// Recorded conversions by CRD and uid.
    pairs: BTreeMap<String, BTreeMap<String, Pair>>,
    recorded: Recorded,
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
                self.recorded.served.push(served);
                Ok(())
            }
            Line::Silent(silent) => {
                self.recorded.silent.extend(silent);
                Ok(())
            }
            Line::Crd(crd) => self.definition(crd),
            Line::Record(record) => self.record(record),
            Line::Object(object) | Line::Metadata(object) => self.object(object),
            Line::Denied(denied) => {
                if self.replays {
                    self.recorded.denied.insert(denied.get, (denied.whole, denied.refusal));
                } else if matches!(denied.refusal.code, 401 | 403) {
                    // What else went wrong then is not the user's: the server goes wrong by itself, or does not.
                    self.denied(&denied);
                }
                Ok(())
            }
            Line::Taken(taken) => {
                self.recorded.taken.entry(taken.get).and_modify(|whole| *whole |= taken.whole).or_insert(taken.whole);
                Ok(())
            }
            Line::Access(access) => {
                self.access(&access);
                self.recorded.asked.push(access);
                Ok(())
            }
            Line::Requests(requests) => {
                self.requests(&requests);
                Ok(())
            }
            // Checked by the reader.
            Line::Snapshot(_) | Line::End(_) => Ok(()),
        }
    }

    /// Serves what the other server served, as far as that is known.
    fn kinds(&self) {
        let preferred: Vec<_> = self.recorded.served.iter().filter(|served| served.preferred).collect();
        for resource in self.recorded.served.iter().flat_map(Served::resources) {
            // A custom resource is served by its definition.
            self.server.serve(&resource.api_version(), &resource.plural, &resource.kind, resource.namespaced);
        }
        for api_version in self.recorded.silent.keys() {
            self.server.serve(api_version, "silent", "Silent", false);
        }
        if self.replays && !preferred.is_empty() {
            let known: BTreeSet<(String, String)> = preferred
                .iter()
                .flat_map(|served| served.resources())
                .map(|found| (found.group, found.plural))
                .collect();
            self.server.serve_only(|group, plural| {
                plural == "silent" || known.contains(&(group.to_owned(), plural.to_owned()))
            });
        }
    }

    fn definition(&mut self, mut crd: Object) -> Result<(), String> {
        restore_sizes(&mut crd.0);
        self.stored.insert(crd.name().to_owned(), Crd::of(crd.clone()));
        self.server.put(&crd_resource().name(), crd.0)
    }

    /// Whether the server has this object's kind already.
    fn serves(&self, object: &Object) -> bool {
        self.resource(object).is_some_and(|resource| self.server.serves(&resource))
    }

    /// The resource of an object: as the snapshot says, or known by heart.
    fn resource(&self, object: &Object) -> Option<String> {
        let kind = (object.api_version().to_owned(), object.kind().to_owned());
        let by_heart = || {
            let group = split_api_version(object.api_version()).0.to_owned();
            let named = NamedObject { kind: object.kind().into(), group: Some(group), name: String::new() };
            well_known::known(&named).map(|resource| resource.name())
        };
        self.plurals.get(&kind).cloned().or_else(by_heart)
    }

    fn object(&self, mut object: Object) -> Result<(), String> {
        restore_sizes(&mut object.0);
        match self.resource(&object) {
            Some(resource) => self.server.put(&resource, object.0),
            None => Err(format!("nothing serves {} {}", object.api_version(), object.kind())),
        }
    }

    fn record(&mut self, mut record: Record) -> Result<(), String> {
        let crd = self.stored.get(&record.crd);
        let crd = crd.ok_or_else(|| format!("a record of CRD {}, which did not come before it", record.crd))?;
        record.at.values_mut().for_each(|object| restore_sizes(&mut object.0));
        let (from, to) = (&self.header.from, &self.header.to);
        let version = if crd.stored_versions.contains(from) && record.at.contains_key(from) { from } else { to };
        let Some(object) = record.at.get(version).or_else(|| record.at.values().next()) else {
            return Err(format!("a record of CRD {} at no version", record.crd));
        };
        if self.replays {
            for (version, refusal) in &record.unreadable {
                let path = crd.resource(version).path(object.namespace(), Some(object.name()));
                self.recorded.denied.insert(path, (false, refusal.clone()));
            }
        }
        self.server.put(&record.crd, object.0.clone())?;
        let uid = object.uid().to_owned();
        // What the server puts before the webhook's own words, it will put there again.
        let words = |message: &str| message.split_once(" failed: ").map_or(message, |(_, words)| words).to_owned();
        let failed =
            record.unreadable.into_iter().map(|(version, refusal)| (version, words(&refusal.message))).collect();
        self.pairs.entry(record.crd).or_default().insert(uid, Pair { at: record.at, failed });
        Ok(())
    }

    /// Replays the recorded conversions of each CRD, and their failures.
    fn convert(&mut self) {
        for (crd, pairs) in std::mem::take(&mut self.pairs) {
            let pairs = Arc::new(pairs);
            let converter = |fails: bool| -> Converter {
                let pairs = Arc::clone(&pairs);
                Arc::new(move |object: &Value, api_version: &str| replay(&pairs, object, api_version, fails))
            };
            // What was listed and could not be read came from a cache that was filled before.
            let stale = pairs.values().any(|pair| pair.failed.keys().any(|version| pair.at.contains_key(version)));
            if stale {
                self.server.converter(&crd, converter(false));
                self.server.warm(&crd);
            }
            self.server.converter(&crd, converter(true));
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
        self.server.deny(&self.user, rule(access));
    }

    /// The counter of writes at `from`, so that the offline plan says what the live one would.
    fn requests(&self, requests: &Requests) {
        let (plural, group) = requests.resource.split_once('.').unwrap_or((&requests.resource, ""));
        let (verb, apply) = match requests.verb.as_str() {
            "POST" => ("create".into(), false),
            "PUT" => ("update".into(), false),
            "APPLY" => ("patch".into(), true),
            verb => (verb.to_lowercase(), false),
        };
        let request = RequestRecord {
            verb,
            group: group.into(),
            version: self.header.from.clone(),
            resource: plural.into(),
            name: "before".into(),
            apply,
            code: 200,
            ..RequestRecord::default()
        };
        self.server.count(request, requests.count);
    }
}

/// What an access review was about.
pub(super) fn rule(access: &Access) -> Rule {
    let rule = Rule::new(&[&access.verb], &access.group, &[&access.resource]);
    let rule = access.namespace.iter().fold(rule, |rule, namespace| rule.within(namespace));
    access.name.iter().fold(rule, |rule, name| rule.names(&[name]))
}

/// Gives annotations that were replaced their size back: what all of them may have together is limited.
fn restore_sizes(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    for value in annotations.into_iter().flat_map(|annotations| annotations.values_mut()) {
        if let Some(sized) = value.as_str().and_then(sized) {
            *value = sized.into();
        }
    }
}

/// A placeholder at the size of what it stands for; none for any other text.
fn sized(placeholder: &str) -> Option<String> {
    let size = placeholder.strip_prefix("<redacted #")?.strip_suffix(" bytes>")?.split_once(": ")?.1;
    let size = size.parse().ok().filter(|size| *size <= ANNOTATIONS)?;
    let short: String = placeholder.chars().take(size).collect();
    Some(format!("{short:.<size$}"))
}

/// What the webhook made of this record when the snapshot was taken; metadata is the record's own.
///
/// `fails`: also whether it failed.
fn replay(pairs: &BTreeMap<String, Pair>, object: &Value, api_version: &str, fails: bool) -> Result<Value, String> {
    let object = Object(object.clone());
    let none = || format!("no conversion of {} to {api_version} was recorded", object.reference());
    let pair = pairs.get(object.uid()).ok_or_else(none)?;
    let version = split_api_version(api_version).1;
    if let Some(words) = pair.failed.get(version).filter(|_| fails || !pair.at.contains_key(version)) {
        return Err(words.clone());
    }
    let before = pair.at.get(split_api_version(object.api_version()).1).ok_or_else(none)?;
    let after = pair.at.get(version).ok_or_else(none)?;
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
