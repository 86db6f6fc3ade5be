//! Decisions to plan: which step waits for which, which is not needed any more, what resolves what.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decision, Situation, World, decide, undo};
use crate::{
    graph::StepGraph,
    plan::{ClusterFacts, Plan, PlannedStep, RunbookFacts, State},
    runbook::{Runbook, Step, StepId, Task},
};

/// The plan for a situation: a pure function of what was declared and what was observed.
///
/// `to`: plan for this step and what it needs; later ones are not selected.
pub fn plan(runbook: &Runbook, graph: &StepGraph, situation: &Situation, to: Option<&StepId>) -> Plan {
    let world = World { runbook, graph, situation };
    let decisions: BTreeMap<&StepId, Decision> =
        runbook.steps.iter().filter_map(|step| decide(step, &world).map(|decision| (&step.id, decision))).collect();
    let selected = |step: &Step| to.is_none_or(|to| step.id == *to || graph.reaches(to, &step.id));
    let mut states: BTreeMap<&StepId, State> = BTreeMap::new();
    let mut steps = Vec::new();
    for &index in graph.order() {
        let step = &runbook.steps[index];
        let Some(decision) = decisions.get(&step.id) else { continue };
        let state =
            if selected(step) { state(step, decision, &decisions, &states, &world) } else { State::NotSelected };
        states.insert(&step.id, state.clone());
        steps.push(planned(step, decision.clone(), state, &states, &world));
    }
    let to_come = |id: &StepId| {
        steps.iter().any(|step| step.id == *id && !step.state.is_settled() && step.state != State::NotSelected)
    };
    let mut findings = situation.rights.findings(&to_come, runbook);
    findings.extend(situation.rights.unknown_findings());
    Plan {
        runbook: RunbookFacts {
            path: runbook.path.clone(),
            sha256: runbook.sha256.clone(),
            title: runbook.title.clone(),
            from: runbook.upgrade.from.clone(),
            to: runbook.upgrade.to.clone(),
        },
        cluster: ClusterFacts {
            context: runbook.cluster.context.clone(),
            uid: situation.server.cluster_uid.clone(),
            server_version: situation.server.version.clone(),
            user: situation.server.user.clone(),
        },
        at: situation.now,
        steps,
        findings,
        facts: hard_facts(runbook, situation),
    }
}

fn state(
    step: &Step,
    decision: &Decision,
    decisions: &BTreeMap<&StepId, Decision>,
    states: &BTreeMap<&StepId, State>,
    world: &World<'_>,
) -> State {
    let graph = world.graph;
    if is_over(step, world.runbook, &|id| decisions.get(id).is_some_and(|decision| decision.settled)) {
        return State::NotNeeded;
    }
    if decision.settled {
        return if step.task.is_gate() { State::Met } else { State::Done };
    }
    let mut unsettled = BTreeSet::new();
    awaited(&step.id, states, graph, &mut unsettled);
    let unsettled: Vec<usize> = unsettled.into_iter().collect();
    match (unsettled.is_empty(), step.task.is_gate()) {
        (false, _) => State::After(unsettled),
        (true, true) => State::Waiting,
        (true, false) => State::ToDo,
    }
}

/// Whether a gate or a backup has nothing left to guard: a client scaled down months later changes
/// nothing, for it mattered only while the changes behind it were undone.
pub fn is_over(step: &Step, runbook: &Runbook, done: &dyn Fn(&StepId) -> bool) -> bool {
    let guarded = match &step.task {
        Task::Backup(_) => covered(&step.id, runbook),
        task if task.is_gate() => guarded(&step.id, runbook),
        _ => Vec::new(),
    };
    !guarded.is_empty() && guarded.iter().all(|step| done(&step.id))
}

/// Gates and backups change nothing themselves.
fn looks_only(step: &Step) -> bool {
    step.task.is_gate() || matches!(step.task, Task::Backup(_))
}

/// Every change that a backup holds the way back from: the last of them needs it as the first did.
fn covered<'a>(id: &StepId, runbook: &'a Runbook) -> Vec<&'a Step> {
    let (mut found, mut from): (Vec<&Step>, Vec<&StepId>) = (Vec::new(), vec![id]);
    while let Some(id) = from.pop() {
        for step in runbook.steps.iter().filter(|step| step.needs.contains(id)) {
            if !found.iter().any(|known| known.id == step.id) {
                found.push(step);
                from.push(&step.id);
            }
        }
    }
    found.retain(|step| !looks_only(step));
    found
}

/// The changes that a gate stands right in front of, over other gates and over a backup.
fn guarded<'a>(id: &StepId, runbook: &'a Runbook) -> Vec<&'a Step> {
    let mut found = Vec::new();
    for step in runbook.steps.iter().filter(|step| step.needs.contains(id)) {
        if looks_only(step) {
            found.extend(guarded(&step.id, runbook));
        } else {
            found.push(step);
        }
    }
    found
}

/// The nearest steps that must still settle: a gate that is open behind one that is closed opens nothing.
fn awaited(step: &StepId, states: &BTreeMap<&StepId, State>, graph: &StepGraph, found: &mut BTreeSet<usize>) {
    for need in graph.needs(step) {
        match states.get(need) {
            Some(State::NotNeeded) => {}
            Some(state) if state.is_settled() => awaited(need, states, graph, found),
            _ => {
                found.insert(graph.number(need));
            }
        }
    }
}

fn planned(
    step: &Step,
    decision: Decision,
    state: State,
    states: &BTreeMap<&StepId, State>,
    world: &World<'_>,
) -> PlannedStep {
    let graph = world.graph;
    let backup = world
        .runbook
        .steps
        .iter()
        .filter(|other| matches!(other.task, Task::Backup(_)) && graph.reaches(&step.id, &other.id))
        .map(|other| graph.number(&other.id))
        .max();
    // Nobody waits for what was found of a step that is over.
    let mut findings = if state == State::NotNeeded { Vec::new() } else { decision.findings };
    // A step that has nothing left to do, or is left out, removes nothing any more.
    let to_come = |by: &StepId| states.get(by).is_some_and(|by| !by.is_settled() && *by != State::NotSelected);
    for finding in &mut findings {
        finding.resolved_by = finding.resolved_by.take().filter(to_come);
    }
    PlannedStep {
        number: graph.number(&step.id),
        id: step.id.clone(),
        kind: step.task.kind(),
        gate: step.task.is_gate(),
        needs: graph.needs(&step.id).into_iter().map(|id| graph.number(id)).collect(),
        point_of_no_return: step.task.is_point_of_no_return().then(|| step.phrase(&world.runbook.cluster.context)),
        undo: if state.is_settled() { undo(super::UndoBy::Nothing, None) } else { undo(decision.undo, backup) },
        state,
        summary: decision.summary,
        details: decision.details,
        changes: decision.changes,
        findings,
    }
}

/// What must still hold for a reviewed plan to be the one that runs.
fn hard_facts(runbook: &Runbook, situation: &Situation) -> Vec<(String, String)> {
    let mut facts = vec![
        ("runbook sha256".to_owned(), runbook.sha256.clone()),
        ("cluster uid".to_owned(), situation.server.cluster_uid.clone().unwrap_or_default()),
    ];
    for crd in situation.survey.installed() {
        let versions: Vec<String> = crd
            .versions
            .iter()
            .map(|version| format!("{} served={} storage={}", version.name, version.served, version.storage))
            .collect();
        let conversion = if crd.converts_by_webhook { "Webhook" } else { "None" };
        for (what, value) in [
            ("uid", crd.object.uid().to_owned()),
            ("versions", versions.join(", ")),
            ("storedVersions", crd.stored_versions.join(", ")),
            ("conversion", conversion.to_owned()),
        ] {
            facts.push((format!("{} {what}", crd.name()), value));
        }
    }
    facts.sort();
    facts
}
