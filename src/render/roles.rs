//! Roles as YAML, to paste or to pipe into kubectl.

use serde_json::json;

use super::escape::{shell_word, visible};
use crate::{
    runbook::Runbook,
    steps::roles::{Purpose, Roles, Rule},
};

/// A `ClusterRole`, and a Role for each namespace, with how to bind them.
pub fn roles_text(roles: &Roles, purpose: Purpose, runbook: &Runbook) -> String {
    let (name, verb) = match purpose {
        Purpose::Plan => ("sbx-plan", "plan, which writes nothing"),
        Purpose::Apply => ("sbx-apply", "apply, and all that plan looks at"),
    };
    let path = visible(&runbook.path.to_string_lossy()).into_owned();
    let mut lines = vec![format!("# What sbx needs to {verb}, for {path}: {}", visible(&runbook.title))];
    lines.extend(roles.notes.iter().map(|note| format!("# {}", visible(note))));
    lines.extend(roles.rules.keys().map(|namespace| match namespace {
        None => format!("# kubectl create clusterrolebinding {name} --clusterrole {name} --user USER"),
        Some(namespace) => {
            let namespace = shell_word(namespace);
            format!("# kubectl create rolebinding {name} --role {name} --user USER --namespace {namespace}")
        }
    }));
    for (namespace, rules) in &roles.rules {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        lines.extend(["---".into(), "apiVersion: rbac.authorization.k8s.io/v1".into(), format!("kind: {kind}")]);
        lines.extend(["metadata:".into(), format!("  name: {name}")]);
        lines.extend(namespace.iter().map(|namespace| format!("  namespace: {}", json!(namespace))));
        lines.push("rules:".into());
        lines.extend(rules.iter().flat_map(rule));
    }
    lines.join("\n") + "\n"
}

/// A list in JSON is one in YAML too, and escapes what has to be.
fn rule(rule: &Rule) -> Vec<String> {
    let mut lines = Vec::new();
    if rule.paths.is_empty() {
        lines.push(format!("apiGroups: {}", json!([rule.group])));
        lines.push(format!("resources: {}", json!(rule.resources)));
    } else {
        lines.push(format!("nonResourceURLs: {}", json!(rule.paths)));
    }
    if !rule.names.is_empty() {
        lines.push("resourceNames:".into());
        lines.extend(rule.names.iter().map(|name| format!("- {}", json!(name))));
    }
    lines.push(format!("verbs: {}", json!(rule.verbs)));
    let lead = |(index, line): (usize, String)| format!("{} {line}", if index == 0 { "-" } else { " " });
    lines.into_iter().enumerate().map(lead).collect()
}
