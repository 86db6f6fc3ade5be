//! A definition of Widgets in `v1alpha1` and `v1beta1`.

use serde_json::{Value, json};

use super::answer::Answer;
use super::server::Target;
use super::widgets::Widgets;
use super::{ALPHA, BETA};
use crate::support::Result;
use crate::support::webhook::Converter;

/// The path of all definitions.
pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition that is not there yet. Unless told otherwise it stores `v1beta1`, converts by None, and both versions
/// have `spec.size` and `spec.note`, and a status subresource.
pub(super) struct Definition {
    target: Target,
    stores: &'static str,
    only: Option<&'static str>,
    specs: [Value; 2],
    scope: &'static str,
    conversion: Value,
}

impl Definition {
    pub(super) fn new(target: Target) -> Self {
        let spec = object_of(&json!({"size": {"type": "integer"}, "note": {"type": "string"}}));
        let specs = [spec.clone(), spec];
        Self { target, stores: BETA, only: None, specs, scope: "Namespaced", conversion: Value::Null }
    }

    /// Stores another version.
    pub(super) fn stores(self, version: &'static str) -> Self {
        Self { stores: version, ..self }
    }

    /// Declares one version alone.
    pub(super) fn only(self, version: &'static str) -> Self {
        Self { only: Some(version), stores: version, ..self }
    }

    /// Both versions have these properties under `spec`.
    pub(super) fn spec(self, properties: &Value) -> Self {
        Self { specs: [object_of(properties), object_of(properties)], ..self }
    }

    /// One version has these properties under `spec`.
    pub(super) fn spec_of(mut self, version: &str, properties: &Value) -> Self {
        self.specs[usize::from(version == BETA)] = object_of(properties);
        self
    }

    /// Objects have no namespace.
    pub(super) fn cluster_scoped(self) -> Self {
        Self { scope: "Cluster", ..self }
    }

    /// Converts by a webhook that works like this.
    pub(super) fn hook(self, convert: Converter) -> Self {
        let config = self.target.server.convert(&self.target.group, convert);
        self.conversion(webhook(&config))
    }

    /// Has this `spec.conversion`.
    pub(super) fn conversion(self, conversion: Value) -> Self {
        Self { conversion, ..self }
    }

    /// As it is written in a manifest.
    pub(super) fn manifest(&self) -> Value {
        let group = &self.target.group;
        let mut manifest = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{group}")},
            "spec": {
                "group": group, "scope": self.scope, "names": {"plural": "widgets", "kind": "Widget"},
                "versions": self.versions(),
            },
        });
        if !self.conversion.is_null() {
            manifest["spec"]["conversion"] = self.conversion.clone();
        }
        manifest
    }

    /// `spec.versions`.
    pub(super) fn versions(&self) -> Value {
        let version = |(name, spec): (&&str, &Value)| {
            let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({
                "name": name, "served": true, "storage": *name == self.stores, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
            })
        };
        let all = [ALPHA, BETA];
        let declared = all.iter().zip(&self.specs).filter(|(name, _)| self.only.is_none_or(|only| only == **name));
        declared.map(version).collect()
    }

    /// Sends it.
    pub(super) async fn post(&self) -> Result<Answer> {
        self.target.post(&format!("{CRDS}?fieldManager=seed"), &self.manifest()).await
    }

    /// Installs it and waits until its objects can be listed.
    pub(super) async fn install(self) -> Result<Widgets> {
        self.post().await?.ok()?;
        let widgets = self.widgets();
        widgets.first_served().await?;
        Ok(widgets)
    }

    /// Its objects, however it comes to be installed.
    pub(super) fn widgets(self) -> Widgets {
        Widgets::new(self.target, self.only.unwrap_or(BETA), self.scope == "Cluster")
    }

    /// Installed, with one Widget `one` whose bytes are `v1alpha1`, while what is written now is stored as `v1beta1`.
    pub(super) async fn seeded(self) -> Result<Widgets> {
        let widgets = self.stores(ALPHA).install().await?;
        widgets.at(ALPHA).create("one", &json!({"size": 1})).await?;
        widgets.store(BETA).await?;
        assert_eq!(widgets.stored_version("one").await?, ALPHA, "seeded at the old version");
        Ok(widgets)
    }
}

/// `spec.conversion` by webhook.
pub(super) fn webhook(client_config: &Value) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {"clientConfig": client_config, "conversionReviewVersions": ["v1"]},
    })
}

fn object_of(properties: &Value) -> Value {
    if properties.get("type").is_some_and(Value::is_string) {
        return properties.clone();
    }
    json!({"type": "object", "properties": properties})
}
