//! One `[[step]]`: its id, its needs, and the one table that says what it does.

use super::{
    super::{
        Problem, Step, StepId, Task,
        document::{self, KINDS},
        spanned::Table,
    },
    Scene, delete,
    keys::{Keys, Placed},
    order::Draft,
    tasks, values,
};
use crate::suggest::{both, either};

/// What the order needs to know of a step in any case, and the step itself if all of it is right.
pub(super) fn resolve(
    table: Placed<Table<document::Step>>,
    scene: &Scene<'_>,
    problems: &mut Vec<Problem>,
) -> (Draft, Option<Step>) {
    let header = table.span.clone();
    let has_unknown_keys = !table.value.unknown.is_empty();
    let (body, mut keys) = Keys::open("`[[step]]`", table, problems);
    let id = keys.text("id", body.id);
    // A wrong id is still the step's id: the needs of other steps are judged by it.
    keys.parsed(id.clone(), values::id);
    let needs = keys.optional_texts("needs", body.needs);

    let mut kinds = Vec::new();
    let mut task = None;
    macro_rules! read {
        ($($kind:ident by $module:ident)*) => {$(
            if let Some(field) = body.$kind {
                kinds.push((stringify!($kind), field.span.clone()));
                task = $module::$kind(field, scene, problems);
            }
        )*};
    }
    read!(
        client by tasks writers by tasks backup by tasks migrate by tasks owners by tasks release by tasks
        merge by tasks gone by tasks delete by delete confirm by tasks strip by tasks manifests by tasks
    );

    let name = id.as_ref().map_or_else(|| "this step".to_owned(), |id| format!("step `{}`", id.value));
    match kinds.as_slice() {
        [_] => {}
        // An unknown key is most likely the kind, and reported already.
        [] if has_unknown_keys => {}
        [] => problems.push(
            Problem::absent(header.clone(), format!("{name} does not say what it does"))
                .hint(format!("add one table `[step.KIND]`, where KIND is {}", either(KINDS))),
        ),
        [first, second, others @ ..] => {
            let all = both(kinds.iter().map(|(kind, _)| *kind));
            let problem = Problem::new(second.1.clone(), format!("{name} is {all} at once"))
                .label("a step does one thing")
                .also(first.1.clone(), "it is this already")
                .hint("make it two steps, one of which needs the other");
            problems.push(others.iter().fold(problem, |problem, (_, span)| problem.also(span.clone(), "and this")));
        }
    }

    let draft = Draft {
        id: id.clone(),
        header,
        needs: needs.clone(),
        kinds,
        holds_upgraded_crd: matches!(&task, Some(Task::Manifests(task)) if task.holds_upgraded_crd),
    };
    let step = id.zip(task).map(|(id, task)| Step {
        id: StepId(id.value),
        needs: needs.into_iter().map(|need| StepId(need.value)).collect(),
        task,
    });
    (draft, step)
}
