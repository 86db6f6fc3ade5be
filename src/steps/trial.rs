//! Two dry runs in the deployer's name: will the target CRD be accepted, and do the current
//! manifests change nothing? The refusal is judged by field, not by text (design, fact 10).

use serde_json::{Value, json};

use crate::{
    cluster::{Cause, ClusterError, Reader},
    crd::{Crd, crd_resource},
    fields::{applied_by, extract},
    object::Object,
    runbook::Runbook,
};

/// What the server says of a CRD's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// It would be accepted, and the conversion would be gone.
    Accepted,
    /// Only `status.storedVersions` stands in the way: the prune takes care of that.
    Unpruned,
    /// Refused over `spec.conversion`, in the server's words: somebody else owns part of it.
    Conversion(String),
    /// Accepted, but the conversion webhook would stay.
    ConversionStays,
    /// Refused over something that no step takes out of the way.
    Refused(String),
    /// The deployer never server-side-applied the CRD: nobody can tell what its apply will hold.
    Underivable(String),
    /// Could not be asked.
    NotChecked(String),
    /// The CRD declares `from` no more.
    Applied,
}

/// What the server says of the current manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// A re-sync changes nothing.
    Unchanged,
    /// A re-sync would change these fields.
    Changes(Vec<String>),
    /// Could not be asked.
    NotChecked(String),
}

/// Dry-runs a CRD's target as the deployer.
pub(super) async fn target(reader: &Reader, runbook: &Runbook, object: &Object) -> Target {
    let (from, to) = (&runbook.upgrade.from, &runbook.upgrade.to);
    let Some(deployer) = &runbook.upgrade.deployer else {
        return Target::Underivable("the runbook names no `deployer`".into());
    };
    match reader.dry_run_apply(&crd_resource(), object, deployer, true).await {
        Ok(after) => {
            let after = Crd::of(after);
            if after.declares(from) {
                Target::Refused(format!("the target still declares {from}"))
            } else if after.storage_version() != Some(to) {
                Target::Refused(format!("the target does not store {to}"))
            } else if after.converts_by_webhook {
                Target::ConversionStays
            } else {
                Target::Accepted
            }
        }
        Err(error) => judge(&error),
    }
}

/// Reads a refusal by the fields it is about.
fn judge(error: &ClusterError) -> Target {
    let causes = error.status().map_or(&[][..], |status| &status.causes);
    if error.code() != 422 || causes.is_empty() {
        // A server that is busy, restarts or was overtaken says nothing about the target.
        let passing = error.is_conflict() || (error.may_heal() && !error.is_conversion());
        return if error.is_forbidden() || error.code() == 0 || passing {
            Target::NotChecked(error.to_string())
        } else {
            Target::Refused(error.words())
        };
    }
    let stored = |cause: &&Cause| cause.field.starts_with("status.storedVersions");
    let conversion = |cause: &&Cause| cause.field.starts_with("spec.conversion");
    let say = |causes: Vec<&Cause>| {
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect::<Vec<_>>().join(", ")
    };
    let other: Vec<&Cause> = causes.iter().filter(|cause| !stored(cause) && !conversion(cause)).collect();
    if !other.is_empty() {
        return Target::Refused(say(other));
    }
    let held: Vec<&Cause> = causes.iter().filter(conversion).collect();
    if held.is_empty() { Target::Unpruned } else { Target::Conversion(say(held)) }
}

/// Dry-runs what the deployer applied last: it must change nothing.
pub async fn current(reader: &Reader, runbook: &Runbook, crd: &Crd) -> Current {
    let Some(deployer) = &runbook.upgrade.deployer else {
        return Current::NotChecked("the runbook names no `deployer`".into());
    };
    let Some(object) = derive(crd, deployer, |_| true) else {
        return Current::NotChecked(format!("`{deployer}` has never server-side-applied this CRD"));
    };
    match reader.dry_run_apply(&crd_resource(), &object, deployer, true).await {
        Ok(after) => {
            let mut changed = Vec::new();
            differences(&crd.object.0["spec"], &after.0["spec"], "spec", &mut changed);
            if changed.is_empty() { Current::Unchanged } else { Current::Changes(changed) }
        }
        Err(error) => Current::NotChecked(error.to_string()),
    }
}

/// What the deployer will apply, as far as its last apply tells: what it owns of the live CRD, less
/// `from` and the conversion.
///
/// # Errors
/// It never server-side-applied the CRD.
pub(super) fn derive_target(runbook: &Runbook, crd: &Crd) -> Result<Object, Target> {
    let Some(deployer) = &runbook.upgrade.deployer else {
        return Err(Target::Underivable("the runbook names no `deployer`".into()));
    };
    let Some(mut object) = derive(crd, deployer, |version| version != runbook.upgrade.from) else {
        return Err(Target::Underivable(format!("`{deployer}` has never server-side-applied it")));
    };
    if let Some(spec) = object.0.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("conversion");
    }
    Ok(object)
}

/// What the deployer's Apply entry owns of the live CRD, `spec.versions` whole and filtered.
fn derive(crd: &Crd, deployer: &str, keep: impl Fn(&str) -> bool) -> Option<Object> {
    let mut object = extract(applied_by(&crd.object, deployer)?, &crd.object.0);
    object["apiVersion"] = "apiextensions.k8s.io/v1".into();
    object["kind"] = "CustomResourceDefinition".into();
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = crd.name().into();
    let versions = crd.object.items("/spec/versions").iter();
    let kept = versions.filter(|version| version.get("name").and_then(Value::as_str).is_some_and(&keep));
    object["spec"]["versions"] = kept.cloned().collect::<Vec<_>>().into();
    Some(Object(object))
}

/// Paths at which two values differ.
pub(super) fn differences(before: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
                let (before, after) = (before.get(key), after.get(key));
                let null = &Value::Null;
                differences(before.unwrap_or(null), after.unwrap_or(null), &format!("{at}.{key}"), found);
            }
        }
        (before, after) if before != after => found.push(at.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Fault, Status};

    fn said(code: u16, message: &str, field: Option<&str>) -> ClusterError {
        let causes = field.map(|field| Cause { field: field.into(), message: "said".into() }).into_iter().collect();
        let status = Status { code, message: message.into(), causes, ..Status::default() };
        ClusterError { attempt: "dry run".into(), fault: Fault::Status(Box::new(status)) }
    }

    #[test]
    fn only_an_answer_about_the_target_is_a_verdict() {
        let of = |target: &Target| match target {
            Target::Unpruned => "unpruned",
            Target::Conversion(_) => "conversion",
            Target::Refused(_) => "refused",
            Target::NotChecked(_) => "not checked",
            _ => "else",
        };
        let table = [
            (said(422, "", Some("status.storedVersions[1]")), "unpruned"),
            (said(422, "", Some("spec.conversion.strategy")), "conversion"),
            (said(422, "", Some("spec.versions[0]")), "refused"),
            (said(400, "bad", None), "refused"),
            (said(403, "forbidden", None), "not checked"),
            (said(409, "changed meanwhile", None), "not checked"),
            (said(429, "too many requests", None), "not checked"),
            (said(500, "etcdserver: request timed out", None), "not checked"),
            (said(500, "conversion webhook for demo.test failed", None), "refused"),
            (said(503, "shutting down", None), "not checked"),
            (said(504, "timeout", None), "not checked"),
            (ClusterError { attempt: String::new(), fault: Fault::Transport("reset".into()) }, "not checked"),
        ];
        for (error, wanted) in table {
            assert_eq!(of(&judge(&error)), wanted, "{error}");
        }
    }
}
