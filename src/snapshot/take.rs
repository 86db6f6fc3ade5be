//! From a cluster to a file: every read that the steps make, once, and each answer in a line.

use std::{collections::BTreeMap, io, path::Path, time::Duration};

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::{
    SCHEMA,
    format::{Access, Denied, Header, Line, LineWriter, Refusal, Requests, RunbookIdentity, Served, Taken},
    pairs::Pairs,
    reads::{Read, Reads, api_versions},
    redact::{Keep, Redactor},
};
use crate::{
    cluster::{ClusterError, Content, Discovered, Reader},
    crd::{Crd, crd_resource},
    object::{Object, Resource, split_api_version},
    runbook::Runbook,
    steps::writers,
};

/// Access reviews in flight at once.
const CONCURRENCY: usize = 8;
/// How long a list of one kind among many is repeated.
const PATIENCE: Duration = Duration::from_secs(2);
/// A CRD can be large; so many come at once.
const CRDS_A_PAGE: u32 = 50;

/// What a snapshot came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Size of the file.
    pub bytes: u64,
    /// Records by CRD, in the runbook's order, and the versions each was read at.
    pub records: Vec<(String, usize, Vec<String>)>,
    /// CRDs of the upgrade that are not installed.
    pub absent: Vec<String>,
    /// Other CRDs, without their schemas.
    pub other_crds: usize,
    /// Other objects, whole but for what was replaced.
    pub objects: usize,
    /// Other objects by their metadata alone.
    pub metadata: usize,
    /// Values that were replaced by placeholders.
    pub replaced: usize,
    /// Records that could not be read at some version.
    pub unreadable: usize,
    /// What could not be read, in the server's words.
    pub denied: Vec<String>,
}

/// Why no snapshot was taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The cluster does not answer.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The server refused every CRD of the upgrade; the first refusal.
    #[error("none of the {0} CRDs of the upgrade may be read: {1}; no snapshot was taken")]
    NothingRead(usize, ClusterError),
}

/// Takes a snapshot of what a runbook's steps look at. What the server refuses is part of it.
///
/// # Errors
/// The server does not answer or shows none of the upgrade's CRDs, or the file cannot be written; then there is none.
pub async fn take(reader: &Reader, runbook: &Runbook, path: &Path) -> Result<Summary, TakeError> {
    let server = reader.server_facts().await?;
    let header = Header {
        schema: SCHEMA.into(),
        taken_at: reader.clock().now(),
        context: runbook.cluster.context.clone(),
        cluster_uid: server.cluster_uid,
        server_version: server.version,
        user: server.user,
        runbook: RunbookIdentity { title: runbook.title.clone(), sha256: runbook.sha256.clone() },
        from: runbook.upgrade.from.clone(),
        to: runbook.upgrade.to.clone(),
        crds: runbook.upgrade.crds.clone(),
    };
    let mut taker = Taker {
        reader,
        runbook,
        out: LineWriter::start(path)?,
        redactor: Redactor::new(Keep::of(runbook)),
        written: BTreeMap::new(),
        summary: Summary::default(),
    };
    taker.out.add(&Line::Snapshot(header))?;
    let (discovered, others) = taker.discovery().await?;
    let mut reads = Reads::of(runbook, &discovered, &others);
    if let Some(refusal) = taker.upgrade().await? {
        return Err(TakeError::NothingRead(runbook.upgrade.crds.len(), refusal));
    }
    // What is asked for by name and whole comes first: an object is written once, and then as a whole.
    let mut ordered: Vec<&Read> = reads.reads.iter().collect();
    ordered.sort_by_key(|read| (!read.whole, read.name.is_none()));
    for read in ordered {
        taker.read(read).await?;
    }
    for read in &reads.within {
        taker.within(read).await?;
    }
    for path in &reads.withheld {
        let message = "a snapshot holds no Secret's values, so they cannot be compared".into();
        let refusal = Refusal { code: 403, reason: "Redacted".into(), message };
        taker.out.add(&Line::Denied(Denied { get: path.clone(), whole: true, refusal }))?;
    }
    for resource in &reads.children {
        if taker.children(resource).await? {
            // The step asks for these once it knows its children.
            reads.rights.extend(["get", "patch"].map(|verb| crate::cluster::Access {
                verb: verb.into(),
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace: None,
                name: None,
            }));
        }
    }
    taker.rights(&reads).await?;
    if reads.metrics {
        taker.requests().await?;
    }
    taker.finish()
}

struct Taker<'a> {
    reader: &'a Reader,
    runbook: &'a Runbook,
    out: LineWriter,
    redactor: Redactor,
    /// uids of objects that stand in the file; true: whole.
    written: BTreeMap<String, bool>,
    summary: Summary,
}

impl Taker<'_> {
    fn finish(self) -> Result<Summary, TakeError> {
        let replaced = self.redactor.replaced();
        let bytes = self.out.finish()?;
        Ok(Summary { bytes, replaced, ..self.summary })
    }

    /// What the server serves; with it, what it serves of the manifests' group versions beside.
    async fn discovery(&mut self) -> Result<(Discovered, Vec<Resource>), TakeError> {
        let discovered = match self.reader.discover().await {
            Ok(discovered) => discovered,
            Err(error) => {
                self.denied("/apis", false, error)?;
                Discovered::default()
            }
        };
        let mut by_version: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
        for resource in &discovered.resources {
            by_version.entry(resource.api_version()).or_default().push(resource);
        }
        for (api_version, resources) in &by_version {
            let resources = Some(resources.iter().map(|resource| (*resource).into()).collect());
            self.out.add(&Line::Served(Served { api_version: api_version.clone(), preferred: true, resources }))?;
        }
        for (api_version, words) in &discovered.unreachable {
            self.summary.denied.push(format!("API group {api_version}: {words}"));
            self.out.add(&Line::Silent(BTreeMap::from([(api_version.clone(), words.clone())])))?;
        }
        let mut others = Vec::new();
        for api_version in api_versions(self.runbook).into_iter().filter(|known| !by_version.contains_key(known)) {
            match self.reader.resources_of(&api_version).await {
                Ok(found) => {
                    let resources = found.as_ref().map(|found| found.iter().map(Into::into).collect());
                    self.out.add(&Line::Served(Served { api_version, preferred: false, resources }))?;
                    others.extend(found.into_iter().flatten());
                }
                Err(error) => {
                    let (group, version) = split_api_version(&api_version);
                    let path =
                        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{api_version}") };
                    self.denied(&path, false, error)?;
                }
            }
        }
        Ok((discovered, others))
    }

    /// Notes a refusal. Without an answer there is none to note.
    fn denied(&mut self, path: &str, whole: bool, error: ClusterError) -> Result<(), TakeError> {
        let Some(status) = error.status() else { return Err(error.into()) };
        self.out.add(&Line::Denied(Denied { get: path.into(), whole, refusal: status.into() }))?;
        self.summary.denied.push(error.to_string());
        Ok(())
    }

    fn taken(&mut self, read: &Read, objects: usize) -> io::Result<()> {
        self.out.add(&Line::Taken(Taken { get: read.path(), whole: read.whole, objects }))
    }

    /// The CRDs of the upgrade, whole, and their records at every served version. The first refusal, where no CRD
    /// could be read.
    async fn upgrade(&mut self) -> Result<Option<ClusterError>, TakeError> {
        let mut refusals = Vec::new();
        for name in &self.runbook.upgrade.crds {
            let read = Read { resource: crd_resource(), namespace: None, name: Some(name.clone()), whole: true };
            match self.reader.get(&crd_resource(), None, name).await {
                Ok(Some(mut object)) => {
                    let crd = Crd::of(object.clone());
                    self.written.insert(object.uid().to_owned(), true);
                    self.redactor.object(&mut object);
                    self.out.add(&Line::Crd(object))?;
                    self.taken(&read, 1)?;
                    self.records(&crd).await?;
                }
                Ok(None) => {
                    self.summary.absent.push(name.clone());
                    self.taken(&read, 0)?;
                }
                Err(error) => {
                    self.denied(&read.path(), false, error.clone())?;
                    refusals.push(error);
                }
            }
        }
        let nothing = refusals.len() == self.runbook.upgrade.crds.len();
        Ok(refusals.into_iter().next().filter(|_| nothing))
    }

    async fn records(&mut self, crd: &Crd) -> Result<(), TakeError> {
        let mut pairs = Pairs::new(self.reader, crd, &self.runbook.upgrade.to);
        let mut count = 0;
        while let Some(mut record) = pairs.next().await? {
            count += 1;
            for object in record.at.values_mut() {
                self.redactor.object(object);
            }
            self.summary.unreadable += usize::from(!record.unreadable.is_empty());
            self.out.add(&Line::Record(record))?;
        }
        let failed: Vec<(Resource, ClusterError)> =
            pairs.failed().map(|(resource, error)| (resource.clone(), error.clone())).collect();
        let mut at = Vec::new();
        for version in crd.versions.iter().filter(|version| version.served) {
            let resource = crd.resource(&version.name);
            let read = Read { resource, namespace: None, name: None, whole: true };
            if let Some((_, error)) = failed.iter().find(|(resource, _)| resource.version == version.name) {
                self.denied(&read.path(), false, error.clone())?;
            } else {
                at.push(version.name.clone());
                self.taken(&read, count)?;
            }
        }
        self.summary.records.push((crd.name().into(), count, at));
        Ok(())
    }

    async fn read(&mut self, read: &Read) -> Result<(), TakeError> {
        let Some(name) = &read.name else { return self.list(read).await };
        let namespace = read.namespace.as_deref();
        let answer = if read.whole {
            self.reader.get(&read.resource, namespace, name).await
        } else {
            self.reader.get_metadata(&read.resource, namespace, name).await
        };
        match answer {
            Ok(object) => {
                let found = usize::from(object.is_some());
                if let Some(object) = object {
                    self.write(object, read.whole)?;
                }
                Ok(self.taken(read, found)?)
            }
            Err(error) => self.denied(&read.path(), false, error),
        }
    }

    async fn list(&mut self, read: &Read) -> Result<(), TakeError> {
        let content = if read.whole { Content::Full } else { Content::Metadata };
        let mut pages = self.reader.pages(&read.resource, read.namespace.as_deref(), content);
        let is_crds = read.resource == crd_resource();
        if is_crds {
            pages = pages.at_most(CRDS_A_PAGE);
        }
        let mut count = 0;
        loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    count += page.len();
                    for object in page {
                        // A CRD that somebody means is asked for by name, and is written already.
                        let object = if is_crds { without_schemas(&object) } else { object };
                        self.write(object, read.whole)?;
                    }
                }
                Ok(None) => return Ok(self.taken(read, count)?),
                // What is not served has no objects.
                Err(error) if error.is_not_found() => return Ok(self.taken(read, 0)?),
                Err(error) => return self.denied(&read.path(), false, error),
            }
        }
    }

    /// Notes whether a list of records within a namespace succeeds; they are written already.
    async fn within(&mut self, read: &Read) -> Result<(), TakeError> {
        let mut pages = self.reader.pages(&read.resource, read.namespace.as_deref(), Content::Metadata);
        let mut count = 0;
        loop {
            match pages.next().await {
                Ok(Some(page)) => count += page.len(),
                Ok(None) => return Ok(self.taken(read, count)?),
                Err(error) => return self.denied(&read.path(), false, error),
            }
        }
    }

    /// Writes an object once.
    fn write(&mut self, mut object: Object, whole: bool) -> io::Result<()> {
        if self.written.get(object.uid()).is_some_and(|known| *known || !whole) {
            return Ok(());
        }
        self.written.insert(object.uid().to_owned(), whole);
        if object.kind() == "CustomResourceDefinition" {
            self.summary.other_crds += 1;
            self.redactor.object(&mut object);
            return self.out.add(&Line::Crd(object));
        }
        self.redactor.object(&mut object);
        if whole {
            self.summary.objects += 1;
            self.out.add(&Line::Object(object))
        } else {
            self.summary.metadata += 1;
            self.out.add(&Line::Metadata(object))
        }
    }

    /// Objects of a kind that are owned by one of the upgrade's; whether there are any.
    async fn children(&mut self, resource: &Resource) -> Result<bool, TakeError> {
        let read = Read { resource: resource.clone(), namespace: None, name: None, whole: false };
        // A broken aggregated API among many kinds must not cost its full bound.
        let quick = self.reader.patient(PATIENCE);
        let mut pages = quick.pages(resource, None, Content::Metadata);
        let mut count = 0;
        loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    for object in page.into_iter().filter(|object| is_child(object, &self.runbook.upgrade.crds)) {
                        count += 1;
                        self.write(object, false)?;
                    }
                }
                Ok(None) => break,
                // It went away since discovery, or it can only be watched.
                Err(error) if matches!(error.code(), 404 | 405) => break,
                Err(error) => {
                    self.denied(&read.path(), false, error)?;
                    return Ok(count > 0);
                }
            }
        }
        self.taken(&read, count)?;
        Ok(count > 0)
    }

    async fn rights(&mut self, reads: &Reads) -> Result<(), TakeError> {
        let reader = self.reader;
        let asked = stream::iter(&reads.rights).map(|access| async move { (access, reader.may(access).await) });
        let mut answers = asked.buffered(CONCURRENCY);
        while let Some((access, answer)) = answers.next().await {
            let (allowed, refusal) = match answer {
                Ok(allowed) => (Some(allowed), None),
                Err(error) => {
                    let Some(status) = error.status() else { return Err(error.into()) };
                    self.summary.denied.push(error.to_string());
                    (None, Some(Refusal::from(status)))
                }
            };
            let crate::cluster::Access { verb, group, resource, namespace, name } = access.clone();
            self.out.add(&Line::Access(Access { verb, group, resource, namespace, name, allowed, refusal }))?;
        }
        Ok(())
    }

    /// What the API server counts of writes at `from`: of all its metrics nothing else.
    async fn requests(&mut self) -> Result<(), TakeError> {
        let upgrade = &self.runbook.upgrade;
        match self.reader.metrics().await {
            Ok(text) => {
                let counts = writers::counts(&text, &upgrade.from, &upgrade.crds);
                for writers::Count { resource, verb, requests } in counts {
                    self.out.add(&Line::Requests(Requests { resource, verb, count: requests }))?;
                }
                Ok(self.out.add(&Line::Taken(Taken { get: "/metrics".into(), whole: true, objects: 0 }))?)
            }
            Err(error) => self.denied("/metrics", false, error),
        }
    }
}

/// Whether an object is owned by one of a group of these CRDs.
fn is_child(object: &Object, crds: &[String]) -> bool {
    let mut owners = object.owner_references().iter().filter_map(|owner| owner.get("apiVersion")?.as_str());
    owners.any(|owner| {
        let group = split_api_version(owner).0;
        crds.iter().any(|crd| crd.split_once('.').is_some_and(|(_, known)| known == group))
    })
}

/// A CRD outside the upgrade, as far as steps look at it: what it serves and how it converts.
fn without_schemas(crd: &Object) -> Object {
    let pick = |pointer: &str, names: &[&str]| -> Value {
        let from = crd.0.pointer(pointer);
        names.iter().filter_map(|name| Some(((*name).to_owned(), from?.get(name)?.clone()))).collect()
    };
    let mut spec = pick("/spec", &["group", "names", "scope", "conversion"]);
    let anything = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let versions = crd.items("/spec/versions").iter().map(|version| {
        let names = ["name", "served", "storage", "subresources"];
        let mut version: Value =
            names.iter().filter_map(|name| Some(((*name).to_owned(), version.get(name)?.clone()))).collect();
        version["schema"] = anything.clone();
        version
    });
    spec["versions"] = versions.collect();
    let metadata = ["name", "uid", "resourceVersion", "generation", "creationTimestamp"];
    Object(json!({
        "apiVersion": crd.api_version(), "kind": crd.kind(),
        "metadata": pick("/metadata", &metadata),
        "spec": spec,
        "status": pick("/status", &["acceptedNames", "conditions", "storedVersions"]),
    }))
}
