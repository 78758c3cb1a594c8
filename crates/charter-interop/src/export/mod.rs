//! Writes charters for other tools: as XState v5 configs and as SCXML documents.
//!
//! The states and transitions are said in the other language, as far as it has words for them. The charter itself travels along
//! (`meta.charter`, `<charter:definition>`) under a seal over the rest: what comes back unchanged is read back as the very same
//! charter; what was edited on the way is read as what it now says.

mod scxml;
pub(crate) mod xstate;

use charter_kernel::Definition;
use charter_kernel::definition::{State, StateKind};

pub use self::scxml::scxml;
pub(crate) use self::scxml::{Embedded, embedded as embedded_scxml};
pub use self::xstate::xstate;

/// A chart in pre-order, as the kernel numbers its states: definition, keys from the root down.
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

/// The kind that a state has: with children it is compound even if nobody said so.
fn kind(state: &State) -> StateKind {
    match state.kind {
        StateKind::Atomic if !state.states.is_empty() => StateKind::Compound,
        kind => kind,
    }
}

/// The core form as text: the order of its keys is meaning.
fn text(definition: &Definition) -> String {
    serde_json::to_string(definition).unwrap_or_default()
}
