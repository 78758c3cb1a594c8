//! The automaton charter as an Internet Computer canister: the kernel, the charter and the feature
//! ports of `charter-automaton` on another host. `automaton.did` and `docs/canister.md` describe
//! the interface for callers.
//!
//! The core does not depend on the Internet Computer: time, callers and memories are arguments, so
//! it runs anywhere.
//!
//! ```
//! use charter_canister::{Automaton, Bounds, EventInput, Input};
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
//! // The host answers the invocations of the run.
//! let answer = |automaton: &mut Automaton<_>, now| {
//!     while let Some(request) = automaton.take_request(now) {
//!         let result = automaton.perform(request.effect).unwrap();
//!         automaton.attempted(now, &request, result).unwrap();
//!     }
//! };
//! answer(&mut automaton, now);
//! assert_eq!(automaton.stable.view().state, ["Idle"]);
//!
//! now += 1_000;
//! let data = json!({"reason": "by hand", "input": "Say hello"});
//! automaton.handle(now, Input::Event(EventInput::new("WakeRequested", data, ana)))?;
//! answer(&mut automaton, now);
//! assert_eq!(automaton.stable.view().state, ["Sleeping"]);
//! assert_eq!(automaton.stable.view().last_turn.as_ref().unwrap().reply.as_deref(), Some("(mock) I heard: Say hello"));
//!
//! // Everything is in stable memory.
//! let again = Automaton::open(memory)?;
//! assert_eq!(again.run().chain().hash(), automaton.run().chain().hash());
//! # Ok::<(), charter_canister::CanisterError>(())
//! ```
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

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
mod stable;
mod view;
mod work;

pub use automaton::{Automaton, Committed};
pub use charter::{BuiltInSkills, Charter, built_in};
pub use charter_run::{EventInput, Input, InvocationRequest, Run};
pub use error::CanisterError;
pub use log::{Anchor, Bounds, EpisodicLog, SEGMENTS};
pub use projection::{PORTION, Progress, Projection, lines};
pub use stable::{EventIds, LastError, LastTurn, MEMORIES, RuntimeView, Stable, TurnInFlight};
pub use view::export;
pub use work::perform;
