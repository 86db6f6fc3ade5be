//! Definitions: their defaults, their rules, and the kinds they bring.

use std::sync::{Arc, LazyLock};

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::json::{items, object, text};
use super::kinds::Kind;
use super::route::{Options, Target};
use super::state::{Lag, State};
use super::status::{Cause, Refusal};
use super::store::Table;

/// How the fields of a definition are owned: its versions whole, its conversion field by field.
pub(super) static TYPES: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let whole = json!({"type": "array", "items": {}});
    let names = json!({"type": "object", "properties": {
        "plural": text, "singular": text, "kind": text, "listKind": text, "shortNames": whole, "categories": whole,
    }});
    let service = json!({"type": "object", "properties": {
        "name": text, "namespace": text, "path": text, "port": {"type": "integer"},
    }});
    let config = json!({"type": "object", "properties": {"caBundle": text, "url": text, "service": service}});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "group": text, "scope": text, "names": names, "versions": whole,
            "preserveUnknownFields": {"type": "boolean"},
            "conversion": {"type": "object", "properties": {
                "strategy": text,
                "webhook": {"type": "object", "properties": {"clientConfig": config, "conversionReviewVersions": whole}},
            }},
        }},
        "status": {"type": "object", "properties": {
            "acceptedNames": names, "storedVersions": whole, "observedGeneration": {"type": "integer"},
            "conditions": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "additionalProperties": true, "properties": {
                    "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text,
                    "observedGeneration": {"type": "integer"},
                }},
            },
        }},
    }})
});

/// The finalizer that keeps a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in defaults, and notes the storage version among the stored ones.
pub(super) fn prepare(new: &mut Value, old: Option<&Value>) {
    default(new);
    if old.is_none() {
        new["status"] = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}});
    }
    let storage = storage(new).to_owned();
    let stored = items(new, "/status/storedVersions");
    if !storage.is_empty() && !stored.iter().any(|version| *version == storage) {
        let mut stored = stored.to_vec();
        stored.push(storage.into());
        object(new, "status").insert("storedVersions".into(), stored.into());
    }
}

/// An empty list of stored versions becomes the storage version.
pub(super) fn default_stored_versions(crd: &mut Value) {
    if items(crd, "/status/storedVersions").is_empty() {
        let storage = storage(crd).to_owned();
        object(crd, "status").insert("storedVersions".into(), json!([storage]));
    }
}

/// The server's definitions always have these fields, empty or not; so nobody comes to own them by filling them in.
pub(super) fn filled(crd: &Value) -> Value {
    let mut filled = crd.clone();
    for (part, fields) in [
        ("spec", json!({"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null})),
        ("status", json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null})),
    ] {
        let known = object(&mut filled, part);
        for (field, empty) in fields.as_object().into_iter().flatten() {
            known.entry(field.clone()).or_insert_with(|| empty.clone());
        }
    }
    filled
}

/// Fills in what the server fills in when it reads a definition.
pub(super) fn default(crd: &mut Value) {
    let kind = text(crd, "/spec/names/kind").to_owned();
    let names = object(&mut crd["spec"], "names");
    names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    let spec = object(crd, "spec");
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    if let Some(conversion) = spec.get_mut("conversion") {
        let config = conversion.pointer("/webhook/clientConfig").is_some_and(|config| !config.is_null());
        if !config
            && items(conversion, "/webhook/conversionReviewVersions").is_empty()
            && let Some(conversion) = conversion.as_object_mut()
        {
            conversion.remove("webhook");
        }
        if let Some(service) = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut) {
            service.entry("port").or_insert(443.into());
        }
    }
}

fn storage(crd: &Value) -> &str {
    let versions = items(crd, "/spec/versions");
    versions.iter().find(|version| version["storage"] == true).map_or("", |version| text(version, "/name"))
}

/// What is wrong with a definition.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (name, group, plural) = ("/metadata/name", text(new, "/spec/group"), text(new, "/spec/names/plural"));
    if old.is_none() && text(new, name) != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &text(new, name).into(), detail));
    }
    for field in ["group", "scope"] {
        if text(new, &format!("/spec/{field}")).is_empty() {
            causes.push(Cause::required(format!("spec.{field}"), ""));
        }
    }
    let versions = items(new, "/spec/versions");
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let names: Vec<_> = versions.iter().map(|version| version["name"].clone()).collect();
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &names.into(), detail));
    }
    for (index, version) in versions.iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(field, ""));
        }
    }
    causes.extend(check_conversion(new, old));
    for field in ["group", "scope"] {
        let value = |crd: &Value| crd["spec"][field].clone();
        if old.is_some_and(|old| value(old) != value(new)) {
            causes.push(Cause::invalid(format!("spec.{field}"), &value(new), "field is immutable"));
        }
    }
    let stored = items(new, "/status/storedVersions");
    for version in versions.iter().filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            let detail = format!("must have the storage version {}", text(version, "/name"));
            causes.push(Cause::invalid("status.storedVersions", &stored.into(), &detail));
        }
    }
    for (index, stored) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *stored) {
            let version = stored.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {version} and removes \
                 {version} from status.storedVersions"
            );
            causes.push(Cause::invalid(format!("status.storedVersions[{index}]"), stored, &detail));
        }
    }
    causes
}

/// The server checks its internal form, hence the names of its fields.
fn check_conversion(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    const AT: &str = "spec.conversion";
    let conversion = &new["spec"]["conversion"];
    let config = conversion.pointer("/webhook/clientConfig").filter(|config| !config.is_null());
    let reviews = items(conversion, "/webhook/conversionReviewVersions");
    let mut causes = Vec::new();
    let strategy = text(conversion, "/strategy");
    match strategy {
        "None" | "Webhook" => {}
        "" => causes.push(Cause::required(format!("{AT}.strategy"), "")),
        other => {
            let known = ["None".into(), "Webhook".into()];
            causes.push(Cause::unsupported(format!("{AT}.strategy"), &other.into(), &known));
        }
    }
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            causes.push(Cause::forbidden(format!("{AT}.webhookClientConfig"), why));
        }
        if !reviews.is_empty() {
            causes.push(Cause::forbidden(format!("{AT}.conversionReviewVersions"), why));
        }
        return causes;
    }
    match config {
        None => {
            let why = "required when strategy is set to Webhook";
            causes.push(Cause::required(format!("{AT}.webhookClientConfig"), why));
        }
        Some(config) => {
            if config.get("url").is_some() == config.get("service").is_some() {
                let why = "exactly one of url or service is required";
                causes.push(Cause::required(format!("{AT}.webhookClientConfig"), why));
            }
            if invalid_authority(new) && !old.is_some_and(invalid_authority) && old.is_some() {
                let detail = "unable to load root certificates: unable to parse bytes as PEM block";
                let field = format!("{AT}.webhookClientConfig.caBundle");
                causes.push(Cause::invalid(field, &config["caBundle"], detail));
            }
        }
    }
    if reviews.is_empty() {
        causes.push(Cause::required(format!("{AT}.conversionReviewVersions"), ""));
    }
    causes
}

/// Whether a definition names an authority that holds no certificate.
fn invalid_authority(crd: &Value) -> bool {
    let Some(bundle) = crd.pointer("/spec/conversion/webhook/clientConfig/caBundle") else { return false };
    let bytes = serde_json::from_value::<ByteString>(bundle.clone()).map(|bytes| bytes.0).unwrap_or_default();
    !bundle.as_str().is_none_or(str::is_empty)
        && !String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----")
}

fn condition(kind: &str, status: bool, reason: &str, message: &str, time: &str) -> Value {
    let status = if status { "True" } else { "False" };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

fn set_condition(crd: &mut Value, condition: Value) {
    let mut conditions = items(crd, "/status/conditions").to_vec();
    conditions.retain(|known| known["type"] != condition["type"]);
    conditions.push(condition);
    object(crd, "status").insert("conditions".into(), conditions.into());
}

impl State {
    /// Serves what a definition says, and writes into its status what the server finds.
    pub(super) fn install(&mut self, crd: &Value) -> Result<(), Refusal> {
        let kind = Arc::new(Kind::defined(crd));
        let table = kind.table();
        let name = text(crd, "/metadata/name").to_owned();
        let established = items(crd, "/status/conditions")
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        let authority = established || !invalid_authority(crd);
        if let Some(old) = self.kinds.get(&table) {
            let old = old.clone();
            if old != kind {
                self.catch_up(&old);
                self.caches.stop(&table);
            }
            if old.storage() != kind.storage() && !self.lag.is_zero() {
                let until = (self.now)() + self.lag;
                self.lags.insert(name.clone(), Lag { version: old.storage().into(), until });
            }
        }
        if authority {
            self.kinds.insert(table, kind.clone());
        }
        let time = self.timestamp();
        let accepted = &crd["status"]["acceptedNames"];
        if *accepted == crd["spec"]["names"] && (established || !authority) {
            return Ok(());
        }
        let definitions = self.definitions();
        let target = Target::main(definitions, "v1", None, &name).status();
        let options = Options { manager: "kube-apiserver".into(), ..Options::default() };
        let message = "the initial names have been accepted";
        self.update(&target, &options, &|state, current| {
            let mut new = current.clone();
            let mut conditions = vec![condition("NamesAccepted", true, "NoConflicts", "no conflicts found", &time)];
            conditions.push(if authority {
                condition("Established", true, "InitialNamesAccepted", message, &time)
            } else {
                let message = "The conversion webhook CABundle is invalid";
                condition("Established", false, "InvalidCABundle", message, &time)
            });
            let known = items(current, "/status/conditions");
            if known.len() < 2 {
                object(&mut new, "status").insert("conditions".into(), conditions.into());
            }
            let names = current["spec"]["names"].clone();
            object(&mut new, "status").insert("acceptedNames".into(), names);
            Ok(state.own(&target, &options, current, new))
        })?;
        Ok(())
    }

    /// The kind of definitions.
    pub(super) fn definitions(&self) -> Arc<Kind> {
        let table = ("apiextensions.k8s.io".to_owned(), "customresourcedefinitions".to_owned());
        self.kinds.get(&table).cloned().expect("definitions are built in")
    }

    /// Marks a definition for deletion, deletes its objects, and removes it with the last of them.
    pub(super) fn delete_definition(&mut self, record: &Value) -> Result<Value, Refusal> {
        let name = text(record, "/metadata/name").to_owned();
        let time = self.timestamp();
        let mut crd = record.clone();
        if crd.pointer("/metadata/deletionTimestamp").is_none() {
            crd["metadata"]["deletionTimestamp"] = time.clone().into();
            let mut finalizers = items(&crd, "/metadata/finalizers").to_vec();
            finalizers.push(CLEANUP.into());
            crd["metadata"]["finalizers"] = finalizers.into();
            let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
            set_condition(&mut crd, condition("Terminating", true, "InstanceDeletionPending", message, &time));
            self.store.put(&self.definitions().table(), &name, crd.clone());
            self.install(&crd)?;
        }
        let answer = self.stored_definition(&name);
        let kind = Arc::new(Kind::defined(&crd));
        let (reason, message) = match self.delete_all(&kind) {
            Ok(()) => ("InstanceDeletionInProgress", "CustomResource deletion is in progress".to_owned()),
            Err(why) => ("InstanceDeletionFailed", format!("could not list instances: {why}")),
        };
        self.finish_definition(&kind.table());
        if self.kinds.contains_key(&kind.table()) {
            set_condition(&mut crd, condition("Terminating", true, reason, &message, &time));
            self.store.put(&self.definitions().table(), &name, crd);
        }
        Ok(answer)
    }

    fn stored_definition(&self, name: &str) -> Value {
        let kind = self.definitions();
        let record = self.store.get(&kind.table(), name);
        record.and_then(|record| self.decode(&kind, &record, "v1").ok()).unwrap_or_default()
    }

    /// Removes a terminating definition once nothing of its kind is left.
    pub(super) fn finish_definition(&mut self, table: &Table) {
        let Some(definition) = self.kinds.get(table).and_then(|kind| kind.definition.clone()) else { return };
        if definition.terminating && self.store.records(table).next().is_none() {
            let definitions = self.definitions().table();
            self.store.remove(&definitions, &definition.name);
            self.kinds.remove(table);
            self.caches.stop(table);
        }
    }
}
