//! The work of a turn: what an actor is asked, through the ports, its answer checked. The same faults as on the embedded host.

use charter_automaton::{Inference, MockSigner, Part, Ports, Signer, StubInference, answer};
use serde_json::{Value as Json, json};

use crate::charter::{BuiltInSkills, Charter};

/// Does the work of an actor; no access to the run, and no effect on it: what comes out is given to the run as an answer.
///
/// # Errors
/// The fault, as the charter sees it in `event.error`: `{code, message, retryable}`.
pub fn perform(charter: &Charter, name: &str, input: &Json) -> Result<Json, Json> {
    let Some(actor) = charter.actor(name) else {
        return Err(fault("no-executor", &no_executor(name, "")));
    };
    let wrong = |why: String| fault("config", &why);
    let (part, signer, inference): (_, &dyn Signer, Option<&dyn Inference>) =
        match actor.decl.kind.as_str() {
            "skills" => ("skills", &MockSigner, Some(&StubInference)),
            "automaton" => {
                let part = Part::of(&actor.decl).map_err(wrong)?;
                let inference = part.inference(input).map_err(wrong)?;
                (part.name, part.signer, inference.map(|i| i as _))
            }
            kind => return Err(fault("no-executor", &no_executor(name, kind))),
        };
    // A canister has no models yet.
    let Some(inference) = inference else {
        let why = "this host has no models; choose the adapter `mock` or `stub`";
        return Err(fault("config", why));
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
