//! Ownership of the conversion, and the guard before a merge.

use std::sync::Arc;

use jiff::SignedDuration;
use sbx::embedded::{Interception, RequestRecord};
use serde_json::{Value, json};

use super::{
    blockers,
    scene::{CLAIMS, CRDS, MIGRATE, RELEASE, Scene, failure},
};

const MERGE: &str = "[[step]]\nid = \"merge\"\nneeds = [\"migrate\", \"LAST\"]\n[step.merge]\ntimeout = \"10s\"\n";

fn merge(after: &str) -> String {
    MERGE.replace("LAST", after)
}

#[tokio::test]
async fn a_deployer_that_never_applied_releases_nothing() {
    let scene = Scene::new("argocd-controler", &format!("{MIGRATE}{RELEASE}"));
    let before = scene.crd(CLAIMS)["metadata"]["managedFields"].clone();
    let plan = scene.plan().await;
    let found = blockers(&plan);
    assert_eq!(found.len(), 4, "{found:?}");
    let wanted = "`argocd-controler` has never server-side-applied it, `argocd-controller` did; released, its real owner \
                  would lose it";
    assert!(found.iter().all(|text| text == wanted), "{found:?}");
    let hints = plan.blockers().filter_map(|(_, finding)| finding.hint.as_deref());
    assert!(hints.into_iter().all(|hint| hint == "did you mean `deployer = \"argocd-controller\"`?"));
    assert!(matches!(scene.apply(None).await, sbx::apply::Ending::Blocked));
    assert_eq!(scene.crd(CLAIMS)["metadata"]["managedFields"], before);
}

#[tokio::test]
async fn what_a_settled_step_was_to_resolve_blocks() {
    let scene = Scene::new("argocd-controller", &format!("{MIGRATE}{RELEASE}{}", merge("release")));
    // Nobody owns the conversion: release has nothing to do, and nobody's apply takes it away.
    let crds: Vec<Value> = scene.server.stored(CRDS).into_iter().map(|stored| stored.object).collect();
    for mut crd in crds.into_iter().filter(|crd| crd["spec"]["conversion"]["strategy"] == "Webhook") {
        for entry in crd["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
            if let Some(spec) = entry.pointer_mut("/fieldsV1/f:spec").and_then(Value::as_object_mut) {
                spec.remove("f:conversion");
            }
        }
        crd["status"]["storedVersions"] = json!(["v1beta1"]);
        scene.server.put(CRDS, crd).expect("put");
    }
    let found = blockers(&scene.plan().await);
    assert!(found.iter().any(|text| text.contains("the conversion webhook would outlive it")), "{found:?}");
}

#[tokio::test]
async fn a_conversion_that_others_own_is_no_guess() {
    // No release step stands in the way of a deployer that never applied anything.
    let scene = Scene::new("nobody", &format!("{MIGRATE}{}", merge("migrate").replace(", \"migrate\"", "")));
    let said = failure(&scene.apply(None).await);
    assert!(said.starts_with("merge: do not merge") && said.contains("owns spec.conversion"), "{said}");
}

#[tokio::test]
async fn a_server_that_is_busy_is_waited_for_before_anybody_is_told_not_to_merge() {
    let scene = Scene::new("argocd-controller", &format!("{MIGRATE}{RELEASE}{}", merge("release")));
    let ending = scene.apply(Some("release")).await;
    assert!(matches!(ending, sbx::apply::Ending::Finished), "{}", failure(&ending));
    scene.when_begins("merge", |server| {
        server.intercept(Some(Arc::new(|request: &RequestRecord| {
            let trial = request.dry_run && request.apply && request.resource == "customresourcedefinitions";
            trial.then(|| Interception {
                code: 503,
                reason: "ServiceUnavailable",
                message: "shutting down".into(),
                retry_after: None,
                after: false,
            })
        })));
    });
    let began = scene.hands.now();
    let said = failure(&scene.apply(None).await);
    assert!(said.contains("is not known") && said.contains("shutting down"), "{said}");
    assert!(scene.hands.now().duration_since(began) >= SignedDuration::from_secs(120));
}
