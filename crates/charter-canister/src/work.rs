//! The work of a turn: what an actor is asked, through the ports, its answer checked. The same faults as on the embedded host.

use charter_automaton::{
    Inference, MockInference, MockSigner, Ports, Signer, StubInference, StubSigner, answer,
};
use serde_json::{Value as Json, json};

use crate::charter::{BuiltInSkills, Charter};

/// Adapters of the inference port. `model` is known and not there: a canister has no models yet.
const ADAPTERS: [&str; 3] = ["mock", "stub", "model"];
/// Adapters of the signer.
const SIGNERS: [&str; 2] = ["mock", "stub"];

/// Does the work of an actor; no access to the run, and no effect on it: what comes out is given to the run as an answer.
///
/// # Errors
/// The fault, as the charter sees it in `event.error`: `{code, message, retryable}`.
pub fn perform(charter: &Charter, name: &str, input: &Json) -> Result<Json, Json> {
    let Some(actor) = charter.actor(name) else {
        return Err(fault("no-executor", &no_executor(name, "")));
    };
    let config = |key: &str| actor.decl.config.get(key).filter(|v| !v.is_null());
    let part = match actor.decl.kind.as_str() {
        "skills" => "skills",
        "automaton" => config("part").and_then(Json::as_str).unwrap_or_default(),
        kind => return Err(fault("no-executor", &no_executor(name, kind))),
    };
    let wrong = |why: String| fault("config", &why);
    let signer: &dyn Signer = match config("signer") {
        None => &MockSigner,
        given => match word(given, "signer", &SIGNERS).map_err(wrong)? {
            "stub" => &StubSigner,
            _ => &MockSigner,
        },
    };
    let inference: &dyn Inference = match part {
        "inference" => match word(input.get("adapter"), "adapter", &ADAPTERS).map_err(wrong)? {
            "model" => {
                return Err(fault(
                    "config",
                    "this host has no models; choose the adapter `mock` or `stub`",
                ));
            }
            "stub" => &StubInference,
            _ => &MockInference,
        },
        _ => &StubInference,
    };
    let ports = Ports {
        inference,
        signer,
        skills: &BuiltInSkills,
    };
    let output = answer(part, input, &ports).map_err(|e| fault(e.code, &e.message))?;
    check(charter, name, &output)?;
    Ok(output)
}

/// A fault as a charter sees it.
pub(crate) fn fault(code: &str, message: &str) -> Json {
    json!({"code": code, "message": message, "retryable": false})
}

fn no_executor(name: &str, kind: &str) -> String {
    format!("this host has no executor for `{name}` (kind `{kind}`)")
}

fn word<'a>(place: Option<&'a Json>, key: &str, known: &[&str]) -> Result<&'a str, String> {
    match place {
        Some(Json::String(word)) if known.contains(&word.as_str()) => Ok(word),
        Some(other) => Err(format!(
            "`{key}` is one of {}, not `{other}`",
            known.join(", ")
        )),
        None => Err(format!(
            "`{key}` is missing; it is one of {}",
            known.join(", ")
        )),
    }
}

/// Whether an answer may be given: its size, its schema.
fn check(charter: &Charter, name: &str, output: &Json) -> Result<(), Json> {
    let most = charter.machine.definition().limits.data;
    let size = serde_json::to_vec(output).map_or(u64::MAX, |v| v.len() as u64);
    if size > most {
        let message = format!("the answer of `{name}` has more than {most} bytes (`limits.data`)");
        return Err(json!({"code": "too-large", "message": message, "retryable": true}));
    }
    let schema = charter.actor(name).and_then(|a| a.output.as_ref());
    let Some(schema) = schema.filter(|s| !s.fits(output)) else {
        return Ok(());
    };
    let misfits = schema.misfits(output);
    let first = misfits.first().map(|m| match m.at.as_str() {
        "" => format!(": {}", m.message),
        at => format!(": at `{at}` {}", m.message),
    });
    let first = first.unwrap_or_default();
    Err(json!({
        "code": "schema",
        "message": format!("the answer of `{name}` does not fit its schema{first}"),
        "retryable": true,
        "misfits": serde_json::to_value(&misfits).unwrap_or_default(),
    }))
}
