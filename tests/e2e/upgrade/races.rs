//! Somebody else is faster: between the rewrite and the proof, between a read and its write, before the question.

use std::future::ready;
use std::path::PathBuf;

use futures::future::BoxFuture;
use http::Method;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::backup::walk;
use super::{edited, ship_clients};
use crate::fixture_scenario;
use crate::support::Result;
use crate::support::control_plane::Release;
use crate::support::fixture::{CLAIMS, Fixture, POOLS, SANDBOXES, TEMPLATES, Truth, crd_path};
use crate::support::proxy::{Asked, Fate, Proxy, Rule};
use crate::support::sbx::{Sbx, shipped};

/// The tests of this file.
pub fn scenarios(release: &Release, truth: Truth) -> Vec<Trial> {
    vec![
        fixture_scenario(release, truth, "upgrade::races::record_put_back_before_its_proof_is_rewritten", put_back),
        fixture_scenario(release, truth, "upgrade::races::change_between_read_and_patch_is_kept", overtaken),
        fixture_scenario(release, truth, "upgrade::races::object_made_anew_before_its_patch_is_another", made_anew),
        fixture_scenario(release, truth, "upgrade::races::definition_changed_before_its_prune_is_not_pruned", changed),
        fixture_scenario(release, truth, "upgrade::races::delete_takes_nothing_that_changed", deletes),
        fixture_scenario(release, truth, "upgrade::races::old_client_before_the_question_is_named", question),
    ]
}

type Act = Box<dyn FnOnce() -> BoxFuture<'static, Result<Fate>> + Send>;

/// What happens at the first write of each method and path.
fn at_first(mut acts: Vec<(Method, String, Act)>) -> Rule {
    Box::new(move |asked| match acts.iter().position(|(method, path, _)| asked.is(method, path)) {
        Some(index) => acts.remove(index).2(),
        None => Box::pin(ready(Ok(Fate::Passes))),
    })
}

/// Happens before the server sees the request.
fn before<F>(happens: impl FnOnce() -> F + Send + 'static) -> Act
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    Box::new(|| {
        let happens = happens();
        Box::pin(async { happens.await.map(|()| Fate::Passes) })
    })
}

/// Happens once the server has carried the request out.
fn after<F>(happens: impl FnOnce() -> F + Send + 'static) -> Act
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    Box::new(|| Box::pin(ready(Ok(Fate::Then(Box::pin(happens()))))))
}

/// What the server answered to the writes of a request line, in its order.
async fn answers(fixture: &Fixture, verb: &str, path: &str) -> Result<Vec<u64>> {
    let events = fixture.plane.audit("admin").await?.into_iter();
    let of_path =
        events.filter(|event| event.writes() && event.verb == verb && event.uri.split('?').next() == Some(path));
    Ok(of_path.map(|event| event.code).collect())
}

/// Every write to an object that was there names the uid and the resourceVersion it was made from.
pub fn assert_preconditions(proxy: &Proxy) -> Result<()> {
    proxy.went_well()?;
    let text = |asked: &Asked, pointer: &str| asked.body.pointer(pointer).and_then(Value::as_str).is_some();
    let mut checked = 0;
    for asked in proxy.writes().iter().filter(|asked| asked.writes()) {
        let place = match asked.method {
            Method::PATCH => "/metadata",
            Method::DELETE => "/preconditions",
            // The lock alone is created and replaced.
            _ => continue,
        };
        for precondition in ["uid", "resourceVersion"] {
            assert!(text(asked, &format!("{place}/{precondition}")), "no {precondition}: {asked:?}");
        }
        checked += 1;
    }
    assert!(checked > 0, "nothing went through the proxy");
    Ok(())
}

async fn put_back(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let records = fixture.plane.raw_records(&SANDBOXES.crd()).await?;
    let old = records.into_iter().find(|record| record.object() == "garrison/keep-1").ok_or("it is there")?;
    assert!(old.api_version.ends_with("/v1alpha1"), "{}", old.api_version);
    let etcd = fixture.plane.etcd.clone();
    let put = after(move || async move { etcd.put(&old.key, &old.value).await });
    let path = SANDBOXES.object("v1beta1", "garrison", "keep-1");
    let proxy = Proxy::start(&fixture.plane, at_first(vec![(Method::PATCH, path.clone(), put)])).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    sbx.run(&["apply", &shipped(), "--yes", "--to", "migrate"]).await?.ended(0)?;
    assert_eq!(fixture.stored_versions().await?, ["v1beta1".into()].into());
    assert!(fixture.managers_at_old_version().await?.is_empty());
    assert_eq!(answers(&fixture, "patch", &path).await?.len(), 3, "rewritten, rewritten again, proved");
    assert_preconditions(&proxy)
}

async fn overtaken(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let path = SANDBOXES.object("v1beta1", "garrison", "keep-2");
    let (api, other) = (fixture.plane.api("cluster").await?, path.clone());
    let label = before(move || async move {
        api.merge(&other, "kubectl-label", &json!({"metadata": {"labels": {"seen-by": "somebody"}}})).await?;
        Ok(())
    });
    let proxy = Proxy::start(&fixture.plane, at_first(vec![(Method::PATCH, path.clone(), label)])).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    sbx.run(&["apply", &shipped(), "--yes", "--to", "migrate"]).await?.ended(0)?;
    let after = fixture.plane.api("cluster").await?.get(&path).await?;
    assert_eq!(after["metadata"]["labels"]["seen-by"], "somebody");
    let mut entries = after["metadata"]["managedFields"].as_array().into_iter().flatten();
    assert!(entries.any(|entry| entry["manager"] == "kubectl-label"), "it owns its label: {after:#}");
    assert_eq!(answers(&fixture, "patch", &path).await?, [409, 200, 200], "refused, rewritten, proved");
    assert!(fixture.managers_at_old_version().await?.is_empty());
    assert_eq!(fixture.stored_versions().await?, ["v1beta1".into()].into());
    assert_preconditions(&proxy)
}

async fn made_anew(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let path = SANDBOXES.object("v1beta1", "garrison", "keep-3");
    let first = fixture.plane.api("cluster").await?.get(&path).await?;
    let (api, old_path, list) =
        (fixture.plane.api("garrison").await?, path.clone(), SANDBOXES.list("v1alpha1", "garrison"));
    let again = before(move || async move {
        api.delete(&old_path).await?;
        let spec = json!({"replicas": 0, "podTemplate": {"spec": {"containers": [{"name": "agent", "image": "a:2"}]}}});
        let made = json!({
            "apiVersion": SANDBOXES.api_version("v1alpha1"), "kind": "Sandbox", "metadata": {"name": "keep-3"}, "spec": spec,
        });
        api.create(&list, "garrison-keep", &made).await?;
        Ok(())
    });
    let proxy = Proxy::start(&fixture.plane, at_first(vec![(Method::PATCH, path.clone(), again)])).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    sbx.run(&["apply", &shipped(), "--yes", "--to", "migrate"]).await?.ended(0)?;
    // The server compares the resourceVersion first; without one it names the uid.
    let answers = answers(&fixture, "patch", &path).await?;
    assert!(matches!(answers[..], [409 | 422, 200, 200]), "refused, rewritten, proved: {answers:?}");
    let second = fixture.plane.api("cluster").await?.get(&path).await?;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let uid = second["metadata"]["uid"].as_str().unwrap_or("no uid");
    let holds = |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|text| text.contains(uid));
    assert!(walk(&sbx.folder().join("backups"))?.iter().any(holds), "the backup holds it, before it was touched");
    assert_eq!(
        (&second["spec"]["operatingMode"], second["metadata"]["generation"].as_i64()),
        (&"Suspended".into(), Some(1))
    );
    assert!(fixture.managers_at_old_version().await?.is_empty());
    assert_eq!(fixture.stored_versions().await?, ["v1beta1".into()].into());
    assert_preconditions(&proxy)
}

async fn changed(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let (api, path) = (fixture.plane.api("cluster").await?, crd_path(&SANDBOXES.crd()));
    let (other, definition) = (api.clone(), path.clone());
    let edit = before(move || async move {
        other.merge(&definition, "kubectl-edit", &json!({"spec": {"names": {"categories": ["all"]}}})).await?;
        Ok(())
    });
    let status = format!("{path}/status");
    let proxy = Proxy::start(&fixture.plane, at_first(vec![(Method::PATCH, status.clone(), edit)])).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    let apply = ["apply", &shipped(), "--yes", "--to", "migrate"];
    sbx.run(&apply).await?.ended(7)?.says("its spec changed after the proof; its storedVersions were left alone")?;
    assert_eq!(answers(&fixture, "patch", &status).await?, [409]);
    let both = json!(["v1alpha1", "v1beta1"]);
    assert_eq!(api.get(&path).await?["status"]["storedVersions"], both);
    assert_eq!(api.get(&crd_path(&CLAIMS.crd())).await?["status"]["storedVersions"], both, "the next one is not begun");
    for pruned in [POOLS, TEMPLATES] {
        assert_eq!(api.get(&crd_path(&pruned.crd())).await?["status"]["storedVersions"], json!(["v1beta1"]));
    }
    assert_preconditions(&proxy)
}

/// A runbook that deletes the orphaned claims and nothing else.
const ORPHANS: &str = r#"
[[step]]
id = "backup"
[step.backup]
to = "backups/{run}"
[[step]]
id = "orphans"
needs = ["backup"]
[step.delete]
resource = "sandboxclaims.extensions.agents.x-k8s.io"
namespace = "ai"
condition = { type = "Ready", reason = "InvalidMetadata" }
at-most = 3
"#;

async fn deletes(fixture: Fixture) -> Result<()> {
    let path = |name: &str| CLAIMS.object("v1beta1", "ai", name);
    let api = fixture.plane.api("cluster").await?;
    let (controller, mends) = (fixture.plane.api("controller").await?, format!("{}/status", path("orphan-1")));
    let mend = before(move || async move {
        let bound = json!({"type": "Ready", "status": "True", "reason": "SandboxReady", "message": "",
                           "lastTransitionTime": "2026-12-01T08:00:00Z"});
        controller.merge(&mends, "agent-sandbox-controller", &json!({"status": {"conditions": [bound]}})).await?;
        Ok(())
    });
    let (flickerd, second) = (fixture.plane.api("flickerd").await?, path("orphan-2"));
    let again = before(move || async move {
        let before = flickerd.get(&second).await?;
        flickerd.delete(&second).await?;
        let made = json!({
            "apiVersion": CLAIMS.api_version("v1beta1"), "kind": "SandboxClaim", "metadata": {"name": "orphan-2"},
            "spec": before["spec"],
        });
        flickerd.create(&CLAIMS.list("v1beta1", "ai"), "flickerd-generator", &made).await?;
        let status = json!({"status": before["status"]});
        flickerd.merge(&format!("{second}/status"), "agent-sandbox-controller", &status).await?;
        Ok(())
    });
    let acts = vec![(Method::DELETE, path("orphan-1"), mend), (Method::DELETE, path("orphan-2"), again)];
    let proxy = Proxy::start(&fixture.plane, at_first(acts)).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    let text = std::fs::read_to_string(shipped())?;
    let head = text.split("[[step]]").next().unwrap_or_default();
    let runbook = sbx.folder().join("orphans.toml");
    std::fs::write(&runbook, format!("{head}{ORPHANS}"))?;
    let ran = sbx.run(&["apply", &runbook.display().to_string(), "--yes"]).await?.ended(0)?;
    ran.says("SandboxClaim ai/orphan-1 matches no longer and was kept")?
        .says("SandboxClaim ai/orphan-2 was re-created under the same name; the new one was not touched")?;
    for (name, code) in [("orphan-1", 409), ("orphan-2", 409), ("orphan-3", 200)] {
        assert_eq!(answers(&fixture, "delete", &path(name)).await?, [code], "{name}");
        assert_eq!(api.get(&path(name)).await.is_ok(), code != 200, "{name}");
    }
    assert_preconditions(&proxy)
}

/// After the last look of the steps before `merge`, and before its question.
async fn question(fixture: Fixture) -> Result<()> {
    ship_clients(&fixture).await?;
    let (api, keep) = (fixture.plane.api("garrison").await?, SANDBOXES.object("v1alpha1", "garrison", "keep-1"));
    let writes = after(move || async move {
        api.merge(&keep, "garrison-keep", &json!({"spec": {"replicas": 0}})).await?;
        Ok(())
    });
    let released = crd_path(&CLAIMS.crd());
    let proxy = Proxy::start(&fixture.plane, at_first(vec![(Method::PATCH, released, writes)])).await?;
    let sbx = Sbx::through(&proxy.kubeconfig)?;
    // Without the gate that would see it first.
    let runbook = edited(&sbx, "no-gate.toml", &[("needs = [\"writers\"]", "needs = [\"flickerd\", \"garrison\"]")])?;
    // Nobody gives the phrase: only the look before the question can stop it with 3.
    let ran = sbx.run(&["apply", &runbook, "--yes"]).await?.ended(3)?;
    ran.says("an old client is still at work")?.says("Sandbox garrison/keep-1 by garrison-keep")?;
    assert_preconditions(&proxy)
}
