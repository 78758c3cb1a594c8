//! Which transitions of a cycle read a variable that the cycle assigns: such a cycle may end.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Component, Graph};
use crate::model::walk::{Item, variable_of};
use crate::model::{Chart, Model, Transition, Trigger};

/// What a condition reads.
#[derive(Default)]
struct Reads {
    /// It reads the whole context, or uses a permit, which is a counter, too.
    any: bool,
    variables: Vec<String>,
}

pub(super) struct Counters<'m, 'd> {
    chart: &'m Chart<'d>,
    /// For each transition.
    reads: Vec<Reads>,
    writes: Vec<FxHashSet<&'d str>>,
    /// For each state, what entering and leaving it assigns.
    blocks: Vec<FxHashSet<&'d str>>,
}

impl<'m, 'd> Counters<'m, 'd> {
    pub(super) fn new(model: &Model<'d>, chart: &'m Chart<'d>) -> Counters<'m, 'd> {
        let automatic = |t: &Transition<'_>| !matches!(t.trigger, Trigger::On(_));
        let mut counters = Counters { chart, reads: Vec::new(), writes: Vec::new(), blocks: Vec::new() };
        for t in &chart.transitions {
            let (mut reads, mut writes) = (Reads::default(), FxHashSet::default());
            if automatic(t) {
                reads.any = !t.def.requires.is_empty();
                model.visit_condition(t.def, t.at, &mut |_, item| {
                    if let Item::Cel(cel) = item {
                        for variable in model.context_reads(cel) {
                            match variable {
                                Some(variable) => reads.variables.push(variable),
                                None => reads.any = true,
                            }
                        }
                    }
                });
                model.visit_block(&t.def.actions, "", &mut |_, item| note(item, &mut writes));
            }
            counters.reads.push(reads);
            counters.writes.push(writes);
        }
        for state in &chart.states {
            let mut writes = FxHashSet::default();
            model.visit_blocks(&state.def.entry, "", &mut |_, item| note(item, &mut writes));
            model.visit_blocks(&state.def.exit, "", &mut |_, item| note(item, &mut writes));
            counters.blocks.push(writes);
        }
        counters
    }

    fn reads(&self, t: u32) -> Option<&Reads> {
        self.reads.get(t as usize)
    }

    fn writes(&self, t: u32) -> impl Iterator<Item = &'d str> {
        self.writes.get(t as usize).into_iter().flatten().copied()
    }

    /// The transitions of a graph that are in a cycle and read, or are tried behind one that reads,
    /// a variable which the cycle assigns.
    pub(super) fn counted(&self, graph: &Graph<'_, 'd>, which: &dyn Fn(u32) -> bool) -> FxHashSet<u32> {
        let mut counted = FxHashSet::default();
        // What happens in a state while it stays active: what its eventless transitions without a
        // target assign.
        let mut within = self.blocks.clone();
        for t in graph.stays() {
            if let Some(writes) = within.get_mut(self.chart.transition(*t).source as usize) {
                writes.extend(self.writes(*t));
            }
        }
        for component in graph.components() {
            self.of_component(&component, &within, &mut counted);
        }
        self.of_stays(graph.stays(), &within, which, &mut counted);
        counted
    }

    fn of_component(&self, component: &Component, within: &[FxHashSet<&'d str>], counted: &mut FxHashSet<u32>) {
        let inside: FxHashSet<u32> = component.transitions.iter().copied().collect();
        let sources: BTreeSet<u32> = inside.iter().map(|t| self.chart.transition(*t).source).collect();
        let mut wanted: FxHashSet<&str> = FxHashSet::default();
        for t in sources.iter().flat_map(|s| &self.chart.state(*s).transitions) {
            wanted.extend(self.reads(*t).into_iter().flat_map(|r| &r.variables).map(String::as_str));
        }
        let mut assigned: FxHashSet<&str> = inside.iter().flat_map(|t| self.writes(*t)).collect();
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        for leaf in &component.leaves {
            for state in self.chart.upwards(*leaf).take_while(|s| seen.insert(*s)).collect::<Vec<_>>() {
                let Some(writes) = within.get(state as usize) else { continue };
                // The smaller one, because many components share an ancestor.
                match writes.len() <= wanted.len() {
                    true => assigned.extend(writes),
                    false => assigned.extend(wanted.iter().filter(|v| writes.contains(**v))),
                }
            }
        }
        for source in sources {
            self.behind(source, &|t| inside.contains(&t), &|v| assigned.contains(v), counted);
        }
    }

    /// Collects the transitions of a state for which `which` holds and that read an assigned
    /// variable, or are tried behind one with the same trigger that does.
    fn behind(
        &self,
        source: u32,
        which: &dyn Fn(u32) -> bool,
        is_assigned: &dyn Fn(&str) -> bool,
        counted: &mut FxHashSet<u32>,
    ) {
        let mut found: FxHashSet<(u8, usize)> = FxHashSet::default();
        for t in &self.chart.state(source).transitions {
            let kind = match self.chart.transition(*t).trigger {
                Trigger::On(_) => continue,
                Trigger::Always => (0, 0),
                Trigger::After => (1, 0),
                Trigger::StateDone => (2, 0),
                Trigger::InvokeDone(i) => (3, i),
                Trigger::InvokeError(i) => (4, i),
            };
            if !found.contains(&kind)
                && self.reads(*t).is_some_and(|r| r.any || r.variables.iter().any(|v| is_assigned(v)))
            {
                found.insert(kind);
            }
            if found.contains(&kind) && which(*t) {
                counted.insert(*t);
            }
        }
    }

    /// An eventless transition without a target repeats while the states around and in its source
    /// stay active: what is assigned there can end it.
    fn of_stays(
        &self,
        stays: &[u32],
        within: &[FxHashSet<&'d str>],
        which: &dyn Fn(u32) -> bool,
        counted: &mut FxHashSet<u32>,
    ) {
        if stays.is_empty() {
            return;
        }
        let mut places: FxHashMap<&str, BTreeSet<u32>> = FxHashMap::default();
        for (state, writes) in (0u32..).zip(within) {
            for variable in writes {
                places.entry(variable).or_default().insert(state);
            }
        }
        for (number, t) in self.chart.all().filter(|(n, _)| which(*n)) {
            for variable in self.writes(number) {
                places.entry(variable).or_default().insert(t.source);
            }
        }
        let repeats: FxHashSet<u32> = stays.iter().copied().collect();
        let sources: BTreeSet<u32> = stays.iter().map(|t| self.chart.transition(*t).source).collect();
        for source in sources {
            let last = self.chart.state(source).last;
            let is_assigned = |variable: &str| {
                places.get(variable).is_some_and(|states| {
                    states.range(source..=last).next().is_some()
                        || self.chart.upwards(source).any(|s| states.contains(&s))
                })
            };
            self.behind(source, &|t| repeats.contains(&t), &is_assigned, counted);
        }
    }
}

fn note<'d>(item: Item<'d>, writes: &mut FxHashSet<&'d str>) {
    if let Item::Assign(path, _) = item {
        writes.insert(variable_of(path));
    }
}
