//! From a path to what it means.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::json::split_api_version;
use super::kinds::Kind;
use super::state::State;
use super::status::Refusal;
use super::strategy::Path;

/// A request, read whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) user: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) user_agent: String,
    pub(super) body: Bytes,
}

/// What a path names.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) kind: Arc<Kind>,
    pub(super) version: String,
    pub(super) namespace: Option<String>,
    /// None: the collection.
    pub(super) name: Option<String>,
    pub(super) path: Path,
}

/// How a write is to be done.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) manager: String,
    pub(super) dry_run: bool,
    pub(super) validation: Validation,
}

/// What to do about fields that a schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Request {
    /// A query parameter; empty when it is not there.
    pub(super) fn parameter(&self, key: &str) -> &str {
        self.query.get(key).map_or("", String::as_str)
    }

    /// Who writes, and whether for real.
    pub(super) fn options(&self) -> Options {
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        let manager = match self.parameter("fieldManager") {
            "" if agent.is_empty() => "unknown",
            "" => agent,
            manager => manager,
        };
        let validation = match self.parameter("fieldValidation") {
            "Ignore" => Validation::Ignore,
            "Strict" => Validation::Strict,
            _ => Validation::Warn,
        };
        Options { manager: manager.into(), dry_run: self.parameter("dryRun") == "All", validation }
    }
}

impl Target {
    pub(super) fn main(kind: Arc<Kind>, version: &str, namespace: Option<&str>, name: &str) -> Self {
        let (namespace, name) = (namespace.map(Into::into), Some(name.into()));
        Self { kind, version: version.into(), namespace, name, path: Path::Main }
    }

    pub(super) fn status(self) -> Self {
        Self { path: Path::Status, ..self }
    }

    /// The `apiVersion` of the path.
    pub(super) fn api_version(&self) -> String {
        self.kind.api_version(&self.version)
    }

    pub(super) fn object_name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(super) fn subresource(&self) -> &'static str {
        match self.path {
            Path::Main => "",
            Path::Status => "status",
        }
    }
}

/// Splits a path of the API into `group/version` and what follows.
pub(super) fn split(path: &str) -> Option<(&str, Vec<&str>)> {
    let path = path.trim_matches('/');
    let (api_version, rest) = if let Some(rest) = path.strip_prefix("api/") {
        let (version, rest) = rest.split_once('/').unwrap_or((rest, ""));
        (version, rest)
    } else {
        let path = path.strip_prefix("apis/")?;
        let slash = path.find('/')?;
        let end = path[slash + 1..].find('/').map_or(path.len(), |at| slash + 1 + at);
        (&path[..end], path[end..].trim_start_matches('/'))
    };
    Some((api_version, rest.split('/').filter(|part| !part.is_empty()).collect()))
}

impl State {
    fn is_built_in(&self, group: &str) -> bool {
        self.kinds.values().any(|kind| kind.group == group && kind.definition.is_none())
    }

    /// What a path below a group version names.
    pub(super) fn target(&self, api_version: &str, parts: &[&str]) -> Result<Target, Refusal> {
        let (group, version) = split_api_version(api_version);
        let (namespace, parts) = match parts {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status"]) => (Some(*namespace), rest),
            parts => (None, parts),
        };
        let (plural, name, subresource) = match parts {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return Err(Refusal::page_not_found()),
        };
        let absent = || if self.is_built_in(group) { Refusal::no_resource() } else { Refusal::page_not_found() };
        let kind = self.kinds.get(&(group.to_owned(), plural.to_owned())).ok_or_else(absent)?;
        let served = kind.version(version).filter(|version| version.served).ok_or_else(absent)?;
        let path = match subresource {
            None => Path::Main,
            Some("status") if served.status => Path::Status,
            Some(_) => return Err(Refusal::not_found(&kind.named(name.unwrap_or_default()))),
        };
        if kind.namespaced != namespace.is_some() && (name.is_some() || !kind.namespaced) {
            return Err(Refusal::page_not_found());
        }
        Ok(Target {
            kind: kind.clone(),
            version: version.into(),
            namespace: namespace.map(Into::into),
            name: name.map(Into::into),
            path,
        })
    }
}

/// Undoes percent-encoding.
pub(super) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match (bytes[at], code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (_, Some(byte)) => {
                plain.push(byte);
                at += 3;
                continue;
            }
            (b'+', None) => plain.push(b' '),
            (byte, None) => plain.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_after_its_version() {
        for (path, expected) in [
            ("/api/v1", Some(("v1", vec![]))),
            ("/api/v1/pods", Some(("v1", vec!["pods"]))),
            ("/apis/a.b/v1", Some(("a.b/v1", vec![]))),
            ("/apis/a.b/v1/namespaces/n/ws/w/status", Some(("a.b/v1", vec!["namespaces", "n", "ws", "w", "status"]))),
            ("/apis/a.b", None),
            ("/version", None),
        ] {
            assert_eq!(split(path), expected, "{path}");
        }
        assert_eq!(unescape("a%2Fb+c%zz"), "a/b c%zz");
    }
}
