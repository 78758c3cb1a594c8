//! The parts of a turn, and their answers.

use charter_kernel::Digest;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::PortError;
use crate::inference::{Inference, InferenceRequest};
use crate::signer::Signer;
use crate::skills::SkillSource;

/// The parts of a turn, as the charter's actors name them (`part`).
pub const PARTS: [&str; 5] = ["skills", "context", "inference", "actions", "persist"];

/// The adapters of a host.
#[derive(Clone, Copy)]
pub struct Ports<'p> {
    /// Runs the inference.
    pub inference: &'p dyn Inference,
    /// Signs messages.
    pub signer: &'p dyn Signer,
    /// Provides the skills.
    pub skills: &'p dyn SkillSource,
}

/// Computes the answer for one part of a turn. It is the same on every host with the same adapters.
///
/// # Errors
/// The adapter failed, the input is invalid (`input`), or the part is unknown.
pub fn answer(part: &str, input: &Json, ports: &Ports<'_>) -> Result<Json, PortError> {
    match part {
        "skills" => Ok(json!({"skills": ports.skills.skills()?})),
        // The answer is the context together with its digest, so that the log shows which context a
        // turn had.
        "context" => {
            let mut context = input.as_object().cloned().ok_or_else(|| bad("the context must be an object"))?;
            context.insert("digest".into(), digest(input).into());
            Ok(Json::Object(context))
        }
        "inference" => {
            let request = InferenceRequest::deserialize(input).map_err(|e| bad(&e.to_string()))?;
            serde_json::to_value(ports.inference.infer(&request)?).map_err(|e| bad(&e.to_string()))
        }
        "actions" => {
            let actions =
                input.get("actions").and_then(Json::as_array).ok_or_else(|| bad("`actions` must be a list"))?;
            let results: Vec<Json> = actions.iter().map(|action| execute(action, ports.signer)).collect();
            Ok(json!({"results": results}))
        }
        "persist" => {
            let turn = input
                .get("turn")
                .filter(|t| t.get("id").is_some_and(Json::is_string))
                .ok_or_else(|| bad("the turn must have an `id`"))?;
            Ok(json!({"digest": digest(turn)}))
        }
        other => Err(bad(&format!("unknown part `{other}`; expected one of {}", PARTS.join(", ")))),
    }
}

fn bad(message: &str) -> PortError {
    PortError { code: "input", message: message.into() }
}

fn digest(value: &Json) -> String {
    Digest::of_json(value).to_string()
}

/// Executes one action. A failed action is a result with a reason, not a failure of the turn.
fn execute(action: &Json, signer: &dyn Signer) -> Json {
    let kind = action.get("kind").and_then(Json::as_str).unwrap_or_default();
    let text = |key: &str| action.get("input").and_then(|i| i.get(key)).and_then(Json::as_str);
    let failed = |reason: &str| json!({"kind": kind, "ok": false, "reason": reason});
    match kind {
        "note" => match text("text") {
            Some(note) => json!({"kind": kind, "ok": true, "note": note}),
            None => failed("a note needs `input.text`"),
        },
        "sign" => match text("message").map(|m| signer.sign(m)) {
            Some(Ok(signature)) => json!({"kind": kind, "ok": true, "signature": signature}),
            Some(Err(error)) => failed(&error.message),
            None => failed("signing needs `input.message`"),
        },
        _ => failed("unknown action: expected `note` or `sign`"),
    }
}
