//! One apply at a time: a Lease named after the CRDs, taken after the approval, cleared at the end.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    cluster::{ClusterError, Content, Writer},
    object::{Object, Resource},
    runbook::Runbook,
    steps::{Interrupt, lock_name},
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
    lost: Lost,
    renewing: JoinHandle<()>,
}

/// Why a lock is not ours any more, once it is not.
type Lost = Arc<OnceLock<String>>;

fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "v1", "leases", "Lease", true)
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
        let (namespace, name) = (runbook.cluster.lock_namespace.clone(), lock_name(runbook));
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
        let lost = Lost::default();
        let mut lock = Self {
            writer: writer.clone(),
            namespace,
            name,
            holder,
            lost,
            // Nothing to renew before there is a lock.
            renewing: tokio::spawn(async {}),
        };
        lock.renewing = tokio::spawn(lock.renewal(interrupt).keep(RENEW_EVERY, EXPIRES_AFTER));
        Ok(lock)
    }

    fn renewal(&self, interrupt: &Interrupt) -> Renewal {
        Renewal {
            writer: self.writer.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            holder: self.holder.clone(),
            lost: Arc::clone(&self.lost),
            interrupt: interrupt.clone(),
        }
    }

    /// Why it is not ours any more.
    pub(super) fn lost(&self) -> Option<String> {
        self.lost.get().cloned()
    }

    /// Whether it is ours at this moment; asked before each step that changes something.
    ///
    /// # Errors
    /// The API server cannot say.
    pub(super) async fn is_still_ours(&self) -> Result<bool, ClusterError> {
        let reader = self.writer.reader();
        let lease = reader.look_for(&leases(), Some(&self.namespace), &self.name, Content::Full).await?;
        if let Err(why) = holds(lease.as_ref(), &self.holder) {
            self.lost.get_or_init(|| why);
        }
        Ok(self.lost.get().is_none())
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

/// Whether a Lease names this holder; otherwise what became of it.
fn holds(lease: Option<&Object>, holder: &str) -> Result<(), String> {
    let Some(lease) = lease else { return Err("its Lease is gone".into()) };
    match lease.str("/spec/holderIdentity").filter(|found| !found.is_empty()) {
        Some(found) if found == holder => Ok(()),
        Some(found) => Err(format!("{found} took it over")),
        None => Err("somebody cleared its Lease".into()),
    }
}

/// Keeps a lock until it is aborted.
struct Renewal {
    writer: Writer,
    namespace: String,
    name: String,
    holder: String,
    lost: Lost,
    interrupt: Interrupt,
}

impl Renewal {
    /// Renews, and ends the run at the next object once the lock may be somebody else's: it was taken
    /// over, or no renewal got through before it expired.
    async fn keep(self, every: Duration, expires_after: Duration) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(every).await;
            // An answer that takes longer than the lock lasts is none.
            let turn = tokio::time::timeout(expires_after.saturating_sub(renewed.elapsed()), self.renew()).await;
            let why = match turn {
                Ok(Ok(())) => {
                    renewed = Instant::now();
                    continue;
                }
                Ok(Err(Some(why))) => why,
                Ok(Err(None)) if renewed.elapsed() < expires_after => continue,
                Ok(Err(None)) | Err(_) => format!("it could not be renewed for {} s", expires_after.as_secs()),
            };
            self.lost.get_or_init(|| why);
            self.interrupt.set();
            return;
        }
    }

    /// One renewal. An error without a reason may pass.
    async fn renew(&self) -> Result<(), Option<String>> {
        let reader = self.writer.reader();
        let lease = reader.look_for(&leases(), Some(&self.namespace), &self.name, Content::Full).await;
        let lease = lease.map_err(|_| None)?;
        holds(lease.as_ref(), &self.holder).map_err(Some)?;
        let Some(mut lease) = lease else { return Err(None) };
        if let Some(spec) = lease.0.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("renewTime".into(), micro_time(reader.clock().now()).into());
        }
        self.writer.replace(&leases(), &lease).await.map(drop).map_err(|_| None)
    }
}

#[cfg(test)]
mod tests;
