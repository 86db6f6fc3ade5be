//! Who applies a CRD: by the field managers that stand in it, and the marks that each leaves. Pure but
//! for the list of Argo CD's Applications.

use serde_json::Value;

use crate::{
    cluster::{Content, Reader},
    crd::Crd,
    object::Object,
    steps::merge::applications,
};

/// Managers that come again by themselves, by how their names begin.
const DEPLOYERS: [&str; 4] = ["argocd", "kustomize-controller", "helm-controller", "rancher-fleet"];

/// Who applies a CRD.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deployer {
    /// Field manager.
    pub manager: String,
    /// Whether it does so by server-side apply: only then can its next apply be asked for in a dry run.
    pub applies: bool,
    /// What it applies it from.
    pub origin: Origin,
}

/// What a deployer applies a CRD from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An Argo CD Application, `namespace/name`, whose mark the CRD bears.
    Application(String),
    /// Argo CD, by an Application that left no mark; those that deploy to the webhook's namespace.
    SomeApplication(Vec<String>),
    /// A Kustomization or `HelmRelease` of Flux: `Kustomization namespace/name`.
    Flux(String),
    /// A release of Helm, `namespace/name`.
    Release(String),
    /// Nobody knows.
    Unknown,
}

/// Argo CD's Applications.
#[derive(Clone, Debug, Default)]
pub(super) struct Applications {
    found: Vec<Application>,
    /// Why they could not be listed.
    pub(super) unread: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct Application {
    namespace: String,
    name: String,
    destination: String,
    /// CRDs that it says it deploys.
    crds: Vec<String>,
}

impl Applications {
    /// All of them; none where Argo CD is not installed.
    pub(super) async fn read(reader: &Reader) -> Self {
        let mut all = Self::default();
        let mut pages = reader.pages(&applications(), None, Content::Full);
        loop {
            match pages.next().await {
                Ok(Some(page)) => all.found.extend(page.iter().map(Application::of)),
                Ok(None) => break,
                Err(error) if error.is_not_found() => break,
                Err(error) => {
                    all.unread.push(format!("Argo CD's Applications: {}", error.words()));
                    break;
                }
            }
        }
        all
    }
}

impl Application {
    fn of(object: &Object) -> Self {
        let resources = object.items("/status/resources").iter();
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let crds = resources.filter(|resource| text(resource, "kind") == "CustomResourceDefinition");
        Self {
            namespace: object.namespace().unwrap_or_default().into(),
            name: object.name().into(),
            destination: object.str("/spec/destination/namespace").unwrap_or_default().into(),
            crds: crds.map(|crd| text(crd, "name")).collect(),
        }
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Who applies a CRD; none when nobody's name stands in its spec.
pub(super) fn deployer(crd: &Crd, applications: &Applications) -> Option<Deployer> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    // Whoever owns versions brought the CRD; a controller that fills in its caBundle did not.
    let owners = crd.object.managed_fields().iter().filter(|entry| {
        entry.pointer("/fieldsV1/f:spec/f:versions").is_some() && text(entry, "subresource").is_empty()
    });
    // Somebody may have helped by hand since; who deploys will come again.
    let deploys = |entry: &Value| DEPLOYERS.iter().any(|known| text(entry, "manager").starts_with(known));
    let owner =
        owners.max_by_key(|entry| (deploys(entry), text(entry, "operation") == "Apply", text(entry, "time")))?;
    let manager = text(owner, "manager");
    let origin = origin(crd, &manager, applications);
    Some(Deployer { applies: text(owner, "operation") == "Apply", manager, origin })
}

fn origin(crd: &Crd, manager: &str, applications: &Applications) -> Origin {
    let metadata = |part: &str, name: &str| -> Option<String> {
        Some(crd.object.0.get("metadata")?.get(part)?.get(name)?.as_str()?.to_owned())
    };
    let label = |name: &str| metadata("labels", name);
    let annotation = |name: &str| metadata("annotations", name);
    if manager.starts_with("argocd") {
        return application(crd, applications);
    }
    for (kind, prefix) in [("Kustomization", "kustomize"), ("HelmRelease", "helm")] {
        let mark = |part: &str| label(&format!("{prefix}.toolkit.fluxcd.io/{part}"));
        if let Some((namespace, name)) = mark("namespace").zip(mark("name")) {
            return Origin::Flux(format!("{kind} {namespace}/{name}"));
        }
    }
    match annotation("meta.helm.sh/release-namespace").zip(annotation("meta.helm.sh/release-name")) {
        Some((namespace, name)) => Origin::Release(format!("{namespace}/{name}")),
        None => Origin::Unknown,
    }
}

/// By Argo CD's mark (an annotation, or a label), or by what an Application says it deploys.
fn application(crd: &Crd, applications: &Applications) -> Origin {
    let marks = [
        crd.object.annotation("argocd.argoproj.io/tracking-id").and_then(|id| id.split(':').next()),
        crd.object.str("/metadata/labels/argocd.argoproj.io~1instance"),
        crd.object.str("/metadata/labels/app.kubernetes.io~1instance"),
    ];
    for mark in marks.into_iter().flatten() {
        // An Application outside Argo CD's own namespace is marked as `namespace_name`.
        let is_it = |known: &&Application| known.name == mark || format!("{}_{}", known.namespace, known.name) == mark;
        if let Some(found) = applications.found.iter().find(is_it) {
            return Origin::Application(found.full_name());
        }
    }
    if let Some(found) = applications.found.iter().find(|known| known.crds.iter().any(|name| name == crd.name())) {
        return Origin::Application(found.full_name());
    }
    let namespace = crd.webhook.as_ref().map(|service| service.namespace.as_str());
    let near = applications.found.iter().filter(|known| Some(known.destination.as_str()) == namespace);
    Origin::SomeApplication(near.map(Application::full_name).collect())
}

/// Whether a manager is named in an object, whatever it wrote.
pub(super) fn names(object: &Object, manager: &str) -> bool {
    let mut managers = object.managed_fields().iter().filter_map(|entry| entry.get("manager")?.as_str());
    managers.any(|known| known == manager)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, time: &str, owns: &str) -> Value {
        json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": {"f:spec": {owns: {}}}})
    }

    fn crd(metadata: &Value) -> Crd {
        let mut object = json!({
            "metadata": metadata,
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {
                "namespace": "system", "name": "hook",
            }}}}},
        });
        object["metadata"]["name"] = "widgets.demo.test".into();
        Crd::of(Object(object))
    }

    fn manager(entries: &[Value]) -> Option<(String, bool)> {
        let found = deployer(&crd(&json!({"managedFields": entries})), &Applications::default());
        found.map(|deployer| (deployer.manager, deployer.applies))
    }

    #[test]
    fn whoever_owns_the_versions_deploys() {
        let old = "2026-01-01T00:00:00Z";
        let new = "2026-06-01T00:00:00Z";
        let argocd = entry("argocd-controller", "Apply", old, "f:versions");
        let table = [
            (vec![], None),
            (vec![entry("controller", "Update", new, "f:conversion")], None),
            (
                vec![argocd.clone(), entry("controller", "Update", new, "f:conversion")],
                Some(("argocd-controller", true)),
            ),
            (vec![argocd, entry("kubectl", "Apply", new, "f:versions")], Some(("argocd-controller", true))),
            (
                vec![entry("kubectl", "Apply", old, "f:versions"), entry("kubectl-edit", "Update", new, "f:versions")],
                Some(("kubectl", true)),
            ),
            (
                vec![entry("helm", "Update", new, "f:versions"), entry("olm", "Update", old, "f:versions")],
                Some(("helm", false)),
            ),
        ];
        for (entries, wanted) in table {
            let wanted = wanted.map(|(manager, applies): (&str, bool)| (manager.to_owned(), applies));
            assert_eq!(manager(&entries), wanted, "{entries:?}");
        }
    }

    #[test]
    fn each_deployer_is_known_by_its_mark() {
        let application = |namespace: &str, name: &str, destination: &str, crds: &[&str]| {
            let resources: Vec<Value> =
                crds.iter().map(|crd| json!({"kind": "CustomResourceDefinition", "name": crd})).collect();
            Application::of(&Object(json!({
                "metadata": {"namespace": namespace, "name": name},
                "spec": {"destination": {"namespace": destination}}, "status": {"resources": resources},
            })))
        };
        let all = Applications {
            found: vec![
                application("argocd", "demo", "elsewhere", &[]),
                application("team", "demo2", "system", &[]),
                application("argocd", "listing", "elsewhere", &["widgets.demo.test"]),
            ],
            unread: Vec::new(),
        };
        let none = Applications { found: all.found[..2].to_vec(), unread: Vec::new() };
        let tracked = |id: &str| json!({"annotations": {"argocd.argoproj.io/tracking-id": id}});
        let labelled = |labels: Value| json!({"labels": labels});
        let argocd = "argocd-controller";
        let table = [
            (argocd, &all, tracked("demo:g/k:ns/n"), Origin::Application("argocd/demo".into())),
            (argocd, &all, tracked("team_demo2:g/k:ns/n"), Origin::Application("team/demo2".into())),
            (
                argocd,
                &all,
                labelled(json!({"app.kubernetes.io/instance": "demo"})),
                Origin::Application("argocd/demo".into()),
            ),
            (argocd, &all, json!({}), Origin::Application("argocd/listing".into())),
            (argocd, &none, tracked("gone:g/k:ns/n"), Origin::SomeApplication(vec!["team/demo2".into()])),
            (argocd, &Applications::default(), json!({}), Origin::SomeApplication(Vec::new())),
            (
                "kustomize-controller",
                &all,
                labelled(
                    json!({"kustomize.toolkit.fluxcd.io/name": "n", "kustomize.toolkit.fluxcd.io/namespace": "flux"}),
                ),
                Origin::Flux("Kustomization flux/n".into()),
            ),
            (
                "helm-controller",
                &all,
                labelled(json!({"helm.toolkit.fluxcd.io/name": "n", "helm.toolkit.fluxcd.io/namespace": "flux"})),
                Origin::Flux("HelmRelease flux/n".into()),
            ),
            (
                "helm",
                &all,
                json!({"annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"}}),
                Origin::Release("ns/r".into()),
            ),
            ("kubectl", &all, labelled(json!({"app.kubernetes.io/instance": "demo"})), Origin::Unknown),
        ];
        for (manager, applications, metadata, wanted) in table {
            assert_eq!(origin(&crd(&metadata), manager, applications), wanted, "{manager} {metadata}");
        }
    }
}
