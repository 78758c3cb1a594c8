//! Answers invocations through the ports. Errors are the same as on the embedded host.

use charter_automaton::{Inference, MockSigner, Part, PartError, Ports, Signer, StubInference, answer};
use charter_run::Fault;
use serde_json::Value as Json;

use crate::charter::{BuiltInSkills, Charter};

/// Computes the answer of an actor, without access to the run. The run checks the answer
/// ([`charter_run::Input::attempted`]).
///
/// # Errors
/// The actor failed.
pub fn perform(charter: &Charter, name: &str, input: &Json) -> Result<Json, Fault> {
    let Some(actor) = charter.actor(name) else {
        return Err(Fault::no_executor(name, ""));
    };
    let wrong = |why: PartError| Fault::new("config", why.to_string());
    let (part, signer, inference): (_, &dyn Signer, Option<&dyn Inference>) = match actor.decl.kind.as_str() {
        "skills" => ("skills", &MockSigner, Some(&StubInference)),
        "automaton" => {
            let part = Part::of(&actor.decl).map_err(wrong)?;
            let inference = part.inference(input).map_err(wrong)?;
            (part.name, part.signer, inference.map(|i| i as _))
        }
        kind => return Err(Fault::no_executor(name, kind)),
    };
    // Canisters have no models yet.
    let Some(inference) = inference else {
        return Err(Fault::new("config", "this host has no models; choose the adapter `mock` or `stub`"));
    };
    let ports = Ports { inference, signer, skills: &BuiltInSkills };
    answer(part, input, &ports).map_err(|e| Fault::new(e.code, e.message))
}
