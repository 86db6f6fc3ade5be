//! Relabels children until a fresh look finds none.

use futures::{StreamExt, stream};
use serde_json::json;

use super::{Child, Renames, observe::find};
use crate::{
    object::Object,
    runbook::Owners,
    steps::{
        Outcome, Run, Stop,
        pace::WIDTH,
        touch::{Touched, touch_named},
    },
};

/// Looks before somebody must find out who keeps making such children.
const LOOKS: usize = 4;

/// Relabels every child, and looks again for those born or re-created meanwhile.
///
/// # Errors
/// A child could not be relabelled; the others are. Children keep appearing. Somebody asked to stop.
pub async fn run(task: &Owners, run: &Run<'_>) -> Result<(), Stop> {
    let survey = &run.situation.survey;
    let renames = Renames::of(survey, run.runbook);
    let from = &run.runbook.upgrade.from;
    let mut relabelled = 0;
    for _ in 0..LOOKS {
        let seen = find(task, run.writer.reader(), run.runbook, survey).await;
        if let Some(why) = seen.blindness() {
            return Err(Stop::failed(format!("children could not be looked for: {why}"))
                .hint("mend what the server says, then run again: it does the rest"));
        }
        if seen.children.is_empty() {
            return Ok(());
        }
        relabelled += pass(&seen.children, &renames, run).await.map_err(|stop| match stop {
            Stop::Interrupted(text) => Stop::Interrupted(format!("{text}; {relabelled} before; safe to run again")),
            other => other,
        })?;
    }
    Err(Stop::failed(format!("children that name {from} appear as fast as they are relabelled: {relabelled} so far"))
        .hint("find the controller that still makes them at that version, then run again"))
}

/// Relabels each child once; one failure does not stop the others.
async fn pass(children: &[Child], renames: &Renames, run: &Run<'_>) -> Result<usize, Stop> {
    // The iterator is asked only when a request ends: nothing new starts after an interrupt.
    let mut touches = stream::iter(children.iter().take_while(|_| !run.interrupt.is_set()))
        .map(|child| async move {
            let build = |object: &Object| {
                let references = renames.apply(object.owner_references(), &child.dead)?;
                Some(json!({"metadata": {"ownerReferences": references}}))
            };
            touch_named(run, &child.resource, &child.object, &child.uid, &build).await
        })
        .buffer_unordered(WIDTH);
    let (mut relabelled, mut failures) = (0, Vec::new());
    while let Some(touched) = touches.next().await {
        let touched: Touched = touched;
        (run.report)(touched.progress());
        match touched.outcome {
            Outcome::Updated => relabelled += 1,
            Outcome::Failed(words) => failures.push((Some(touched.object), words)),
            Outcome::Created | Outcome::Deleted | Outcome::Unchanged | Outcome::Gone => {}
        }
    }
    if run.interrupt.is_set() {
        return Err(Stop::Interrupted(format!("relabelled {relabelled} of {} children", children.len())));
    }
    if failures.is_empty() {
        return Ok(relabelled);
    }
    Err(Stop::Failed {
        text: format!("relabelled {relabelled} of {} children, {} failed", children.len(), failures.len()),
        failures,
        hint: Some("mend what the server says, then run again: it does the rest".into()),
    })
}
