//! Answers invocations through the ports and validates the answers. Errors are the same as on the
//! embedded host.

use charter_automaton::{Inference, MockSigner, Part, PartError, Ports, Signer, StubInference, answer};
use charter_kernel::{BadAnswer, check_answer};
use serde_json::{Value as Json, json};

use crate::charter::{BuiltInSkills, Charter};

/// Computes the answer of an actor, without access to the run.
///
/// # Errors
/// The actor failed. The error has the form that the charter sees in `event.error`: `{code,
/// message, retryable}`.
pub fn perform(charter: &Charter, name: &str, input: &Json) -> Result<Json, Json> {
    let Some(actor) = charter.actor(name) else {
        return Err(error_json("no-executor", &no_executor(name, "")));
    };
    let wrong = |why: PartError| error_json("config", &why.to_string());
    let (part, signer, inference): (_, &dyn Signer, Option<&dyn Inference>) = match actor.decl.kind.as_str() {
        "skills" => ("skills", &MockSigner, Some(&StubInference)),
        "automaton" => {
            let part = Part::of(&actor.decl).map_err(wrong)?;
            let inference = part.inference(input).map_err(wrong)?;
            (part.name, part.signer, inference.map(|i| i as _))
        }
        kind => return Err(error_json("no-executor", &no_executor(name, kind))),
    };
    // Canisters have no models yet.
    let Some(inference) = inference else {
        let why = "this host has no models; choose the adapter `mock` or `stub`";
        return Err(error_json("config", why));
    };
    let ports = Ports { inference, signer, skills: &BuiltInSkills };
    let output = answer(part, input, &ports).map_err(|e| error_json(e.code, &e.message))?;
    let most = charter.machine.definition().limits.data;
    check_answer(name, &output, most, actor.output.as_ref()).map_err(bad_answer)?;
    Ok(output)
}

/// Renders an error in the form that a charter sees.
pub(crate) fn error_json(code: &str, message: &str) -> Json {
    json!({"code": code, "message": message, "retryable": false})
}

fn no_executor(name: &str, kind: &str) -> String {
    format!("this host has no executor for `{name}` (kind `{kind}`)")
}

fn bad_answer(why: BadAnswer) -> Json {
    let (code, message) = (why.code, why.message);
    match why.misfits.is_empty() {
        true => json!({"code": code, "message": message, "retryable": true}),
        false => {
            json!({"code": code, "message": message, "retryable": true, "misfits": why.misfits})
        }
    }
}
