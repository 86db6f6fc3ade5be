//! One apply at a time: a Lease named after the CRDs, taken after the approval, cleared at the end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use crate::{
    backup::hex,
    cluster::{ClusterError, Writer},
    object::{Object, Resource},
    runbook::Runbook,
    steps::Interrupt,
};

/// A holder that has not renewed for this long is gone.
const EXPIRES_AFTER: Duration = Duration::from_secs(60);
/// Between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(15);

/// Why the lock was not taken.
pub(super) enum Refused {
    /// Somebody holds it: who, and since when.
    Held(String),
    /// The API server's answer.
    Cluster(ClusterError),
}

/// A lock that is held and renewed until it is released.
pub(super) struct Lock {
    writer: Writer,
    namespace: String,
    name: String,
    holder: String,
    renewing: JoinHandle<()>,
}

fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "v1", "leases", "Lease", true)
}

/// Name of the Lease for a runbook's CRDs: the same for every runbook over them.
fn name_of(runbook: &Runbook) -> String {
    let mut crds = runbook.upgrade.crds.clone();
    crds.sort();
    format!("sbx-{}", &hex(&Sha256::digest(crds.join(",")))[..10])
}

fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

impl Lock {
    /// Takes the lock, or takes over one that expired.
    ///
    /// # Errors
    /// Held by somebody, or the API server refuses.
    pub(super) async fn take(
        writer: &Writer,
        runbook: &Runbook,
        run: &str,
        interrupt: &Interrupt,
    ) -> Result<Self, Refused> {
        let (namespace, name) = (runbook.cluster.lock_namespace.clone(), name_of(runbook));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let holder = format!("{run} on {}", host.trim());
        let reader = writer.reader();
        let now = reader.clock().now();
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": EXPIRES_AFTER.as_secs(),
            "acquireTime": micro_time(now), "renewTime": micro_time(now),
        });
        let existing = reader.get(&leases(), Some(&namespace), &name).await.map_err(Refused::Cluster)?;
        let taken = match existing {
            None => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"namespace": namespace, "name": name}, "spec": spec,
                });
                writer.create(&leases(), &Object(lease)).await
            }
            Some(mut lease) => {
                if let Some(held) = held_by(&lease, now) {
                    return Err(Refused::Held(held));
                }
                lease.0["spec"] = spec;
                writer.replace(&leases(), &lease).await
            }
        };
        match taken {
            Ok(_) => {}
            // Somebody was faster between the look and the write.
            Err(error) if error.is_conflict() => {
                return Err(Refused::Held(format!("somebody else, just now (Lease {namespace}/{name})")));
            }
            Err(error) => return Err(Refused::Cluster(error)),
        }
        let renewing =
            tokio::spawn(renew(writer.clone(), namespace.clone(), name.clone(), holder.clone(), interrupt.clone()));
        Ok(Self { writer: writer.clone(), namespace, name, holder, renewing })
    }

    /// `Lease namespace/name`.
    pub(super) fn describe(&self) -> String {
        format!("Lease {}/{}", self.namespace, self.name)
    }

    /// Clears the holder. A lock that cannot be cleared expires.
    pub(super) async fn release(self) {
        self.renewing.abort();
        let Ok(Some(mut lease)) = self.writer.reader().get(&leases(), Some(&self.namespace), &self.name).await else {
            return;
        };
        if lease.str("/spec/holderIdentity") == Some(&self.holder) {
            lease.0["spec"] = json!({});
            let _ = self.writer.replace(&leases(), &lease).await;
        }
    }
}

/// Who holds a Lease that has not expired.
fn held_by(lease: &Object, now: Timestamp) -> Option<String> {
    let holder = lease.str("/spec/holderIdentity").filter(|holder| !holder.is_empty())?;
    let renewed: Timestamp = lease.str("/spec/renewTime")?.parse().ok()?;
    let lasts = SignedDuration::from_secs(lease.int("/spec/leaseDurationSeconds").unwrap_or_default());
    let alive = now.duration_since(renewed) < lasts;
    let since = lease.str("/spec/acquireTime").unwrap_or_default();
    alive.then(|| {
        format!(
            "{holder}, since {since}, last heartbeat {renewed} (Lease {}/{})",
            lease.namespace().unwrap_or_default(),
            lease.name()
        )
    })
}

/// Renews until aborted. A lock that somebody took over ends the run at the next object.
async fn renew(writer: Writer, namespace: String, name: String, holder: String, interrupt: Interrupt) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let reader = writer.reader();
        let Ok(Some(mut lease)) = reader.get(&leases(), Some(&namespace), &name).await else { continue };
        if lease.str("/spec/holderIdentity") != Some(&holder) {
            interrupt.set();
            return;
        }
        if let Some(spec) = lease.0.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("renewTime".into(), micro_time(reader.clock().now()).into());
        }
        let _ = writer.replace(&leases(), &lease).await;
    }
}
