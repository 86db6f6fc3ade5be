//! What a Kubernetes API server does with the requests that `sbx` sends: one suite for real servers and for the
//! embedded one.
//!
//! Whatever a check asserts was measured on kube-apiserver 1.34, 1.36 and 1.37; where they differ, the check says how.
//! A check brings its own definition, in a group named after it, so all of them share a server. None of them sleeps:
//! what takes time on a real server is awaited.
//!
//! A new check is a function, and its line in the table of its file.

mod access;
mod answer;
mod apply;
mod built_in;
mod conversion;
mod define;
mod definition;
mod delete;
mod discovery;
mod drop;
mod errors;
mod list;
mod managed_fields;
mod merge_patch;
mod ownership;
mod release;
mod schema;
mod server;
mod storage;
mod stored_versions;
mod watch;
mod webhook;
mod widgets;

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Failed, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::support::Result;

pub use server::{Server, Target};

/// The version that is on its way out, by Kubernetes' own reckoning the older one.
const ALPHA: &str = "v1alpha1";
/// The version that stays.
const BETA: &str = "v1beta1";

/// One fact about the server.
struct Check {
    module: &'static str,
    name: &'static str,
    /// What it proves, in a sentence that a failure is printed with.
    proves: &'static str,
    run: fn(Target) -> LocalBoxFuture<'static, Result<()>>,
}

/// The table of a file: each function, and what it proves.
macro_rules! checks {
    ($($name:ident: $proves:literal,)+) => {
        pub(super) fn checks() -> Vec<super::Check> {
            let module = module_path!().rsplit("::").next().unwrap_or_default();
            vec![$(super::Check {
                module,
                name: stringify!($name),
                proves: $proves,
                run: |target| Box::pin($name(target)),
            }),+]
        }
    };
}
use checks;

/// What every file of checks uses.
mod prelude {
    pub(super) use serde_json::{Value, json};

    pub(super) use super::answer::{causes, entries, exactly, managers, names, owned, uid, version_of};
    pub(super) use super::define::{CRDS, webhook};
    pub(super) use super::server::Target;
    pub(super) use super::widgets::Widgets;
    pub(super) use super::{ALPHA, BETA, checks};
    pub(super) use crate::support::{Result, eventually};
}

fn all() -> Vec<Check> {
    [
        storage::checks(),
        stored_versions::checks(),
        drop::checks(),
        managed_fields::checks(),
        conversion::checks(),
        webhook::checks(),
        definition::checks(),
        release::checks(),
        schema::checks(),
        merge_patch::checks(),
        apply::checks(),
        ownership::checks(),
        delete::checks(),
        list::checks(),
        watch::checks(),
        errors::checks(),
        access::checks(),
        discovery::checks(),
        built_in::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Starts a server of the release named.
pub type Start = fn(String) -> LocalBoxFuture<'static, Result<Arc<dyn Server>>>;

/// A server that is started by the first check that needs it, and stopped after the last.
pub struct Bench {
    runtime: Runtime,
    start: Start,
    release: String,
    server: OnceCell<Arc<dyn Server>>,
}

impl Bench {
    /// A server of `release`, such as `v1.36`, as `start` makes it.
    pub fn new(release: &str, start: Start) -> Result<Arc<Self>> {
        // More than one thread: the webhook answers while a check waits for the server.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Arc::new(Self { runtime, start, release: release.into(), server: OnceCell::new() }))
    }

    fn run(&self, check: &Check) -> Result<(), Failed> {
        let checked = AssertUnwindSafe(async {
            let server = self.server.get_or_try_init(|| (self.start)(self.release.clone())).await?;
            (check.run)(Target::new(server, check.module, check.name)).await
        });
        match self.runtime.block_on(checked.catch_unwind()) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{}\n{error}", check.proves).into()),
            Err(panic) => Err(format!("{}\n{}", check.proves, text(panic.as_ref())).into()),
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}

/// Every check, as tests on one server.
pub fn trials(bench: &Arc<Bench>) -> Vec<Trial> {
    let checks = all();
    let names: BTreeSet<_> = checks.iter().map(|check| (check.module, check.name)).collect();
    assert_eq!(names.len(), checks.len(), "each check has a group of its own, by its name");
    let trial = |check: Check| {
        let name = format!("{}::conformance::{}::{}", bench.release, check.module, check.name);
        let bench = Arc::clone(bench);
        Trial::test(name, move || bench.run(&check))
    };
    checks.into_iter().map(trial).collect()
}
