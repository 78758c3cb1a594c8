//! A typed Rust face for a charter.
//!
//! From a charter, `generate` (a feature, for build scripts) writes Rust: an enum of the states of each machine, a struct for the data of
//! each event, and a handle per role that offers only the events of that role. Rust code cannot even write an event that its role may not
//! send; whether it is legal in the current state is decided where it always is, by the kernel, as a refusal.
//!
//! In `Cargo.toml`: `charter-typed` under `dependencies`, and once more under `build-dependencies` with `features = ["generate"]`. In
//! `build.rs`:
//!
//! ```ignore
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     println!("cargo:rerun-if-changed=charter.yaml");
//!     let out = std::env::var("OUT_DIR")?;
//!     std::fs::write(format!("{out}/charter.rs"), charter_typed::generate::from_file("charter.yaml")?)?;
//!     Ok(())
//! }
//! ```
//!
//! Then `mod face { include!(concat!(env!("OUT_DIR"), "/charter.rs")); }`. A handle speaks to any host through its [`Door`]; [`Session`] is
//! the door of the pure kernel:
//!
//! ```
//! use charter_kernel::{Definition, Machine};
//! use charter_typed::{Door, Session};
//! use serde_json::json;
//!
//! let definition: Definition = serde_json::from_value(json!({
//!     "charter": 1, "id": "door", "roles": {"guard": {}}, "events": {"OPEN": {"by": ["guard"]}},
//!     "root": {"state": {"states": {"closed": {"on": [{"events": ["OPEN"], "transitions": [{"target": ["open"]}]}]}, "open": {}}}},
//! })).unwrap();
//! let machine = Machine::compile(definition).unwrap();
//! let mut session = Session::start(&machine, "run-1", json!({}), 0).unwrap();
//! // What a generated handle does: `Guard::new(&mut session, "gus").open()`.
//! session.send(None, "OPEN", json!({}), "gus", "guard").unwrap();
//! assert!(session.send(None, "OPEN", json!({}), "gus", "guard").is_err());
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

#[cfg(feature = "generate")]
pub mod generate;
mod session;

pub use session::Session;

use serde_json::Value as Json;

/// Where a handle sends its events: a run on some host.
pub trait Door {
    /// What an accepted event gives.
    type Answer;
    /// What a refused event gives.
    type Refusal;

    /// Sends an event to the actor `to` (none: the root) of the run, as the principal `id` with the one role `role`.
    ///
    /// The host behind the door vouches for id and role, as it does for every principal (03, "Authority").
    ///
    /// # Errors
    /// The host's refusal; nothing has changed.
    fn send(
        &mut self,
        to: Option<&str>,
        kind: &str,
        data: Json,
        id: &str,
        role: &str,
    ) -> Result<Self::Answer, Self::Refusal>;
}
