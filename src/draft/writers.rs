//! Who writes at the version that goes, and which workloads those are.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Draft, DraftCrd, Upgrade, Webhook, Workload, Writer, deployer::names};
use crate::{
    cluster::{ClusterError, Content, Reader},
    object::{Object, Resource, api_version},
    runbook::NamedObject,
    steps::{survey::record, well_known::known},
};

/// Kinds of workloads that a gate can wait for.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Reads the metadata of every record: managers that are named at `from`, and state annotations.
pub(super) async fn records(reader: &Reader, upgrade: &Upgrade, draft: &mut Draft) -> Result<(), ClusterError> {
    let mut writers: BTreeMap<String, Writer> = BTreeMap::new();
    for crd in &upgrade.crds {
        let version = if crd.serves(&upgrade.to) { &upgrade.to } else { &upgrade.from };
        let resource = crd.resource(version);
        let old = api_version(&crd.group, &upgrade.from);
        let mut pages = reader.pages(&resource, None, Content::Metadata);
        let mut records = Some(0);
        loop {
            match pages.next().await {
                Ok(Some(page)) => {
                    records = records.map(|known| known + page.len());
                    for object in &page {
                        let record = record(object, &old, &upgrade.from, None);
                        draft.state_annotations.extend(record.state_annotations);
                        let mut counted = Vec::new();
                        for entry in record.entries {
                            let writer = writers.entry(entry.manager.clone()).or_insert_with(|| Writer {
                                manager: entry.manager.clone(),
                                kinds: BTreeMap::new(),
                                last: None,
                                applies: false,
                                workloads: Vec::new(),
                            });
                            writer.applies |= entry.operation == "Apply";
                            writer.last = writer.last.max(entry.time);
                            // One manager can have several entries on a record.
                            if !counted.contains(&entry.manager) {
                                *writer.kinds.entry(crd.kind.clone()).or_default() += 1;
                                counted.push(entry.manager);
                            }
                        }
                    }
                }
                Ok(None) => break,
                Err(error) if error.status().is_none() => return Err(error),
                Err(error) => {
                    draft.unread.push(format!("records of {}: {}", crd.name(), error.words()));
                    records = None;
                    break;
                }
            }
        }
        draft.crds.push(DraftCrd { name: crd.name().into(), stored_versions: crd.stored_versions.clone(), records });
    }
    draft.writers = writers.into_values().collect();
    Ok(())
}

/// Looks at the Service of each conversion webhook.
pub(super) async fn webhooks(reader: &Reader, upgrade: &Upgrade, draft: &mut Draft) -> Result<(), ClusterError> {
    let services = Resource::new("", "v1", "services", "Service", true);
    for service in upgrade.crds.iter().filter(|crd| crd.converts_by_webhook).filter_map(|crd| crd.webhook.as_ref()) {
        if draft.webhooks.iter().any(|known| known.service == *service) {
            continue;
        }
        let mut webhook =
            Webhook { service: service.clone(), deployed: false, selector: BTreeMap::new(), workloads: Vec::new() };
        match reader.get(&services, Some(&service.namespace), &service.name).await {
            Ok(Some(object)) => {
                let deployer = draft.deployer.as_ref();
                webhook.deployed = deployer.is_some_and(|deployer| names(&object, &deployer.manager));
                let selector = object.0.pointer("/spec/selector").and_then(Value::as_object).into_iter().flatten();
                let texts = selector.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                webhook.selector = texts.collect();
            }
            Ok(None) => draft.unread.push(format!("Service {}/{} is not there", service.namespace, service.name)),
            Err(error) if error.status().is_none() => return Err(error),
            Err(error) => {
                draft.unread.push(format!("Service {}/{}: {}", service.namespace, service.name, error.words()));
            }
        }
        draft.webhooks.push(webhook);
    }
    Ok(())
}

/// Looks for workloads of the writers' names, and for those behind the webhooks.
pub(super) async fn workloads(reader: &Reader, draft: &mut Draft) -> Result<(), ClusterError> {
    for kind in WORKLOADS {
        let named = NamedObject { kind: kind.into(), group: None, name: String::new() };
        let Some(resource) = known(&named) else { continue };
        let mut pages = reader.pages(&resource, None, Content::Full);
        loop {
            match pages.next().await {
                Ok(Some(page)) => page.iter().for_each(|object| assign(object, draft)),
                Ok(None) => break,
                Err(error) if error.status().is_none() => return Err(error),
                Err(error) => {
                    draft.unread.push(format!("{kind}s: {}", error.words()));
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Gives a workload to the webhook that it answers, else to the writer of its name.
fn assign(object: &Object, draft: &mut Draft) {
    let name = object.name();
    let writer = draft.writers.iter_mut().find(|writer| writer.manager == name);
    let labels = object.0.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let answers = |webhook: &&mut Webhook| {
        let has = |(name, value): (&String, &String)| {
            labels.and_then(|labels| labels.get(name)?.as_str()).is_some_and(|label| label == value)
        };
        let selected = !webhook.selector.is_empty() && webhook.selector.iter().all(has);
        // A controller that writes its own objects and converts them is one and the same.
        Some(webhook.service.namespace.as_str()) == object.namespace() && (selected || writer.is_some())
    };
    if let Some(webhook) = draft.webhooks.iter_mut().find(answers) {
        webhook.workloads.push(workload(object));
    } else if let Some(writer) = writer {
        writer.workloads.push(workload(object));
    }
}

fn workload(object: &Object) -> Workload {
    let containers = object.items("/spec/template/spec/containers");
    let text = |container: &Value, key: &str| container.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let namesake = containers.iter().find(|container| text(container, "name") == object.name());
    let container = namesake.or(containers.first());
    Workload {
        object: object.reference(),
        container: container.filter(|_| containers.len() > 1).map(|container| text(container, "name")),
        image: container.map(|container| text(container, "image")).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::crd::WebhookService;

    fn deployment(namespace: &str, name: &str, app: &str, containers: &[&str]) -> Object {
        let containers: Vec<Value> =
            containers.iter().map(|name| json!({"name": name, "image": format!("x/{name}:1.0.0")})).collect();
        Object(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": name},
            "spec": {"template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers}}},
        }))
    }

    #[test]
    fn a_workload_is_the_webhooks_or_the_writers_or_nobodys() {
        let writer = |manager: &str| Writer {
            manager: manager.into(),
            kinds: BTreeMap::new(),
            last: None,
            applies: false,
            workloads: Vec::new(),
        };
        let mut draft = Draft {
            context: String::new(),
            cluster_uid: None,
            from: "v1".into(),
            to: "v2".into(),
            crds: Vec::new(),
            deployer: None,
            writers: vec![writer("maker"), writer("operator")],
            webhooks: vec![Webhook {
                service: WebhookService { namespace: "system".into(), name: "hook".into(), port: 443 },
                deployed: false,
                selector: BTreeMap::from([("app".into(), "hook".into())]),
                workloads: Vec::new(),
            }],
            state_annotations: BTreeSet::new(),
            unread: Vec::new(),
        };
        for object in [
            deployment("a", "maker", "x", &["sidecar", "maker"]),
            deployment("b", "maker", "x", &["one"]),
            deployment("system", "operator", "x", &["one"]),
            deployment("system", "converter", "hook", &["one", "two"]),
            deployment("other", "converter", "hook", &["one"]),
            deployment("system", "unrelated", "x", &["one"]),
        ] {
            assign(&object, &mut draft);
        }
        let names = |workloads: &[Workload]| -> Vec<String> {
            workloads
                .iter()
                .map(|workload| format!("{} {}", workload.object, workload.container.as_deref().unwrap_or("-")))
                .collect()
        };
        assert_eq!(names(&draft.writers[0].workloads), ["Deployment a/maker maker", "Deployment b/maker -"]);
        assert_eq!(draft.writers[0].workloads[0].image, "x/maker:1.0.0");
        assert!(draft.writers[1].workloads.is_empty());
        assert_eq!(
            names(&draft.webhooks[0].workloads),
            ["Deployment system/operator -", "Deployment system/converter one"]
        );
    }
}
