//! Checks `eventually`: looks for a path on which the property never holds. Such a path ends in a
//! state in which the run may stay forever (it has ended, or only events from outside could
//! continue it), or in a fair cycle. Every pending answer arrives and every pending timer fires at
//! some point, so a cycle on which one of them stays pending forever is not fair and does not
//! count.

use std::collections::VecDeque;
use std::sync::Arc;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::explore::Move;

/// All explored states and the moves between them.
#[derive(Default)]
pub(crate) struct Graph {
    /// By state: the properties that hold, as bits, and whether a run may stay there forever.
    nodes: Vec<(u64, bool)>,
    edges: Vec<Edge>,
    /// Initial states.
    starts: Vec<u32>,
}

struct Edge {
    from: u32,
    to: u32,
    how: Arc<Move>,
    /// The timers and answers that are pending both before and after the move, as bits.
    continuing: u128,
}

/// A path that ends in a cycle or in a state in which the run stays.
#[derive(Clone)]
pub(crate) struct Lasso {
    pub(crate) moves: Vec<Arc<Move>>,
    /// How many of the last moves repeat forever; 0 if the run stays in the last state.
    pub(crate) repeats: usize,
}

impl Lasso {
    /// The path with two rounds of its cycle.
    pub(crate) fn twice(&self) -> Vec<Arc<Move>> {
        let cycle = self.moves.len().saturating_sub(self.repeats);
        self.moves.iter().chain(self.moves.get(cycle..).unwrap_or_default()).cloned().collect()
    }
}

impl Graph {
    pub(crate) fn node(&mut self, node: u32, holding: u64) {
        let place = node as usize;
        if self.nodes.len() <= place {
            self.nodes.resize(place.saturating_add(1), (0, false));
        }
        if let Some(n) = self.nodes.get_mut(place) {
            n.0 = holding;
        }
    }

    pub(crate) fn start(&mut self, node: u32, how: Arc<Move>) {
        if !self.starts.contains(&node) {
            self.starts.push(node);
            self.edges.push(Edge { from: u32::MAX, to: node, how, continuing: 0 });
        }
    }

    pub(crate) fn rests(&mut self, node: u32) {
        if let Some(n) = self.nodes.get_mut(node as usize) {
            n.1 = true;
        }
    }

    pub(crate) fn edge(&mut self, from: u32, to: u32, how: Arc<Move>, continuing: u128) {
        self.edges.push(Edge { from, to, how, continuing });
    }

    fn lacks(&self, node: u32, bit: u64) -> bool {
        self.nodes.get(node as usize).is_some_and(|(holding, _)| holding & bit == 0)
    }

    /// Finds a path on which the property never holds, with a shortest prefix.
    pub(crate) fn path_without(&self, bit: u64) -> Option<Lasso> {
        // Build the subgraph of the states in which the property does not hold.
        let mut graph: DiGraph<u32, usize> = DiGraph::new();
        let indexes: Vec<NodeIndex> = (0u32..).zip(&self.nodes).map(|(n, _)| graph.add_node(n)).collect();
        let index = |n: u32| indexes.get(n as usize).copied();
        for (place, edge) in self.edges.iter().enumerate() {
            if self.lacks(edge.from, bit)
                && self.lacks(edge.to, bit)
                && let (Some(a), Some(b)) = (index(edge.from), index(edge.to))
            {
                graph.add_edge(a, b, place);
            }
        }
        // Search breadth first from the initial states, and record the first edge into each state.
        let mut first: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut order: Vec<u32> = Vec::new();
        let mut waiting = VecDeque::new();
        let enter = |place: usize, to: u32, first: &mut Vec<Option<usize>>, waiting: &mut VecDeque<u32>| {
            if let Some(slot) = first.get_mut(to as usize).filter(|s| s.is_none()) {
                *slot = Some(place);
                waiting.push_back(to);
            }
        };
        for (place, edge) in self.edges.iter().enumerate().filter(|(_, e)| e.from == u32::MAX && self.lacks(e.to, bit))
        {
            enter(place, edge.to, &mut first, &mut waiting);
        }
        while let Some(n) = waiting.pop_front() {
            order.push(n);
            for edge in index(n).into_iter().flat_map(|i| graph.edges(i)) {
                if let Some(to) = graph.node_weight(edge.target()) {
                    enter(*edge.weight(), *to, &mut first, &mut waiting);
                }
            }
        }
        let path_to = |node: u32| {
            let mut moves = Vec::new();
            let mut at = node;
            while let Some(edge) = first.get(at as usize).copied().flatten().and_then(|p| self.edges.get(p)) {
                moves.push(edge.how.clone());
                if edge.from == u32::MAX {
                    break;
                }
                at = edge.from;
            }
            moves.reverse();
            moves
        };
        if let Some(node) = order.iter().find(|n| self.nodes.get(**n as usize).is_some_and(|(_, rests)| *rests)) {
            return Some(Lasso { moves: path_to(*node), repeats: 0 });
        }
        // Look for cycles. A strongly connected component has a fair cycle if each wait ends on one
        // of its edges.
        let mut component_of: Vec<usize> = vec![usize::MAX; self.nodes.len()];
        let components = petgraph::algo::tarjan_scc(&graph);
        for (number, component) in components.iter().enumerate() {
            for n in component {
                if let Some(slot) = component_of.get_mut(n.index()) {
                    *slot = number;
                }
            }
        }
        let mut waits: Vec<Option<u128>> = vec![None; components.len()];
        for edge in graph.edge_references() {
            let (a, b) = (component_of.get(edge.source().index()), component_of.get(edge.target().index()));
            if a == b
                && let Some(slot) = a.and_then(|c| waits.get_mut(*c))
            {
                let continuing = self.edges.get(*edge.weight()).map_or(0, |e| e.continuing);
                *slot = Some(slot.map_or(continuing, |w| w & continuing));
            }
        }
        let fair = |n: &&u32| component_of.get(**n as usize).and_then(|c| waits.get(*c)).copied().flatten() == Some(0);
        let node = *order.iter().find(fair)?;
        let cycle = self.fair_cycle(&graph, index(node)?, &component_of);
        let mut moves = path_to(node);
        let repeats = cycle.len();
        moves.extend(cycle);
        Some(Lasso { moves, repeats })
    }

    /// Builds a cycle through a component, from `start` back to it, on which every wait ends.
    fn fair_cycle(&self, graph: &DiGraph<u32, usize>, start: NodeIndex, component_of: &[usize]) -> Vec<Arc<Move>> {
        let inside = |n: NodeIndex| component_of.get(n.index()) == component_of.get(start.index());
        let mut at = start;
        let mut waits = u128::MAX;
        let mut moves = Vec::new();
        // Each segment ends at least one wait, so there are at most as many segments as waits.
        for _ in 0..130 {
            let goal = |e: &Edge| waits & !e.continuing != 0;
            let Some((edges, end)) =
                path_to_edge(graph, at, &inside, &|place, _| self.edges.get(place).is_some_and(goal))
            else {
                break;
            };
            for edge in edges.iter().filter_map(|p| self.edges.get(*p)) {
                waits &= edge.continuing;
                moves.push(edge.how.clone());
            }
            at = end;
            if waits == 0 {
                break;
            }
        }
        if at != start
            && let Some((edges, _)) = path_to_edge(graph, at, &inside, &|_, to| to == start)
        {
            moves.extend(edges.iter().filter_map(|p| self.edges.get(*p)).map(|e| e.how.clone()));
        }
        moves
    }
}

/// Finds a shortest path that ends with an edge that satisfies `wanted`; returns its edges and its
/// end.
fn path_to_edge(
    graph: &DiGraph<u32, usize>,
    from: NodeIndex,
    inside: &dyn Fn(NodeIndex) -> bool,
    wanted: &dyn Fn(usize, NodeIndex) -> bool,
) -> Option<(Vec<usize>, NodeIndex)> {
    let mut before: rustc_hash::FxHashMap<NodeIndex, (NodeIndex, usize)> = rustc_hash::FxHashMap::default();
    let mut waiting = VecDeque::from([from]);
    while let Some(at) = waiting.pop_front() {
        for edge in graph.edges(at).filter(|e| inside(e.target())) {
            if wanted(*edge.weight(), edge.target()) {
                let mut path = vec![*edge.weight()];
                let mut back = at;
                while back != from {
                    let (previous, place) = before.get(&back).copied()?;
                    path.push(place);
                    back = previous;
                }
                path.reverse();
                return Some((path, edge.target()));
            }
            if edge.target() != from && !before.contains_key(&edge.target()) {
                before.insert(edge.target(), (at, *edge.weight()));
                waiting.push_back(edge.target());
            }
        }
    }
    None
}
