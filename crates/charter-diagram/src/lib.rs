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
