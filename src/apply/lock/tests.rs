use serde_json::json;

use super::*;
use crate::{
    clock::Clock,
    cluster::Reader,
    embedded::{Interception, Release, RequestRecord, Server},
};

const EVERY: Duration = Duration::from_millis(10);
const EXPIRES_AFTER: Duration = Duration::from_millis(200);

struct Held {
    server: Server,
    lost: Lost,
    interrupt: Interrupt,
    renewing: JoinHandle<()>,
}

/// A lock that was just taken, kept at a pace that a test has time for.
async fn held() -> Held {
    let server = Server::new(Release::v1_36());
    let writer = Writer::new(Reader::new(server.client(), Clock::real()));
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "default", "name": "sbx-test"}, "spec": {"holderIdentity": "we"},
    });
    writer.create(&leases(), &Object(lease)).await.expect("nobody holds it");
    let (lost, interrupt) = (Lost::default(), Interrupt::default());
    let renewal = Renewal {
        writer,
        namespace: "default".into(),
        name: "sbx-test".into(),
        holder: "we".into(),
        lost: Arc::clone(&lost),
        interrupt: interrupt.clone(),
    };
    let renewing = tokio::spawn(renewal.keep(EVERY, EXPIRES_AFTER));
    Held { server, lost, interrupt, renewing }
}

impl Held {
    /// Why the run was asked to stop, once it is.
    async fn ends(self) -> String {
        tokio::time::timeout(Duration::from_secs(10), self.interrupt.asked()).await.expect("the run is stopped");
        self.renewing.await.expect("it ends");
        self.lost.get().cloned().expect("a reason")
    }
}

fn refuse(code: u16, reason: &'static str) -> impl Fn(&RequestRecord) -> Option<Interception> {
    move |request| {
        (request.resource == "leases").then(|| Interception {
            code,
            reason,
            message: "not now".into(),
            retry_after: None,
            after: false,
        })
    }
}

#[tokio::test]
async fn a_lock_that_is_renewed_is_kept() {
    let held = held().await;
    tokio::time::sleep(EXPIRES_AFTER * 3).await;
    assert!(!held.interrupt.is_set() && held.lost.get().is_none());
    let stored = held.server.stored("leases.coordination.k8s.io");
    assert!(stored[0].object["spec"]["renewTime"].is_string(), "{stored:?}");
    held.renewing.abort();
}

#[tokio::test]
async fn a_lock_that_cannot_be_renewed_ends_the_run_when_it_expires() {
    let held = held().await;
    held.server.intercept(Some(Arc::new(refuse(403, "Forbidden"))));
    assert!(held.ends().await.contains("could not be renewed"));
}

#[tokio::test]
async fn a_renewal_that_fails_for_a_moment_ends_nothing() {
    let held = held().await;
    held.server.intercept(Some(Arc::new(refuse(403, "Forbidden"))));
    tokio::time::sleep(EVERY * 5).await;
    held.server.intercept(None);
    tokio::time::sleep(EXPIRES_AFTER * 2).await;
    assert!(!held.interrupt.is_set());
    held.renewing.abort();
}

#[tokio::test]
async fn a_lock_that_is_gone_or_somebody_elses_ends_the_run() {
    let gone = held().await;
    gone.server.intercept(Some(Arc::new(refuse(404, "NotFound"))));
    assert_eq!(gone.ends().await, "its Lease is gone");
    for (spec, wanted) in [
        (json!({"holderIdentity": "ada on laptop"}), "ada on laptop took it over"),
        (json!({}), "somebody cleared its Lease"),
    ] {
        let held = held().await;
        let mut lease = held.server.stored("leases.coordination.k8s.io")[0].object.clone();
        lease["spec"] = spec;
        held.server.put("leases.coordination.k8s.io", lease).expect("there are leases");
        assert_eq!(held.ends().await, wanted);
    }
}
