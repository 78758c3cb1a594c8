#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, clippy::indexing_slicing)]
// a target fails by a panic

mod base;
mod targets;

/// A target: panics if it finds a bug.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 9] = [
    ("charter", targets::charter::run),
    ("dogs", targets::dogs::run),
    ("events", targets::events::run),
    ("exports", targets::exports::run),
    ("expressions", targets::expressions::run),
    ("journal", targets::journal::run),
    ("packets", targets::packets::run),
    ("scxml", targets::imports::scxml),
    ("xstate", targets::imports::xstate),
];

/// The target with this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// The export from which the inputs of `exports` are made.
#[must_use]
pub fn exported() -> String {
    base::exported()
}
