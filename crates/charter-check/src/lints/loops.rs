//! Cycles that a run can follow without any event from outside.

use std::collections::VecDeque;

use charter_kernel::definition::{self, Action};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashSet;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::{Item, variable_of};
use crate::model::{Chart, Model, Trigger};

/// Leaf states as nodes. An edge is a transition (by index) that leads from one leaf to the next
/// without an event from outside.
type LeafGraph = DiGraph<u32, u32>;

fn leaf_graph<'d>(model: &Model<'d>, chart: &Chart<'d>, which: &dyn Fn(u32) -> bool) -> LeafGraph {
    let mut graph = LeafGraph::new();
    let nodes: Vec<Option<NodeIndex>> = (0u32..)
        .zip(&chart.states)
        .map(|(number, _)| chart.leaves(number).next().filter(|leaf| *leaf == number).map(|leaf| graph.add_node(leaf)))
        .collect();
    let node = |state: u32| nodes.get(state as usize).copied().flatten();
    for (number, t) in chart.all().filter(|(n, _)| which(*n)) {
        let from: Vec<u32> = match t.trigger {
            Trigger::On(_) => continue,
            Trigger::StateDone => chart
                .leaves(t.source)
                .filter(|l| chart.state(*l).kind == charter_kernel::definition::StateKind::Final)
                .collect(),
            _ => chart.leaves(t.source).collect(),
        };
        let to: Vec<u32> = match (t.targets, t.trigger) {
            // An eventless transition without a target is evaluated again immediately.
            ([], Trigger::Always) => from.clone(),
            (targets, _) => targets.iter().flat_map(|s| chart.default_leaves(*s)).collect(),
        };
        // An eventless transition that changes nothing is not taken again at once, if the chart
        // settles.
        let settles = chart.def.settles && t.trigger == Trigger::Always && !changes(model, t.def);
        for a in &from {
            for b in to.iter().filter(|b| !settles || *b != a) {
                // A transition without a target leads from each leaf only to itself.
                if let (Some(x), Some(y)) = (node(*a), node(*b))
                    && (!t.targets.is_empty() || a == b)
                {
                    graph.add_edge(x, y, number);
                }
            }
        }
    }
    graph
}

/// Whether the actions of a transition set variables, write the ledger or start or stop actors.
fn changes<'d>(model: &Model<'d>, t: &'d definition::Transition) -> bool {
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

/// Finds the first cycle of the graph in document order, as transitions.
fn cycle(graph: &LeafGraph) -> Option<Vec<u32>> {
    let mut components: Vec<Vec<NodeIndex>> = petgraph::algo::tarjan_scc(graph);
    components.retain(|c| c.len() > 1 || c.first().is_some_and(|n| graph.contains_edge(*n, *n)));
    components.iter_mut().for_each(|c| c.sort());
    components.sort();
    let component = components.first()?;
    let start = *component.first()?;
    // Find a shortest path from the first state back to itself.
    let mut before: Vec<Option<(NodeIndex, u32)>> = vec![None; graph.node_count()];
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for edge in graph.edges(at).filter(|e| component.binary_search(&e.target()).is_ok()) {
            if edge.target() == start {
                let mut path = vec![*edge.weight()];
                let mut back = at;
                while back != start {
                    let (previous, t) = before.get(back.index()).copied().flatten()?;
                    path.push(t);
                    back = previous;
                }
                path.reverse();
                return Some(path);
            }
            if let Some(place) = before.get_mut(edge.target().index()).filter(|b| b.is_none()) {
                *place = Some((at, *edge.weight()));
                waiting.push_back(edge.target());
            }
        }
    }
    None
}

fn names(chart: &Chart<'_>, path: &[u32]) -> String {
    let mut names: Vec<String> = path.iter().map(|t| format!("`{}`", chart.transition(*t).name)).collect();
    names.dedup();
    names.join(", then ")
}

/// Reports cycles of eventless transitions without a condition.
pub(crate) fn always(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let free = |n: u32| {
            let t = chart.transition(n);
            t.trigger == Trigger::Always && t.is_unconditional() && t.def.by.is_empty()
        };
        if let Some(path) = cycle(&leaf_graph(model, chart, &free)) {
            let at = path.first().map_or("", |t| chart.transition(*t).at);
            let message = format!(
                "this cycle never ends: {}, and so on; every event that leads here is refused as `runaway`",
                names(chart, &path)
            );
            findings.push(
                Finding::new(Severity::Error, codes::ALWAYS_LOOP, at, message)
                    .help("add a guard that ends the cycle to one of the transitions"),
            );
        }
    }
}

/// Reports cycles of answers, completions and eventless transitions that no counter limits.
pub(crate) fn unbounded(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let is_after = |n: u32| chart.transition(n).trigger == Trigger::After;
        let is_free_always =
            |n: u32| chart.transition(n).trigger == Trigger::Always && chart.transition(n).is_unconditional();
        if cycle(&leaf_graph(model, chart, &is_free_always)).is_some() {
            continue; // reported by `always`
        }
        let fast = uncounted(model, chart, &|n| !is_after(n));
        let (path, severity) = match fast {
            Some(path) => (path, Severity::Warning),
            None => match uncounted(model, chart, &|_| true) {
                Some(path) => (path, Severity::Info),
                None => continue,
            },
        };
        let at = path.first().map_or("", |t| chart.transition(*t).at);
        let message = format!(
            "unbounded loop: {}, and so on, without any event from outside; no condition in it reads a context variable that the loop assigns",
            names(chart, &path)
        );
        let help = "count the iterations in a context variable and test it in a guard";
        findings.push(Finding::new(severity, codes::LOOP_WITHOUT_BOUND, at, message).help(help));
    }
}

/// Finds a cycle that remains after the transitions with a counter are removed.
fn uncounted<'d>(model: &Model<'d>, chart: &Chart<'d>, which: &dyn Fn(u32) -> bool) -> Option<Vec<u32>> {
    let graph = leaf_graph(model, chart, which);
    let mut counted: FxHashSet<u32> = FxHashSet::default();
    for component in petgraph::algo::tarjan_scc(&graph) {
        let inside: FxHashSet<NodeIndex> = component.iter().copied().collect();
        let edges: FxHashSet<u32> = component
            .iter()
            .flat_map(|n| graph.edges(*n))
            .filter(|e| inside.contains(&e.target()))
            .map(|e| *e.weight())
            .collect();
        let mut assigned: FxHashSet<String> = FxHashSet::default();
        let mut note = |_: &str, item: Item<'_>| {
            if let Item::Assign(path, _) = item {
                assigned.insert(variable_of(path).to_string());
            }
        };
        for t in &edges {
            model.visit_block(&chart.transition(*t).def.actions, "", &mut note);
        }
        for leaf in component.iter().filter_map(|n| graph.node_weight(*n)).filter(|_| !edges.is_empty()) {
            for state in chart.upwards(*leaf).collect::<Vec<_>>() {
                model.visit_blocks(&chart.state(state).def.entry, "", &mut note);
                model.visit_blocks(&chart.state(state).def.exit, "", &mut note);
            }
        }
        counted.extend(edges.into_iter().filter(|t| reads_any(model, chart, *t, &assigned)));
    }
    cycle(&leaf_graph(model, chart, &|n| which(n) && !counted.contains(&n)))
}

/// Whether a transition, or another transition that is tried before it, reads one of these
/// variables.
fn reads_any<'d>(model: &Model<'d>, chart: &Chart<'d>, number: u32, variables: &FxHashSet<String>) -> bool {
    let t = chart.transition(number);
    let before = chart.state(t.source).transitions.iter().map(|n| chart.transition(*n));
    let mut found = false;
    for candidate in before.filter(|c| c.trigger == t.trigger).take_while(|c| c.at != t.at).chain(std::iter::once(t)) {
        model.visit_condition(candidate.def, candidate.at, &mut |_, item| {
            if let Item::Cel(cel) = item {
                found |= model.context_reads(cel).into_iter().any(|v| v.is_none_or(|v| variables.contains(&v)));
            }
        });
        // A permit with a limited number of uses is a counter, too.
        found |= !candidate.def.requires.is_empty();
    }
    found
}
