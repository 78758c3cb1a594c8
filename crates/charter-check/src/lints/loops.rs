//! Circles that a run can go round without any event from outside.

use std::collections::VecDeque;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashSet;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::{Item, variable_of};
use crate::model::{Chart, Model, Trigger};

/// Leaf states, and the transitions (by number) that lead from one to the next without an event from outside.
type Ways = DiGraph<u32, u32>;

fn ways(chart: &Chart<'_>, which: &dyn Fn(u32) -> bool) -> Ways {
    let mut graph = Ways::new();
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
            // An eventless transition without a target is tried again at once.
            ([], Trigger::Always) => from.clone(),
            (targets, _) => targets.iter().flat_map(|s| chart.default_leaves(*s)).collect(),
        };
        for a in &from {
            for b in &to {
                // Without a target, a leaf only leads to itself.
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

/// A circle in the graph, as transitions; the one that comes first in the document.
fn circle(graph: &Ways) -> Option<Vec<u32>> {
    let mut components: Vec<Vec<NodeIndex>> = petgraph::algo::tarjan_scc(graph);
    components.retain(|c| c.len() > 1 || c.first().is_some_and(|n| graph.contains_edge(*n, *n)));
    components.iter_mut().for_each(|c| c.sort());
    components.sort();
    let component = components.first()?;
    let start = *component.first()?;
    // The shortest way from the first state back to itself.
    let mut before: Vec<Option<(NodeIndex, u32)>> = vec![None; graph.node_count()];
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        for edge in graph.edges(at).filter(|e| component.binary_search(&e.target()).is_ok()) {
            if edge.target() == start {
                let mut way = vec![*edge.weight()];
                let mut back = at;
                while back != start {
                    let (previous, t) = before.get(back.index()).copied().flatten()?;
                    way.push(t);
                    back = previous;
                }
                way.reverse();
                return Some(way);
            }
            if let Some(place) = before.get_mut(edge.target().index()).filter(|b| b.is_none()) {
                *place = Some((at, *edge.weight()));
                waiting.push_back(edge.target());
            }
        }
    }
    None
}

fn names(chart: &Chart<'_>, way: &[u32]) -> String {
    let mut names: Vec<String> = way.iter().map(|t| format!("`{}`", chart.transition(*t).name)).collect();
    names.dedup();
    names.join(", then ")
}

/// Eventless transitions without any condition.
pub(crate) fn always(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let free = |n: u32| {
            let t = chart.transition(n);
            t.trigger == Trigger::Always && t.is_unconditional() && t.def.by.is_empty()
        };
        if let Some(way) = circle(&ways(chart, &free)) {
            let at = way.first().map_or("", |t| chart.transition(*t).at);
            let message = format!(
                "this never comes to rest: {}, and so on; every event that leads here is refused as `runaway`",
                names(chart, &way)
            );
            findings.push(
                Finding::new(Severity::Error, codes::ALWAYS_LOOP, at, message)
                    .help("give one of them a guard that stops holding, or a target outside"),
            );
        }
    }
}

/// Circles of answers, completions and eventless transitions that nothing counts.
pub(crate) fn unbounded(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let is_after = |n: u32| chart.transition(n).trigger == Trigger::After;
        let is_free_always =
            |n: u32| chart.transition(n).trigger == Trigger::Always && chart.transition(n).is_unconditional();
        if circle(&ways(chart, &is_free_always)).is_some() {
            continue; // reported by `always`
        }
        let fast = uncounted(model, chart, &|n| !is_after(n));
        let (way, severity) = match fast {
            Some(way) => (way, Severity::Warning),
            None => match uncounted(model, chart, &|_| true) {
                Some(way) => (way, Severity::Info),
                None => continue,
            },
        };
        let at = way.first().map_or("", |t| chart.transition(*t).at);
        let message = format!(
            "loop without bound: {}, and so on, without any event from outside; no condition on the way reads a context variable that the loop assigns",
            names(chart, &way)
        );
        let help = "count the rounds in a context variable and compare it in a guard";
        findings.push(Finding::new(severity, codes::LOOP_WITHOUT_BOUND, at, message).help(help));
    }
}

/// A circle that is left once what counts its rounds is taken out.
fn uncounted<'d>(model: &Model<'d>, chart: &Chart<'d>, which: &dyn Fn(u32) -> bool) -> Option<Vec<u32>> {
    let graph = ways(chart, which);
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
        counted.extend(edges.into_iter().filter(|t| judges(model, chart, *t, &assigned)));
    }
    circle(&ways(chart, &|n| which(n) && !counted.contains(&n)))
}

/// Whether a transition, or one that is tried before it, reads one of these variables.
fn judges<'d>(model: &Model<'d>, chart: &Chart<'d>, number: u32, variables: &FxHashSet<String>) -> bool {
    let t = chart.transition(number);
    let before = chart.state(t.source).transitions.iter().map(|n| chart.transition(*n));
    let mut found = false;
    for candidate in before.filter(|c| c.trigger == t.trigger).take_while(|c| c.at != t.at).chain(std::iter::once(t)) {
        model.visit_condition(candidate.def, candidate.at, &mut |_, item| {
            if let Item::Cel(cel) = item {
                found |= model.context_reads(cel).into_iter().any(|v| v.is_none_or(|v| variables.contains(&v)));
            }
        });
        // A permit with a number of uses counts, too.
        found |= !candidate.def.requires.is_empty();
    }
    found
}
