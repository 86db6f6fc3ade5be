//! A dry run of every apply, compared with what is there.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use serde_json::Value;

use super::{Item, Seen, Verdict, load};
use crate::{
    cluster::{ClusterError, Reader},
    crd::crd_resource,
    diff::{Masks, changes},
    object::{Object, ObjectRef, Resource, split_api_version},
    plan::FieldChange,
    runbook::Manifests,
    steps::Look,
};

/// Dry runs in flight at once.
const CONCURRENCY: usize = 8;
/// Field manager of our own applies.
const MANAGER: &str = "sbx";
/// What the server writes itself, and what another write has no part in.
const SERVERS_OWN: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"];

/// Asks the server what each object would become.
pub async fn observe(task: &Manifests, look: &Look<'_>) -> Seen {
    let (objects, unreadable) = load(task);
    Seen { items: ask(task, &objects, look.reader).await, unreadable }
}

/// What the server says of each object, in their order.
pub(super) async fn ask(task: &Manifests, objects: &[Object], reader: &Reader) -> Vec<Item> {
    let kinds = kinds(objects, reader).await;
    let kinds = &kinds;
    let asked: Vec<(ObjectRef, Asked)> = stream::iter(objects)
        .map(|object| async move {
            (object.reference(), dry_run(object, kinds.get(object.api_version()), task.force, reader, objects).await)
        })
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let mut masks = Masks::default();
    let items = asked.into_iter().map(|(object, asked)| Item { object, verdict: asked.verdict(&mut masks) });
    items.collect()
}

/// Resources by `apiVersion`, asked once each; none where it is not served.
type Kinds = BTreeMap<String, Result<Option<Vec<Resource>>, String>>;

async fn kinds(objects: &[Object], reader: &Reader) -> Kinds {
    let mut kinds = Kinds::new();
    for object in objects {
        let version = object.api_version();
        if !kinds.contains_key(version) {
            let answer = reader.resources_of(version).await.map_err(|error| error.words());
            kinds.insert(version.into(), answer);
        }
    }
    kinds
}

/// The answer to a dry run, before it is compared.
enum Asked {
    Said(Verdict),
    Would { live: Option<Value>, become_: Value },
    Conflicts { owners: Vec<(String, String)>, live: Option<Value>, forced: Option<Value> },
}

impl Asked {
    fn verdict(self, masks: &mut Masks) -> Verdict {
        let mut compare = |live: Option<Value>, after: Option<Value>| -> Vec<FieldChange> {
            match (live, after) {
                (Some(live), Some(after)) => changes(&live, &after, masks),
                _ => Vec::new(),
            }
        };
        match self {
            Self::Said(verdict) => verdict,
            Self::Would { live: None, .. } => Verdict::Create,
            Self::Would { live, become_ } => match compare(live, Some(become_)) {
                fields if fields.is_empty() => Verdict::Same,
                fields => Verdict::Change(fields),
            },
            Self::Conflicts { owners, live, forced } => Verdict::Conflict(owners, compare(live, forced)),
        }
    }
}

fn refused(words: impl Into<String>) -> Asked {
    Asked::Said(Verdict::Refused(vec![(None, words.into())]))
}

fn not_checked(words: impl Into<String>) -> Asked {
    Asked::Said(Verdict::NotChecked(words.into()))
}

/// The resource of an object, by what its `apiVersion` serves.
pub(super) fn resource_of(object: &Object, served: Option<&[Resource]>) -> Option<Resource> {
    if object.kind() == "CustomResourceDefinition" {
        return Some(crd_resource());
    }
    served?.iter().find(|resource| resource.kind == object.kind()).cloned()
}

async fn dry_run(
    object: &Object,
    served: Option<&Result<Option<Vec<Resource>>, String>>,
    force: bool,
    reader: &Reader,
    all: &[Object],
) -> Asked {
    let served = match served {
        Some(Err(words)) => return not_checked(words),
        Some(Ok(served)) => served.as_deref(),
        None => None,
    };
    let Some(resource) = resource_of(object, served) else {
        return match crd_among(all, object) {
            Some(crd) => Asked::Said(Verdict::Later(format!("CRD {crd}"))),
            None => refused(format!("the server serves no {} in {}", object.kind(), object.api_version())),
        };
    };
    if resource.namespaced && object.namespace().is_none() {
        return refused("it names no namespace");
    }
    let live = match reader.get(&resource, object.namespace(), object.name()).await {
        Ok(live) => live.map(|live| comparable(live.0)),
        Err(error) => return not_checked(error.words()),
    };
    match reader.dry_run_apply(&resource, object, MANAGER, force).await {
        Ok(after) => Asked::Would { live, become_: comparable(after.0) },
        Err(error) if error.is_conflict() => {
            let forced = reader.dry_run_apply(&resource, object, MANAGER, true).await.ok();
            Asked::Conflicts { owners: owners(&error), live, forced: forced.map(|forced| comparable(forced.0)) }
        }
        Err(error) if error.is_not_found() => match namespace_among(all, object) {
            Some(namespace) => Asked::Said(Verdict::Later(format!("Namespace {namespace}"))),
            None => refused(error.words()),
        },
        // A 500 is an answer here: so says the server of a value of the wrong type.
        Err(error) if error.is_forbidden() || error.is_busy() || matches!(error.code(), 0 | 504) => {
            not_checked(error.words())
        }
        Err(error) => Asked::Said(Verdict::Refused(causes(&error))),
    }
}

/// What of an object its author decides.
fn comparable(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVERS_OWN {
            metadata.remove(field);
        }
    }
    object
}

/// The CRD among these objects that will serve an object's kind.
fn crd_among(all: &[Object], object: &Object) -> Option<String> {
    let (group, version) = split_api_version(object.api_version());
    let serves = |crd: &&Object| {
        let versions = crd.items("/spec/versions").iter();
        crd.str("/spec/group") == Some(group)
            && crd.str("/spec/names/kind") == Some(object.kind())
            && versions.map(|known| known.get("name").and_then(Value::as_str)).any(|known| known == Some(version))
    };
    let crds = all.iter().filter(|other| other.kind() == "CustomResourceDefinition");
    crds.clone().find(serves).map(|crd| crd.name().to_owned())
}

fn namespace_among<'a>(all: &[Object], object: &'a Object) -> Option<&'a str> {
    let namespace = object.namespace()?;
    all.iter().any(|other| other.kind() == "Namespace" && other.name() == namespace).then_some(namespace)
}

/// Who owns what, from the causes of a conflict: `conflict with "kubectl" using apps/v1`.
fn owners(error: &ClusterError) -> Vec<(String, String)> {
    let causes = error.status().map_or(&[][..], |status| &status.causes);
    let owner = |message: &str| message.split('"').nth(1).unwrap_or(message).to_owned();
    let mut owners: Vec<(String, String)> =
        causes.iter().map(|cause| (owner(&cause.message), cause.field.trim_start_matches('.').to_owned())).collect();
    if owners.is_empty() {
        owners.push((error.words(), "fields".into()));
    }
    owners
}

fn causes(error: &ClusterError) -> Vec<(Option<String>, String)> {
    let causes = error.status().map_or(&[][..], |status| &status.causes);
    let cause = |field: &str, message: &str| (Some(field.to_owned()), format!("{field}: {message}"));
    let mut causes: Vec<(Option<String>, String)> =
        causes.iter().map(|said| cause(&said.field, &said.message)).collect();
    if causes.is_empty() {
        causes.push((None, error.words()));
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::{Cause, Fault, Status};

    fn answer(code: u16, message: &str, causes: &[(&str, &str)]) -> ClusterError {
        let causes = causes.iter().map(|(field, message)| Cause { field: (*field).into(), message: (*message).into() });
        let status = Status { code, message: message.into(), causes: causes.collect(), ..Status::default() };
        ClusterError { attempt: "apply".into(), fault: Fault::Status(Box::new(status)) }
    }

    #[test]
    fn owners_and_causes_are_read_by_field() {
        let conflict = answer(409, "1 conflict", &[(".spec.replicas", "conflict with \"kubectl edit\" using apps/v1")]);
        assert_eq!(owners(&conflict), [("kubectl edit".to_owned(), "spec.replicas".to_owned())]);
        assert_eq!(owners(&answer(409, "no causes", &[])), [("no causes".to_owned(), "fields".to_owned())]);
        let refusal = answer(422, "invalid", &[("status.storedVersions[1]", "missing")]);
        let wanted = (Some("status.storedVersions[1]".to_owned()), "status.storedVersions[1]: missing".to_owned());
        assert_eq!(causes(&refusal), [wanted]);
        assert_eq!(causes(&answer(400, "bad", &[])), [(None, "bad".to_owned())]);
    }

    #[test]
    fn only_what_an_author_decides_is_compared() {
        let live = json!({"kind": "X", "metadata": {"name": "a", "resourceVersion": "1", "managedFields": [], "uid": "u",
            "labels": {"a": "b"}}, "spec": {}, "status": {"x": 1}});
        let wanted = json!({"kind": "X", "metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {}});
        assert_eq!(comparable(live), wanted);
    }

    #[test]
    fn what_comes_with_the_files_is_known() {
        let crd = Object(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.demo.test"}, "spec": {"group": "demo.test", "names": {"kind": "Widget"},
            "versions": [{"name": "v1beta1"}]}}));
        let namespace = Object(json!({"kind": "Namespace", "metadata": {"name": "ns"}}));
        let all = [crd, namespace];
        let object = |version: &str, kind: &str, namespace: &str| {
            Object(json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}}))
        };
        let table = [
            (object("demo.test/v1beta1", "Widget", "ns"), Some("widgets.demo.test"), Some("ns")),
            (object("demo.test/v1alpha1", "Widget", "ns"), None, Some("ns")),
            (object("other.test/v1beta1", "Widget", "other"), None, None),
        ];
        for (object, crd, namespace) in table {
            assert_eq!(crd_among(&all, &object).as_deref(), crd);
            assert_eq!(namespace_among(&all, &object), namespace);
        }
    }
}
