//! Model to order: which step runs when, and what stands between two steps.
//!
//! In: the steps of a [`Runbook`]. Out: a [`StepGraph`], or every circle of needs with its steps in
//! order. The only place that names petgraph.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    path::Path,
};

use petgraph::{
    Direction,
    algo::{has_path_connecting, tarjan_scc},
    graph::{DiGraph, NodeIndex},
    visit::Bfs,
};

use crate::runbook::{self, Declared, Runbook, RunbookError, StepId};

/// Reads a runbook and orders its steps.
///
/// # Errors
/// The file cannot be read, or its text is wrong, circles among its needs included; then every
/// problem at once.
#[expect(clippy::missing_panics_doc, reason = "a circle is found on loading, so ordering finds none")]
pub fn load(path: &Path) -> Result<(Runbook, StepGraph), RunbookError> {
    let runbook = runbook::load_with(path, |declared| cycles(declared).into_iter().map(|cycle| cycle.0).collect())?;
    let graph = StepGraph::of(&runbook).expect("a runbook with a circle is refused on loading");
    Ok((runbook, graph))
}

/// Steps that need each other: each needs the next one, the last one the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<StepId>);

/// Steps in run order. Edges lead from a step to those that need it.
#[derive(Clone, Debug)]
pub struct StepGraph {
    graph: DiGraph<StepId, ()>,
    nodes: BTreeMap<StepId, NodeIndex>,
    order: Vec<usize>,
    numbers: BTreeMap<StepId, usize>,
}

impl StepGraph {
    /// Orders the steps of a runbook. Ties go by file order.
    ///
    /// # Errors
    /// Steps that need each other.
    pub fn of(runbook: &Runbook) -> Result<Self, Cycle> {
        let declared: Vec<Declared> = runbook.steps.iter().map(|step| (step.id.clone(), step.needs.clone())).collect();
        let (graph, nodes) = edges(&declared);
        if let Some(cycle) = cycles_in(&graph).into_iter().next() {
            return Err(cycle);
        }
        let order = order(&graph);
        let numbers =
            order.iter().enumerate().map(|(place, &index)| (graph[NodeIndex::new(index)].clone(), place + 1)).collect();
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
        self.neighbours(id, Direction::Incoming)
    }

    /// Steps that need a step themselves, in run order.
    pub fn direct_dependents(&self, id: &StepId) -> Vec<&StepId> {
        self.neighbours(id, Direction::Outgoing)
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
        self.in_run_order(found)
    }

    /// Whether `step` needs `other`, over others too.
    pub fn reaches(&self, step: &StepId, other: &StepId) -> bool {
        match (self.nodes.get(step), self.nodes.get(other)) {
            (Some(step), Some(other)) => step != other && has_path_connecting(&self.graph, *other, *step, None),
            _ => false,
        }
    }

    fn neighbours(&self, id: &StepId, direction: Direction) -> Vec<&StepId> {
        let Some(node) = self.nodes.get(id) else { return Vec::new() };
        self.in_run_order(self.graph.neighbors_directed(*node, direction).map(|node| &self.graph[node]).collect())
    }

    fn in_run_order<'a>(&self, mut ids: Vec<&'a StepId>) -> Vec<&'a StepId> {
        ids.sort_by_key(|id| self.number(id));
        ids
    }
}

/// Every circle of needs, one for each knot of steps that reach each other, in file order.
pub fn cycles(declared: &[Declared]) -> Vec<Cycle> {
    cycles_in(&edges(declared).0)
}

/// Nodes have the index of their step. A need that names no step has no edge: the resolver reports it.
fn edges(declared: &[Declared]) -> (DiGraph<StepId, ()>, BTreeMap<StepId, NodeIndex>) {
    let mut graph = DiGraph::new();
    let nodes: BTreeMap<StepId, NodeIndex> =
        declared.iter().map(|(id, _)| (id.clone(), graph.add_node(id.clone()))).collect();
    for (id, needs) in declared {
        for need in needs.iter().filter_map(|need| nodes.get(need)) {
            graph.update_edge(*need, nodes[id], ());
        }
    }
    (graph, nodes)
}

/// Kahn's order, the earliest declared step first among those that are ready: petgraph's own
/// toposort promises no order among them.
fn order(graph: &DiGraph<StepId, ()>) -> Vec<usize> {
    let mut open: Vec<usize> =
        graph.node_indices().map(|node| graph.neighbors_directed(node, Direction::Incoming).count()).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        open.iter().enumerate().filter(|(_, open)| **open == 0).map(|(index, _)| Reverse(index)).collect();
    let mut order = Vec::new();
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for dependent in graph.neighbors(NodeIndex::new(index)) {
            let dependent = dependent.index();
            open[dependent] -= 1;
            if open[dependent] == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    order
}

fn cycles_in(graph: &DiGraph<StepId, ()>) -> Vec<Cycle> {
    let is_knot = |knot: &BTreeSet<NodeIndex>| {
        knot.len() > 1 || knot.first().is_some_and(|node| graph.contains_edge(*node, *node))
    };
    let mut knots: Vec<BTreeSet<NodeIndex>> =
        tarjan_scc(graph).into_iter().map(BTreeSet::from_iter).filter(is_knot).collect();
    knots.sort();
    knots.iter().map(|knot| circle(graph, knot)).collect()
}

/// A circle inside a knot: following needs in it closes one sooner or later, and the way to it is dropped.
fn circle(graph: &DiGraph<StepId, ()>, knot: &BTreeSet<NodeIndex>) -> Cycle {
    let mut path: Vec<NodeIndex> = Vec::new();
    let mut next = knot.first().copied();
    while let Some(here) = next {
        if let Some(start) = path.iter().position(|node| *node == here) {
            path.drain(..start);
            break;
        }
        path.push(here);
        next = graph.neighbors_directed(here, Direction::Incoming).filter(|node| knot.contains(node)).min();
    }
    // Told from its earliest step, wherever the walk closed.
    let earliest = path.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(place, _)| place);
    path.rotate_left(earliest);
    Cycle(path.into_iter().map(|node| graph[node].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(text: &str) -> Vec<Declared> {
        let id = |name: &str| StepId(name.into());
        text.lines()
            .map(|line| {
                let mut names = line.split_whitespace().map(id);
                (names.next().expect("a line names a step"), names.collect())
            })
            .collect()
    }

    fn ordered(text: &str) -> Vec<String> {
        let (graph, _) = edges(&declared(text));
        order(&graph).into_iter().map(|index| graph[NodeIndex::new(index)].to_string()).collect()
    }

    fn circles(text: &str) -> Vec<String> {
        let join = |cycle: Cycle| cycle.0.into_iter().map(|id| id.0).collect::<Vec<_>>().join(" ");
        cycles(&declared(text)).into_iter().map(join).collect()
    }

    #[test]
    fn ties_go_by_file_order() {
        assert_eq!(ordered("d\nb\nc d\na b"), ["d", "b", "c", "a"]);
        // A step that becomes ready late still goes before later ones.
        assert_eq!(ordered("late first\nfirst\nother"), ["first", "late", "other"]);
    }

    #[test]
    fn needs_come_first() {
        assert_eq!(ordered("a b c\nb c\nc"), ["c", "b", "a"]);
    }

    #[test]
    fn a_circle_names_each_of_its_steps_in_order_of_need() {
        assert_eq!(circles("a b\nb c\nc a"), ["a b c"]);
        assert_eq!(circles("a a"), ["a"]);
        assert_eq!(circles("x b\nb c\nc b\ntail x"), ["b c"]);
        assert_eq!(circles("a b\nb"), Vec::<String>::new());
        // The walk enters the circle at c; it is told from b all the same.
        assert_eq!(circles("a c\nb c\nc b d\nd a"), ["b c"]);
    }

    #[test]
    fn each_knot_is_reported() {
        assert_eq!(circles("p q\nq p\na b\nb a"), ["p q", "a b"]);
        // In file order, whichever needs the other.
        assert_eq!(circles("p q\nq p\na b p\nb a"), ["p q", "a b"]);
        assert_eq!(circles("p q a\nq p\na b\nb a"), ["p q", "a b"]);
    }
}
