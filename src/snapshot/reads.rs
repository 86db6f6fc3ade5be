//! What the steps of a runbook look at, beside the CRDs of the upgrade and their records. Pure.
//!
//! Taken when a snapshot is written, and asked again when a plan is made from one: what the file
//! does not hold must not pass for something that is not there.

use std::collections::BTreeSet;

use crate::{
    cluster::{Access, Discovered},
    crd::crd_resource,
    files::read_objects,
    object::{Object, Resource},
    runbook::{Client, Delete, DeleteTarget, Manifests, NamedObject, Owners, Runbook, Task},
    steps::{self, well_known::known},
};

/// One request for an object, or for all of a collection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The resource, at the version asked for.
    pub resource: Resource,
    /// The namespace; none for all.
    pub namespace: Option<String>,
    /// The name; none for a list.
    pub name: Option<String>,
    /// Whether the whole object is asked for; else its metadata.
    pub whole: bool,
}

/// Everything that a runbook's steps look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Objects and collections.
    pub reads: BTreeSet<Read>,
    /// Lists of records within a namespace: the records are taken elsewhere, but the list may fail on its own.
    pub within: BTreeSet<Read>,
    /// Kinds among which children of the upgrade's objects are looked for.
    pub children: Vec<Resource>,
    /// Paths of Secrets whose values would be compared: those are never taken.
    pub withheld: BTreeSet<String>,
    /// Access reviews.
    pub rights: BTreeSet<Access>,
    /// Whether the API server's metrics are read.
    pub metrics: bool,
}

impl Read {
    /// Its URL path.
    pub fn path(&self) -> String {
        self.resource.path(self.namespace.as_deref(), self.name.as_deref())
    }
}

impl Reads {
    /// What a runbook's steps look at, on a server that serves this. `others`: what it serves of
    /// the API versions that `take` asks for beside.
    pub fn of(runbook: &Runbook, discovered: &Discovered, others: &[Resource]) -> Self {
        let mut reads = Self::default();
        // A delete asks them for webhooks, and discovery is made of them.
        reads.list(crd_resource(), None, true);
        reads.list(Resource::new("", "v1", "namespaces", "Namespace", false), None, false);
        reads.rights.extend(steps::needed(runbook).into_keys());
        for step in &runbook.steps {
            match &step.task {
                Task::Client(task) => reads.client(task),
                Task::Writers(_) => reads.metrics = true,
                Task::Migrate(_) => {
                    for resource in steps::migrate::migration_resources() {
                        reads.list(resource, None, true);
                    }
                }
                Task::Owners(task) => reads.owners(task, runbook, discovered),
                Task::Merge(task) => {
                    if let Some((namespace, name)) = &task.application {
                        reads.get(steps::merge::applications(), Some(namespace), name, true);
                    }
                }
                Task::Gone(task) => reads.named(&task.objects, task.namespace.as_deref(), discovered),
                Task::Delete(task) => reads.delete(task, runbook, discovered),
                Task::Manifests(task) => {
                    for object in objects(task) {
                        reads.manifest(&object, discovered, others);
                    }
                }
                Task::Backup(_) | Task::Release(_) | Task::Confirm(_) | Task::Strip(_) => {}
            }
        }
        reads
    }

    fn get(&mut self, resource: Resource, namespace: Option<&str>, name: &str, whole: bool) {
        let namespace = namespace.filter(|_| resource.namespaced).map(Into::into);
        self.reads.insert(Read { resource, namespace, name: Some(name.into()), whole });
    }

    fn list(&mut self, resource: Resource, namespace: Option<&str>, whole: bool) {
        let namespace = namespace.filter(|_| resource.namespaced).map(Into::into);
        self.reads.insert(Read { resource, namespace, name: None, whole });
    }

    fn client(&mut self, task: &Client) {
        let named = NamedObject { kind: task.kind.clone(), group: None, name: task.name.clone() };
        if let Some(workload) = known(&named) {
            self.get(workload, Some(&task.namespace), &task.name, true);
        }
        if task.pods {
            self.list(Resource::new("", "v1", "pods", "Pod", true), Some(&task.namespace), true);
        }
    }

    fn owners(&mut self, task: &Owners, runbook: &Runbook, discovered: &Discovered) {
        let kinds: Vec<Resource> = if task.kinds.is_empty() {
            discovered.resources.iter().filter(|resource| resource.plural != "events").cloned().collect()
        } else {
            let named = task.kinds.iter().map(|kind| steps::owners::kind_of(kind));
            named.filter_map(|named| resolve(&named, discovered)).collect()
        };
        // The upgrade's own kinds are records, and taken as such.
        let others = kinds.into_iter().filter(|resource| !runbook.upgrade.crds.contains(&resource.name()));
        for resource in others {
            if !self.children.contains(&resource) {
                self.children.push(resource);
            }
        }
    }

    fn named(&mut self, objects: &[NamedObject], namespace: Option<&str>, discovered: &Discovered) {
        for named in objects {
            // A kind that is not served has no objects.
            if let Some(resource) = resolve(named, discovered) {
                self.get(resource, namespace, &named.name, false);
            }
        }
    }

    fn delete(&mut self, task: &Delete, runbook: &Runbook, discovered: &Discovered) {
        let namespace = task.namespace.as_deref();
        let holds_secret = match &task.target {
            DeleteTarget::Objects(objects) => {
                self.named(objects, namespace, discovered);
                for secret in objects.iter().filter(|named| named.kind == "Secret") {
                    // What keys it has; their values are replaced.
                    self.get(Resource::new("", "v1", "secrets", "Secret", true), namespace, &secret.name, true);
                }
                objects.iter().any(|named| named.kind == "Secret")
            }
            DeleteTarget::Matching { resource: name, .. } => {
                let resource = discovered.resources.iter().find(|resource| resource.name() == *name).cloned();
                if let Some(resource) = resource {
                    if runbook.upgrade.crds.contains(name) {
                        let resource = resource.at(&runbook.upgrade.to);
                        let namespace = namespace.map(Into::into);
                        self.within.insert(Read { resource, namespace, name: None, whole: true });
                    } else {
                        self.list(resource, namespace, true);
                    }
                }
                name == "secrets"
            }
        };
        if holds_secret {
            // Whether something runs with it.
            self.list(Resource::new("apps", "v1", "deployments", "Deployment", true), namespace, true);
        }
    }

    fn manifest(&mut self, object: &Object, discovered: &Discovered, others: &[Resource]) {
        let is_it =
            |resource: &&Resource| resource.kind == object.kind() && resource.api_version() == object.api_version();
        if let Some(resource) = discovered.resources.iter().chain(others).find(is_it) {
            if resource.group.is_empty() && resource.kind == "Secret" {
                self.withheld.insert(resource.path(object.namespace(), Some(object.name())));
            }
            self.get(resource.clone(), object.namespace(), object.name(), true);
        }
    }
}

/// Group versions that the manifests of a runbook are written at: discovery may prefer others.
pub(super) fn api_versions(runbook: &Runbook) -> BTreeSet<String> {
    let manifests = runbook.steps.iter().filter_map(|step| match &step.task {
        Task::Manifests(task) => Some(objects(task)),
        _ => None,
    });
    manifests.flatten().map(|object| object.api_version().to_owned()).collect()
}

/// The objects in the files; a file that cannot be read is the plan's to say.
fn objects(task: &Manifests) -> impl Iterator<Item = Object> {
    task.files.iter().filter_map(|file| read_objects(file).ok()).flatten()
}

/// The resource of a kind, known by heart or served.
fn resolve(named: &NamedObject, discovered: &Discovered) -> Option<Resource> {
    let is_it = |resource: &&Resource| {
        resource.kind == named.kind && named.group.as_deref().is_none_or(|group| group == resource.group)
    };
    known(named).or_else(|| discovered.resources.iter().find(is_it).cloned())
}
