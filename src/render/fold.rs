//! Like things under one heading: forty objects that change alike are one change with forty names.

use std::collections::BTreeMap;

use super::escape::visible;
use crate::{
    object::ObjectRef,
    plan::{Change, FieldChange, Finding, Grade, Operation},
};

/// Objects of one kind to which the same happens.
pub(super) struct Changes<'a> {
    /// What happens.
    pub(super) operation: Operation,
    /// The fields that change, alike in all of them.
    pub(super) fields: &'a [FieldChange],
    /// Which objects.
    pub(super) objects: Vec<&'a ObjectRef>,
}

/// Changes in their order, like ones joined where the first of them stands.
pub(super) fn changes(changes: &[Change]) -> Vec<Changes<'_>> {
    let mut folded: Vec<Changes<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    for Change { operation, object, fields } in changes {
        let values: Vec<_> = fields.iter().map(|field| (&field.path, &field.before, &field.after)).collect();
        let place = *places.entry((operation, &object.group, &object.kind, values)).or_insert(folded.len());
        match folded.get_mut(place) {
            Some(group) => group.objects.push(object),
            None => folded.push(Changes { operation: *operation, fields, objects: vec![object] }),
        }
    }
    folded
}

/// The same finding about several objects.
pub(super) struct Findings<'a> {
    /// The first of them.
    pub(super) finding: &'a Finding,
    /// Which objects; empty when it is about none in particular.
    pub(super) objects: Vec<&'a ObjectRef>,
}

/// Findings by weight, then in their order, like ones joined.
pub(super) fn findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Findings<'a>> {
    let mut folded: Vec<Findings<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    for finding in findings {
        let Finding { grade, object, text, hint, resolved_by } = finding;
        let place = *places.entry((grade, object.is_some(), text, hint, resolved_by)).or_insert(folded.len());
        match folded.get_mut(place) {
            Some(group) => group.objects.extend(object),
            None => folded.push(Findings { finding, objects: object.iter().collect() }),
        }
    }
    // What blocks comes before what an earlier step removes, that before what only warns.
    folded.sort_by_key(|group| (group.finding.grade, group.finding.grade == Grade::Blocker && !group.finding.blocks()));
    folded
}

/// The first `few` names and how many more there are. One more than `few` is named too: "and 1
/// more" is no shorter than a name.
pub(super) fn names(all: &[String], few: usize) -> String {
    if !leaves_out(all.len(), few) {
        return all.join(", ");
    }
    format!("{} and {} more", all[..few].join(", "), all.len() - few)
}

/// `namespace/name`, or the name alone.
pub(super) fn short_name(object: &ObjectRef) -> String {
    match &object.namespace {
        Some(namespace) => format!("{}/{}", visible(namespace), visible(&object.name)),
        None => visible(&object.name).into_owned(),
    }
}

/// `Kind namespace/name`, safe to show.
pub(super) fn full_name(object: &ObjectRef) -> String {
    format!("{} {}", visible(&object.kind), short_name(object))
}

/// Objects of one kind: `Sandbox team-a/s1`, or `3 Sandbox: team-a/s1, team-a/s2, team-a/s3`.
pub(super) fn of_kind(objects: &[&ObjectRef], few: usize) -> String {
    match objects {
        [] => String::new(),
        [one] => full_name(one),
        [first, ..] => {
            let all: Vec<String> = objects.iter().map(|object| short_name(object)).collect();
            format!("{} {}: {}", objects.len(), visible(&first.kind), names(&all, few))
        }
    }
}

/// Objects of any kind, the kind said once where it is the same: `Sandbox team-a/s1, team-a/s2`.
pub(super) fn of_any_kind(objects: &[&ObjectRef], few: usize) -> String {
    let Some(first) = objects.first() else { return String::new() };
    if objects.iter().all(|object| object.kind == first.kind) {
        let all: Vec<String> = objects.iter().map(|object| short_name(object)).collect();
        return format!("{} {}", visible(&first.kind), names(&all, few));
    }
    names(&objects.iter().map(|object| full_name(object)).collect::<Vec<_>>(), few)
}

/// Whether [`names`] leaves any out.
pub(super) fn leaves_out(count: usize, few: usize) -> bool {
    count > few.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn and_one_more_is_named_instead() {
        let all: Vec<String> = ["a", "b", "c", "d", "e"].map(Into::into).to_vec();
        assert_eq!(names(&all[..4], 3), "a, b, c, d");
        assert_eq!(names(&all, 3), "a, b, c and 2 more");
        assert!(leaves_out(5, 3) && !leaves_out(4, 3));
    }

    #[test]
    fn findings_go_by_weight_and_a_resolved_blocker_after_an_open_one() {
        let release = crate::runbook::StepId("release".into());
        let all = [
            Finding::note("n"),
            Finding::blocker("later").resolved_by(Some(&release)),
            Finding::warning("w"),
            Finding::blocker("now"),
        ];
        let order: Vec<&str> = findings(&all).iter().map(|group| group.finding.text.as_str()).collect();
        assert_eq!(order, ["now", "later", "w", "n"]);
    }
}
