//! `[upgrade]`: the version that goes, the one that stays, the kinds concerned.

use std::{ops::Range, path::Path};

use super::{
    super::{
        Problem, Reference, Upgrade, document,
        spanned::{Field, Table},
    },
    keys::{Keys, Placed, exists, placed},
    names, values,
};
use crate::files;

pub(super) fn resolve(
    table: Placed<Table<document::Upgrade>>,
    folder: &Path,
    problems: &mut Vec<Problem>,
) -> Option<Upgrade> {
    let (body, mut keys) = Keys::open("`[upgrade]`", table, problems);
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
    let from = keys.parsed(from, names::version);
    let to = keys.parsed(to, names::version);
    let crds = keys.unique(crds.unwrap_or_default(), names::crd);
    let references = references.map(|list| list.value).unwrap_or_default();
    let references = references.into_iter().filter_map(|field| reference(field, &crds, keys.problems)).collect();
    let mut upgrade = Upgrade {
        from: from?,
        to: to?,
        crds,
        deployer: deployer.map(|text| text.value),
        target_crds: None,
        references,
    };
    if let Some(written) = target {
        let full = folder.join(&written.value);
        if exists(&written, &full, keys.problems) {
            check_target(&full, &written.span, &upgrade, keys.problems);
        }
        upgrade.target_crds = Some(full);
    }
    Some(upgrade)
}

fn reference(
    field: Field<Table<document::Reference>>,
    crds: &[String],
    problems: &mut Vec<Problem>,
) -> Option<Reference> {
    let table = placed("references", field, problems)?;
    let (body, mut keys) = Keys::open("`[[upgrade.references]]`", table, problems);
    let from = keys.text("from", body.from);
    let pointer = keys.text("field", body.field);
    let to = keys.text("to", body.to);
    let from = keys.parsed(from, |text| names::one_of_crds(text, crds));
    let pointer = keys.parsed(pointer, values::pointer);
    let to = keys.parsed(to, |text| names::one_of_crds(text, crds));
    Some(Reference { from: from?, field: pointer?, to: to? })
}

/// The target CRDs must be all of them, and must drop what the runbook is there to drop.
fn check_target(full: &Path, span: &Range<usize>, upgrade: &Upgrade, problems: &mut Vec<Problem>) {
    let objects = match files::read_objects(full) {
        Ok(objects) => objects,
        Err(words) => {
            return problems.push(Problem::new(span.clone(), format!("cannot read the target CRDs: {words}")));
        }
    };
    for crd in &upgrade.crds {
        let Some(target) = objects.iter().find(|object| names::is_crd(object) && object.name() == crd) else {
            let problem = Problem::new(span.clone(), format!("`target-crds` hold no CRD `{crd}`"));
            problems.push(problem.label("a deployer that prunes would delete it, and every object with it"));
            continue;
        };
        let versions = target.items("/spec/versions").iter();
        let names: Vec<&str> = versions.filter_map(|version| version.get("name")?.as_str()).collect();
        if names.contains(&upgrade.from.as_str()) {
            let problem = Problem::new(span.clone(), format!("the target of `{crd}` still has `{}`", upgrade.from));
            problems.push(problem.label("nothing would be dropped"));
        } else if !names.contains(&upgrade.to.as_str()) {
            let problem = Problem::new(span.clone(), format!("the target of `{crd}` does not have `{}`", upgrade.to));
            problems.push(problem.label("the version that stays"));
        }
    }
}
