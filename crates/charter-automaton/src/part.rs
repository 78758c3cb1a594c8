//! The configuration of an actor of kind `automaton`: its part of a turn, and the adapters for it.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::{Inference, MockInference, MockSigner, PARTS, Signer, StubInference, StubSigner};

/// Adapters of the inference port. `model` uses the host's models, if it has any.
pub const ADAPTERS: [&str; 3] = ["mock", "stub", "model"];
/// Adapters of the signer.
pub const SIGNERS: [&str; 2] = ["mock", "stub"];

/// Why the configuration of an actor, or the input of an inference, is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// A key is missing.
    #[error("missing `{key}`: expected one of {}", known.join(", "))]
    Missing {
        /// The key.
        key: &'static str,
        /// Its possible values.
        known: &'static [&'static str],
    },
    /// A key has an unknown value.
    #[error("invalid `{key}` `{value}`: expected one of {}", known.join(", "))]
    Invalid {
        /// The key.
        key: &'static str,
        /// The value of the key, as JSON.
        value: String,
        /// Its possible values.
        known: &'static [&'static str],
    },
}

/// The part of a turn that an actor performs.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// One of [`PARTS`].
    pub name: &'a str,
    /// The signer of the actions.
    pub signer: &'static (dyn Signer + Sync),
}

impl<'a> Part<'a> {
    /// Parses `part` and `signer` of an actor. `null` counts as missing.
    ///
    /// # Errors
    /// `part` is missing, or a value is unknown.
    pub fn of(actor: &'a ActorDecl) -> Result<Part<'a>, PartError> {
        let config = |key: &str| actor.config.get(key).filter(|v| !v.is_null());
        let name = word(config("part"), "part", &PARTS)?;
        let signer: &'static (dyn Signer + Sync) = match config("signer") {
            None => &MockSigner,
            given => match word(given, "signer", &SIGNERS)? {
                "stub" => &StubSigner,
                _ => &MockSigner,
            },
        };
        Ok(Part { name, signer })
    }

    /// Returns the inference adapter that the input's `adapter` names, or `None` for the host's
    /// models. Other parts get a stub, because they need no adapter.
    ///
    /// # Errors
    /// `adapter` is missing or not one of [`ADAPTERS`].
    pub fn inference(&self, input: &Json) -> Result<Option<&'static (dyn Inference + Sync)>, PartError> {
        if self.name != "inference" {
            return Ok(Some(&StubInference));
        }
        Ok(match word(input.get("adapter"), "adapter", &ADAPTERS)? {
            "model" => None,
            "stub" => Some(&StubInference),
            _ => Some(&MockInference),
        })
    }
}

fn word<'a>(value: Option<&'a Json>, key: &'static str, known: &'static [&'static str]) -> Result<&'a str, PartError> {
    match value {
        Some(Json::String(word)) if known.contains(&word.as_str()) => Ok(word),
        Some(other) => Err(PartError::Invalid { key, value: other.to_string(), known }),
        None => Err(PartError::Missing { key, known }),
    }
}

#[cfg(test)]
mod tests {
    use charter_kernel::definition::ActorDecl;
    use serde_json::{Value as Json, json};

    use super::Part;

    fn actor(config: Json) -> ActorDecl {
        serde_json::from_value(json!({"kind": "automaton", "config": config})).unwrap()
    }

    #[test]
    fn null_counts_as_missing() {
        let actor = actor(json!({"part": "actions", "signer": null}));
        assert_eq!(Part::of(&actor).unwrap().name, "actions");
    }

    #[test]
    fn errors_list_the_known_values() {
        for (config, message) in [
            (json!({}), "missing `part`: expected one of skills, context, inference, actions, persist"),
            (json!({"part": null}), "missing `part`: expected one of skills, context, inference, actions, persist"),
            (
                json!({"part": "think"}),
                "invalid `part` `\"think\"`: expected one of skills, context, inference, actions, persist",
            ),
            (json!({"part": "actions", "signer": 1}), "invalid `signer` `1`: expected one of mock, stub"),
        ] {
            let actor = actor(config);
            assert_eq!(Part::of(&actor).err().map(|e| e.to_string()).as_deref(), Some(message));
        }
    }

    #[test]
    fn only_inference_has_an_adapter() {
        let persist = actor(json!({"part": "persist"}));
        let part = Part::of(&persist).unwrap();
        assert!(part.inference(&json!({})).unwrap().is_some());
        let inference = actor(json!({"part": "inference"}));
        let part = Part::of(&inference).unwrap();
        assert!(part.inference(&json!({"adapter": "stub"})).unwrap().is_some());
        assert!(part.inference(&json!({"adapter": "model"})).unwrap().is_none());
        let missing = part.inference(&json!({})).err().map(|e| e.to_string());
        assert_eq!(missing.as_deref(), Some("missing `adapter`: expected one of mock, stub, model"));
    }
}
