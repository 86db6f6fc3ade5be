//! Remove named annotations from every record: the state that a conversion left, with the secrets
//! in it (design, fact 14), or the stamp. Names are shown, values never.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use serde_json::{Map, Value, json};

use super::{
    Decision, Look, Outcome, Run, Stop, UndoBy, World,
    access::on_kinds,
    pace::WIDTH,
    survey::{Surveyed, stamp_of},
    touch::touch_named,
};
use crate::{
    cluster::{Access, ClusterError, Content, Reader},
    object::{Object, ObjectRef, Resource},
    plan::{Change, FieldChange, Finding, Operation},
    runbook::{Runbook, Step, StepId, Strip},
};

/// Records that carry annotations which are to go.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// One entry a record.
    pub records: Vec<Carrier>,
    /// CRDs whose records could not be listed, with the server's words.
    pub unreadable: Vec<(String, String)>,
}

/// One record and what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Its resource, at the version that stays.
    pub resource: Resource,
    /// Which object.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Names of the annotations that are to go.
    pub names: BTreeSet<String>,
}

/// The names of an object's annotations that a runbook's patterns mean.
fn meant(patterns: &[String], object: &Object) -> BTreeSet<String> {
    let annotations = object.0.pointer("/metadata/annotations").and_then(Value::as_object);
    let names = annotations.into_iter().flatten().map(|(name, _)| name);
    names.filter(|name| patterns.iter().any(|pattern| is_meant(pattern, name))).cloned().collect()
}

/// Whether a pattern, a name or a beginning with `*`, means a name.
fn is_meant(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// Lists the metadata of every record of the upgrade.
pub async fn observe(task: &Strip, look: &Look<'_>) -> Seen {
    find(task, look.reader, look.runbook, &look.survey.crds).await
}

async fn find(task: &Strip, reader: &Reader, runbook: &Runbook, crds: &[Surveyed]) -> Seen {
    let to = &runbook.upgrade.to;
    let mut seen = Seen::default();
    for surveyed in crds {
        match &surveyed.crd {
            Ok(Some(crd)) if crd.serves(to) => match carriers(task, reader, &crd.resource(to)).await {
                Ok(found) => seen.records.extend(found),
                Err(error) => seen.unreadable.push((surveyed.name.clone(), error.words())),
            },
            Ok(Some(_)) => seen.unreadable.push((surveyed.name.clone(), format!("it does not serve {to}"))),
            // No CRD, no records.
            Ok(None) => {}
            Err(error) => seen.unreadable.push((surveyed.name.clone(), error.words())),
        }
    }
    seen
}

async fn carriers(task: &Strip, reader: &Reader, resource: &Resource) -> Result<Vec<Carrier>, ClusterError> {
    let mut found = Vec::new();
    let mut uids = BTreeSet::new();
    let mut pages = reader.pages(resource, None, Content::Metadata);
    while let Some(page) = pages.next().await? {
        for object in page {
            let names = meant(&task.annotations, &object);
            // An expired token can bring an object twice.
            if !names.is_empty() && uids.insert(object.uid().to_owned()) {
                let uid = object.uid().into();
                found.push(Carrier { resource: resource.clone(), object: object.reference(), uid, names });
            }
        }
    }
    Ok(found)
}

/// Settled when every record could be listed and none carries what is to go.
pub fn decide(step: &Step, task: &Strip, seen: &Seen, world: &World<'_>) -> Decision {
    let from = &world.runbook.upgrade.from;
    let declared = world.situation.survey.installed().any(|crd| crd.declares(from));
    let stamp = stamp_of(world.runbook).filter(|_| declared);
    judge(task, seen, stamp, world.point_of_no_return_before(&step.id))
}

/// `stamp`: the annotation that still says which records were rewritten; `merge`: the step before
/// this one after which it says nothing any more.
fn judge(task: &Strip, seen: &Seen, stamp: Option<&str>, merge: Option<&StepId>) -> Decision {
    let mut findings: Vec<Finding> = seen
        .unreadable
        .iter()
        .map(|(crd, words)| Finding::not_checked(format!("records of {crd} could not be listed: {words}")))
        .collect();
    if let Some(stamp) = stamp.filter(|stamp| task.annotations.iter().any(|pattern| is_meant(pattern, stamp))) {
        let text = format!("it removes {stamp}, by which `migrate` knows the records it has rewritten");
        let finding = Finding::blocker(text).hint("put this step after the merge");
        findings.push(finding.resolved_by(merge));
    }
    let total = seen.records.len();
    if total == 0 {
        let decision = if seen.unreadable.is_empty() {
            Decision::settled(format!("no record carries {}", task.annotations.join(", ")))
        } else {
            Decision::pending("records could not be listed")
        };
        return decision.with(findings);
    }
    let names: BTreeSet<&str> =
        seen.records.iter().flat_map(|carrier| carrier.names.iter().map(String::as_str)).collect();
    let plural = if total == 1 { "" } else { "s" };
    let mut decision = Decision::pending(format!("remove {} annotations from {total} record{plural}", names.len()));
    decision.details = names.into_iter().map(ToOwned::to_owned).collect();
    decision.undo(UndoBy::Backup).changing(seen.records.iter().map(change)).with(findings)
}

fn change(carrier: &Carrier) -> Change {
    let field = |name: &String| FieldChange::new(format!("metadata.annotations[{name}]"), Some("<not shown>"), None);
    let fields = carrier.names.iter().map(field).collect();
    Change { operation: Operation::Update, object: carrier.object.clone(), fields }
}

/// Removes the annotations, and nothing else.
///
/// # Errors
/// A list fails, a record is refused (the others go on), or somebody asked to stop.
pub async fn run(task: &Strip, run: &Run<'_>) -> Result<(), Stop> {
    let seen = find(task, run.writer.reader(), run.runbook, &run.situation.survey.crds).await;
    let build = |object: &Object| {
        let nulls: Map<String, Value> =
            meant(&task.annotations, object).into_iter().map(|name| (name, Value::Null)).collect();
        (!nulls.is_empty()).then(|| json!({"metadata": {"annotations": nulls}}))
    };
    let build = &build;
    let total = seen.records.len();
    // The iterator is asked only when a request ends: nothing new starts after an interrupt.
    let mut touches = stream::iter(seen.records.iter().take_while(|_| !run.interrupt.is_set()))
        .map(|carrier| touch_named(run, &carrier.resource, &carrier.object, &carrier.uid, build))
        .buffer_unordered(WIDTH);
    let (mut stripped, mut failures) = (0, Vec::new());
    while let Some(touched) = touches.next().await {
        (run.report)(touched.progress());
        match touched.outcome {
            Outcome::Updated => stripped += 1,
            Outcome::Failed(words) => failures.push((Some(touched.object), words)),
            Outcome::Created | Outcome::Deleted | Outcome::Unchanged | Outcome::Gone => {}
        }
    }
    if run.interrupt.is_set() {
        return Err(Stop::Interrupted(format!("stripped {stripped} of {total} records; safe to run again")));
    }
    failures.extend(seen.unreadable.into_iter().map(|(crd, words)| (None, format!("list {crd}: {words}"))));
    if failures.is_empty() {
        return Ok(());
    }
    Err(Stop::Failed {
        text: format!("stripped {stripped} of {total} records, {} failures", failures.len()),
        failures,
        hint: Some("mend what the server says, then run again: it does the rest".into()),
    })
}

/// Lists, reads and patches records.
pub fn rights(_task: &Strip, runbook: &Runbook) -> Vec<Access> {
    ["list", "get", "patch"].iter().flat_map(|verb| on_kinds(runbook, verb)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Grade;

    fn task(patterns: &[&str]) -> Strip {
        Strip { annotations: patterns.iter().map(|&pattern| pattern.to_owned()).collect() }
    }

    fn carrier(name: &str, names: &[&str]) -> Carrier {
        let resource = Resource::new("demo.test", "v1beta1", "widgets", "Widget", true);
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Carrier { object: resource.object(Some("ns"), name), resource, uid: name.into(), names }
    }

    #[test]
    fn patterns_mean_names_and_beginnings() {
        let object = Object(json!({"metadata": {"annotations": {
            "api.demo.test/v1alpha1-widget-state": "secret", "demo.test/stamp": "x", "demo.test/v1alpha1": "y",
        }}}));
        let table: [(&[&str], &[&str]); 6] = [
            (&["demo.test/stamp"], &["demo.test/stamp"]),
            (&["api.demo.test/v1alpha1-*"], &["api.demo.test/v1alpha1-widget-state"]),
            (&["demo.test/*"], &["demo.test/stamp", "demo.test/v1alpha1"]),
            (&["demo.test"], &[]),
            (&["demo.test/st*mp"], &[]),
            (&["*"], &["api.demo.test/v1alpha1-widget-state", "demo.test/stamp", "demo.test/v1alpha1"]),
        ];
        for (patterns, wanted) in table {
            let found = meant(&task(patterns).annotations, &object);
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), wanted, "{patterns:?}");
        }
        assert!(meant(&task(&["*"]).annotations, &Object(json!({"metadata": {}}))).is_empty());
    }

    #[test]
    fn names_are_shown_and_values_never() {
        let seen = Seen { records: vec![carrier("a", &["x", "y"]), carrier("b", &["x"])], ..Seen::default() };
        let decision = judge(&task(&["*"]), &seen, None, None);
        assert_eq!((decision.settled, decision.summary.as_str()), (false, "remove 2 annotations from 2 records"));
        assert_eq!(decision.details, ["x", "y"]);
        assert_eq!(decision.undo, UndoBy::Backup);
        let gone = |name: &str| FieldChange::new(format!("metadata.annotations[{name}]"), Some("<not shown>"), None);
        assert_eq!(decision.changes[0].fields, [gone("x"), gone("y")]);
    }

    #[test]
    fn nothing_left_is_settled_only_when_everything_was_listed() {
        let unread = vec![("widgets.demo.test".to_owned(), "forbidden".to_owned())];
        let table = [
            (Seen::default(), true, "no record carries x*"),
            (Seen { unreadable: unread.clone(), ..Seen::default() }, false, "records could not be listed"),
            (
                Seen { unreadable: unread, records: vec![carrier("a", &["x1"])] },
                false,
                "remove 1 annotations from 1 record",
            ),
        ];
        for (seen, settled, summary) in table {
            let decision = judge(&task(&["x*"]), &seen, None, None);
            assert_eq!((decision.settled, decision.summary.as_str()), (settled, summary));
            let grades: Vec<Grade> = decision.findings.iter().map(|finding| finding.grade).collect();
            assert_eq!(grades, vec![Grade::NotChecked; seen.unreadable.len()]);
        }
    }

    #[test]
    fn the_stamp_does_not_go_while_it_says_something() {
        let seen = Seen { records: vec![carrier("a", &["demo.test/stamp"])], ..Seen::default() };
        let merge = StepId("merge".into());
        let table = [
            ("demo.test/*", Some("demo.test/stamp"), None, true),
            ("demo.test/*", Some("demo.test/stamp"), Some(&merge), false),
            ("demo.test/*", None, None, false),
            ("other/*", Some("demo.test/stamp"), None, false),
        ];
        for (pattern, stamp, merge, blocks) in table {
            let decision = judge(&task(&[pattern]), &seen, stamp, merge);
            assert_eq!(decision.findings.iter().any(Finding::blocks), blocks, "{pattern} {stamp:?} {merge:?}");
        }
    }
}
