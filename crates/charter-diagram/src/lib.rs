#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod dot;
mod drawing;
mod geometry;
mod label;
mod layout;
#[cfg(test)]
mod layout_tests;
mod mermaid;
mod separate;
mod svg;
mod svg_parts;

use std::collections::{BTreeMap, BTreeSet};

use charter_kernel::Snapshot;

pub use dot::dot;
pub use mermaid::mermaid;
pub use svg::{MAX_STATES, svg};

/// The states and transitions of a statechart to highlight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The paths of the active states, such as `work.draft`. Their ancestors count as active, too.
    pub active: BTreeSet<String>,
    /// The transitions taken, by their names in records: `human_review/on/HUMAN_APPROVED/0`.
    pub taken: BTreeSet<String>,
}

/// A run to highlight in a diagram. `Overlay::default()` highlights nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The marks of the root statechart.
    pub root: Marks,
    /// The marks of each machine, by name.
    pub machines: BTreeMap<String, Marks>,
}

impl Overlay {
    /// The marks of the statechart of an actor: a machine, or `root`.
    pub fn of(&mut self, machine: &str) -> &mut Marks {
        match machine {
            "root" => &mut self.root,
            machine => self.machines.entry(machine.to_owned()).or_default(),
        }
    }

    /// Marks the active states of a run.
    pub fn mark_active(&mut self, snapshot: &Snapshot) {
        for actor in snapshot.actors() {
            self.of(actor.machine()).active.extend(actor.state().map(str::to_owned));
        }
    }

    /// Marks the transitions of a record of a run, by their names there. `to` is the actor that the
    /// record is addressed to: names of transitions of other actors begin with their ids.
    pub fn mark_taken<'n>(&mut self, snapshot: &Snapshot, to: &str, names: impl IntoIterator<Item = &'n str>) {
        for name in names {
            let (actor, name) = name.split_once(':').unwrap_or((to, name));
            // An actor that has ended: its id is the name of its machine, unless it was given
            // another id.
            let machine = snapshot.actor(actor).map_or(actor, charter_kernel::Actor::machine);
            self.of(machine).taken.insert(name.to_owned());
        }
    }
}
