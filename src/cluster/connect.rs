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
    let plugin = exec_plugin(&file, context);
    // The error of a plugin that cannot be started does not say which it is.
    let cannot_load = |text: String| match &plugin {
        Some(plugin) if text.contains("exec") => fail(&load, format!("{text}; the exec plugin is `{plugin}`")),
        _ => fail(&load, text),
    };
    let options = KubeConfigOptions { context: Some(context.into()), ..KubeConfigOptions::default() };
    let mut config =
        kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| cannot_load(chain(&error)))?;
    // Retries are ours: kube would send a PATCH again after a 503 (kube-rs/kube#2082).
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.headers.push((header::USER_AGENT, HeaderValue::from_static(concat!("sbx/", env!("CARGO_PKG_VERSION")))));
    let server = address(&config.cluster_url);
    let client = kube::Client::try_from(config).map_err(|error| cannot_load(chain(&error)))?;
    Ok(Reader::new(client, clock).of_server(server))
}

/// The command that a context's user signs in by, if it is one.
fn exec_plugin(file: &Kubeconfig, context: &str) -> Option<String> {
    let context = file.contexts.iter().find(|known| known.name == context)?.context.as_ref()?;
    let user = file.auth_infos.iter().find(|known| Some(&known.name) == context.user.as_ref())?;
    user.auth_info.as_ref()?.exec.as_ref()?.command.clone()
}

/// Scheme, host and port of a server, without the credentials that a URL can hold.
fn address(url: &http::Uri) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme_str().unwrap_or("https"), url.host().unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_no_credentials() {
        for (url, wanted) in [
            ("https://user:word@a.example:6443/k8s/c-1", "https://a.example:6443"),
            ("https://[::1]:6443", "https://[::1]:6443"),
            ("https://a.example", "https://a.example"),
        ] {
            assert_eq!(address(&url.parse().expect("a URL")), wanted);
        }
    }
}
