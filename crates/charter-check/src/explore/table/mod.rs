//! The fast exploration for charters whose behavior depends only on the configuration: no
//! conditions, actors, timers or raised events. An explored state is a set of active leaf states
//! with one bit each, and a step takes a few bit operations, so that millions of states are
//! explored per second.
//!
//! This is a second implementation of the algorithm (appendix D of SCXML without history and
//! internal events); tests compare it with the kernel.

mod build;

use std::sync::Arc;

use serde_json::Value as Json;

use super::Exploration;
use super::moves::{Move, MoveKind, START};
use super::obstacle::obstacle;
use super::predecessors::{NO_PARENT, PredecessorTree};
use super::set::{Set, push};
use crate::Options;
use crate::effort::{Effort, fuel, units};
use crate::model::{Chart, Model};
pub(crate) use build::table;

/// What following an explored state costs, in the fuel of the kernel.
const FUEL_PER_STATE: u64 = 2;
/// The labels that are looked at for a unit of fuel.
const LABELS_PER_UNIT: u64 = 32;
/// The edges that are followed for a unit of fuel.
const EDGES_PER_UNIT: usize = 4;
/// Upper limit of leaf states, because each has one bit of a `u64`.
const MAX_LEAVES: usize = 64;

/// A charter as a transition table.
pub(crate) struct Table {
    /// The leaf state of each bit.
    leaves: Vec<u32>,
    start: u64,
    /// Leaves that end the run.
    finals: u64,
    labels: Vec<Label>,
    transitions: Vec<LeafTransition>,
    input: Json,
    /// The most principals that are tried for one event.
    principals: usize,
}

/// A label of the transition system: an event from a sender, and the transition that each leaf
/// takes for it.
struct Label {
    how: Arc<Move>,
    /// The leaves that have a transition for it.
    mask: u64,
    /// For each bit, the index of the transition in [`Table::transitions`].
    offers: Vec<u32>,
}

/// A transition as sets of leaves.
#[derive(Debug, Clone, Copy)]
struct LeafTransition {
    transition: u32,
    source: u32,
    /// The leaves below its domain, active or not; empty if the transition has no target.
    exits: u64,
    entries: u64,
}

impl Table {
    fn bit(&self, leaf: u32) -> u64 {
        let place = self.leaves.binary_search(&leaf).ok().and_then(|p| u32::try_from(p).ok());
        place.and_then(|p| 1u64.checked_shl(p)).unwrap_or(0)
    }

    fn bits(&self, leaves: &[u32]) -> u64 {
        leaves.iter().fold(0, |bits, leaf| bits | self.bit(*leaf))
    }

    /// Executes one step and adds its transitions to `taken`. Returns `None` if no transition
    /// handles the event.
    #[inline]
    fn step(&self, chart: &Chart<'_>, configuration: u64, label: &Label, taken: &mut Vec<u32>) -> Option<u64> {
        let mut offering = configuration & label.mask;
        if offering == 0 {
            return None;
        }
        taken.clear();
        while offering != 0 {
            let place = offering.trailing_zeros() as usize;
            offering &= offering.wrapping_sub(1);
            if let Some(t) = label.offers.get(place).filter(|t| !taken.contains(t)) {
                taken.push(*t);
            }
        }
        if taken.len() > 1 {
            self.remove_conflicting(chart, configuration, taken);
        }
        let (mut exits, mut entries) = (0, 0);
        for transition in taken.iter().filter_map(|t| self.transitions.get(*t as usize)) {
            exits |= transition.exits;
            entries |= transition.entries;
        }
        Some(configuration & !exits | entries)
    }

    /// Removes conflicting transitions (appendix D, `removeConflictingTransitions`).
    #[cold]
    fn remove_conflicting(&self, chart: &Chart<'_>, configuration: u64, taken: &mut Vec<u32>) {
        let mut kept: Vec<LeafTransition> = Vec::new();
        for transition in taken.iter().filter_map(|t| self.transitions.get(*t as usize)) {
            let meets = |other: &LeafTransition| transition.exits & other.exits & configuration != 0;
            let inner = |other: &LeafTransition| chart.inside(transition.source, other.source);
            if kept.iter().any(|o| meets(o) && !inner(o)) {
                continue;
            }
            kept.retain(|o| !meets(o));
            kept.push(*transition);
        }
        taken.clear();
        taken.extend(kept.iter().map(|w| w.transition));
    }

    /// Explores all reachable configurations.
    pub(crate) fn explore(&self, model: &Model<'_>, options: &Options) -> Exploration {
        let mut out = Exploration::new(model);
        out.obstacle = obstacle(model);
        (out.explored.principals, out.explored.data) = (self.principals, 1);
        let Some(chart) = model.charts.first() else {
            return out;
        };
        let mut set = Set::new();
        let mut parents: Vec<u32> = Vec::new();
        let mut labels: Vec<u16> = Vec::new();
        let (mut leaves_seen, mut level_end, mut depth) = (0u64, 1usize, 0usize);
        let mut taken = Vec::new();
        let mut first: Vec<Option<(u32, u16)>> = vec![None; self.transitions.len()];
        set.insert(self.start);
        push(&mut parents, NO_PARENT);
        push(&mut labels, 0);
        let mut edges = 0usize;
        let mut node = 0usize;
        let effort = Effort::new(fuel(options.effort));
        while let Some(configuration) = set.get(node) {
            if effort.is_over() {
                let left = set.len().saturating_sub(node);
                out.cut(format!("the effort ended, and {left} states were not followed"));
                break;
            }
            effort.spend(FUEL_PER_STATE.saturating_add(units(self.labels.len()) / LABELS_PER_UNIT));
            if node == level_end {
                level_end = set.len();
                depth = depth.saturating_add(1);
                if depth >= options.max_depth {
                    out.cut(format!("paths of more than {} events were not followed", options.max_depth));
                    break;
                }
            }
            let number = u32::try_from(node).unwrap_or(u32::MAX);
            let new = configuration & !leaves_seen;
            if new != 0 {
                leaves_seen |= new;
                self.reach(chart, new, number, &mut out);
            }
            let mut accepted = configuration & self.finals != 0;
            if !accepted {
                for (label, place) in self.labels.iter().zip(0u16..) {
                    let Some(next) = self.step(chart, configuration, label, &mut taken) else {
                        continue;
                    };
                    accepted = true;
                    edges = edges.saturating_add(1);
                    effort.spend(u64::from(edges.is_multiple_of(EDGES_PER_UNIT)));
                    for t in &taken {
                        if let Some(slot) = first.get_mut(*t as usize).filter(|f| f.is_none()) {
                            *slot = Some((number, place));
                        }
                    }
                    if set.len() >= options.max_plain_states {
                        if !set.contains(next) {
                            out.cut(format!("more than {} states", options.max_plain_states));
                        }
                    } else if set.insert(next) {
                        push(&mut parents, number);
                        push(&mut labels, place);
                    }
                }
            }
            if !accepted && out.ends.len() < 10 {
                out.ends.push((number, false));
            }
            node = node.saturating_add(1);
        }
        out.explored.states = set.len();
        out.explored.edges = edges;
        for (transition, found) in first.iter().enumerate() {
            if let Some((node, label)) = found
                && let (Some(slot), Some(label)) =
                    (out.taken.first_mut().and_then(|t| t.get_mut(transition)), self.labels.get(usize::from(*label)))
            {
                *slot = Some((*node, label.how.clone()));
            }
        }
        let start = Arc::new(Move { at: START, kind: MoveKind::Start { input: self.input.clone(), by: None } });
        out.predecessors = PredecessorTree::Labels {
            parents,
            labels,
            moves: self.labels.iter().map(|l| l.how.clone()).collect(),
            start,
        };
        // A certain deadlock: no active state has a transition for any label.
        for (node, stuck) in &mut out.ends {
            let configuration = set.get(*node as usize).unwrap_or(0);
            *stuck = self.labels.iter().all(|l| l.mask & configuration == 0);
        }
        out
    }

    fn reach(&self, chart: &Chart<'_>, new: u64, node: u32, out: &mut Exploration) {
        let Some(reached) = out.reached.first_mut() else {
            return;
        };
        for leaf in self.leaves.iter().filter(|l| self.bit(**l) & new != 0) {
            for state in chart.upwards(*leaf) {
                if let Some(slot) = reached.get_mut(state as usize) {
                    slot.get_or_insert(node);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_takes_less_than_60_bytes() {
        let mut source = String::from(
            "charter: 1\nid: t\nevents: {A: {}, B: {}, C: {}, D: {}, E: {}}\nstates:\n  p:\n    type: parallel\n    states:\n",
        );
        for r in ["A", "B", "C", "D", "E"] {
            source.push_str(&format!("      {r}: {{states: {{"));
            (0..9).for_each(|s| source.push_str(&format!("s{s}: {{on: {{{r}: s{}}}}}, ", (s + 1) % 9)));
            source.push_str("}}\n");
        }
        let document = charter_format::read(&source, "t.yaml", &charter_format::ReadOptions::default()).unwrap();
        let machine = charter_kernel::Machine::compile(document.definition).unwrap();
        let found = crate::explore(&machine, &Options::default());
        assert_eq!(found.explored.states, 9usize.pow(5));
        let PredecessorTree::Labels { parents, labels, .. } = &found.predecessors else { panic!("no table") };
        // A set with the same number of keys takes the same memory as the set of the exploration.
        let mut set = Set::new();
        (0..found.explored.states as u64).for_each(|k| assert!(set.insert(k)));
        let bytes = set.bytes() + parents.capacity() * 4 + labels.capacity() * 2;
        assert!(bytes < 60 * found.explored.states, "{} bytes each", bytes / found.explored.states);
    }
}
