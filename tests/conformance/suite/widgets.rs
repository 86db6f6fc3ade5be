//! What checks do with Widgets and with their definition.

use serde_json::{Value, json};

use super::answer::Answer;
use super::define::CRDS;
use super::server::Target;
use super::{ALPHA, BETA};
use crate::support::{Result, eventually};

/// The objects of an installed definition, at one version: requests go to that version's path.
#[derive(Clone)]
pub(super) struct Widgets {
    pub(super) target: Target,
    version: &'static str,
    cluster_scoped: bool,
}

impl Widgets {
    /// Of a definition that is there, or will be.
    pub(super) fn new(target: Target, version: &'static str, cluster_scoped: bool) -> Self {
        Self { target, version, cluster_scoped }
    }

    /// The same objects at another version.
    pub(super) fn at(&self, version: &'static str) -> Self {
        Self { version, ..self.clone() }
    }

    /// `widgets.<group>`.
    pub(super) fn crd(&self) -> String {
        format!("widgets.{}", self.target.group)
    }

    /// The path of the definition.
    pub(super) fn crd_path(&self) -> String {
        format!("{CRDS}/{}", self.crd())
    }

    /// The path of all objects.
    pub(super) fn all(&self) -> String {
        format!("/apis/{}/widgets", self.api_version())
    }

    /// The path of the objects in namespace `default`.
    pub(super) fn list(&self) -> String {
        if self.cluster_scoped {
            self.all()
        } else {
            format!("/apis/{}/namespaces/default/widgets", self.api_version())
        }
    }

    /// The path of one object in namespace `default`.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.list())
    }

    /// `group/version`.
    pub(super) fn api_version(&self) -> String {
        format!("{}/{}", self.target.group, self.version)
    }

    /// A manifest.
    pub(super) fn manifest(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": self.api_version(), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
    }

    /// POST, as `seed`.
    pub(super) async fn post(&self, object: &Value) -> Result<Answer> {
        self.target.post(&format!("{}?fieldManager=seed", self.list()), object).await
    }

    /// Creates an object, as `seed`.
    pub(super) async fn create(&self, name: &str, spec: &Value) -> Result<Value> {
        self.post(&self.manifest(name, spec)).await?.ok()
    }

    /// Creates an object that has these in its metadata, as `seed`.
    pub(super) async fn create_with(&self, name: &str, metadata: &Value) -> Result<Value> {
        let mut object = self.manifest(name, &json!({"size": 1}));
        for (key, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        self.post(&object).await?.ok()
    }

    pub(super) async fn get(&self, name: &str) -> Result<Answer> {
        self.target.get(&self.path(name)).await
    }

    /// The object as it is now.
    pub(super) async fn read(&self, name: &str) -> Result<Value> {
        self.get(name).await?.ok()
    }

    /// Merge patch, as `sbx`.
    pub(super) async fn merge(&self, name: &str, patch: &Value) -> Result<Answer> {
        self.merge_by("sbx", name, patch).await
    }

    /// Merge patch, as `manager`.
    pub(super) async fn merge_by(&self, manager: &str, name: &str, patch: &Value) -> Result<Answer> {
        self.target.merge(&format!("{}?fieldManager={manager}", self.path(name)), patch).await
    }

    /// Merge patch of the status, as `manager`.
    pub(super) async fn merge_status(&self, manager: &str, name: &str, patch: &Value) -> Result<Answer> {
        self.target.merge(&format!("{}/status?fieldManager={manager}", self.path(name)), patch).await
    }

    /// The empty merge patch.
    pub(super) async fn touch(&self, name: &str) -> Result<Answer> {
        self.merge(name, &json!({})).await
    }

    /// Server-side apply of a spec.
    pub(super) async fn apply(&self, manager: &str, name: &str, spec: &Value) -> Result<Answer> {
        self.apply_object(manager, &self.manifest(name, spec)).await
    }

    /// Server-side apply of a manifest. The query may be lengthened: `argo&force=true`.
    pub(super) async fn apply_object(&self, manager: &str, object: &Value) -> Result<Answer> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.target.apply(&format!("{}?fieldManager={manager}", self.path(name)), object).await
    }

    /// DELETE with these options.
    pub(super) async fn delete(&self, name: &str, options: &Value) -> Result<Answer> {
        self.target.delete(&self.path(name), options).await
    }

    /// The object as it is stored.
    pub(super) async fn stored(&self, name: &str) -> Result<Value> {
        let records = self.target.server.stored(&self.crd()).await?;
        let key = if self.cluster_scoped { name.to_owned() } else { format!("default/{name}") };
        let found = records.into_iter().find(|(object, _)| *object == key);
        Ok(found.ok_or_else(|| format!("no record of {key}"))?.1)
    }

    /// The version of the stored bytes.
    pub(super) async fn stored_version(&self, name: &str) -> Result<String> {
        let stored = self.stored(name).await?;
        let api_version = stored["apiVersion"].as_str().unwrap_or_default();
        Ok(api_version.rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// The definition as it is now.
    pub(super) async fn read_crd(&self) -> Result<Value> {
        self.target.get(&self.crd_path()).await?.ok()
    }

    /// Merge patch of the definition.
    pub(super) async fn merge_crd(&self, patch: &Value) -> Result<Answer> {
        self.target.merge(&format!("{}?fieldManager=seed", self.crd_path()), patch).await
    }

    /// Merge patch of `status.storedVersions`.
    pub(super) async fn set_stored_versions(&self, versions: &[&str]) -> Result<Answer> {
        let patch = json!({"status": {"storedVersions": versions}});
        self.target.merge(&format!("{}/status?fieldManager=sbx", self.crd_path()), &patch).await
    }

    /// Waits until the objects of a new definition can be listed.
    pub(super) async fn first_served(&self) -> Result<()> {
        self.target.server.defined(&self.crd()).await?;
        self.served().await
    }

    /// All objects. For a moment after a change of the definition a server may not list them.
    pub(super) async fn listed(&self) -> Result<Value> {
        let mut list = Value::Null;
        eventually(&format!("{} listed", self.all()), async || {
            let answer = self.target.get(&self.all()).await?;
            let listed = answer.code == 200;
            list = answer.body;
            Ok(listed)
        })
        .await?;
        Ok(list)
    }

    /// Waits until the objects can be listed.
    pub(super) async fn served(&self) -> Result<()> {
        self.listed().await.map(drop)
    }

    /// Stores another version from now on, and waits until that is so.
    pub(super) async fn store(&self, version: &'static str) -> Result<()> {
        self.store_with(version, &json!({})).await
    }

    /// As [`Self::store`], where only objects with this spec can be created.
    pub(super) async fn store_with(&self, version: &'static str, spec: &Value) -> Result<()> {
        let mut versions = self.read_crd().await?["spec"]["versions"].take();
        for declared in versions.as_array_mut().into_iter().flatten() {
            declared["storage"] = (declared["name"] == version).into();
        }
        self.merge_crd(&json!({"spec": {"versions": versions}})).await?.ok()?;
        self.stores(version, spec).await
    }

    /// Waits until what is written is stored at a version: for a moment after a change it may not be.
    pub(super) async fn stores(&self, version: &'static str, spec: &Value) -> Result<()> {
        let probe = self.at(version);
        eventually(&format!("{} stored at {version}", self.crd()), async || {
            probe.create("probe", spec).await?;
            let stored = self.stored_version("probe").await?;
            probe.delete("probe", &json!({})).await?.ok()?;
            Ok(stored == version)
        })
        .await
    }

    /// Changes the definition in something that does not matter: a server drops what it has read of the objects.
    pub(super) async fn renew(&self) -> Result<()> {
        self.merge_crd(&json!({"spec": {"names": {"categories": ["renewed"]}}})).await?.ok().map(drop)
    }

    /// Declares `v1beta1` alone, and waits until the server goes by that. The field it adds shows when.
    pub(super) async fn drop_alpha(&self) -> Result<()> {
        let mut versions = self.read_crd().await?["spec"]["versions"].take();
        if let Some(versions) = versions.as_array_mut() {
            versions.retain(|declared| declared["name"] != ALPHA);
            versions[0]["schema"]["openAPIV3Schema"]["properties"]["dropped"] = json!({"type": "boolean"});
        }
        self.merge_crd(&json!({"spec": {"versions": versions}})).await?.ok()?;
        let mut probe = self.at(BETA).manifest("probe", &json!({}));
        probe["dropped"] = true.into();
        let path = format!("{}?dryRun=All&fieldValidation=Strict", self.at(BETA).list());
        eventually(&format!("{ALPHA} gone"), async || {
            let (new, old) = (self.target.post(&path, &probe).await?, self.target.get(&self.at(ALPHA).all()).await?);
            Ok((new.code, old.code) == (201, 404))
        })
        .await
    }

    /// As [`Self::drop_alpha`], where every record is at the new version: lists work afterwards.
    pub(super) async fn finish(&self) -> Result<()> {
        self.set_stored_versions(&[BETA]).await?.ok()?;
        self.drop_alpha().await?;
        self.served().await
    }

    /// As [`Self::drop_alpha`], where a record is still at the old one: lists are refused afterwards.
    pub(super) async fn drop_early(&self) -> Result<()> {
        self.set_stored_versions(&[BETA]).await?.ok()?;
        self.drop_alpha().await?;
        let path = self.all();
        eventually(&format!("{path} refused"), async || Ok(self.target.get(&path).await?.code == 429)).await
    }

    /// The managedFields of the object, every entry naming this version.
    pub(super) fn relabelled(&self, object: &Value) -> Value {
        let mut entries = object["metadata"]["managedFields"].clone();
        for entry in entries.as_array_mut().into_iter().flatten() {
            entry["apiVersion"] = self.api_version().into();
        }
        entries
    }
}
