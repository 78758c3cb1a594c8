//! What the automaton charter needs from outside, as ports with adapters: thinking ([`Inference`]), signing ([`Signer`]), and the skills it
//! was given ([`SkillSource`]). The embedded host and the canister share all of it; neither decides what is legal, the charter does.
//!
//! ```
//! use charter_automaton::{MockInference, MockSigner, MockSkills, Ports, answer};
//! use serde_json::json;
//!
//! let ports = Ports { inference: &MockInference, signer: &MockSigner, skills: &MockSkills };
//! let thought = answer("inference", &json!({"turn": "run-1/turn-1", "soul": "You are kind.", "input": "Say hello", "reason": "by hand"}), &ports).unwrap();
//! assert_eq!(thought["reply"], "(mock) I heard: Say hello");
//! let done = answer("actions", &json!({"turn": "run-1/turn-1", "actions": thought["actions"]}), &ports).unwrap();
//! assert_eq!(done["results"][0]["ok"], true);
//! ```
//!
//! [`face`] is the charter's typed face: with it, Rust code cannot write an event that its role may not send. What a controller is not
//! offered does not compile:
//!
//! ```compile_fail
//! # use charter_typed::Door;
//! fn claims_to_have_thought(door: &mut impl Door) {
//!     charter_automaton::face::AsController::new(door, "ana").inference_completed();
//! }
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
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

/// The typed face of `charters/automaton`, made by `charter-typed`.
pub mod face {
    include!(concat!(env!("OUT_DIR"), "/face.rs"));
}
#[cfg(feature = "host")]
pub mod host;
mod inference;
mod part;
mod signer;
mod skills;
mod turn;

pub use inference::{Ask, Inference, MockInference, StubInference, Thought};
pub use part::{ADAPTERS, Part, SIGNERS};
pub use signer::{MockSigner, Signature, Signer, StubSigner};
pub use skills::{BadSkill, MockSkills, Skill, SkillSource, read_skill, read_skills};
pub use turn::{PARTS, Ports, answer};

/// Why a port could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PortError {
    /// Stable: `not-configured`, `input`, `skills`.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
}

impl PortError {
    /// What the stub of a port says.
    #[must_use]
    pub fn not_configured(port: &str) -> PortError {
        PortError {
            code: "not-configured",
            message: format!("the {port} port is not configured: choose another adapter for it"),
        }
    }
}
