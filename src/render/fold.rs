//! Like things under one heading: forty objects that change alike are one change with forty names.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::escape::visible;
use crate::{
    object::ObjectRef,
    plan::{Change, FieldChange, Finding, Grade, Operation},
};

/// More groups of one shape than this are joined, though their values differ.
const ALIKE: usize = 3;

/// Objects of one kind to which the same happens.
pub(super) struct Changes<'a> {
    /// What happens.
    pub(super) operation: Operation,
    /// The fields that change; of values that differ between the objects, only how many there are.
    pub(super) fields: Cow<'a, [FieldChange]>,
    /// Whether values or names in `fields` are left out.
    pub(super) joined: bool,
    /// Which objects.
    pub(super) objects: Vec<&'a ObjectRef>,
}

/// Changes in their order, those that are the same but for the object joined where the first stands.
pub(super) fn same(changes: &[Change]) -> Vec<Changes<'_>> {
    by_values(changes).iter().map(|group| Changes::of(group)).collect()
}

fn by_values(changes: &[Change]) -> Vec<Vec<&Change>> {
    group(changes.iter(), |Change { operation, object, fields }| {
        let values: Vec<_> = fields.iter().map(|field| (&field.path, &field.before, &field.after)).collect();
        (*operation, &object.group, &object.kind, values)
    })
}

/// Like [`same`]; and where many are of one shape, those joined too.
pub(super) fn alike(changes: &[Change]) -> Vec<Changes<'_>> {
    let same = by_values(changes);
    // Pods with an owner each differ by the owner's name alone; three are read, thirty are not.
    let shapes = group(same.iter(), |group| {
        let Change { operation, object, fields } = group[0];
        let shapes: Vec<_> = fields.iter().map(shape).collect();
        (*operation, &object.group, &object.kind, shapes)
    });
    let mut folded = Vec::new();
    for groups in shapes {
        if groups.len() > ALIKE {
            let all: Vec<&Change> = groups.into_iter().flatten().copied().collect();
            folded.push(Changes { fields: Cow::Owned(joined(&all)), joined: true, ..Changes::of(&all) });
        } else {
            folded.extend(groups.into_iter().map(|group| Changes::of(group)));
        }
    }
    folded
}

impl<'a> Changes<'a> {
    fn of(group: &[&'a Change]) -> Self {
        let Change { operation, fields, .. } = group[0];
        let objects = group.iter().map(|change| &change.object).collect();
        Self { operation: *operation, fields: Cow::Borrowed(fields), joined: false, objects }
    }
}

/// Things in groups of one key, each group where the first of it stood; no group is empty.
fn group<T, K: Ord>(things: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut places = BTreeMap::new();
    for thing in things {
        let place = *places.entry(key(&thing)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(thing),
            None => groups.push(vec![thing]),
        }
    }
    groups
}

/// A path without what stands in its brackets, and which of the values are there.
fn shape(field: &FieldChange) -> (&str, &str, bool, bool) {
    let (start, _, end) = brackets(&field.path);
    (start, end, field.before.is_some(), field.after.is_some())
}

/// What stands before, in and after the brackets of a path.
fn brackets(path: &str) -> (&str, &str, &str) {
    match (path.find('['), path.rfind(']')) {
        (Some(open), Some(close)) if open < close => (&path[..=open], &path[open + 1..close], &path[close..]),
        _ => (path, "", ""),
    }
}

/// The fields of changes of one shape, with what differs between them counted or named in brackets.
fn joined(changes: &[&Change]) -> Vec<FieldChange> {
    let field = |(index, first): (usize, &FieldChange)| {
        let all = || changes.iter().filter_map(|change| change.fields.get(index));
        let value = |value: fn(&FieldChange) -> &Option<String>| {
            let values: BTreeSet<_> = all().filter_map(|field| value(field).as_ref()).collect();
            match values.len() {
                0 | 1 => value(first).clone(),
                number => Some(format!("({number} different values)")),
            }
        };
        let (start, _, end) = brackets(&first.path);
        let mut inside: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        inside.extend(all().map(|field| brackets(&field.path).1).filter(|name| seen.insert(*name)).map(Into::into));
        let path = format!("{start}{}{end}", names(&inside, ALIKE));
        FieldChange { path, before: value(|field| &field.before), after: value(|field| &field.after) }
    };
    changes.first().map_or_else(Vec::new, |first| first.fields.iter().enumerate().map(field).collect())
}

/// The same finding about several objects.
pub(super) struct Findings<'a> {
    /// The first of them.
    pub(super) finding: &'a Finding,
    /// Which objects; empty when it is about none in particular.
    pub(super) objects: Vec<&'a ObjectRef>,
    /// What to do about it; of neighbours that say the same only the last has it.
    pub(super) hint: Option<&'a str>,
}

/// Findings by weight, then in their order, like ones joined.
pub(super) fn findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Findings<'a>> {
    let groups = group(findings.into_iter(), |finding| {
        let Finding { grade, object, text, hint, resolved_by } = finding;
        (*grade, object.is_some(), text, hint, resolved_by)
    });
    let alike = |group: Vec<&'a Finding>| Findings {
        finding: group[0],
        objects: group.iter().filter_map(|finding| finding.object.as_ref()).collect(),
        hint: group[0].hint.as_deref(),
    };
    let mut folded: Vec<Findings<'_>> = groups.into_iter().map(alike).collect();
    // What blocks comes before what an earlier step removes, that before what only warns.
    folded.sort_by_key(|group| (group.finding.grade, group.finding.grade == Grade::Blocker && !group.finding.blocks()));
    for index in 1..folded.len() {
        let (last, next) = (&folded[index - 1], &folded[index]);
        if last.hint == next.hint && last.finding.grade == next.finding.grade {
            folded[index - 1].hint = None;
        }
    }
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

    fn pods(count: usize) -> Vec<Change> {
        let pod = |index: usize| {
            let object =
                ObjectRef { group: String::new(), kind: "Pod".into(), namespace: None, name: format!("p{index}") };
            let path = format!("owners[Sandbox/s{index}].apiVersion");
            let fields = vec![FieldChange::new(path, Some(&index.to_string()), Some("b"))];
            Change { operation: Operation::Update, object, fields }
        };
        (0..count).map(pod).collect()
    }

    #[test]
    fn a_few_that_differ_stay_apart_and_many_are_joined() {
        let (three, five) = (pods(3), pods(5));
        assert_eq!(alike(&three).len(), 3);
        assert_eq!(same(&five).len(), 5);
        let folded = alike(&five);
        let [group] = folded.as_slice() else { panic!("{} groups", folded.len()) };
        assert_eq!(of_kind(&group.objects, 1), "5 Pod: p0 and 4 more");
        let path = "owners[Sandbox/s0, Sandbox/s1, Sandbox/s2 and 2 more].apiVersion";
        assert_eq!(*group.fields, [FieldChange::new(path, Some("(5 different values)"), Some("b"))]);
    }

    #[test]
    fn what_differs_by_more_than_a_name_is_not_joined() {
        let mut five = pods(5);
        five[4].object.kind = "Service".into();
        five[3].fields[0].before = None;
        assert_eq!(alike(&five).len(), 5);
    }

    #[test]
    fn a_hint_is_said_once_for_neighbours() {
        let right = |verb: &str| Finding::blocker(format!("may not {verb}")).hint("grant it");
        let all = [right("get"), right("list"), Finding::warning("w").hint("grant it"), right("patch")];
        let hints: Vec<_> = findings(&all).iter().map(|group| (group.finding.text.as_str(), group.hint)).collect();
        let expected = [
            ("may not get", None),
            ("may not list", None),
            ("may not patch", Some("grant it")),
            ("w", Some("grant it")),
        ];
        assert_eq!(hints, expected);
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
