//! Looks for what is to go, and for what still needs it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Seen, Target, matches};
use crate::{
    cluster::{ClusterError, Content, Reader},
    crd::{Crd, WebhookService, crd_resource},
    object::{Object, ObjectRef, Resource},
    runbook::{Delete, DeleteTarget, NamedObject, Runbook, Step},
    steps::{Look, Survey, backup, well_known::resolve},
};

/// A CRD can be large; so many come at once.
const CRDS_A_PAGE: u32 = 50;

/// Looks at every object that is named or matches, and at what still needs it.
pub async fn observe(step: &Step, task: &Delete, look: &Look<'_>) -> Seen {
    let mut seen = Seen { scope: backup::delete_scope(&step.id, look), ..Seen::default() };
    match &task.target {
        DeleteTarget::Objects(objects) => {
            for named in objects {
                match named_target(named, task, look.reader).await {
                    Ok(found) => seen.targets.extend(found),
                    Err(words) => {
                        let text = format!("{}/{} could not be looked at: {words}", named.kind, named.name);
                        seen.unreadable.push(text);
                    }
                }
            }
        }
        DeleteTarget::Matching { resource, .. } => match matching(resource, task, look).await {
            Ok(found) => seen.targets = found,
            Err(words) => seen.unreadable.push(format!("{resource} could not be listed: {words}")),
        },
    }
    if seen.targets.iter().any(|target| target.is_core("Service") || target.is_core("Secret")) {
        seen.conversions = webhooks(look.survey.installed());
        match other_webhooks(look.reader, look.runbook).await {
            Ok(others) => seen.foreign_conversions = others,
            Err(error) => seen.conversions_unread = Some(error.words()),
        }
    }
    let secrets: Vec<ObjectRef> =
        seen.targets.iter().filter(|target| target.is_core("Secret")).map(|target| target.object.clone()).collect();
    if !secrets.is_empty() {
        match users(&secrets, look.reader).await {
            Ok(mounted) => seen.mounted = mounted,
            Err(error) => seen.mounted_unread = Some(error.words()),
        }
    }
    spare(step, look, &mut seen).await;
    seen
}

/// Names that a webhook's certificate goes by.
const CERTIFICATE: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

/// Leaves a Secret alone that does not look like a certificate, or that a workload runs with once
/// nothing is to come that would end it (C34).
async fn spare(step: &Step, look: &Look<'_>, seen: &mut Seen) {
    let from = &look.runbook.upgrade.from;
    let merge_to_come = look.survey.installed().any(|crd| crd.declares(from))
        && look
            .runbook
            .steps
            .iter()
            .any(|other| other.task.is_point_of_no_return() && look.graph.reaches(&step.id, &other.id));
    for target in seen.targets.iter().filter(|target| target.is_core("Secret")) {
        let (namespace, name) = (target.object.namespace.as_deref(), &target.object.name);
        // The values are dropped here, unread.
        match look.reader.get(&target.resource, namespace, name).await {
            Ok(secret) => {
                seen.spared.extend(secret.and_then(|secret| odd(&secret)).map(|why| (target.object.clone(), why)));
            }
            Err(error) => {
                seen.unreadable.push(format!("{}: {}", target.object, error.words()));
            }
        }
    }
    if !merge_to_come {
        let used = seen.mounted.drain(..).map(|(secret, workload)| (secret, format!("{workload} runs with it")));
        seen.spared.extend(used);
    }
}

/// What of a Secret is not as a webhook's certificate has it: its type, or names of further keys.
pub(super) fn odd(secret: &Object) -> Option<String> {
    let kind = secret.str("/type").unwrap_or("Opaque");
    if !matches!(kind, "Opaque" | "kubernetes.io/tls") {
        return Some(format!("it is of type {kind}"));
    }
    let keys = secret.0.get("data").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key.as_str());
    let further: Vec<&str> = keys.filter(|key| !CERTIFICATE.contains(key)).collect();
    (!further.is_empty()).then(|| format!("it holds {} beside a certificate", further.join(", ")))
}

/// An object's facts, from its metadata.
pub fn target(resource: &Resource, object: &Object) -> Target {
    Target {
        resource: resource.clone(),
        object: object.reference(),
        uid: object.uid().into(),
        resource_version: object.resource_version().into(),
        deleting: object.deleting(),
        finalizers: object
            .items("/metadata/finalizers")
            .iter()
            .filter_map(|name| Some(name.as_str()?.into()))
            .collect(),
    }
}

async fn named_target(named: &NamedObject, task: &Delete, reader: &Reader) -> Result<Option<Target>, String> {
    // A kind that is not served has no objects.
    let Some(resource) = resolve(named, reader).await? else { return Ok(None) };
    let object =
        reader.get_metadata(&resource, task.namespace.as_deref(), &named.name).await.map_err(|error| error.words())?;
    Ok(object.map(|object| target(&resource, &object)))
}

async fn matching(name: &str, task: &Delete, look: &Look<'_>) -> Result<Vec<Target>, String> {
    let Some(resource) = resource(name, look.reader, look.runbook, look.survey).await? else { return Ok(Vec::new()) };
    let mut found = BTreeMap::new();
    let mut pages = look.reader.pages(&resource, task.namespace.as_deref(), Content::Full);
    while let Some(page) = pages.next().await.map_err(|error| error.words())? {
        let those = page.iter().filter(|object| matches(task, object));
        found.extend(those.map(|object| (object.reference(), target(&resource, object))));
    }
    Ok(found.into_values().collect())
}

/// The resource of `plural.group`; a kind of the upgrade at the version that stays.
async fn resource(name: &str, reader: &Reader, runbook: &Runbook, survey: &Survey) -> Result<Option<Resource>, String> {
    if let Some(crd) = survey.installed().find(|crd| crd.name() == name) {
        return Ok(Some(crd.resource(&runbook.upgrade.to)));
    }
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let found = reader.discover().await.map_err(|error| error.words())?;
    let known = found.resources.into_iter().find(|known| known.plural == plural && known.group == group);
    let silent =
        found.unreachable.into_iter().find(|(version, _)| crate::object::split_api_version(version).0 == group);
    match (known, silent) {
        (Some(resource), _) => Ok(Some(resource)),
        (None, Some((version, words))) => Err(format!("API group {version} does not answer: {words}")),
        (None, None) => Ok(None),
    }
}

/// CRDs whose conversion goes through a Service.
pub(super) fn webhooks<'a>(crds: impl Iterator<Item = &'a Crd>) -> Vec<(String, WebhookService)> {
    crds.filter(|crd| crd.converts_by_webhook)
        .filter_map(|crd| Some((crd.name().to_owned(), crd.webhook.clone()?)))
        .collect()
}

/// The same of every other CRD in the cluster.
pub(super) async fn other_webhooks(
    reader: &Reader,
    runbook: &Runbook,
) -> Result<Vec<(String, WebhookService)>, ClusterError> {
    let mut found = Vec::new();
    let mut pages = reader.pages(&crd_resource(), None, Content::Full).at_most(CRDS_A_PAGE);
    while let Some(page) = pages.next().await? {
        let crds: Vec<Crd> = page.into_iter().map(Crd::of).collect();
        found.extend(webhooks(crds.iter().filter(|crd| !runbook.upgrade.crds.iter().any(|name| name == crd.name()))));
    }
    Ok(found)
}

/// Deployments that run with one of these Secrets.
async fn users(secrets: &[ObjectRef], reader: &Reader) -> Result<Vec<(ObjectRef, ObjectRef)>, ClusterError> {
    let resource = Resource::new("apps", "v1", "deployments", "Deployment", true);
    let mut found = Vec::new();
    let mut namespaces: Vec<Option<&str>> = secrets.iter().map(|secret| secret.namespace.as_deref()).collect();
    namespaces.dedup();
    for namespace in namespaces {
        let mut pages = reader.pages(&resource, namespace, Content::Full);
        while let Some(page) = pages.next().await? {
            for deployment in page.iter().filter(|deployment| deployment.int("/spec/replicas") != Some(0)) {
                let pod = deployment.0.pointer("/spec/template/spec").unwrap_or(&Value::Null);
                let mine = secrets.iter().filter(|secret| secret.namespace.as_deref() == deployment.namespace());
                let used = mine.filter(|secret| uses(pod, &secret.name));
                found.extend(used.map(|secret| (secret.clone(), deployment.reference())));
            }
        }
    }
    Ok(found)
}

/// Whether a pod template mounts a Secret or takes variables from it.
pub(super) fn uses(pod: &Value, secret: &str) -> bool {
    match pod {
        Value::Object(fields) => fields.iter().any(|(key, value)| match key.as_str() {
            "secret" | "secretRef" | "secretKeyRef" => {
                let named = |key: &str| value.get(key).and_then(Value::as_str) == Some(secret);
                named("secretName") || named("name")
            }
            _ => uses(value, secret),
        }),
        Value::Array(items) => items.iter().any(|item| uses(item, secret)),
        _ => false,
    }
}
