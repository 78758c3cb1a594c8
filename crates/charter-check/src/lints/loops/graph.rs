//! The cycles of transitions that need no event from outside, as a graph whose size is linear in
//! the chart: a leaf leads up to its ancestors, these to their transitions, and a target leads down
//! to the leaves that are entered by default. An edge from each leaf to each leaf would be
//! quadratic.

use std::collections::VecDeque;

use charter_kernel::definition::{Action, StateKind, Transition};
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashSet;

use crate::model::walk::Item;
use crate::model::{Chart, Model, Trigger};

/// The nodes of a state. Those of transitions follow.
#[derive(Clone, Copy)]
enum Node {
    /// The state is active. That of a leaf is where a cycle starts and ends.
    Active,
    /// The state is entered.
    Entered,
    /// A final state at or below the state is active.
    Final,
    /// A sibling before the state is active.
    Before,
    /// A sibling behind the state is active.
    Behind,
}

const NODES: usize = 5;

pub(super) struct Graph<'m, 'd> {
    chart: &'m Chart<'d>,
    graph: DiGraph<Option<u32>, ()>,
    /// Eventless transitions without a target: each leads from each leaf of its source to itself.
    stays: Vec<u32>,
}

/// States and transitions that lead to each other.
pub(super) struct Component {
    /// In document order.
    pub(super) leaves: Vec<u32>,
    pub(super) transitions: Vec<u32>,
    nodes: FxHashSet<NodeIndex>,
}

impl<'m, 'd> Graph<'m, 'd> {
    /// The graph of the transitions for which `which` holds.
    pub(super) fn new(model: &Model<'d>, chart: &'m Chart<'d>, which: &dyn Fn(u32) -> bool) -> Graph<'m, 'd> {
        let mut made = Graph { chart, graph: DiGraph::new(), stays: Vec::new() };
        for _ in 0..chart.states.len().saturating_mul(NODES) {
            made.graph.add_node(None);
        }
        made.states();
        for (number, t) in chart.all().filter(|(n, t)| !matches!(t.trigger, Trigger::On(_)) && which(*n)) {
            // An eventless transition that changes nothing is not taken again at once, if the chart
            // settles.
            let settles = chart.def.settles && t.trigger == Trigger::Always && !changes(model, t.def);
            if t.targets.is_empty() {
                if t.trigger == Trigger::Always && !settles {
                    made.stays.push(number);
                }
                continue;
            }
            let own: Vec<u32> = match settles {
                true => t.targets.iter().flat_map(|s| chart.default_leaves(*s)).collect(),
                false => Vec::new(),
            };
            match own.iter().filter(|leaf| **leaf == t.source || chart.inside(**leaf, t.source)).collect::<Vec<_>>()[..]
            {
                // It leads from all other leaves of its source to this one.
                [leaf] => made.others(number, t.source, *leaf),
                _ => made.transition(number),
            }
        }
        made
    }

    fn edge(&mut self, from: NodeIndex, to: NodeIndex) {
        self.graph.add_edge(from, to, ());
    }

    fn states(&mut self) {
        let chart = self.chart;
        for (number, known) in (0u32..).zip(&chart.outline.states) {
            if let Some(parent) = known.parent {
                self.edge(at(number, Node::Active), at(parent, Node::Active));
                self.edge(at(number, Node::Final), at(parent, Node::Final));
            }
            // As in `Chart::default_leaves`.
            let below: &[u32] = match known.kind {
                StateKind::Atomic | StateKind::Final => {
                    self.edge(at(number, Node::Entered), at(number, Node::Active));
                    if known.kind == StateKind::Final {
                        self.edge(at(number, Node::Active), at(number, Node::Final));
                    }
                    &[]
                }
                StateKind::Parallel => known.children,
                StateKind::Compound => known.initial,
                StateKind::Shallow | StateKind::Deep => match (known.initial, &known.parent) {
                    ([], Some(parent)) => std::slice::from_ref(parent),
                    (initial, _) => initial,
                },
            };
            for child in below {
                self.edge(at(number, Node::Entered), at(*child, Node::Entered));
            }
            for pair in known.children.windows(2).filter(|_| chart.def.settles) {
                if let [a, b] = *pair {
                    for (from, to, side) in [(a, b, Node::Before), (b, a, Node::Behind)] {
                        self.edge(at(from, Node::Active), at(to, side));
                        self.edge(at(from, side), at(to, side));
                    }
                }
            }
        }
    }

    fn transition(&mut self, number: u32) {
        let t = self.chart.transition(number);
        let node = self.graph.add_node(Some(number));
        let from = if t.trigger == Trigger::StateDone { Node::Final } else { Node::Active };
        self.edge(at(t.source, from), node);
        for target in t.targets {
            self.edge(node, at(*target, Node::Entered));
        }
    }

    /// Adds a transition to a leaf, from all other leaves of its source.
    fn others(&mut self, number: u32, source: u32, leaf: u32) {
        let node = self.graph.add_node(Some(number));
        self.edge(node, at(leaf, Node::Active));
        let below: Vec<u32> = self.chart.upwards(leaf).take_while(|s| *s != source).collect();
        for state in below {
            self.edge(at(state, Node::Before), node);
            self.edge(at(state, Node::Behind), node);
        }
    }

    /// The eventless transitions without a target.
    pub(super) fn stays(&self) -> &[u32] {
        &self.stays
    }

    /// The cycles of transitions with targets.
    pub(super) fn components(&self) -> Vec<Component> {
        let states = self.chart.states.len();
        let mut found = Vec::new();
        for nodes in petgraph::algo::kosaraju_scc(&self.graph) {
            let transitions: Vec<u32> =
                nodes.iter().filter_map(|n| self.graph.node_weight(*n).copied().flatten()).collect();
            if nodes.len() < 2 || transitions.is_empty() {
                continue;
            }
            let is_leaf = |s: &u32| matches!(self.chart.state(*s).kind, StateKind::Atomic | StateKind::Final);
            let active = |n: &NodeIndex| {
                let state = u32::try_from(n.index() / NODES).ok().filter(|_| n.index() / NODES < states)?;
                (*n == at(state, Node::Active)).then_some(state)
            };
            let mut leaves: Vec<u32> = nodes.iter().filter_map(active).filter(is_leaf).collect();
            leaves.sort_unstable();
            found.push(Component { leaves, transitions, nodes: nodes.into_iter().collect() });
        }
        found
    }

    /// Finds the first cycle in document order, as transitions.
    pub(super) fn cycle(&self) -> Option<Vec<u32>> {
        let first = |t: &u32| self.chart.leaves(self.chart.transition(*t).source).next();
        let stay = self.stays.iter().filter_map(|t| Some((first(t)?, *t))).min();
        let components = self.components();
        let component = components.iter().filter_map(|c| Some((*c.leaves.first()?, c))).min_by_key(|(leaf, _)| *leaf);
        match (stay, component) {
            (Some((at, t)), Some((leaf, _))) if at <= leaf => Some(vec![t]),
            (_, Some((leaf, component))) => self.shortest(leaf, component),
            (stay, None) => stay.map(|(_, t)| vec![t]),
        }
    }

    /// A path with the fewest transitions from a leaf back to itself.
    fn shortest(&self, leaf: u32, component: &Component) -> Option<Vec<u32>> {
        let start = at(leaf, Node::Active);
        // For each node, how many transitions lead there, and the node before it.
        let mut known: Vec<Option<(usize, NodeIndex)>> = vec![None; self.graph.node_count()];
        let mut waiting = VecDeque::from([(0usize, start)]);
        while let Some((count, node)) = waiting.pop_front() {
            if node != start && known.get(node.index()).copied().flatten().is_some_and(|(best, _)| best < count) {
                continue;
            }
            for next in self.graph.neighbors(node).filter(|n| component.nodes.contains(n)) {
                if next == start {
                    let mut path = Vec::new();
                    let mut back = node;
                    while back != start {
                        path.extend(self.graph.node_weight(back).copied().flatten());
                        back = known.get(back.index()).copied().flatten()?.1;
                    }
                    path.reverse();
                    return Some(path);
                }
                let is_transition = self.graph.node_weight(next).is_some_and(Option::is_some);
                let count = count.saturating_add(usize::from(is_transition));
                if let Some(place) = known.get_mut(next.index()).filter(|k| k.is_none_or(|(best, _)| count < best)) {
                    *place = Some((count, node));
                    match is_transition {
                        true => waiting.push_back((count, next)),
                        false => waiting.push_front((count, next)),
                    }
                }
            }
        }
        None
    }
}

fn at(state: u32, node: Node) -> NodeIndex {
    NodeIndex::new((state as usize).saturating_mul(NODES).saturating_add(node as usize))
}

/// Whether the actions of a transition set variables, write the ledger or start or stop actors.
fn changes<'d>(model: &Model<'d>, t: &'d Transition) -> bool {
    let mut found = false;
    model.visit_block(&t.actions, "", &mut |_, item| {
        found |= match item {
            Item::Assign(..) => true,
            Item::Action(action) => matches!(
                action,
                Action::Spawn { .. }
                    | Action::Stop(_)
                    | Action::Grant { .. }
                    | Action::Revoke { .. }
                    | Action::Open { .. }
                    | Action::Close { .. }
            ),
            _ => false,
        };
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transitions of all states, from every leaf and to every region, that need no event.
    #[test]
    fn the_graph_is_linear_in_the_chart() {
        let (n, mut always, mut regions) = (300, String::new(), String::new());
        for i in 0..n {
            always += &format!("  - {{when: context.n == {i}}}\n  - {{when: context.n == -{i}, target: p}}\n");
            regions += &format!("      r{i}: {{initial: a, states: {{a: {{}}, b: {{always: a}}}}}}\n");
        }
        let source = format!(
            "charter: 1\nid: test\nversion: 1.0.0\ncontext: {{n: 0}}\ninitial: p\nalways:\n{always}states:\n  p:\n    type: parallel\n    states:\n{regions}"
        );
        let document = charter_format::read(&source, "test", &charter_format::ReadOptions::default()).unwrap();
        let machine = charter_kernel::Machine::compile(document.definition.clone()).unwrap();
        let model = Model::new(&document.definition, &machine);
        let chart = model.charts.first().unwrap();
        let graph = Graph::new(&model, chart, &|_| true);
        assert_eq!(graph.stays().len(), n);
        let edges = graph.graph.edge_count();
        assert!(edges <= (chart.states.len() + chart.transitions.len()) * NODES, "{edges} edges");
        assert!(edges > chart.states.len(), "{edges} edges");
        // One cycle: each region is entered again from each other one.
        let components = graph.components();
        assert_eq!(components.iter().map(|c| (c.leaves.len(), c.transitions.len())).collect::<Vec<_>>(), [(n, n)]);
    }
}
