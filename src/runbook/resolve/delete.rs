//! `[step.delete]`: named objects, or those that match a condition, and what it never takes.

use super::{
    super::{
        Delete, DeleteTarget, Problem, Task, document,
        spanned::{Field, Table},
    },
    Scene,
    keys::{Keys, Placed},
    names,
    tasks::{objects, open},
    values,
};

pub(super) fn delete(
    field: Field<Table<document::Delete>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let table = field.span.clone();
    let (body, mut keys) = open("`[step.delete]`", field, problems)?;
    let namespace = keys.optional_text("namespace", body.namespace);
    let in_namespace = namespace.is_some();
    let namespace = keys.parsed(namespace, names::namespace);
    let target = match (body.objects, body.resource) {
        (Some(list), None) => {
            let alone = [
                ("condition", body.condition.map(|field| field.span)),
                ("at-most", body.at_most.map(|field| field.span)),
            ];
            for (key, span) in alone {
                if let Some(span) = span {
                    keys.report(Problem::new(span, format!("`{key}` goes with `resource`, not with `objects`")));
                }
            }
            let written = keys.texts("objects", Some(list))?;
            let (_, written) = written.into_iter().partition(|object| refuse_kind(&mut keys, object));
            Some(DeleteTarget::Objects(objects(&mut keys, written, in_namespace)))
        }
        (None, Some(resource)) => matching(&mut keys, resource, body.condition, body.at_most),
        (Some(list), Some(resource)) => {
            let problem = Problem::new(resource.span, "`[step.delete]` has both `objects` and `resource`");
            keys.report(problem.also(list.span, "named objects").hint("make it two steps"));
            None
        }
        (None, None) => {
            let problem = Problem::new(table, "`[step.delete]` does not say what to delete");
            keys.report(problem.hint("give `objects`, or `resource` with `condition` and `at-most`"));
            None
        }
    };
    Some(Task::Delete(Delete { target: target?, namespace }))
}

fn matching(
    keys: &mut Keys<'_>,
    resource: Field<String>,
    condition: Option<Field<Table<document::Condition>>>,
    at_most: Option<Field<usize>>,
) -> Option<DeleteTarget> {
    let resource = keys.text("resource", Some(resource));
    if let Some(resource) = &resource {
        let plural = resource.value.split('.').next().unwrap_or_default();
        refuse(keys, resource, plural, &["customresourcedefinitions", "crds", "namespaces"]);
    }
    let resource = keys.parsed(resource, names::resource);
    let condition = keys.required("condition", condition);
    let at_most = keys.required("at-most", at_most);
    if let Some(at_most) = at_most.as_ref().filter(|at_most| at_most.value == 0) {
        keys.report(Problem::new(at_most.span.clone(), "`at-most = 0` deletes nothing"));
    }
    let condition = condition?;
    let (body, mut keys) = Keys::open("`condition`", condition, keys.problems);
    let condition_type = keys.line("type", body.kind);
    let status = keys.optional_text("status", body.status);
    let status = keys.parsed(status, values::condition_status);
    let reason = keys.optional_line("reason", body.reason);
    Some(DeleteTarget::Matching {
        resource: resource?,
        condition_type: condition_type?.value,
        status,
        reason: reason.map(|reason| reason.value),
        at_most: at_most?.value,
    })
}

fn refuse_kind(keys: &mut Keys<'_>, object: &Placed<String>) -> bool {
    let kind = object.value.split(['/', '.']).next().unwrap_or_default();
    refuse(
        keys,
        object,
        kind,
        &["CustomResourceDefinition", "CustomResourceDefinitions", "crd", "Namespace", "Namespaces", "ns"],
    )
}

/// Whether it is one of those whose deletion deletes whatever lives in it; that is reported.
fn refuse(keys: &mut Keys<'_>, written: &Placed<String>, name: &str, never: &[&str]) -> bool {
    let Some(found) = never.iter().find(|never| never.eq_ignore_ascii_case(name)) else { return false };
    let (what, lost) = if found.to_lowercase().starts_with('n') {
        ("a Namespace", "everything in it")
    } else {
        ("a CustomResourceDefinition", "every object of its kind")
    };
    let problem = Problem::new(written.span.clone(), format!("`delete` never takes {what}"));
    keys.report(problem.label(format!("would delete {lost}")));
    true
}
