//! What the upgrade must come to, compared with what was there before it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::writes;
use crate::support::Result;
use crate::support::api::Resource;
use crate::support::fixture::{CLAIMS, Fixture, KINDS, OTHER_CHILDREN, PRUNED, SANDBOXES, SYSTEM, crd_path};

/// Sandboxes that are children too: rewritten once, and relabelled once more as such.
const CHILDREN: [&str; 2] = ["ai/agent-pool-7k2qd", "ai/agent-pool-x9w4z"];
/// What the last steps of the runbook delete.
const DELETED: [&str; 4] = [
    "Secret agent-sandbox-system/agent-sandbox-webhook-certs",
    "SandboxClaim ai/orphan-1",
    "SandboxClaim ai/orphan-2",
    "SandboxClaim ai/orphan-3",
];

/// The cluster before the upgrade, as far as the upgrade must keep it.
pub struct Before {
    inventory: BTreeMap<String, String>,
    /// The spec of every object of the four kinds, as it reads at `v1beta1`.
    specs: BTreeMap<String, Value>,
    /// How often each record had been written.
    writes: BTreeMap<String, u64>,
    others: Vec<Value>,
}

impl Before {
    pub async fn look(fixture: &Fixture) -> Result<Self> {
        Ok(Self {
            inventory: fixture.inventory().await?,
            specs: specs(fixture).await?,
            writes: record_writes(fixture).await?,
            others: others(fixture).await?,
        })
    }

    /// Everything that issue 3 asks of the end, and that each record was written no more than needed.
    pub async fn assert_upgraded(&self, fixture: &Fixture) -> Result<()> {
        self.assert_written_once(fixture).await?;
        self.assert_end(fixture).await
    }

    /// The same where somebody else wrote to the records meanwhile.
    pub async fn assert_end(&self, fixture: &Fixture) -> Result<()> {
        let api = fixture.plane.api("cluster").await?;
        assert_eq!(fixture.stored_versions().await?, BTreeSet::from(["v1beta1".into()]));
        assert_eq!(fixture.managers_at_old_version().await?, BTreeSet::new());
        assert_eq!(fixture.children_of_old_version().await?, BTreeSet::new());
        for kind in KINDS {
            let crd = api.get(&crd_path(&kind.crd())).await?;
            let versions: Vec<_> =
                crd["spec"]["versions"].as_array().into_iter().flatten().map(|version| &version["name"]).collect();
            assert_eq!(versions, ["v1beta1"], "{}", kind.crd());
            assert_eq!(crd["status"]["storedVersions"], json!(["v1beta1"]), "{}", kind.crd());
            assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}), "{}", kind.crd());
        }

        let after = fixture.inventory().await?;
        let gone: BTreeSet<_> = self
            .inventory
            .iter()
            .filter(|(name, uid)| after.get(*name) != Some(uid))
            .map(|(name, _)| name.clone())
            .collect();
        let pruned = PRUNED.iter().map(|(kind, _, name)| format!("{} {SYSTEM}/{name}", kind.kind));
        assert_eq!(gone, pruned.chain(DELETED.map(Into::into)).collect());
        let new: Vec<_> = after.keys().filter(|name| !self.inventory.contains_key(*name)).collect();
        assert!(new.is_empty(), "{new:?}");
        self.assert_deleted_by_the_run(fixture).await?;

        let specs = specs(fixture).await?;
        for (name, before) in self.specs.iter().filter(|(name, _)| !DELETED.contains(&name.as_str())) {
            let after = specs.get(name).ok_or_else(|| format!("{name} is gone"))?;
            assert!(holds(after, before), "{name}: {before} became {after}");
        }
        let claim = api.get(&CLAIMS.object("v1beta1", "flickerd", "frame-1")).await?;
        assert_eq!(claim["spec"]["warmPoolRef"]["name"], "shadow-pool-flicker");
        let keep = api.get(&SANDBOXES.object("v1beta1", "garrison", "keep-2")).await?;
        assert_eq!(keep["spec"]["operatingMode"], "Suspended");
        assert_eq!(others(fixture).await?, self.others, "children of others were left alone");

        let template = fixture.apply_template().await?;
        let entries = template["metadata"]["managedFields"].as_array().into_iter().flatten();
        let applied: Vec<_> = entries.filter(|entry| entry["operation"] == "Apply").collect();
        assert_eq!(applied.len(), 1, "{applied:?}");
        assert!(applied[0].pointer("/fieldsV1/f:spec/f:podTemplate").is_some(), "{applied:?}");
        Ok(())
    }

    /// Every record exactly once over all runs, counted by etcd.
    async fn assert_written_once(&self, fixture: &Fixture) -> Result<()> {
        for (name, after) in record_writes(fixture).await? {
            let before = self.writes.get(&name).copied().unwrap_or_default();
            let child = CHILDREN.iter().any(|child| name.ends_with(&format!("/{child}")));
            assert_eq!(after - before, if child { 2 } else { 1 }, "writes of {name}");
        }
        Ok(())
    }

    async fn assert_deleted_by_the_run(&self, fixture: &Fixture) -> Result<()> {
        let deletes =
            writes(fixture).await?.into_iter().filter(|event| event.verb.starts_with("delete") && event.code < 300);
        let deletes: Vec<_> = deletes.map(|event| format!("{}/{}", event.namespace, event.name)).collect();
        let deleted: BTreeSet<_> = deletes.iter().map(String::as_str).collect();
        let wanted = DELETED.iter().filter_map(|name| name.split(' ').nth(1)).collect();
        assert_eq!((deletes.len(), deleted), (DELETED.len(), wanted));
        Ok(())
    }
}

async fn specs(fixture: &Fixture) -> Result<BTreeMap<String, Value>> {
    let api = fixture.plane.api("cluster").await?;
    let mut specs = BTreeMap::new();
    for kind in KINDS {
        for object in api.items(&kind.all("v1beta1")).await? {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            specs.insert(format!("{} {}/{}", kind.kind, text("namespace"), text("name")), object["spec"].clone());
        }
    }
    Ok(specs)
}

async fn record_writes(fixture: &Fixture) -> Result<BTreeMap<String, u64>> {
    let mut writes = BTreeMap::new();
    for kind in KINDS {
        for record in fixture.plane.raw_records(&kind.crd()).await? {
            writes.insert(format!("{}/{}", kind.plural, record.object()), record.writes);
        }
    }
    Ok(writes)
}

/// Children that nothing may change, whole.
async fn others(fixture: &Fixture) -> Result<Vec<Value>> {
    let api = fixture.plane.api("cluster").await?;
    let mut others = Vec::new();
    for (kind, version, namespace, name) in OTHER_CHILDREN {
        let kind: &Resource = kind;
        others.push(api.get(&kind.object(version, namespace, name)).await?);
    }
    Ok(others)
}

/// Whether a value still holds everything of another; defaults may have come in.
fn holds(after: &Value, before: &Value) -> bool {
    match (after, before) {
        (Value::Object(after), Value::Object(before)) => {
            before.iter().all(|(key, before)| after.get(key).is_some_and(|after| holds(after, before)))
        }
        (Value::Array(after), Value::Array(before)) => {
            after.len() == before.len() && after.iter().zip(before).all(|(after, before)| holds(after, before))
        }
        (after, before) => after == before,
    }
}
