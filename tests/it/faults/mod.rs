//! What goes wrong between two steps, on a server held in memory: each must be seen before it does harm.

mod records;
mod release;
mod scene;

use sbx::plan::{Grade, Plan, PlannedStep, State};

/// Blockers that no step takes away, as text.
fn blockers(plan: &Plan) -> Vec<String> {
    plan.blockers().map(|(_, finding)| finding.text.clone()).collect()
}

fn step<'a>(plan: &'a Plan, id: &str) -> &'a PlannedStep {
    plan.steps.iter().find(|step| step.id.0 == id).expect("a step of the runbook")
}

fn said(plan: &Plan, id: &str, grade: Grade) -> Vec<String> {
    let findings = step(plan, id).findings.iter();
    findings.filter(|finding| finding.grade == grade).map(|finding| finding.text.clone()).collect()
}

fn state(plan: &Plan, id: &str) -> State {
    step(plan, id).state.clone()
}
