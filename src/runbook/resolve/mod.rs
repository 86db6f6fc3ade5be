//! Document to runbook: gives the text its meaning, and finds every problem rather than the first.
//!
//! `keys` takes a table apart, `values` and `names` read single values, `tasks` one kind of step
//! each, and `order` holds the rules about which step must come before which. A value that is wrong
//! is reported once and then counts as given, so that one mistake does not look like five.

mod delete;
mod keys;
mod names;
mod order;
mod step;
mod tasks;
mod upgrade;
mod values;

use std::path::Path;

use self::keys::{Keys, Placed};
use super::{
    Cluster, Problem, Runbook, StepId, Upgrade,
    document::{self, Document},
    load::Declared,
    spanned::Table,
};
use crate::object::Object;

/// Checks a document and gives it its meaning.
pub(super) fn resolve(
    path: &Path,
    sha256: String,
    document: Table<Document>,
    cycles: impl Fn(&[Declared]) -> Vec<Vec<StepId>>,
) -> Result<Runbook, Vec<Problem>> {
    let mut problems = Vec::new();
    let whole = Placed { value: document, span: 0..0 };
    let (document, mut keys) = Keys::open("the runbook", whole, &mut problems);
    if document.is_empty() && keys.problems.is_empty() {
        return Err(vec![
            Problem::absent(0..0, "the runbook is empty")
                .hint("a runbook has a `title`, `[cluster]`, `[upgrade]` and one `[[step]]` for each step"),
        ]);
    }
    let title = keys.line("title", document.title);
    let cluster = keys.required("cluster", document.cluster);
    let upgrade = keys.required("upgrade", document.upgrade);
    let steps = keys.list("step", document.step).unwrap_or_default();

    let folder = path.parent().unwrap_or(Path::new(""));
    let cluster = cluster.and_then(|table| resolve_cluster(table, &mut problems));
    let upgrade = upgrade.and_then(|table| upgrade::resolve(table, folder, &mut problems));
    let scene = Scene { folder, upgrade: upgrade.as_ref() };
    let (drafts, steps): (Vec<_>, Vec<_>) =
        steps.into_iter().map(|table| step::resolve(table, &scene, &mut problems)).unzip();
    order::check(&drafts, upgrade.as_ref(), cycles, &mut problems);

    // All or nothing: a step left out without a word would be the worst mistake of all.
    match (title, cluster, upgrade, steps.into_iter().collect()) {
        (Some(title), Some(cluster), Some(upgrade), Some(steps)) if problems.is_empty() => {
            Ok(Runbook { path: path.into(), sha256, title: title.value, cluster, upgrade, steps })
        }
        _ => Err(problems),
    }
}

/// What a step's values are read against.
struct Scene<'a> {
    /// The runbook's folder, which its paths start from.
    folder: &'a Path,
    /// What the steps are about, as far as it is right.
    upgrade: Option<&'a Upgrade>,
}

impl Scene<'_> {
    fn is_upgraded_crd(&self, object: &Object) -> bool {
        let crds = self.upgrade.map(|upgrade| upgrade.crds.as_slice()).unwrap_or_default();
        names::is_crd(object) && crds.iter().any(|crd| crd == object.name())
    }
}

fn resolve_cluster(table: Placed<Table<document::Cluster>>, problems: &mut Vec<Problem>) -> Option<Cluster> {
    let (body, mut keys) = Keys::open("`[cluster]`", table, problems);
    let context = keys.line("context", body.context);
    let uid = keys.optional("uid", body.uid);
    let uid = keys.parsed(uid, values::uid);
    let lock = keys.optional("lock-namespace", body.lock_namespace);
    let lock = keys.parsed(lock, names::namespace);
    Some(Cluster { context: context?.value, uid, lock_namespace: lock.unwrap_or_else(|| "default".into()) })
}
