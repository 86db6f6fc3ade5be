//! Reads the workload and its pods, and keeps of the environment whether it is as wanted, not its values.

use std::collections::BTreeMap;

use semver::VersionReq;
use serde_json::Value;

use super::{Rollout, Seen};
use crate::{
    cluster::{Content, Reader},
    image::{Image, Judged},
    object::{Object, ObjectRef, Resource},
    runbook::{Client, NamedObject},
    steps::{Look, well_known::known},
};

/// Something read, or the server's words why not.
pub type Reading<T> = Result<T, String>;

/// What matters of a workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Which object.
    pub object: ObjectRef,
    /// How far its rollout got.
    pub rollout: Rollout,
    /// Its template's containers: init and sidecars first, as the template has them.
    pub containers: Vec<Container>,
}

/// One container of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Its image reference.
    pub image: String,
    /// How the runbook's variables are given, in the runbook's order.
    pub env: Vec<Given>,
}

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs and ends before the others start.
    Init,
    /// An init container that keeps running (`restartPolicy: Always`).
    Sidecar,
    /// An ordinary container.
    Main,
}

/// How a variable is given. Never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Not at all.
    Unset,
    /// As a plain value, the wanted one.
    AsWanted,
    /// As a plain value, another one.
    Other,
    /// By `valueFrom`.
    Reference,
    /// Not by name, but the container takes variables from whole sources.
    PerhapsFromSource,
}

/// One pod that runs or will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Whether deletion has begun.
    pub deleting: bool,
    /// Its containers.
    pub containers: Vec<Running>,
}

/// One container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its name.
    pub name: String,
    /// Its image reference.
    pub image: String,
    /// The image that was pulled, as the kubelet names it; empty before that.
    pub image_id: String,
}

impl Container {
    /// Its name, with what it is when it is not an ordinary one.
    pub fn title(&self) -> String {
        match self.role {
            Role::Init => format!("init container {}", self.name),
            Role::Sidecar => format!("sidecar {}", self.name),
            Role::Main => self.name.clone(),
        }
    }
}

impl Running {
    /// Whether it runs a wanted image, by its reference or by what was pulled.
    pub fn is_wanted(&self, wanted: &VersionReq, digests: &[String]) -> bool {
        Image::parse(&self.image).judge(wanted, digests).is_wanted()
            || Image::parse(&self.image_id).judge(wanted, digests) == Judged::KnownDigest
    }
}

/// Looks at the workload, and at its pods when asked to.
pub async fn observe(task: &Client, look: &Look<'_>) -> Seen {
    let named = NamedObject { kind: task.kind.clone(), group: None, name: task.name.clone() };
    let Some(resource) = known(&named) else {
        return Seen { workload: Err(format!("{} is no workload", task.kind)), pods: None };
    };
    let object = match look.reader.get(&resource, Some(&task.namespace), &task.name).await {
        Ok(Some(object)) => object,
        Ok(None) => return Seen { workload: Ok(None), pods: None },
        Err(error) => return Seen { workload: Err(error.words()), pods: None },
    };
    let pods = if task.pods {
        Some(pods(look.reader, &task.namespace, object.0.pointer("/spec/selector").unwrap_or(&Value::Null)).await)
    } else {
        None
    };
    Seen { workload: Ok(Some(workload(&object, &task.env))), pods }
}

pub(super) fn workload(object: &Object, env: &[(String, String)]) -> Workload {
    let init = object.items("/spec/template/spec/initContainers").iter().map(|container| {
        let keeps_running = text(container, "restartPolicy") == "Always";
        read_container(container, if keeps_running { Role::Sidecar } else { Role::Init }, env)
    });
    let main = object.items("/spec/template/spec/containers").iter();
    let main = main.map(|container| read_container(container, Role::Main, env));
    Workload { object: object.reference(), rollout: Rollout::of(object), containers: init.chain(main).collect() }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn read_container(container: &Value, role: Role, env: &[(String, String)]) -> Container {
    let given = |(name, wanted): &(String, String)| {
        // Of two entries of one name the last one counts.
        let entry = list(container, "env").iter().rev().find(|entry| text(entry, "name") == name);
        match entry {
            Some(entry) if entry.get("valueFrom").is_some() => Given::Reference,
            Some(entry) if text(entry, "value") == wanted => Given::AsWanted,
            Some(_) => Given::Other,
            None if list(container, "envFrom").is_empty() => Given::Unset,
            None => Given::PerhapsFromSource,
        }
    };
    Container {
        name: text(container, "name").into(),
        role,
        image: text(container, "image").into(),
        env: env.iter().map(given).collect(),
    }
}

async fn pods(reader: &Reader, namespace: &str, selector: &Value) -> Reading<Vec<Pod>> {
    let resource = Resource::new("", "v1", "pods", "Pod", true);
    let mut found = BTreeMap::new();
    let mut pages = reader.pages(&resource, Some(namespace), Content::Full);
    while let Some(page) = pages.next().await.map_err(|error| error.words())? {
        let live = page.iter().filter(|pod| !matches!(pod.str("/status/phase"), Some("Succeeded" | "Failed")));
        let mine = live.filter(|pod| selects(selector, pod.0.pointer("/metadata/labels").unwrap_or(&Value::Null)));
        found.extend(mine.map(|pod| (pod.uid().to_owned(), read_pod(pod))));
    }
    let mut pods: Vec<Pod> = found.into_values().collect();
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(pods)
}

pub(super) fn read_pod(pod: &Object) -> Pod {
    let part = |plural: &str, statuses: &str| -> Vec<Running> {
        let statuses = pod.items(&format!("/status/{statuses}"));
        let containers = pod.items(&format!("/spec/{plural}")).iter();
        containers
            .map(|container| {
                let name = text(container, "name");
                let status = statuses.iter().find(|status| text(status, "name") == name);
                Running {
                    name: name.into(),
                    image: text(container, "image").into(),
                    image_id: status.map(|status| text(status, "imageID")).unwrap_or_default().into(),
                }
            })
            .collect()
    };
    let mut containers = part("initContainers", "initContainerStatuses");
    containers.extend(part("containers", "containerStatuses"));
    Pod { name: pod.name().into(), deleting: pod.deleting(), containers }
}

/// Whether a label selector takes these labels; an empty one takes nothing here.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let exact = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = list(selector, "matchExpressions");
    if exact.is_none_or(serde_json::Map::is_empty) && expressions.is_empty() {
        return false;
    }
    let agrees = |expression: &Value| {
        let value = labels.get(text(expression, "key"));
        let listed = || value.is_some_and(|value| list(expression, "values").contains(value));
        match text(expression, "operator") {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    exact.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value)) && expressions.iter().all(agrees)
}
