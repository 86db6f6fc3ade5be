//! The steps and what each needs: as indented text, for Graphviz, for Mermaid.

use std::fmt::Write;

use crate::{
    graph::StepGraph,
    runbook::{Runbook, Step},
};

fn in_order<'a>(runbook: &'a Runbook, graph: &'a StepGraph) -> impl Iterator<Item = &'a Step> {
    graph.order().iter().map(|&index| &runbook.steps[index])
}

/// Steps in run order, each with its number, kind and the numbers it comes after.
pub fn tree(runbook: &Runbook, graph: &StepGraph) -> String {
    let width = runbook.steps.iter().map(|step| step.id.0.len()).max().unwrap_or_default();
    let mut text = String::new();
    for step in in_order(runbook, graph) {
        let needs: Vec<String> =
            graph.needs(&step.id).into_iter().map(|id| format!("{} {id}", graph.number(id))).collect();
        let after = if needs.is_empty() { String::new() } else { format!("  after {}", needs.join(", ")) };
        let line = format!("{:>3} {:<width$}  {:<9}{after}", graph.number(&step.id), step.id.0, step.task.kind());
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// For Graphviz: gates are ellipses, a point of no return has a double border.
pub fn dot(runbook: &Runbook, graph: &StepGraph) -> String {
    let mut text = String::from("digraph runbook {\n  rankdir=LR\n  node [shape=box]\n");
    for step in in_order(runbook, graph) {
        let look = match (step.task.is_point_of_no_return(), step.task.is_gate()) {
            (true, _) => " peripheries=2",
            (_, true) => " shape=ellipse",
            _ => "",
        };
        let (id, number, kind) = (&step.id, graph.number(&step.id), step.task.kind());
        let _ = writeln!(text, "  \"{id}\" [label=\"{number} {id}\\n{kind}\"{look}]");
    }
    for step in in_order(runbook, graph) {
        for need in graph.needs(&step.id) {
            let _ = writeln!(text, "  \"{need}\" -> \"{}\"", step.id);
        }
    }
    text + "}\n"
}

/// For Mermaid, which GitHub draws: gates are round, a point of no return is a hexagon.
pub fn mermaid(runbook: &Runbook, graph: &StepGraph) -> String {
    let mut text = String::from("flowchart LR\n");
    for step in in_order(runbook, graph) {
        let (open, close) = match (step.task.is_point_of_no_return(), step.task.is_gate()) {
            (true, _) => ("{{", "}}"),
            (_, true) => ("(", ")"),
            _ => ("[", "]"),
        };
        let (number, kind) = (graph.number(&step.id), step.task.kind());
        let _ = writeln!(text, "  s{number}{open}\"{number} {}<br>{kind}\"{close}", step.id);
    }
    for step in in_order(runbook, graph) {
        for need in graph.needs(&step.id) {
            let _ = writeln!(text, "  s{} --> s{}", graph.number(need), graph.number(&step.id));
        }
    }
    text
}
