//! What must not be in a file that travels: placeholders for it, the same for the same value.
//!
//! ```text
//! Secret data, environment values, arguments, fields named like a credential   <redacted #12>
//! annotations, but for those that steps read and plain numbers and times       <redacted #12: 53 bytes>
//! status, but for the words of the API conventions (type, reason, phase, …)    <redacted #12>
//! ```
//!
//! A list of what may stay for status and annotations, as anybody may write anything there; a list
//! of what must go for the rest, as its shape is what a rehearsal needs. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    files,
    object::{Object, ObjectRef},
    runbook::{Delete, DeleteTarget, NamedObject, Runbook, Task},
    steps::well_known::known,
};

/// Annotations that steps or a rehearsal read, or that say who deploys; each a name or a number.
const PLAIN_ANNOTATIONS: [&str; 13] = [
    "api-approved.kubernetes.io",
    "argocd.argoproj.io/compare-options",
    "argocd.argoproj.io/sync-options",
    "argocd.argoproj.io/sync-wave",
    "argocd.argoproj.io/tracking-id",
    "cert-manager.io/inject-ca-from",
    "controller-gen.kubebuilder.io/version",
    "deployment.kubernetes.io/revision",
    "helm.sh/resource-policy",
    "kubectl.kubernetes.io/restartedAt",
    "kustomize.toolkit.fluxcd.io/prune",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
];
/// A plain annotation is a name, not a document.
const PLAIN_LENGTH: usize = 253;
/// Parts of the names of fields that hold credentials, dashes and underscores aside.
const CREDENTIALS: [&str; 11] = [
    "accesskey",
    "apikey",
    "authorization",
    "clientsecret",
    "cookie",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "token",
];
/// Fields of a status whose values are words of the API conventions.
const STATUS_WORDS: [&str; 4] = ["phase", "reason", "status", "type"];
/// Lists in a Pod's status by which its images are told.
const CONTAINER_STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Values that stay because the runbook, which everybody may read, holds the same.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Environment variables by object: name and value.
    env: BTreeMap<ObjectRef, BTreeSet<(String, String)>>,
    /// What a `delete` looks for in conditions.
    words: BTreeSet<String>,
}

/// Replaces values and remembers which number each has.
#[derive(Debug, Default)]
pub struct Redactor {
    keep: Keep,
    /// By hash: the values themselves are not kept.
    numbers: HashMap<[u8; 32], usize>,
    replaced: usize,
}

impl Keep {
    /// What a runbook compares with.
    pub fn of(runbook: &Runbook) -> Self {
        let mut keep = Self::default();
        for step in &runbook.steps {
            match &step.task {
                Task::Client(task) => {
                    let named = NamedObject { kind: task.kind.clone(), group: None, name: task.name.clone() };
                    let Some(resource) = known(&named) else { continue };
                    let workload = resource.object(Some(&task.namespace), &task.name);
                    keep.env.entry(workload).or_default().extend(task.env.iter().cloned());
                }
                Task::Manifests(task) => {
                    // A file that cannot be read is the plan's to say.
                    for object in task.files.iter().filter_map(|file| files::read_objects(file).ok()).flatten() {
                        variables(&object.0, keep.env.entry(object.reference()).or_default());
                    }
                }
                Task::Delete(Delete { target: DeleteTarget::Matching { condition_type, reason, .. }, .. }) => {
                    keep.words.extend(reason.iter().chain([condition_type]).cloned());
                }
                _ => {}
            }
        }
        keep
    }
}

/// Every environment variable with a plain value in an object.
fn variables(value: &Value, found: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                for entry in value.as_array().filter(|_| is_env(key)).into_iter().flatten() {
                    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
                    found.extend(text("name").zip(text("value")));
                }
                variables(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| variables(item, found)),
        _ => {}
    }
}

impl Redactor {
    /// With values that stay.
    pub fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// How many values were replaced.
    pub fn replaced(&self) -> usize {
        self.replaced
    }

    /// Replaces in place whatever an object must not carry away.
    pub fn object(&mut self, object: &mut Object) {
        match object.kind() {
            "CustomResourceDefinition" => self.definition(&mut object.0),
            "Application" if object.api_version().starts_with("argoproj.io/") => {
                object.0 = application(&object.0);
                self.instance(object);
            }
            _ => self.instance(object),
        }
    }

    fn instance(&mut self, object: &mut Object) {
        let kept = self.keep.env.get(&object.reference()).cloned().unwrap_or_default();
        let is_secret = object.kind() == "Secret" && object.api_version() == "v1";
        let Some(fields) = object.0.as_object_mut() else { return };
        for (key, value) in fields {
            match key.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => self.metadata(value),
                "status" => self.status("", value),
                "data" | "stringData" if is_secret => self.all(value),
                _ => self.field(key, value, &kept),
            }
        }
    }

    /// A definition is public but for what is written on it; a schema may well have a field `password`.
    fn definition(&mut self, crd: &mut Value) {
        if let Some(metadata) = crd.get_mut("metadata") {
            self.metadata(metadata);
        }
        if let Some(conversion) = crd.pointer_mut("/spec/conversion") {
            self.addresses(conversion);
        }
        for condition in crd.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            self.status("", condition);
        }
    }

    fn metadata(&mut self, metadata: &mut Value) {
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            self.annotations(annotations);
        }
    }

    fn annotations(&mut self, annotations: &mut Map<String, Value>) {
        for (name, value) in annotations {
            let Some(text) = value.as_str() else {
                self.all(value);
                continue;
            };
            let plain = PLAIN_ANNOTATIONS.contains(&name.as_str())
                && text.len() <= PLAIN_LENGTH
                && !text.contains(|char: char| (char.is_whitespace() && char != ' ') || char == '{');
            if text.is_empty() || plain || is_number(text) || is_time(text) || text == "true" || text == "false" {
                continue;
            }
            // The bytes of all annotations are limited, and the stamp adds to them.
            let size = text.len();
            let number = self.number(text);
            *value = format!("<redacted #{number}: {size} bytes>").into();
        }
    }

    /// A field of a spec.
    fn field(&mut self, key: &str, value: &mut Value, kept: &BTreeSet<(String, String)>) {
        if is_env(key) {
            return self.environment(value, kept);
        }
        if matches!(key, "args" | "command" | "stringData") || (is_credential(key) && !value.is_object()) {
            return self.texts(value);
        }
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match (key.as_str(), value) {
                        ("annotations", Value::Object(annotations)) => self.annotations(annotations),
                        ("labels" | "matchLabels" | "nodeSelector", _) => {}
                        (key, value) => self.field(key, value, kept),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.field("", item, kept)),
            Value::String(text) if has_credentials(text) => self.replace(value),
            _ => {}
        }
    }

    fn environment(&mut self, env: &mut Value, kept: &BTreeSet<(String, String)>) {
        let Value::Array(entries) = env else { return self.all(env) };
        for entry in entries {
            let Value::Object(fields) = entry else {
                self.all(entry);
                continue;
            };
            let name = fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (key, value) in fields {
                match (key.as_str(), value) {
                    // Where a value comes from is a name.
                    ("name" | "valueFrom", _) => {}
                    ("value", Value::String(text)) if kept.contains(&(name.clone(), text.clone())) => {}
                    ("value", value) => self.all(value),
                    (key, value) => self.field(key, value, kept),
                }
            }
        }
    }

    /// A field of a status.
    fn status(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    if CONTAINER_STATUSES.contains(&key.as_str()) {
                        self.containers(value);
                    } else {
                        self.status(key, value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.status(key, item)),
            Value::String(text) => {
                let word = STATUS_WORDS.contains(&key) && (is_word(text) || self.keep.words.contains(text));
                let revision = key.starts_with("revision") && is_revision(text);
                if !word && !revision && !is_time(text) {
                    self.replace(value);
                }
            }
            _ => {}
        }
    }

    fn containers(&mut self, statuses: &mut Value) {
        for status in statuses.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            for (key, value) in status {
                if !matches!(key.as_str(), "name" | "image" | "imageID") {
                    self.status(key, value);
                }
            }
        }
    }

    /// Every address with credentials in it.
    fn addresses(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| self.addresses(value)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.addresses(item)),
            Value::String(text) if has_credentials(text) => self.replace(value),
            _ => {}
        }
    }

    /// Every text below.
    fn texts(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| self.texts(value)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.texts(item)),
            Value::String(_) => self.replace(value),
            _ => {}
        }
    }

    /// Every text and number below.
    fn all(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| self.all(value)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.all(item)),
            Value::String(_) | Value::Number(_) => self.replace(value),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn replace(&mut self, value: &mut Value) {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        // Nothing is no secret, and it says that nothing is there.
        if !text.is_empty() {
            *value = format!("<redacted #{}>", self.number(&text)).into();
        }
    }

    fn number(&mut self, text: &str) -> usize {
        self.replaced += 1;
        let next = self.numbers.len() + 1;
        *self.numbers.entry(Sha256::digest(text).into()).or_insert(next)
    }
}

/// Of an Application what says how it syncs and how far it got: its source may hold values for a chart.
fn application(whole: &Value) -> Value {
    const SOURCE: [&str; 4] = ["repoURL", "path", "targetRevision", "chart"];
    let of = |pointer: &str, names: &[&str]| pick(whole.pointer(pointer), names);
    let mut spec = of("/spec", &["project", "destination", "syncPolicy"]);
    if whole.pointer("/spec/source").is_some() {
        spec["source"] = of("/spec/source", &SOURCE);
    }
    if let Some(sources) = whole.pointer("/spec/sources").and_then(Value::as_array) {
        spec["sources"] = sources.iter().map(|source| pick(Some(source), &SOURCE)).collect();
    }
    let mut object = pick(Some(whole), &["apiVersion", "kind", "metadata"]);
    object["spec"] = spec;
    object["status"] = json!({
        "sync": of("/status/sync", &["status", "revision", "revisions"]),
        "health": of("/status/health", &["status"]),
    });
    if whole.pointer("/status/operationState").is_some() {
        object["status"]["operationState"] =
            of("/status/operationState", &["phase", "message", "startedAt", "finishedAt"]);
    }
    object
}

fn pick(from: Option<&Value>, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), from?.get(name)?.clone())));
    Value::Object(fields.collect())
}

fn is_env(key: &str) -> bool {
    let key = key.to_lowercase();
    key != "envfrom"
        && (key.ends_with("env") || key.ends_with("envs") || key.ends_with("envvars") || key == "environment")
}

fn is_credential(key: &str) -> bool {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    key == "secret" || CREDENTIALS.iter().any(|part| key.contains(part))
}

/// `scheme://user:password@host`
fn has_credentials(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        rest.split(['/', '?', '#', ' ']).next().is_some_and(|authority| authority.contains('@'))
    })
}

fn is_time(text: &str) -> bool {
    text.len() <= 35 && text.parse::<Timestamp>().is_ok()
}

fn is_number(text: &str) -> bool {
    text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A word as the API conventions want it in conditions, behind a domain or not: no dash and no blank in it, so
/// hardly a secret.
fn is_word(text: &str) -> bool {
    let (domain, word) = text.split_once('/').unwrap_or(("", text));
    text.len() <= 64
        && domain.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'-'))
        && word.starts_with(|char: char| char.is_ascii_uppercase())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':'))
}

/// A commit or a chart's version.
fn is_revision(text: &str) -> bool {
    let hexadecimal = text.len() >= 7 && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal || semver::Version::parse(text.trim_start_matches('v')).is_ok_and(|version| version.pre.is_empty())
}

#[cfg(test)]
mod tests;
