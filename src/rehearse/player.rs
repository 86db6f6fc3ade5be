//! The rest of the world, played: clients ship, the deployer prunes and syncs.
//!
//! It writes as those would, in their own names, so that what `sbx` sees afterwards is what it would
//! see of them. Each move answers what was played, in words.

use semver::{Comparator, Op, Version, VersionReq};
use serde_json::{Value, json};

use crate::{
    clock::Hands,
    cluster::{ClusterError, Content, Reader, Writer},
    crd::{Crd, crd_resource},
    graph::StepGraph,
    image::Image,
    object::{Object, Resource, api_version, entries_naming},
    runbook::{Client, Gone, Merge, NamedObject, Runbook, StepId, Task},
    steps::{merge::applications, targets::Targets, well_known},
};

/// What the deployer's sync is said to have ended with.
const SYNCED: &str = "successfully synced (all tasks run)";
/// The commit of the merge, where the runbook names none.
const REVISION: &str = "rehearsal";

/// Plays everybody but `sbx`.
pub(super) struct Player {
    writer: Writer,
    hands: Hands,
    runbook: Runbook,
    graph: StepGraph,
}

impl Player {
    /// Over a reader that may do everything and has a clock of its own: it is what happens while the
    /// rehearsal's is turned, so it must never wait for that one.
    pub(super) fn new(reader: Reader, hands: Hands, runbook: &Runbook, graph: &StepGraph) -> Self {
        let writer = Writer::new(reader);
        Self { writer, hands, runbook: runbook.clone(), graph: graph.clone() }
    }

    /// A client ships the oldest release that its gate accepts.
    pub(super) async fn ship(&self, task: &Client) -> Result<String, ClusterError> {
        let Some(resource) =
            well_known::known(&NamedObject { kind: task.kind.clone(), group: None, name: String::new() })
        else {
            return Ok(format!("nobody knows how to ship a {}", task.kind));
        };
        let namespace = Some(task.namespace.as_str());
        let Some(workload) = self.writer.reader().get(&resource, namespace, &task.name).await? else {
            return Ok(format!("{} {}/{} is not there, so nobody ships it", task.kind, task.namespace, task.name));
        };
        let version = oldest(&task.image);
        let mut containers = workload.items("/spec/template/spec/containers").to_vec();
        for container in &mut containers {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            if task.container.as_deref().is_none_or(|wanted| wanted == name) {
                release(container, &version, &task.env);
            }
        }
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let shipped = self.writer.patch(&resource, namespace, &task.name, patch).await?;
        self.roll_out(&resource, &shipped).await?;
        Ok(format!("{} ships v{version}", shipped.reference()))
    }

    async fn roll_out(&self, resource: &Resource, workload: &Object) -> Result<(), ClusterError> {
        let replicas = workload.int("/spec/replicas").unwrap_or(1);
        let status = json!({
            "observedGeneration": workload.generation(), "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas, "unavailableReplicas": null,
        });
        let patch = json!({"status": status});
        self.writer.patch_status(resource, workload.namespace(), workload.name(), patch).await.map(drop)
    }

    /// The pull request is merged and the deployer acts: it prunes first, then applies the target
    /// CRDs, then the workloads, as Argo CD does. A refused apply does not stop it.
    ///
    /// `left`: a step for which nobody does anything yet.
    pub(super) async fn merge(
        &self,
        step: &StepId,
        task: &Merge,
        left: &(dyn Fn(&StepId) -> bool + Sync),
    ) -> Result<Vec<String>, ClusterError> {
        let mut played = vec!["the pull request is merged".to_owned()];
        let later = || self.graph.dependents(step).into_iter().filter(|id| !left(id)).filter_map(|id| self.task(id));
        for task in later() {
            if let Task::Gone(gone) = task {
                played.extend(self.prune(gone).await?);
            }
        }
        let refused = self.apply_targets(&mut played).await?;
        for task in later() {
            if let Task::Client(client) = task {
                played.push(self.ship(client).await?);
            }
        }
        if let Some(line) = self.report(task, &refused).await? {
            played.push(line);
        }
        Ok(played)
    }

    fn task(&self, id: &StepId) -> Option<&Task> {
        self.runbook.steps.iter().find(|step| step.id == *id).map(|step| &step.task)
    }

    pub(super) async fn prune(&self, gone: &Gone) -> Result<Vec<String>, ClusterError> {
        let mut played = Vec::new();
        for named in &gone.objects {
            let Some(resource) = well_known::known(named) else { continue };
            let namespace = gone.namespace.as_deref();
            let Some(object) = self.writer.reader().get_metadata(&resource, namespace, &named.name).await? else {
                continue;
            };
            let (uid, version) = (object.uid(), object.resource_version());
            self.writer.delete(&resource, namespace, &named.name, uid, version).await?;
            played.push(format!("the deployer prunes {}", object.reference()));
        }
        Ok(played)
    }

    /// An old client writes one record at the version that goes, in the name of the last that did; none where no
    /// record can be written so.
    pub(super) async fn write_at_from(&self) -> Result<Option<String>, ClusterError> {
        let from = &self.runbook.upgrade.from;
        for name in self.runbook.upgrade.crds.iter().rev() {
            let Some(crd) = self.writer.reader().get(&crd_resource(), None, name).await?.map(Crd::of) else { continue };
            if !crd.serves(from) {
                continue;
            }
            let resource = crd.resource(from);
            let page = self.writer.reader().pages(&resource, None, Content::Metadata).next().await?;
            let old = api_version(&crd.group, from);
            let written = page.iter().flatten().find_map(|record| {
                let entry = entries_naming(record, &old).into_iter().max_by_key(|entry| entry.time)?;
                Some((record.clone(), entry.manager))
            });
            let Some((record, manager)) = written else { continue };
            let object = json!({
                "apiVersion": old, "kind": crd.kind,
                "metadata": {
                    "name": record.name(), "namespace": record.namespace(),
                    "labels": {"rehearsal": "written-by-an-old-client"},
                },
            });
            self.writer.apply_as(&resource, &Object(object), &manager).await?;
            return Ok(Some(format!("{manager} writes {} at {from}", record.reference())));
        }
        Ok(None)
    }

    /// Applies each target; the refusals, in the server's words.
    async fn apply_targets(&self, played: &mut Vec<String>) -> Result<Vec<String>, ClusterError> {
        let targets = Targets::load(&self.runbook);
        let deployer = deployer(&self.runbook);
        let mut refused = Vec::new();
        for name in &self.runbook.upgrade.crds {
            let Some(live) = self.writer.reader().get(&crd_resource(), None, name).await? else { continue };
            let target = match targets.object(&self.runbook, &Crd::of(live)) {
                Ok(target) => target,
                Err(verdict) => {
                    refused.push(format!("{name}: {verdict:?}"));
                    continue;
                }
            };
            match self.writer.apply_as(&crd_resource(), &target, deployer).await {
                Ok(_) => played.push(format!("{deployer} applies CRD {name} without {}", self.runbook.upgrade.from)),
                Err(error) => {
                    played.push(format!("{deployer} applies CRD {name}: REFUSED"));
                    refused.push(error.words());
                }
            }
        }
        Ok(refused)
    }

    /// The Application's own account of the sync.
    async fn report(&self, task: &Merge, refused: &[String]) -> Result<Option<String>, ClusterError> {
        let Some((namespace, name)) = &task.application else { return Ok(None) };
        let now = format!("{:.0}", self.hands.now());
        let (phase, sync) = if refused.is_empty() { ("Succeeded", "Synced") } else { ("Failed", "OutOfSync") };
        let message = if refused.is_empty() {
            SYNCED.to_owned()
        } else {
            format!("one or more objects failed to apply, reason: {}", refused.join(","))
        };
        let revision = task.revision.as_deref().unwrap_or(REVISION);
        let status = json!({"status": {
            "sync": {"status": sync, "revision": revision}, "health": {"status": "Healthy"},
            "operationState": {"phase": phase, "message": message, "startedAt": now, "finishedAt": now},
        }});
        self.writer.patch(&applications(), Some(namespace), name, status).await?;
        Ok(Some(format!("Argo CD {namespace}/{name}: sync {phase}")))
    }
}

/// The field manager in whose name the CRDs are applied.
pub(super) fn deployer(runbook: &Runbook) -> &str {
    runbook.upgrade.deployer.as_deref().unwrap_or("deployer")
}

/// Sets a container's tag, and the variables that the gate looks at where they are set at all.
fn release(container: &mut Value, version: &Version, env: &[(String, String)]) {
    if let Some(image) = container.get("image").and_then(Value::as_str) {
        container["image"] = format!("{}:v{version}", Image::parse(image).repository).into();
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Some((_, wanted)) = env.iter().find(|(known, _)| known == name) {
            variable["value"] = wanted.clone().into();
        }
    }
}

/// The oldest release in a range, going by its first bound.
fn oldest(range: &VersionReq) -> Version {
    let Some(Comparator { op, major, minor, patch, .. }) = range.comparators.first() else {
        return Version::new(1, 0, 0);
    };
    let (minor, patch) = (minor.unwrap_or_default(), patch.unwrap_or_default());
    match op {
        Op::Greater => Version::new(*major, minor, patch + 1),
        Op::Less | Op::LessEq => Version::new(0, 0, 0),
        _ => Version::new(*major, minor, patch),
    }
}
