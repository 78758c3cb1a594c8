//! Exports: charters as XState v5 configs and as SCXML documents.
//!
//! States and transitions are translated as far as the other language can express them. The export
//! embeds the charter itself (`meta.charter`, `<charter:definition>`) and a digest of the rest of
//! the text. If the export is imported unchanged, the result is the same charter; if it was edited,
//! the edited text is imported.

mod scxml;
pub(crate) mod xstate;

use charter_kernel::Definition;
use charter_kernel::definition::{State, StateKind};

pub use self::scxml::scxml;
pub(crate) use self::scxml::{Embedded, embedded as embedded_scxml};
pub use self::xstate::xstate;

/// Returns the states of a chart in pre-order, which is the order of the kernel, each with the path
/// of its keys from the root.
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

/// The effective kind of a state: a state with children is compound by default.
fn kind(state: &State) -> StateKind {
    match state.kind {
        StateKind::Atomic if !state.states.is_empty() => StateKind::Compound,
        kind => kind,
    }
}

/// Serializes the definition as JSON directly, because `Value` would sort the keys.
fn text(definition: &Definition) -> String {
    serde_json::to_string(definition).unwrap_or_default()
}
