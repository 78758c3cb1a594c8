//! The exploration where nothing but the configuration matters: no conditions, no work, no timers, nothing raised. A situation is a set
//! of active leaf states, one bit each, and a step is a few operations on bits: millions of situations a second.
//!
//! This is a second reading of the algorithm (appendix D of SCXML without history and internal events); tests compare it with the kernel.

use std::collections::BTreeSet;
use std::sync::Arc;

use charter_kernel::Principal;
use charter_kernel::definition::{Action, Block, StateKind, Template};
use serde_json::Value as Json;

use super::Exploration;
use super::cone::Probes;
use super::data::samples;
use super::moves::{Move, MoveKind, START};
use super::predecessors::{NO_PARENT, PredecessorTree};
use super::set::Set;
use crate::Options;
use crate::model::{Chart, Model, Trigger, is_platform, matches};

/// Leaves that a set of bits has room for.
const MAX_LEAVES: usize = 64;

/// A charter as a table.
pub(crate) struct Table {
    /// Leaf states by bit.
    leaves: Vec<u32>,
    start: u64,
    /// Leaves that end the run.
    finals: u64,
    labels: Vec<Label>,
    transitions: Vec<LeafTransition>,
    input: Json,
}

/// An event by a sender: which transition each leaf offers.
struct Label {
    how: Arc<Move>,
    /// Leaves that offer one.
    mask: u64,
    /// By bit: number in [`Table::transitions`].
    offers: Vec<u32>,
}

/// A transition as sets of leaves.
#[derive(Debug, Clone, Copy)]
struct LeafTransition {
    transition: u32,
    source: u32,
    /// MoveKind it exits, whether active or not; empty for a targetless one.
    exits: u64,
    entries: u64,
}

/// The table of a charter, if nothing but the configuration matters.
pub(crate) fn table(model: &Model<'_>) -> Option<Table> {
    let [chart] = model.charts.as_slice() else {
        return None;
    };
    let def = model.def;
    if !def.interlocks.is_empty() || !def.properties.is_empty() || chart.def.output.is_some() {
        return None;
    }
    // MoveKind cannot fail: literals.
    let plain = |t: &Template| matches!(t, Template::Literal(_));
    if !chart.def.context.values().all(plain) || !chart.states.iter().all(|s| simple_state(model, s.def)) {
        return None;
    }
    if !chart.transitions.iter().all(|t| simple_transition(model, t)) {
        return None;
    }
    let leaves: Vec<u32> = chart.leaves(0).collect();
    if leaves.is_empty() || leaves.len() > MAX_LEAVES {
        return None;
    }
    let root = chart.state(0).kind;
    let is_final = |s: &u32| chart.state(*s).kind == StateKind::Final;
    if root == StateKind::Parallel && leaves.iter().any(is_final) {
        return None; // the regions end the run together
    }
    let input = samples(def.root.input.as_ref(), &Probes::new(), 1).values.pop()?;
    let mut table = Table { start: 0, finals: 0, labels: Vec::new(), transitions: Vec::new(), input, leaves };
    table.start = table.bits(&entered(chart, &[0], None));
    for leaf in table.leaves.iter().filter(|l| is_final(l) && chart.state(**l).parent == Some(0)) {
        table.finals |= table.bit(*leaf);
    }
    for t in &chart.transitions {
        let known = chart.outline.transitions.get(table.transitions.len())?;
        let (exits, entries) = match known.domain {
            Some(domain) => {
                let below: Vec<u32> = chart.leaves(domain).filter(|l| *l != domain).collect();
                (table.bits(&below), table.bits(&entered(chart, t.targets, Some(domain))))
            }
            None if t.targets.is_empty() => (0, 0),
            None => return None,
        };
        let number = u32::try_from(table.transitions.len()).ok()?;
        table.transitions.push(LeafTransition { transition: number, source: t.source, exits, entries });
    }
    for (name, decl) in &def.events {
        let data = samples(decl.data.as_ref(), &Probes::new(), 1).values.pop()?;
        for by in senders(model, chart, name) {
            table.label(chart, name, &data, by, &decl.by);
        }
    }
    // Labels are written as 16 bits.
    (table.labels.len() < usize::from(u16::MAX)).then_some(table)
}

fn simple_state(model: &Model<'_>, s: &charter_kernel::definition::State) -> bool {
    let history = matches!(s.kind, StateKind::Shallow | StateKind::Deep);
    let blocks = s.entry.iter().chain(&s.exit).chain(s.initial.iter().map(|i| &i.actions));
    let done = s.output.as_ref().is_none_or(|t| matches!(t, Template::Literal(_)));
    !history
        && s.invoke.is_empty()
        && s.after.is_empty()
        && s.always.is_empty()
        && s.on_done.is_empty()
        && s.data.is_empty()
        && done
        && blocks.into_iter().all(|b| simple_block(model, b, 0))
}

fn simple_transition(model: &Model<'_>, t: &crate::model::Transition<'_>) -> bool {
    let Trigger::On(descriptors) = t.trigger else {
        return false;
    };
    let platform = descriptors.iter().any(|d| is_platform(d));
    // Without strictness, events that are not declared come too.
    t.is_unconditional() && !platform && model.def.strict && simple_block(model, &t.def.actions, 0)
}

/// Actions that say or store something that is known, and cannot fail.
fn simple_block(model: &Model<'_>, block: &Block, depth: usize) -> bool {
    let literal = |t: &Template| matches!(t, Template::Literal(_));
    let text = |t: &Template| matches!(t, Template::Literal(Json::String(_)));
    depth < 110
        && block.iter().all(|a| match a {
            Action::Name(name) => {
                model.def.actions.get(name).is_some_and(|b| simple_block(model, b, depth.saturating_add(1)))
            }
            Action::Assign(list) => list.iter().all(|(path, value)| !path.contains(['.', '[']) && literal(value)),
            Action::Log { value, .. } => literal(value),
            Action::Emit { r#type, data } => text(r#type) && data.as_ref().is_none_or(literal),
            _ => false,
        })
}

/// The leaves entered with some targets (appendix D, `computeEntrySet`), everything below the domain having been exited.
fn entered(chart: &Chart<'_>, targets: &[u32], domain: Option<u32>) -> Vec<u32> {
    let mut entry = BTreeSet::new();
    for t in targets {
        descend(chart, *t, &mut entry);
    }
    for t in targets {
        ascend(chart, *t, domain, &mut entry);
    }
    entry.into_iter().filter(|s| matches!(chart.state(*s).kind, StateKind::Atomic | StateKind::Final)).collect()
}

fn touches(chart: &Chart<'_>, state: u32, entry: &BTreeSet<u32>) -> bool {
    entry.range(state..=chart.state(state).last).next().is_some()
}

fn descend(chart: &Chart<'_>, state: u32, entry: &mut BTreeSet<u32>) {
    entry.insert(state);
    let Some(known) = chart.outline.states.get(state as usize) else {
        return;
    };
    match known.kind {
        StateKind::Compound => {
            for t in known.initial {
                descend(chart, *t, entry);
            }
            for t in known.initial {
                ascend(chart, *t, Some(state), entry);
            }
        }
        StateKind::Parallel => regions(chart, state, entry),
        _ => {}
    }
}

fn regions(chart: &Chart<'_>, state: u32, entry: &mut BTreeSet<u32>) {
    for child in chart.outline.states.get(state as usize).into_iter().flat_map(|s| s.children) {
        if !touches(chart, *child, entry) {
            descend(chart, *child, entry);
        }
    }
}

fn ascend(chart: &Chart<'_>, state: u32, domain: Option<u32>, entry: &mut BTreeSet<u32>) {
    let mut up = chart.state(state).parent;
    while let Some(s) = up {
        let parallel = chart.state(s).kind == StateKind::Parallel;
        if Some(s) == domain {
            if parallel {
                regions(chart, s, entry);
            }
            break;
        }
        entry.insert(s);
        if parallel {
            regions(chart, s, entry);
        }
        up = chart.state(s).parent;
    }
}

/// The senders that are told apart here: what roles they have.
fn senders(model: &Model<'_>, chart: &Chart<'_>, event: &str) -> Vec<Principal> {
    let of_event = model.def.events.get(event).map(|e| e.by.as_slice()).unwrap_or_default();
    let takers =
        chart.transitions.iter().filter(|t| matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, event))));
    let mut sets: Vec<Vec<String>> = Vec::new();
    let mut add = |roles: Vec<String>| {
        if !roles.iter().any(|r| r == "system") && !sets.contains(&roles) {
            sets.push(roles);
        }
    };
    of_event.iter().for_each(|role| add(vec![role.clone()]));
    for role in takers.flat_map(|t| &t.def.by) {
        if of_event.is_empty() || of_event.contains(role) {
            add(vec![role.clone()]);
        } else {
            of_event.iter().for_each(|e| add(vec![e.clone(), role.clone()]));
        }
    }
    if of_event.is_empty() {
        add(Vec::new());
    }
    sets.into_iter().map(|roles| Principal { id: "ana".into(), roles }).collect()
}

impl Table {
    fn bit(&self, leaf: u32) -> u64 {
        let place = self.leaves.binary_search(&leaf).ok().and_then(|p| u32::try_from(p).ok());
        place.and_then(|p| 1u64.checked_shl(p)).unwrap_or(0)
    }

    fn bits(&self, leaves: &[u32]) -> u64 {
        leaves.iter().fold(0, |bits, leaf| bits | self.bit(*leaf))
    }

    /// Adds a label, unless one that does the same is there.
    fn label(&mut self, chart: &Chart<'_>, event: &str, data: &Json, by: Principal, of_event: &[String]) {
        let admitted = |required: &[String]| required.is_empty() || required.iter().any(|r| by.roles.contains(r));
        if !admitted(of_event) {
            return;
        }
        let mut mask = 0;
        let mut offers = vec![u32::MAX; self.leaves.len()];
        for (leaf, offer) in self.leaves.iter().zip(&mut offers) {
            // The innermost state decides, in it the first transition that the sender may take.
            let found = chart
                .upwards(*leaf)
                .flat_map(|s| chart.outline.candidates(s, event))
                .find(|t| admitted(&chart.transition(*t).def.by));
            if let Some(t) = found {
                *offer = t;
                mask |= self.bit(*leaf);
            }
        }
        if mask == 0 || self.labels.iter().any(|l| l.offers == offers) {
            return;
        }
        let kind = MoveKind::Send { to: "root".into(), kind: event.into(), data: data.clone(), by };
        self.labels.push(Label { how: Arc::new(Move { at: START, kind }), mask, offers });
    }

    /// One step; the transitions it takes are noted in `taken`. `None`: nothing takes the event.
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
        for way in taken.iter().filter_map(|t| self.transitions.get(*t as usize)) {
            exits |= way.exits;
            entries |= way.entries;
        }
        Some(configuration & !exits | entries)
    }

    /// Appendix D, `removeConflictingTransitions`.
    #[cold]
    fn remove_conflicting(&self, chart: &Chart<'_>, configuration: u64, taken: &mut Vec<u32>) {
        let mut kept: Vec<LeafTransition> = Vec::new();
        for way in taken.iter().filter_map(|t| self.transitions.get(*t as usize)) {
            let meets = |other: &LeafTransition| way.exits & other.exits & configuration != 0;
            let inner = |other: &LeafTransition| chart.inside(way.source, other.source);
            if kept.iter().any(|o| meets(o) && !inner(o)) {
                continue;
            }
            kept.retain(|o| !meets(o));
            kept.push(*way);
        }
        taken.clear();
        taken.extend(kept.iter().map(|w| w.transition));
    }

    /// Everything that can be reached.
    pub(crate) fn explore(&self, model: &Model<'_>, options: &Options) -> Exploration {
        let mut out = Exploration::new(model);
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
        while let Some(configuration) = set.get(node) {
            if node == level_end {
                level_end = set.len();
                depth = depth.saturating_add(1);
                if depth >= options.max_depth {
                    out.cut(format!("transitions of more than {} events were not followed", options.max_depth));
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
                    for t in &taken {
                        if let Some(slot) = first.get_mut(*t as usize).filter(|f| f.is_none()) {
                            *slot = Some((number, place));
                        }
                    }
                    if set.len() >= options.max_plain_states {
                        if !set.contains(next) {
                            out.cut(format!("more than {} situations", options.max_plain_states));
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
        let start = Arc::new(Move { at: START, kind: MoveKind::Start { input: self.input.clone() } });
        out.predecessors = PredecessorTree::Labels {
            parents,
            labels,
            moves: self.labels.iter().map(|l| l.how.clone()).collect(),
            start,
        };
        // A deadlock for good: no state that is active has any transition.
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

/// Grows by a quarter: memory stays near to what is needed.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(1024));
    }
    list.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_takes_less_than_60_bytes() {
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
        // The set as it was: the same number of the same keys takes the same room.
        let mut set = Set::new();
        (0..found.explored.states as u64).for_each(|k| assert!(set.insert(k)));
        let bytes = set.bytes() + parents.capacity() * 4 + labels.capacity() * 2;
        assert!(bytes < 60 * found.explored.states, "{} bytes each", bytes / found.explored.states);
    }
}
