//! Exports: charters as XState v5 configs and as SCXML documents.
//!
//! States and transitions are translated as far as the other language can express them. The export
//! embeds the charter itself (`meta.charter`, `<charter:definition>`) with a seal over the rest: if
//! the export is imported unchanged, the result is the same charter; if it was edited, the edited
//! text is imported.

mod scxml;
pub(crate) mod xstate;

use charter_kernel::Definition;
use charter_kernel::definition::{State, StateKind};

pub use self::scxml::scxml;
pub(crate) use self::scxml::{Embedded, embedded as embedded_scxml};
pub use self::xstate::xstate;

/// The states of a chart in pre-order, as the kernel numbers them, each with its keys from the
/// root.
fn flat(root: &State) -> Vec<(&State, Vec<&str>)> {
    let mut found = Vec::new();
    let mut stack = vec![(root, Vec::new())];
    while let Some((state, path)) = stack.pop() {
        for (key, child) in state.states.iter().rev() {
            let mut path: Vec<&str> = path.clone();
            path.push(key);
            stack.push((child, path));
        }
        found.push((state, path));
    }
    found
}

/// The effective kind of a state: with children it is compound by default.
fn kind(state: &State) -> StateKind {
    match state.kind {
        StateKind::Atomic if !state.states.is_empty() => StateKind::Compound,
        kind => kind,
    }
}

/// Serializes the definition as JSON, directly and not through `Value`, which sorts keys.
fn text(definition: &Definition) -> String {
    serde_json::to_string(definition).unwrap_or_default()
}
