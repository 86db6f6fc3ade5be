//! From a kubeconfig to a connection.

use std::{path::Path, time::Duration};

use http::{HeaderValue, header};
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::{
    ClusterError, Reader,
    error::{Fault, chain},
};
use crate::clock::Clock;

/// Connects to the cluster of a kubeconfig context.
///
/// `kubeconfig`: a file; none: `KUBECONFIG` or `~/.kube/config`, as kubectl does.
///
/// # Errors
/// The kubeconfig cannot be read, has no such context (those it has are named), or its
/// credentials cannot be loaded.
pub async fn connect(kubeconfig: Option<&Path>, context: &str, clock: Clock) -> Result<Reader, ClusterError> {
    let file = read(kubeconfig)?;
    if !file.contexts.iter().any(|known| known.name == context) {
        let known: Vec<String> = file.contexts.iter().map(|known| format!("`{}`", known.name)).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        return Err(fail("read the kubeconfig", format!("no context `{context}`; it has: {known}")));
    }
    let load = format!("load context `{context}`");
    let options = KubeConfigOptions { context: Some(context.into()), ..KubeConfigOptions::default() };
    let mut config =
        kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| fail(&load, chain(&error)))?;
    // Retries are ours: kube would send a PATCH again after a 503 (kube-rs/kube#2082).
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.headers.push((header::USER_AGENT, HeaderValue::from_static(concat!("sbx/", env!("CARGO_PKG_VERSION")))));
    let client = kube::Client::try_from(config).map_err(|error| fail(&load, chain(&error)))?;
    Ok(Reader::new(client, clock))
}

/// The context that kubectl would use.
///
/// # Errors
/// The kubeconfig cannot be read, or names none.
pub fn current_context(kubeconfig: Option<&Path>) -> Result<String, ClusterError> {
    let named = read(kubeconfig)?.current_context.filter(|name| !name.is_empty());
    named.ok_or_else(|| fail("read the kubeconfig", "it has no current context; name one with --context".into()))
}

fn read(kubeconfig: Option<&Path>) -> Result<Kubeconfig, ClusterError> {
    match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    }
    .map_err(|error| fail("read the kubeconfig", chain(&error)))
}

fn fail(attempt: &str, text: String) -> ClusterError {
    ClusterError { attempt: attempt.into(), fault: Fault::Config(text) }
}
