//! Backups, migrations and deletes.

use std::{fs, sync::Arc};

use sbx::{
    apply::Ending,
    embedded::{Interception, RequestRecord},
    graph::StepGraph,
    plan::{Grade, State},
    rehearse::{ACTOR, Rehearsal},
};
use serde_json::json;

use super::{
    blockers, said,
    scene::{CLAIMS, CRDS, MIGRATE, Scene, TEMPLATES, failure},
    state,
};

const CERTS: &str = "agent-sandbox-webhook-certs";

fn refusal(code: u16, message: &str) -> Interception {
    let reason = if code == 403 { "Forbidden" } else { "ServiceUnavailable" };
    Interception { code, reason, message: message.into(), retry_after: None, after: false }
}

#[tokio::test]
async fn a_crd_that_is_created_again_stops_the_migration() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    scene.when_begins("migrate", |server| {
        Scene::alter(server, CRDS, CLAIMS, |crd| crd["metadata"]["uid"] = "another".into());
    });
    let said = failure(&scene.apply(None).await);
    assert!(said.contains("was deleted and created again; the backup holds its objects"), "{said}");
    assert_eq!(scene.crd(CLAIMS)["status"]["storedVersions"], json!(["v1alpha1", "v1beta1"]));
}

#[tokio::test]
async fn a_crd_on_its_way_out_is_not_migrated_further() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    scene.when_begins("migrate", |server| {
        Scene::alter(server, CRDS, CLAIMS, |crd| {
            crd["metadata"]["deletionTimestamp"] = "2026-12-01T18:00:00Z".into();
        });
    });
    let said = failure(&scene.apply(None).await);
    assert!(said.contains("is being deleted, and every object with it"), "{said}");
}

#[tokio::test]
async fn a_crd_that_is_not_the_backups_blocks_the_plan() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    assert!(matches!(scene.apply(Some("backup")).await, Ending::Finished));
    assert_eq!(scene.manifest()["crds"][CLAIMS], scene.crd(CLAIMS)["metadata"]["uid"]);
    assert_eq!(blockers(&scene.plan().await), [""; 0]);
    Scene::alter(&scene.server, CRDS, CLAIMS, |crd| crd["metadata"]["uid"] = "another".into());
    let found = blockers(&scene.plan().await);
    assert!(matches!(&found[..], [one] if one.contains("created again after the backup was taken")), "{found:?}");
}

#[tokio::test]
async fn a_dry_run_without_an_answer_does_not_let_the_rewrite_alter_records_unseen() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    // Their rewrite sets a default, so each is tried first; now the server does not say.
    scene.when_begins("migrate", |server| {
        server.intercept(Some(Arc::new(|request: &RequestRecord| {
            let trial = request.dry_run && request.verb == "patch" && request.resource == "sandboxtemplates";
            trial.then(|| refusal(503, "shutting down"))
        })));
    });
    let said = failure(&scene.apply(None).await);
    assert!(said.contains("changed its spec"), "{said}");
    assert_eq!(scene.crd(TEMPLATES)["status"]["storedVersions"], json!(["v1alpha1", "v1beta1"]));
}

#[tokio::test]
async fn a_busy_server_is_not_a_verdict_on_a_record() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    scene.server.intercept(Some(Arc::new(|request: &RequestRecord| {
        let trial = request.dry_run && request.resource == "sandboxclaims";
        trial.then(|| refusal(503, "shutting down"))
    })));
    let plan = scene.plan().await;
    assert_eq!(blockers(&plan), [""; 0]);
    let unchecked = said(&plan, "migrate", Grade::NotChecked);
    assert!(unchecked.iter().any(|text| text.contains("shutting down")), "{unchecked:?}");
}

#[tokio::test]
async fn another_migrator_that_may_not_be_looked_for_is_said() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    let deny = |request: &RequestRecord| {
        let migrators = request.group == "migration.k8s.io" && request.resource == "storageversionmigrations";
        (migrators && request.verb == "list").then(|| refusal(403, "may not list"))
    };
    // An API that is not there is no finding, whoever asks.
    scene.server.intercept(Some(Arc::new(deny)));
    assert_eq!(said(&scene.plan().await, "migrate", Grade::NotChecked), [""; 0]);
    let version = json!({"name": "v1alpha1", "served": true, "storage": true,
                         "schema": {"openAPIV3Schema": {"type": "object"}}});
    let names = json!({"plural": "storageversionmigrations", "singular": "storageversionmigration",
                       "kind": "StorageVersionMigration", "listKind": "StorageVersionMigrationList"});
    let migrators = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "storageversionmigrations.migration.k8s.io"},
        "spec": {"group": "migration.k8s.io", "scope": "Cluster", "names": names, "versions": [version]},
        "status": {"storedVersions": ["v1alpha1"], "acceptedNames": names,
                   "conditions": [{"type": "Established", "status": "True"}]},
    });
    scene.server.put(CRDS, migrators).expect("put");
    let unchecked = said(&scene.plan().await, "migrate", Grade::NotChecked);
    assert!(matches!(&unchecked[..], [one] if one.starts_with("whether another migrator is at work")), "{unchecked:?}");
}

const ORPHANS: &str = "[[step]]\nid = \"orphans\"\nneeds = [\"backup\"]\n[step.delete]\n\
                       resource = \"sandboxclaims.extensions.agents.x-k8s.io\"\nnamespace = \"ai\"\nat-most = 3\n\
                       condition = { type = \"Ready\", reason = \"InvalidMetadata\" }\n";

#[tokio::test]
async fn what_could_not_be_listed_is_not_kept_as_nothing() {
    let scene = Scene::new("argocd-controller", ORPHANS);
    scene.server.intercept(Some(Arc::new(|request: &RequestRecord| {
        let list = request.verb == "list" && request.resource == "sandboxclaims" && request.namespace == "ai";
        list.then(|| refusal(403, "may not list in ai"))
    })));
    let said = failure(&scene.apply(None).await);
    assert!(said.starts_with("backup: ") && said.contains("may not list in ai"), "{said}");
    scene.server.intercept(None);
    let ending = scene.apply(None).await;
    assert!(matches!(ending, Ending::Finished), "{}", failure(&ending));
    assert_eq!(scene.manifest()["deletes"]["orphans"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn a_delete_by_condition_needs_a_backup_before_it() {
    // A runbook is not read without one, so it is taken away afterwards.
    let mut alone = Scene::new("argocd-controller", ORPHANS);
    alone.runbook.steps[1].needs.clear();
    alone.graph = StepGraph::of(&alone.runbook).expect("no circle");
    let found = blockers(&alone.plan().await);
    assert!(matches!(&found[..], [one] if one.starts_with("no backup says which objects matched")), "{found:?}");
    assert_eq!(blockers(&Scene::new("argocd-controller", ORPHANS).plan().await), [""; 0]);
}

#[tokio::test]
async fn a_named_object_made_after_the_backup_is_kept_before_it_goes() {
    let steps = "[[step]]\nid = \"names\"\nneeds = [\"backup\"]\n[step.delete]\nobjects = [\"ConfigMap/x\"]\n\
                 namespace = \"ai\"\n";
    let scene = Scene::new("argocd-controller", steps);
    let map = |uid: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"of": uid},
               "metadata": {"name": "x", "namespace": "ai", "uid": uid}})
    };
    scene.server.put("configmaps", map("first")).expect("put");
    assert!(matches!(scene.apply(Some("backup")).await, Ending::Finished));
    scene.server.put("configmaps", map("second")).expect("put");
    let ending = scene.apply(None).await;
    assert!(matches!(ending, Ending::Finished), "{}", failure(&ending));
    let manifest = scene.manifest();
    assert_eq!(manifest["deletes"]["names"], json!(["first", "second"]));
    let kept = manifest["files"].as_array().expect("files").iter();
    let kept = kept.filter(|file| file["name"].as_str().is_some_and(|name| name.starts_with("deletes")));
    assert_eq!(kept.map(|file| file["objects"].as_u64().expect("a number")).sum::<u64>(), 2);
}

#[tokio::test]
async fn what_is_still_to_be_deleted_needs_the_backup_whatever_else_is_done() {
    let scene = Scene::new("argocd-controller", MIGRATE);
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/runbooks/v1.0.0.toml");
    let (runbook, graph) = sbx::graph::load(shipped.as_ref()).expect("the shipped runbook");
    let (header, server) = sbx::snapshot::built_in(ACTOR).expect("the built-in snapshot");
    let certs = server.stored("secrets").into_iter().find(|secret| secret.key.ends_with(CERTS)).expect("the Secret");
    let rehearsal = Rehearsal {
        runbook: &runbook,
        graph: &graph,
        server: &server,
        hands: sbx::clock::Hands::at(header.taken_at),
        working_dir: &scene.folder,
        fail: None,
        ask: None,
        tell: &|_| {},
    };
    assert!(rehearsal.run().await.expect("the server answers").settled);
    fs::remove_dir_all(scene.folder.join("backups")).expect("a backup was taken");
    let mut again = Scene::new("argocd-controller", MIGRATE);
    (again.server, again.runbook, again.graph) = (server, runbook, graph);
    assert_eq!(state(&again.plan().await, "backup"), State::NotNeeded);
    again.server.put("secrets", certs.object).expect("put");
    let plan = again.plan().await;
    assert_eq!((state(&plan, "migrate"), state(&plan, "backup")), (State::Done, State::ToDo));
    assert_eq!(state(&plan, "writers"), State::NotNeeded);
    assert_eq!(state(&plan, "webhook-certs"), State::After(vec![4]));
}
