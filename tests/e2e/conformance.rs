//! The conformance suite on a real kube-apiserver: one for all checks of a release.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use k8s_openapi::ByteString;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::suite::{self, Bench, Server};
use crate::support::control_plane::{ControlPlane, Release};
use crate::support::webhook::{Converter, Webhook};
use crate::support::{Result, eventually};

/// Every check, on a control plane that the first one starts.
pub fn scenarios(release: &Release) -> Result<Vec<Trial>> {
    Ok(suite::trials(&Bench::new(&release.name, |name| Box::pin(start(name)))?))
}

struct Real {
    plane: ControlPlane,
    webhook: Webhook,
    /// By API group.
    converters: Arc<Mutex<BTreeMap<String, Converter>>>,
}

async fn start(release: String) -> Result<Arc<dyn Server>> {
    let plane = ControlPlane::start(&Release::named(&release)?).await?;
    let converters: Arc<Mutex<BTreeMap<String, Converter>>> = Arc::default();
    let by_group = Arc::clone(&converters);
    let convert: Converter = Arc::new(move |object, version| {
        let group = version.split('/').next().unwrap_or_default();
        let convert = by_group.lock().unwrap_or_else(PoisonError::into_inner).get(group).cloned();
        convert.ok_or_else(|| format!("nobody converts {group}"))?(object, version)
    });
    let webhook = Webhook::start_with("conversion.default.svc", convert).await?;
    let api = plane.api("admin").await?;
    let services = "/api/v1/namespaces/default/services";
    eventually(services, async || Ok(api.get("/api/v1/namespaces/default").await.is_ok())).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "conversion"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    api.create(services, "seed", &service).await?;
    Ok(Arc::new(Real { plane, webhook, converters }))
}

/// Makes a definition look as if it had been established a minute ago.
async fn backdate(plane: &ControlPlane, crd: &str) -> Result<()> {
    let key = format!("/registry/apiextensions.k8s.io/customresourcedefinitions/{crd}");
    eventually(&format!("{crd} established"), async || {
        let Some(record) = plane.etcd.range(&key).await?.into_iter().next() else { return Ok(false) };
        let mut definition = record.json();
        let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return Ok(false) };
        let mut established = false;
        for condition in conditions {
            established |= condition["type"] == "Established" && condition["status"] == "True";
            let time: jiff::Timestamp = condition["lastTransitionTime"].as_str().unwrap_or_default().parse()?;
            let earlier = time - Duration::from_secs(60);
            condition["lastTransitionTime"] = earlier.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        }
        if established {
            plane.etcd.put(&record.key, definition.to_string().as_bytes()).await?;
        }
        Ok(established)
    })
    .await
}

impl Server for Real {
    fn minor(&self) -> u32 {
        self.plane.release.name.trim_start_matches("v1.").parse().unwrap_or_default()
    }

    fn client(&self, user: &'static str) -> LocalBoxFuture<'_, Result<kube::Client>> {
        Box::pin(async move { Ok(self.plane.api(user).await?.client) })
    }

    fn stored<'a>(&'a self, crd: &'a str) -> LocalBoxFuture<'a, Result<Vec<(String, Value)>>> {
        Box::pin(async move {
            let records = self.plane.raw_records(crd).await?;
            Ok(records.into_iter().map(|record| (record.object().to_owned(), record.json())).collect())
        })
    }

    fn defined<'a>(&'a self, crd: &'a str) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(backdate(&self.plane, crd))
    }

    fn compact(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(self.plane.etcd.compact())
    }

    fn convert(&self, group: &str, convert: Converter) -> Value {
        self.converters.lock().unwrap_or_else(PoisonError::into_inner).insert(group.into(), convert);
        let bundle = ByteString(self.webhook.certificates.authority.clone().into_bytes());
        json!({
            "caBundle": bundle,
            "service": {"namespace": "default", "name": "conversion", "path": "/convert", "port": self.webhook.port},
        })
    }
}
