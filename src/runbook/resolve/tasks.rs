//! One function for each kind of step: its table to its task.

use std::time::Duration;

use super::{
    super::{
        Backup, Client, Confirm, Delete, DeleteTarget, Gone, ManagedFields, Manifests, Merge, Migrate, NamedObject,
        Owners, Problem, Release, Strip, Task, Writers, document,
        spanned::{Field, Table},
    },
    Scene,
    keys::{Keys, Placed, sift},
    values,
};

const GATE_TIMEOUT: Duration = Duration::from_secs(600);
const MERGE_TIMEOUT: Duration = Duration::from_secs(1800);
const SETTLE: Duration = Duration::from_secs(60);

/// The table's body and its keys.
fn open<'a, T>(name: &'a str, field: Field<Table<T>>, problems: &'a mut Vec<Problem>) -> Option<(T, Keys<'a>)> {
    let key = name.trim_matches(['`', '[', ']']).rsplit('.').next().unwrap_or(name);
    let table = Keys::new(name, field.span.clone(), problems).optional(key, Some(field))?;
    let body = sift(table.value, name, problems);
    Some((body, Keys::new(name, table.span, problems)))
}

pub(super) fn client(
    field: Field<Table<document::Client>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.client]`", field, problems)?;
    let workload = keys.text("workload", body.workload);
    let workload = keys.parsed(workload, values::workload);
    let namespace = keys.text("namespace", body.namespace);
    let namespace = keys.parsed(namespace, values::namespace);
    let container = keys.optional_line("container", body.container);
    let image = keys.text("image", body.image);
    let image = keys.parsed(image, values::image);
    let digests = keys.optional_texts("digests", body.digests);
    let digests = keys.unique(digests, values::digest);
    let env = keys.optional("env", body.env);
    let mut wanted = Vec::new();
    for (name, field) in env.map(|env| env.value).unwrap_or_default() {
        if let Some(value) = keys.optional(&format!("env.{name}"), Some(field)) {
            wanted.push((name, value.value));
        }
    }
    let pods = keys.optional("pods", body.pods);
    let timeout = timeout(&mut keys, body.timeout, GATE_TIMEOUT);
    let (kind, name) = workload?;
    Some(Task::Client(Client {
        kind,
        name,
        namespace: namespace?,
        container: container.map(|container| container.value),
        image: image?,
        digests,
        env: wanted,
        pods: pods.is_some_and(|pods| pods.value),
        timeout,
    }))
}

pub(super) fn writers(
    field: Field<Table<document::Writers>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.writers]`", field, problems)?;
    let quiet_for = keys.text("quiet-for", body.quiet_for);
    let quiet_for = keys.parsed(quiet_for, values::some_duration);
    Some(Task::Writers(Writers { quiet_for: quiet_for? }))
}

pub(super) fn backup(
    field: Field<Table<document::Backup>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.backup]`", field, problems)?;
    let to = keys.line("to", body.to);
    let to = keys.parsed(to, values::backup_folder);
    Some(Task::Backup(Backup { to: to? }))
}

pub(super) fn migrate(
    field: Field<Table<document::Migrate>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.migrate]`", field, problems)?;
    let stamp = keys.optional_text("stamp", body.stamp);
    let stamp = keys.parsed(stamp, values::annotation);
    let managed_fields = keys.optional_text("managed-fields", body.managed_fields);
    let managed_fields = keys.parsed(managed_fields, values::managed_fields);
    let settle = keys.optional_text("settle", body.settle);
    let settle = keys.parsed(settle, values::duration);
    Some(Task::Migrate(Migrate {
        stamp,
        managed_fields: managed_fields.unwrap_or(ManagedFields::Relabel),
        settle: settle.unwrap_or(SETTLE),
    }))
}

pub(super) fn owners(
    field: Field<Table<document::Owners>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.owners]`", field, problems)?;
    // An empty list would read as "none" and mean "every": it is refused.
    let kinds = body.kinds.and_then(|kinds| keys.texts("kinds", Some(kinds)));
    let kinds = keys.unique(kinds.unwrap_or_default(), values::kind_name);
    Some(Task::Owners(Owners { kinds }))
}

pub(super) fn release(
    field: Field<Table<document::Release>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    open("`[step.release]`", field, problems)?;
    Some(Task::Release(Release {}))
}

pub(super) fn merge(field: Field<Table<document::Merge>>, _: &Scene<'_>, problems: &mut Vec<Problem>) -> Option<Task> {
    let (body, mut keys) = open("`[step.merge]`", field, problems)?;
    let pull_request = keys.optional_line("pull-request", body.pull_request);
    let pull_request = keys.parsed(pull_request, values::address);
    let application = keys.optional_text("application", body.application);
    let application = keys.parsed(application, values::application);
    let revision = keys.optional_line("revision", body.revision);
    let timeout = timeout(&mut keys, body.timeout, MERGE_TIMEOUT);
    if let (Some(revision), None) = (&revision, &application) {
        let problem = Problem::new(revision.span.clone(), "`revision` without an `application` is watched by nobody");
        keys.report(problem.hint("name the Argo CD Application, or leave `revision` out"));
    }
    Some(Task::Merge(Merge { pull_request, application, revision: revision.map(|revision| revision.value), timeout }))
}

pub(super) fn gone(field: Field<Table<document::Gone>>, _: &Scene<'_>, problems: &mut Vec<Problem>) -> Option<Task> {
    let (body, mut keys) = open("`[step.gone]`", field, problems)?;
    let written = keys.texts("objects", body.objects).unwrap_or_default();
    let namespace = keys.optional_text("namespace", body.namespace);
    let objects = objects(&mut keys, written, namespace.is_some());
    let namespace = keys.parsed(namespace, values::namespace);
    let timeout = timeout(&mut keys, body.timeout, GATE_TIMEOUT);
    Some(Task::Gone(Gone { objects, namespace, timeout }))
}

pub(super) fn delete(
    field: Field<Table<document::Delete>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let table = field.span.clone();
    let (body, mut keys) = open("`[step.delete]`", field, problems)?;
    let namespace = keys.optional_text("namespace", body.namespace);
    let in_namespace = namespace.is_some();
    let namespace = keys.parsed(namespace, values::namespace);
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
            for object in &written {
                refuse_kind(&mut keys, object);
            }
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
    let resource = keys.parsed(resource, values::resource);
    let condition = keys.required("condition", condition);
    let at_most = keys.required("at-most", at_most);
    if let Some(at_most) = at_most.as_ref().filter(|at_most| at_most.value == 0) {
        keys.report(Problem::new(at_most.span.clone(), "`at-most = 0` deletes nothing"));
    }
    let condition = condition?;
    let body = sift(condition.value, "`condition`", keys.problems);
    let mut keys = Keys::new("`condition`", condition.span, keys.problems);
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

pub(super) fn confirm(
    field: Field<Table<document::Confirm>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.confirm]`", field, problems)?;
    let question = keys.line("question", body.question);
    Some(Task::Confirm(Confirm { question: question?.value }))
}

pub(super) fn strip(field: Field<Table<document::Strip>>, _: &Scene<'_>, problems: &mut Vec<Problem>) -> Option<Task> {
    let (body, mut keys) = open("`[step.strip]`", field, problems)?;
    let annotations = keys.texts("annotations", body.annotations)?;
    let annotations = keys.unique(annotations, values::annotations);
    Some(Task::Strip(Strip { annotations }))
}

pub(super) fn manifests(
    field: Field<Table<document::Manifests>>,
    scene: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.manifests]`", field, problems)?;
    let written = keys.texts("files", body.files)?;
    let mut files = Vec::new();
    for file in &written {
        let full = scene.folder.join(&file.value);
        keys.exists(file, &full);
        files.push(full);
    }
    let force = keys.optional("force", body.force);
    Some(Task::Manifests(Manifests { files, force: force.is_some_and(|force| force.value), holds_upgraded_crd: true }))
}

fn timeout(keys: &mut Keys<'_>, field: Option<Field<String>>, default: Duration) -> Duration {
    let text = keys.optional_text("timeout", field);
    keys.parsed(text, values::some_duration).unwrap_or(default)
}

/// Objects that must live where the step says.
fn objects(keys: &mut Keys<'_>, written: Vec<Placed<String>>, in_namespace: bool) -> Vec<NamedObject> {
    keys.unique(written, |text| {
        let object = values::object(text)?;
        if in_namespace || !values::is_namespaced(&object) {
            return Ok(object);
        }
        Err(Problem::new(0..0, format!("a {} lives in a namespace", object.kind)).hint("add `namespace` to this table"))
    })
}

fn refuse_kind(keys: &mut Keys<'_>, object: &Placed<String>) {
    let kind = object.value.split(['/', '.']).next().unwrap_or_default();
    refuse(
        keys,
        object,
        kind,
        &["CustomResourceDefinition", "CustomResourceDefinitions", "crd", "Namespace", "Namespaces", "ns"],
    );
}

/// Deleting one of these deletes whatever lives in it.
fn refuse(keys: &mut Keys<'_>, written: &Placed<String>, name: &str, never: &[&str]) {
    if let Some(found) = never.iter().find(|never| never.eq_ignore_ascii_case(name)) {
        let (what, lost) = if found.to_lowercase().starts_with('n') {
            ("a Namespace", "everything in it")
        } else {
            ("a CustomResourceDefinition", "every object of its kind")
        };
        let problem = Problem::new(written.span.clone(), format!("`delete` never takes {what}"));
        keys.report(problem.label(format!("would delete {lost}")));
    }
}
