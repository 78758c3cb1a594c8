//! The automaton charter as an Internet Computer canister: the kernel, the charter and the feature ports of `charter-automaton`, in another
//! host. What callers see is in `automaton.did` and `docs/canister.md`.
//!
//! The core knows no canister: time, callers and memories come in from outside, so it runs anywhere.
//!
//! ```
//! use charter_canister::{Automaton, Bounds, Mail};
//! use charter_kernel::Principal;
//! use ic_stable_structures::DefaultMemoryImpl;
//! use ic_stable_structures::memory_manager::{MemoryId, MemoryManager};
//! use serde_json::json;
//!
//! let memories = MemoryManager::init(DefaultMemoryImpl::default());
//! let memory = |id| memories.get(MemoryId::new(id));
//! let ana = Principal::new("ana", &["controller"]);
//! let mut now = 1_795_255_200_000;
//! let mut automaton = Automaton::start(memory, "run-1", Bounds::default(), now, json!({}), ana.clone())?;
//!
//! // The host does the work that the run asks for, and gives back what came of it.
//! let work = |automaton: &mut Automaton<_>, now| {
//!     while let Some(asked) = automaton.take_work() {
//!         let outcome = automaton.perform(asked.effect).unwrap();
//!         automaton.handle(now, Mail::Answer { invocation: asked.invocation, effect: asked.effect, outcome }).unwrap();
//!     }
//! };
//! work(&mut automaton, now);
//! assert_eq!(automaton.stable.view().state, ["Idle"]);
//!
//! now += 1_000;
//! let wake = Mail::Event { r#type: "WakeRequested".into(), data: json!({"reason": "by hand", "input": "Say hello"}), by: ana };
//! automaton.handle(now, wake)?;
//! work(&mut automaton, now);
//! assert_eq!(automaton.stable.view().state, ["Sleeping"]);
//! assert_eq!(automaton.stable.view().last_turn.as_ref().unwrap().reply.as_deref(), Some("(mock) I heard: Say hello"));
//!
//! // All of it is in stable memory.
//! let again = Automaton::open(memory)?;
//! assert_eq!(again.run().chain().hash(), automaton.run().chain().hash());
//! # Ok::<(), charter_canister::Broken>(())
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod api;
mod automaton;
mod charter;
mod endpoints;
mod error;
mod form;
mod host;
#[cfg(target_family = "wasm")]
mod initialize;
mod log;
mod platform;
mod projection;
mod run;
mod stable;
mod view;
mod work;

pub use automaton::{Asked, Automaton, Mail};
pub use charter::{BuiltInSkills, Charter, built_in};
pub use error::Broken;
pub use log::{Anchor, Bounds, EpisodicLog, SEGMENTS};
pub use projection::{PORTION, Progress, Projection, lines};
pub use run::{Run, Stepped};
pub use stable::{LastError, LastTurn, MEMORIES, RuntimeView, Stable, TurnInFlight};
pub use view::export;
pub use work::perform;
