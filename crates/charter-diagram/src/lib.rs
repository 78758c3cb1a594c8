//! Pictures of a charter: Mermaid, DOT and SVG, with a run laid over them if one is given.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unreachable,
        clippy::todo
    )
)]

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

/// What a run has done to one statechart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Paths of the active states, such as `work.draft`; their ancestors are active too.
    pub active: BTreeSet<String>,
    /// Names of the transitions that were taken, as a record has them: `human_review/on/HUMAN_APPROVED/0`.
    pub taken: BTreeSet<String>,
}

/// A run laid over a picture. `Overlay::default()` marks nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The statechart of the run itself.
    pub root: Marks,
    /// The machines, by name.
    pub machines: BTreeMap<String, Marks>,
}
