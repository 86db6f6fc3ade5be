//! Document to runbook: gives the text its meaning, and finds every problem rather than the first.
//!
//! `values` reads single values, `tasks` one kind of step each, `order` holds the rules about which
//! step must come before which. A value that is wrong is reported once and then counts as given, so
//! that one mistake does not look like five.

mod keys;
mod order;
mod tasks;
mod values;

use std::path::Path;

use self::{
    keys::{Keys, Placed, sift},
    order::Draft,
};
use super::{
    Cluster, Problem, Reference, Runbook, Step, StepId, Task, Upgrade,
    document::{self, Document, KINDS},
    load::Declared,
    spanned::{Field, Table},
};

/// Checks a document and gives it its meaning.
pub(super) fn resolve(
    path: &Path,
    sha256: String,
    document: Table<Document>,
    cycles: impl Fn(&[Declared]) -> Vec<Vec<StepId>>,
) -> Result<Runbook, Vec<Problem>> {
    let mut problems = Vec::new();
    let document = sift(document, "the runbook", &mut problems);
    let mut keys = Keys::new("the runbook", 0..0, &mut problems);
    let title = keys.line("title", document.title);
    let cluster = keys.required("cluster", document.cluster);
    let upgrade = keys.required("upgrade", document.upgrade);
    let steps = keys.list("step", document.step);
    let cluster = cluster.and_then(|table| resolve_cluster(table, &mut problems));
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let upgrade = upgrade.and_then(|table| resolve_upgrade(table, &folder, &mut problems));

    let mut drafts = Vec::new();
    let mut resolved = Vec::new();
    for table in steps.unwrap_or_default() {
        let scene = Scene { folder: &folder };
        let (draft, step) = resolve_step(table, &scene, &mut problems);
        drafts.push(draft);
        resolved.extend(step);
    }
    order::check(&drafts, upgrade.as_ref(), cycles, &mut problems);

    match (title, cluster, upgrade) {
        (Some(title), Some(cluster), Some(upgrade)) if problems.is_empty() => {
            Ok(Runbook { path: path.into(), sha256, title: title.value, cluster, upgrade, steps: resolved })
        }
        _ => Err(problems),
    }
}

/// What a step's values are read against.
struct Scene<'a> {
    folder: &'a Path,
}

fn resolve_cluster(table: Placed<Table<document::Cluster>>, problems: &mut Vec<Problem>) -> Option<Cluster> {
    let body = sift(table.value, "`[cluster]`", problems);
    let mut keys = Keys::new("`[cluster]`", table.span, problems);
    let context = keys.line("context", body.context);
    let uid = keys.optional("uid", body.uid);
    let uid = keys.parsed(uid, values::uid);
    let lock = keys.optional("lock-namespace", body.lock_namespace);
    let lock = keys.parsed(lock, values::namespace);
    Some(Cluster { context: context?.value, uid, lock_namespace: lock.unwrap_or_else(|| "default".into()) })
}

fn resolve_upgrade(
    table: Placed<Table<document::Upgrade>>,
    folder: &Path,
    problems: &mut Vec<Problem>,
) -> Option<Upgrade> {
    let body = sift(table.value, "`[upgrade]`", problems);
    let mut keys = Keys::new("`[upgrade]`", table.span, problems);
    let from = keys.text("from", body.from);
    let to = keys.text("to", body.to);
    let crds = keys.texts("crds", body.crds);
    let deployer = keys.optional_line("deployer", body.deployer);
    let target = keys.optional_line("target-crds", body.target_crds);
    let references = keys.optional("references", body.references);

    let same = from.as_ref().zip(to.as_ref()).filter(|(from, to)| from.value == to.value);
    if let Some((from, to)) = same {
        keys.report(
            Problem::new(to.span.clone(), format!("`from` and `to` are both `{}`", to.value))
                .label("the version that stays")
                .also(from.span.clone(), "the version that goes"),
        );
    }
    let from = keys.parsed(from, values::version);
    let to = keys.parsed(to, values::version);
    let crds = keys.unique(crds.unwrap_or_default(), values::crd);
    let target_crds = target.map(|target| {
        let full = folder.join(&target.value);
        keys.exists(&target, &full);
        full
    });
    let mut resolved = Vec::new();
    for field in references.map(|list| list.value).unwrap_or_default() {
        resolved.extend(resolve_reference(field, &crds, keys.problems));
    }
    Some(Upgrade {
        from: from?,
        to: to?,
        crds,
        deployer: deployer.map(|deployer| deployer.value),
        target_crds,
        references: resolved,
    })
}

fn resolve_reference(
    field: Field<Table<document::Reference>>,
    crds: &[String],
    problems: &mut Vec<Problem>,
) -> Option<Reference> {
    const NAME: &str = "`[[upgrade.references]]`";
    let span = field.span.clone();
    let table = Keys::new(NAME, span.clone(), problems).optional("references", Some(field))?;
    let body = sift(table.value, NAME, problems);
    let mut keys = Keys::new(NAME, span, problems);
    let from = keys.text("from", body.from);
    let pointer = keys.text("field", body.field);
    let to = keys.text("to", body.to);
    let from = keys.parsed(from, |text| values::one_of_crds(text, crds));
    let pointer = keys.parsed(pointer, values::pointer);
    let to = keys.parsed(to, |text| values::one_of_crds(text, crds));
    Some(Reference { from: from?, field: pointer?, to: to? })
}

/// A step, if all of it is right, and in any case what the order needs to know of it.
fn resolve_step(
    table: Placed<Table<document::Step>>,
    scene: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> (Draft, Option<Step>) {
    let mistyped_kind = table.value.unknown.iter().any(|(_, key)| !["id", "needs"].contains(&key.as_str()));
    let header = table.span.clone();
    let body = sift(table.value, "`[[step]]`", problems);
    let mut keys = Keys::new("`[[step]]`", header.clone(), problems);
    let id = keys.text("id", body.id);
    if let Some(id) = &id {
        // A wrong id is still the step's id: other steps' needs are judged by it.
        keys.parsed(Some(id.clone()), values::id);
    }
    let needs: Vec<Placed<String>> = keys.optional_texts("needs", body.needs);

    let mut found: Vec<(&'static str, std::ops::Range<usize>)> = Vec::new();
    let mut task: Option<Task> = None;
    macro_rules! kinds {
        ($($kind:ident)*) => {$(
            if let Some(field) = body.$kind {
                found.push((stringify!($kind), field.span.clone()));
                task = tasks::$kind(field, scene, problems);
            }
        )*};
    }
    kinds!(client writers backup migrate owners release merge gone delete confirm strip manifests);

    let named = id.as_ref().map_or_else(|| "this step".to_owned(), |id| format!("step `{}`", id.value));
    match found.as_slice() {
        [] if mistyped_kind => {}
        [] => problems.push(
            Problem::new(header.clone(), format!("{named} does not say what it does"))
                .hint(format!("add one table `[step.KIND]`, where KIND is {}", crate::suggest::either(KINDS))),
        ),
        [_] => {}
        [first, others @ ..] => {
            let all = crate::suggest::both(found.iter().map(|(kind, _)| *kind));
            let mut problem = Problem::new(others[0].1.clone(), format!("{named} is {all} at once"))
                .label("a step does one thing")
                .also(first.1.clone(), "first kind")
                .hint("make it two steps, and let one need the other");
            for (_, span) in &others[1..] {
                problem = problem.also(span.clone(), "another kind");
            }
            problems.push(problem);
        }
    }

    let draft = Draft {
        id: id.clone(),
        header,
        needs: needs.clone(),
        kinds: found,
        holds_upgraded_crd: matches!(&task, Some(Task::Manifests(task)) if task.holds_upgraded_crd),
    };
    let step = id.zip(task).map(|(id, task)| Step {
        id: StepId(id.value),
        needs: needs.into_iter().map(|need| StepId(need.value)).collect(),
        task,
    });
    (draft, step)
}
