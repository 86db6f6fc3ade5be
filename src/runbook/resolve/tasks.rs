//! One function for each kind of step: its table to its task.

use std::time::Duration;

use super::{
    super::{
        Backup, Client, Confirm, Gone, ManagedFields, Manifests, Merge, Migrate, NamedObject, Owners, Problem, Release,
        Strip, Task, Writers, document,
        spanned::{Field, Table},
    },
    Scene,
    keys::{Keys, Placed, exists, placed},
    names, values,
};
use crate::files;

const GATE_TIMEOUT: Duration = Duration::from_secs(600);
const MERGE_TIMEOUT: Duration = Duration::from_secs(1800);
const SETTLE: Duration = Duration::from_secs(60);

/// The table's body and its keys.
pub(super) fn open<'a, T>(
    name: &'a str,
    field: Field<Table<T>>,
    problems: &'a mut Vec<Problem>,
) -> Option<(T, Keys<'a>)> {
    let kind = name.trim_matches(['`', '[', ']']).trim_start_matches("step.");
    let table = placed(kind, field, problems)?;
    Some(Keys::open(name, table, problems))
}

pub(super) fn client(
    field: Field<Table<document::Client>>,
    _: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.client]`", field, problems)?;
    let workload = keys.text("workload", body.workload);
    let workload = keys.parsed(workload, names::workload);
    let namespace = keys.text("namespace", body.namespace);
    let namespace = keys.parsed(namespace, names::namespace);
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
    let stamp = keys.parsed(stamp, names::annotation);
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
    let kinds = keys.unique(kinds.unwrap_or_default(), names::kind_name);
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
    let application = keys.parsed(application, names::application);
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
    let namespace = keys.parsed(namespace, names::namespace);
    let timeout = timeout(&mut keys, body.timeout, GATE_TIMEOUT);
    Some(Task::Gone(Gone { objects, namespace, timeout }))
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
    let annotations = keys.unique(annotations, names::annotations);
    Some(Task::Strip(Strip { annotations }))
}

pub(super) fn manifests(
    field: Field<Table<document::Manifests>>,
    scene: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Task> {
    let (body, mut keys) = open("`[step.manifests]`", field, problems)?;
    let written = keys.texts("files", body.files)?;
    let mut paths = Vec::new();
    let mut holds_upgraded_crd = false;
    for file in &written {
        let full = scene.folder.join(&file.value);
        if exists(file, &full, keys.problems) {
            match files::read_objects(&full) {
                Ok(objects) => holds_upgraded_crd |= objects.iter().any(|object| scene.is_upgraded_crd(object)),
                Err(words) => {
                    keys.report(Problem::new(file.span.clone(), format!("cannot read the manifests: {words}")));
                }
            }
        }
        paths.push(full);
    }
    let force = keys.optional("force", body.force);
    Some(Task::Manifests(Manifests { files: paths, force: force.is_some_and(|force| force.value), holds_upgraded_crd }))
}

fn timeout(keys: &mut Keys<'_>, field: Option<Field<String>>, default: Duration) -> Duration {
    let text = keys.optional_text("timeout", field);
    keys.parsed(text, values::some_duration).unwrap_or(default)
}

/// Objects that must live where the step says.
pub(super) fn objects(keys: &mut Keys<'_>, written: Vec<Placed<String>>, in_namespace: bool) -> Vec<NamedObject> {
    keys.unique(written, |text| {
        let object = names::object(text)?;
        if in_namespace || !names::is_namespaced(&object) {
            return Ok(object);
        }
        Err(Problem::new(0..0, format!("a {} lives in a namespace", object.kind)).hint("add `namespace` to this table"))
    })
}
