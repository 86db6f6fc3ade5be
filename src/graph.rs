//! Model to order: which step runs when, and what stands between two steps.
//!
//! In: the steps of a [`Runbook`]. Out: a [`StepGraph`], or a cycle with every step of it in order.
//! The only place that names petgraph.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use petgraph::{
    Direction,
    algo::{has_path_connecting, tarjan_scc},
    graph::{DiGraph, NodeIndex},
    visit::Bfs,
};

use crate::runbook::{Runbook, Step, StepId};

/// Steps in run order. Edges lead from a step to those that need it.
#[derive(Clone, Debug)]
pub struct StepGraph {
    graph: DiGraph<StepId, ()>,
    nodes: BTreeMap<StepId, NodeIndex>,
    order: Vec<usize>,
    numbers: BTreeMap<StepId, usize>,
}

/// Steps that need each other, in the order of their needs; the first one closes the circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<StepId>);

impl StepGraph {
    /// Orders the steps of a runbook. Ties go by file order.
    ///
    /// # Errors
    /// Steps that need each other.
    pub fn of(runbook: &Runbook) -> Result<Self, Cycle> {
        Self::of_steps(&runbook.steps)
    }

    /// Orders steps; a need that names no step is left to the resolver to report.
    ///
    /// # Errors
    /// Steps that need each other.
    pub fn of_steps(steps: &[Step]) -> Result<Self, Cycle> {
        let mut graph = DiGraph::new();
        let nodes: BTreeMap<StepId, NodeIndex> =
            steps.iter().map(|step| (step.id.clone(), graph.add_node(step.id.clone()))).collect();
        for step in steps {
            for need in step.needs.iter().filter_map(|need| nodes.get(need)) {
                graph.update_edge(*need, nodes[&step.id], ());
            }
        }
        if let Some(cycle) = cycle(&graph) {
            return Err(cycle);
        }
        let order = order(&graph, &nodes, steps);
        let numbers = order.iter().enumerate().map(|(place, &index)| (steps[index].id.clone(), place + 1)).collect();
        Ok(Self { graph, nodes, order, numbers })
    }

    /// Indices into the runbook's steps, in run order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Place of a step in the run order, from 1; 0 for a step that is not in the graph.
    pub fn number(&self, id: &StepId) -> usize {
        self.numbers.get(id).copied().unwrap_or_default()
    }

    /// Steps that a step needs itself, in run order.
    pub fn needs(&self, id: &StepId) -> Vec<&StepId> {
        let Some(node) = self.nodes.get(id) else { return Vec::new() };
        let mut needs: Vec<&StepId> =
            self.graph.neighbors_directed(*node, Direction::Incoming).map(|node| &self.graph[node]).collect();
        needs.sort_by_key(|id| self.number(id));
        needs
    }

    /// Steps that need a step, over others too, in run order.
    pub fn dependents(&self, id: &StepId) -> Vec<&StepId> {
        let Some(node) = self.nodes.get(id) else { return Vec::new() };
        let mut found = Vec::new();
        let mut search = Bfs::new(&self.graph, *node);
        while let Some(next) = search.next(&self.graph) {
            if next != *node {
                found.push(&self.graph[next]);
            }
        }
        found.sort_by_key(|id| self.number(id));
        found
    }

    /// Whether `step` needs `other`, over others too.
    pub fn reaches(&self, step: &StepId, other: &StepId) -> bool {
        match (self.nodes.get(step), self.nodes.get(other)) {
            (Some(step), Some(other)) => step != other && has_path_connecting(&self.graph, *other, *step, None),
            _ => false,
        }
    }
}

/// Kahn's order with the earliest declared step first among those that are ready: petgraph's own
/// toposort promises no order among them.
fn order(graph: &DiGraph<StepId, ()>, nodes: &BTreeMap<StepId, NodeIndex>, steps: &[Step]) -> Vec<usize> {
    let mut open: Vec<usize> =
        steps.iter().map(|step| graph.neighbors_directed(nodes[&step.id], Direction::Incoming).count()).collect();
    let place: BTreeMap<&StepId, usize> = steps.iter().enumerate().map(|(index, step)| (&step.id, index)).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        open.iter().enumerate().filter(|(_, open)| **open == 0).map(|(index, _)| Reverse(index)).collect();
    let mut order = Vec::new();
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for dependent in graph.neighbors(nodes[&steps[index].id]) {
            let dependent = place[&graph[dependent]];
            open[dependent] -= 1;
            if open[dependent] == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    order
}

fn cycle(graph: &DiGraph<StepId, ()>) -> Option<Cycle> {
    let knot = tarjan_scc(graph).into_iter().find(|knot| knot.len() > 1 || graph.contains_edge(knot[0], knot[0]))?;
    // Following needs inside the knot closes a circle sooner or later; the walk before it is dropped.
    let mut path: Vec<NodeIndex> = vec![*knot.iter().min()?];
    loop {
        let here = *path.last()?;
        let next = graph.neighbors_directed(here, Direction::Incoming).filter(|next| knot.contains(next)).min()?;
        if let Some(start) = path.iter().position(|node| *node == next) {
            return Some(Cycle(path[start..].iter().map(|node| graph[*node].clone()).collect()));
        }
        path.push(next);
    }
}
