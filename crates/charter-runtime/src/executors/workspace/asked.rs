//! The actor of another kind that a workspace actor asks: it sees the input with what may be shown, under its own configuration.

use std::sync::Arc;

use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use super::KEYS;
use crate::call::{Call, Fault, Outcome};
use crate::charter::Service;

/// The configuration of the actor that is asked: what is not the workspace's.
pub(super) fn decl(actor: &ActorDecl, kind: &str) -> ActorDecl {
    let mut inner = actor.clone();
    inner.kind = kind.into();
    inner.config.retain(|key, _| !KEYS.contains(&key.as_str()));
    inner
}

/// Who the proposer (or curator) is: the actor under the kind that was asked.
pub(super) fn name(call: &Call, kind: &str) -> String {
    format!("{}:{}", kind, call.principal().id)
}

/// Asks; `schema` is what the answer looks like, unless the configuration says otherwise.
pub(super) async fn ask(call: &Call, kind: &str, input: Json, schema: Option<Json>) -> Result<Json, Fault> {
    let Some(executor) = call.inner.executors.get(kind).cloned().filter(|_| kind != "workspace") else {
        return Err(Fault::new(
            "no-executor",
            &format!("this host has no executor of kind `{kind}`, which `by` of `{}` names", call.name()),
        ));
    };
    let mut inner = decl(call.actor(), kind);
    if let Some(schema) = call.config("answer").cloned().or(schema) {
        inner.output = Some(schema);
    }
    inner.input = None;
    let mut asked = call.clone();
    asked.input = Arc::new(input);
    asked.service = Arc::new(Service {
        name: call.service.name.clone(),
        kind: kind.into(),
        decl: inner,
        conduct: call.service.conduct.clone(),
        output: None,
    });
    match executor.call(asked).await? {
        Outcome::Done(answer) => Ok(answer),
        Outcome::Waits => {
            Err(Fault::new("config", &format!("an actor of kind `{kind}` waits for somebody; it cannot be asked here")))
        }
    }
}

/// The JSON form of a changeset, as it is asked for.
pub(super) fn changeset_schema() -> Json {
    json!({
        "type": "object",
        "required": ["summary", "changes"],
        "additionalProperties": false,
        "properties": {
            "summary": {"type": "string", "minLength": 1, "description": "What the changes do, in one line."},
            "changes": {"type": "array", "minItems": 1, "items": {
                "type": "object",
                "required": ["operation", "file_path"],
                "additionalProperties": false,
                "properties": {
                    "operation": {"enum": ["CREATE", "MODIFY", "DELETE"]},
                    "file_path": {"type": "string", "description": "Relative to the workspace, like src/main.rs."},
                    "content": {"type": "string", "description": "The whole new content of the file; not for DELETE."}
                }
            }}
        }
    })
}
