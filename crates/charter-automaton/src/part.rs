//! What the configuration of an actor of kind `automaton` says, in the same words on every host: its part, and the adapters for it.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::{Inference, MockInference, MockSigner, PARTS, Signer, StubInference, StubSigner};

/// Adapters of the inference port. `model` asks the host's own models, if it has any.
pub const ADAPTERS: [&str; 3] = ["mock", "stub", "model"];
/// Adapters of the signer.
pub const SIGNERS: [&str; 2] = ["mock", "stub"];

/// The part of a turn that an actor does.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// One of [`PARTS`].
    pub name: &'a str,
    /// For the actions.
    pub signer: &'static (dyn Signer + Sync),
}

impl<'a> Part<'a> {
    /// Reads `part` and `signer` of an actor; `null` is as if it were not there, as in every configuration.
    ///
    /// # Errors
    /// One of them is missing or is none of the known words.
    pub fn of(actor: &'a ActorDecl) -> Result<Part<'a>, String> {
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

    /// Who thinks, as the input's `adapter` says. None: the host's models. A part that does not think needs nobody.
    ///
    /// # Errors
    /// `adapter` is missing or is none of [`ADAPTERS`].
    pub fn inference(&self, input: &Json) -> Result<Option<&'static (dyn Inference + Sync)>, String> {
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

fn word<'a>(place: Option<&'a Json>, key: &str, known: &[&str]) -> Result<&'a str, String> {
    match place {
        Some(Json::String(word)) if known.contains(&word.as_str()) => Ok(word),
        Some(other) => Err(format!("`{key}` is one of {}, not `{other}`", known.join(", "))),
        None => Err(format!("`{key}` is missing; it is one of {}", known.join(", "))),
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
    fn what_is_null_is_not_there() {
        let actor = actor(json!({"part": "actions", "signer": null}));
        assert_eq!(Part::of(&actor).unwrap().name, "actions");
    }

    #[test]
    fn what_is_wrong_is_said_with_the_known_words() {
        for (config, said) in [
            (json!({}), "`part` is missing; it is one of skills, context, inference, actions, persist"),
            (json!({"part": null}), "`part` is missing; it is one of skills, context, inference, actions, persist"),
            (
                json!({"part": "think"}),
                "`part` is one of skills, context, inference, actions, persist, not `\"think\"`",
            ),
            (json!({"part": "actions", "signer": 1}), "`signer` is one of mock, stub, not `1`"),
        ] {
            let actor = actor(config);
            assert_eq!(Part::of(&actor).err().as_deref(), Some(said));
        }
    }

    #[test]
    fn only_who_thinks_has_an_adapter() {
        let persist = actor(json!({"part": "persist"}));
        let part = Part::of(&persist).unwrap();
        assert!(part.inference(&json!({})).unwrap().is_some());
        let inference = actor(json!({"part": "inference"}));
        let part = Part::of(&inference).unwrap();
        assert!(part.inference(&json!({"adapter": "stub"})).unwrap().is_some());
        assert!(part.inference(&json!({"adapter": "model"})).unwrap().is_none());
        let missing = part.inference(&json!({})).err();
        assert_eq!(missing.as_deref(), Some("`adapter` is missing; it is one of mock, stub, model"));
    }
}
