//! The conformance suite on the embedded API server, as each release that it can follow. Real servers run it in `e2e`.

#![allow(unreachable_pub, reason = "a test binary exports nothing; `pub` says what a module offers to the others")]
#![allow(clippy::print_stderr, reason = "what `e2e` starts by hand answers on the terminal")]
#![allow(clippy::disallowed_types, reason = "requests to the API server are what is tested")]

mod suite;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use k8s_openapi::ByteString;
use libtest_mimic::Arguments;
use sbx::embedded::{self, Release};
use serde_json::{Value, json};

use suite::{Bench, Server};
use support::Result;
use support::webhook::Converter;

/// The releases by the names that the tests on real servers have.
const RELEASES: [&str; 3] = ["v1.34", "v1.36", "v1.37"];

fn main() -> Result<ExitCode> {
    let mut trials = Vec::new();
    for name in RELEASES {
        trials.extend(suite::trials(&Bench::new(name, |name| Box::pin(async move { start(&name) }))?));
    }
    Ok(libtest_mimic::run(&Arguments::from_args(), trials).exit_code())
}

struct Embedded {
    server: embedded::Server,
    minor: u32,
}

fn start(name: &str) -> Result<Arc<dyn Server>> {
    let release = Release::named(&format!("{name}.0")).ok_or_else(|| format!("`{name}` is no release"))?;
    let minor = release.minor;
    let server = embedded::Server::new(release);
    server.grant("nobody", Vec::new());
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "conversion", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    server.put("services", service)?;
    Ok(Arc::new(Embedded { server, minor }))
}

impl Server for Embedded {
    fn minor(&self) -> u32 {
        self.minor
    }

    fn client(&self, user: &'static str) -> LocalBoxFuture<'_, Result<kube::Client>> {
        Box::pin(async move { Ok(self.server.client_as(user)) })
    }

    fn stored<'a>(&'a self, crd: &'a str) -> LocalBoxFuture<'a, Result<Vec<(String, Value)>>> {
        let records = self.server.stored(crd).into_iter().map(|stored| (stored.key, stored.object)).collect();
        Box::pin(async move { Ok(records) })
    }

    fn defined<'a>(&'a self, _crd: &'a str) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn compact(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.server.compact();
            Ok(())
        })
    }

    fn convert(&self, group: &str, convert: Converter) -> Value {
        self.server.converter(&format!("widgets.{group}"), convert);
        let bundle = ByteString(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_vec());
        json!({
            "caBundle": bundle,
            "service": {"namespace": "default", "name": "conversion", "path": "/convert", "port": 443},
        })
    }
}
