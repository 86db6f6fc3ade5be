//! The steps of a runbook and what each needs: as a tree, for Graphviz, for Mermaid.

use std::fmt::Write as _;

use super::escape::visible;
use crate::{
    graph::StepGraph,
    runbook::{Runbook, Step, StepId},
};

/// Each step once, under the last of the steps it needs; the others are named beside it.
///
/// ```text
/// 1 flickerd (client)
/// 2 garrison (client)
/// └─ 3 writers, needs 1 flickerd too
///    └─ 4 backup
/// ```
pub fn tree(runbook: &Runbook, graph: &StepGraph) -> String {
    let mut page = format!("{}\n\n", visible(&runbook.title));
    let drawing = Drawing { runbook, graph };
    // From the last root to the first, so that the first is on top of the stack.
    let roots = drawing.under(None);
    let mut open: Vec<Branch<'_>> = roots.iter().rev().map(|step| Branch::root(step)).collect();
    while let Some(Branch { step, before, corner }) = open.pop() {
        line(&mut page, &format!("{before}{corner}"), &drawing.step(step));
        let below = before
            + match corner {
                "" => "",
                "├─ " => "│  ",
                _ => "   ",
            };
        for (place, child) in drawing.under(Some(&step.id)).into_iter().rev().enumerate() {
            let corner = if place == 0 { "└─ " } else { "├─ " };
            open.push(Branch { step: child, before: below.clone(), corner });
        }
    }
    page
}

/// A graph for Graphviz: boxes are changes, ellipses gates, the double frame has no way back.
pub fn dot(runbook: &Runbook, graph: &StepGraph) -> String {
    let title = visible(&runbook.title).replace('\\', r"\\").replace('"', r#"\""#);
    let mut page = format!("digraph \"{title}\" {{\n  label=\"{title}\";\n  node [shape=box];\n");
    for step in in_run_order(runbook, graph) {
        let number = graph.number(&step.id);
        let form = match step {
            step if step.task.is_point_of_no_return() => ", peripheries=2",
            step if step.task.is_gate() => ", shape=ellipse",
            _ => "",
        };
        line(
            &mut page,
            "  ",
            &format!("\"{}\" [label=\"{number} {}\\n{}\"{form}];", step.id, step.id, step.task.kind()),
        );
    }
    for (need, step) in edges(runbook, graph) {
        line(&mut page, "  ", &format!("\"{need}\" -> \"{step}\";"));
    }
    page.push_str("}\n");
    page
}

/// A graph for Mermaid, which GitHub draws: the same three shapes.
pub fn mermaid(runbook: &Runbook, graph: &StepGraph) -> String {
    // Mermaid reads the title as YAML, and a JSON string is one.
    let title = serde_json::Value::from(visible(&runbook.title).into_owned());
    let mut page = format!("---\ntitle: {title}\n---\nflowchart TD\n");
    for step in in_run_order(runbook, graph) {
        // Numbers name the nodes: an id may be a word of Mermaid's own, like `end`.
        let number = graph.number(&step.id);
        let (open, close) = match step {
            step if step.task.is_point_of_no_return() => ("[[", "]]"),
            step if step.task.is_gate() => ("([", "])"),
            _ => ("[", "]"),
        };
        line(&mut page, "  ", &format!("s{number}{open}\"{number} {}<br/>{}\"{close}", step.id, step.task.kind()));
    }
    for (need, step) in edges(runbook, graph) {
        line(&mut page, "  ", &format!("s{} --> s{}", graph.number(need), graph.number(step)));
    }
    page
}

struct Branch<'a> {
    step: &'a Step,
    before: String,
    corner: &'static str,
}

impl<'a> Branch<'a> {
    fn root(step: &'a Step) -> Self {
        Self { step, before: String::new(), corner: "" }
    }
}

struct Drawing<'a> {
    runbook: &'a Runbook,
    graph: &'a StepGraph,
}

impl<'a> Drawing<'a> {
    /// The steps drawn under another one, or those that need nothing.
    fn under(&self, parent: Option<&StepId>) -> Vec<&'a Step> {
        in_run_order(self.runbook, self.graph)
            .filter(|step| self.graph.needs(&step.id).last().copied() == parent)
            .collect()
    }

    fn step(&self, step: &Step) -> String {
        let number = |id: &StepId| format!("{} {id}", self.graph.number(id));
        let mut parts = vec![match step.task.kind() {
            kind if kind == step.id.0 => number(&step.id),
            kind => format!("{} ({kind})", number(&step.id)),
        }];
        if step.task.is_point_of_no_return() {
            parts.push("POINT OF NO RETURN".into());
        }
        // The last one is the step that this one is drawn under.
        if let [others @ .., _] = self.graph.needs(&step.id).as_slice()
            && !others.is_empty()
        {
            let others: Vec<String> = others.iter().map(|id| number(id)).collect();
            parts.push(format!("needs {} too", others.join(", ")));
        }
        parts.join(", ")
    }
}

fn in_run_order<'a>(runbook: &'a Runbook, graph: &'a StepGraph) -> impl Iterator<Item = &'a Step> {
    graph.order().iter().filter_map(|index| runbook.steps.get(*index))
}

/// What is needed and what needs it, in run order.
fn edges<'a>(runbook: &'a Runbook, graph: &'a StepGraph) -> impl Iterator<Item = (&'a StepId, &'a StepId)> {
    in_run_order(runbook, graph).flat_map(|step| graph.needs(&step.id).into_iter().map(|need| (need, &step.id)))
}

fn line(page: &mut String, indent: &str, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{indent}{text}");
}
