//! The field changes between `v1alpha1` and `v1beta1` of agent-sandbox, as v0.5.6 converts them.

use serde_json::{Value, json};

/// The pools that stand in for claims which named a template and no pool.
pub const SHADOW_POOL: &str = "shadow-pool-";

/// One object in another version. The error is what the webhook answers.
pub fn convert(object: &Value, api_version: &str) -> Result<Value, String> {
    let from = object["apiVersion"].as_str().ok_or("object has no apiVersion")?;
    let mut converted = object.clone();
    converted["apiVersion"] = api_version.into();
    match (version(from), version(api_version)) {
        (a, b) if a == b => {}
        ("v1alpha1", "v1beta1") => to_beta(object, &mut converted),
        ("v1beta1", "v1alpha1") => to_alpha(object, &mut converted)?,
        (a, b) => return Err(format!("no conversion from {a} to {b}")),
    }
    Ok(converted)
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// A newer field of templates. The old version has no place for it, and a field that its schema does not know makes
/// Kubernetes before 1.37 drop the object's whole managedFields.
const POLICY: &str = "volumeClaimTemplatesPolicy";
/// The annotation it is carried by.
const POLICY_ANNOTATION: &str = "api.agents.x-k8s.io/v1beta1-volume-claim-templates-policy";

/// The annotation that carries the whole old object.
pub fn state_annotation(kind: &str) -> String {
    format!("api.agents.x-k8s.io/v1alpha1-{}-state", kind.to_lowercase())
}

fn to_beta(old: &Value, new: &mut Value) {
    let kind = old["kind"].as_str().unwrap_or_default();
    match kind {
        "SandboxClaim" => {
            let pool = pool_of(old);
            let spec = object(new, "spec");
            spec.remove("sandboxTemplateRef");
            spec.remove("warmpool");
            spec.insert("warmPoolRef".into(), json!({"name": pool}));
        }
        "Sandbox" => {
            let suspended = old["spec"]["replicas"] == 0;
            let spec = object(new, "spec");
            spec.remove("replicas");
            spec.insert("operatingMode".into(), if suspended { "Suspended" } else { "Running" }.into());
            status(new).and_then(|status| status.remove("replicas"));
        }
        "SandboxTemplate" => {
            if let Some(policy) = annotations(new).and_then(|annotations| annotations.remove(POLICY_ANNOTATION)) {
                object(new, "spec").insert(POLICY.into(), policy);
            }
        }
        _ => {}
    }
    let name = state_annotation(kind);
    let mut state = old.clone();
    annotations(&mut state).and_then(|annotations| annotations.remove(&name));
    new["metadata"]["annotations"][name] = state.to_string().into();
}

fn to_alpha(new: &Value, old: &mut Value) -> Result<(), String> {
    let kind = new["kind"].as_str().unwrap_or_default();
    let name = state_annotation(kind);
    let state = old
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
        .and_then(|annotations| annotations.remove(&name));
    let state: Option<Value> = state
        .map(|state| serde_json::from_str(state.as_str().unwrap_or_default()))
        .transpose()
        .map_err(|error| format!("failed to read annotation {name}: {error}"))?;
    match kind {
        "SandboxClaim" => {
            let pool = new["spec"]["warmPoolRef"]["name"].as_str().unwrap_or_default();
            let (template, policy) = match state {
                Some(state) if pool_of(&state) == pool => {
                    (state["spec"]["sandboxTemplateRef"].clone(), state["spec"].get("warmpool").cloned())
                }
                Some(state) => (state["spec"]["sandboxTemplateRef"].clone(), Some(pool.into())),
                None => match pool.strip_prefix(SHADOW_POOL) {
                    Some(template) => (json!({"name": template}), Some("default".into())),
                    None => (json!({"name": pool}), Some(pool.into())),
                },
            };
            let spec = object(old, "spec");
            spec.remove("warmPoolRef");
            spec.remove("volumeClaimTemplates");
            spec.insert("sandboxTemplateRef".into(), template);
            if let Some(policy) = policy {
                spec.insert("warmpool".into(), policy);
            }
        }
        "Sandbox" => {
            let replicas = i64::from(new["spec"]["operatingMode"] != "Suspended");
            let spec = object(old, "spec");
            spec.remove("operatingMode");
            spec.insert("replicas".into(), replicas.into());
            if let Some(status) = status(old) {
                status.insert("replicas".into(), replicas.into());
                status.remove("nodeName");
            }
        }
        "SandboxTemplate" => {
            if let Some(policy) = object(old, "spec").remove(POLICY) {
                old["metadata"]["annotations"][POLICY_ANNOTATION] = policy;
            }
        }
        "SandboxWarmPool" => {
            status(old).and_then(|status| status.remove("observedGeneration"));
        }
        _ => {}
    }
    Ok(())
}

/// The pool an old claim stands for: the one it names, the one its sandbox came from, else a shadow pool that may
/// not exist.
fn pool_of(claim: &Value) -> String {
    let policy = claim["spec"]["warmpool"].as_str().unwrap_or("default");
    let sandbox = claim["status"]["sandbox"]["name"].as_str().unwrap_or_default();
    if !matches!(policy, "" | "none" | "default") {
        policy.into()
    } else if !sandbox.is_empty() && claim["metadata"]["name"] != sandbox {
        sandbox.rsplit_once('-').map_or(sandbox, |(pool, _)| pool).into()
    } else {
        format!("{SHADOW_POOL}{}", claim["spec"]["sandboxTemplateRef"]["name"].as_str().unwrap_or_default())
    }
}

fn annotations(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
}

fn status(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.get_mut("status").and_then(Value::as_object_mut)
}

fn object<'a>(parent: &'a mut Value, field: &str) -> &'a mut serde_json::Map<String, Value> {
    if !parent[field].is_object() {
        parent[field] = json!({});
    }
    parent[field].as_object_mut().expect("just made an object")
}
