#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[cfg(feature = "generate")]
pub mod generate;
mod session;

pub use session::Session;

use serde_json::Value as Json;

/// Where a handle sends its events: a run on some host.
pub trait EventSink {
    /// The result of an accepted event.
    type Answer;
    /// The result of a refused event.
    type Refusal;

    /// Sends an event to the actor `to` of the run (`None`: the root), as the principal `id` with
    /// the single role `role`.
    ///
    /// The host behind the sink vouches for the id and the role.
    ///
    /// # Errors
    /// The host refuses the event; the run is unchanged.
    fn send(
        &mut self,
        to: Option<&str>,
        kind: &str,
        data: Json,
        id: &str,
        role: &str,
    ) -> Result<Self::Answer, Self::Refusal>;
}
