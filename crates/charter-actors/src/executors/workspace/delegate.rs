//! Delegation: a workspace actor asks an actor of another kind, which receives the input with the
//! approved contents.

use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use super::KEYS;
use crate::call::Call;
use crate::config::ActorConfig;
use crate::executor::{Beside, Executor, Fault, Outcome};
use crate::secret::perform;

/// The kind that a workspace actor asks, and its executor, if there are both.
pub(super) fn asked<'a>(actor: &'a ActorDecl, beside: &Beside<'a>) -> Option<(&'a str, &'a dyn Executor)> {
    let by = actor.config.get("by").and_then(Json::as_str).filter(|by| *by != "workspace")?;
    Some((by, beside.executors.get(by)?.as_ref()))
}

/// Returns the configuration of the other actor: the keys that do not belong to the workspace.
pub(super) fn decl(actor: &ActorDecl, kind: &str) -> ActorDecl {
    let mut inner = actor.clone();
    inner.kind = kind.into();
    inner.config.retain(|key, _| !KEYS.contains(&key.as_str()));
    inner
}

/// Asks an actor of kind `kind`. `schema` is the schema of its answer, unless the configuration has
/// one.
pub(super) async fn ask(call: &Call, kind: &str, input: Json, schema: Option<Json>) -> Result<Json, Fault> {
    let Some(executor) = call.host().executor(kind).filter(|_| kind != "workspace") else {
        return Err(Fault::new(
            "no-executor",
            format!("this host has no executor of kind `{kind}`, which `by` of `{}` names", call.name()),
        ));
    };
    let mut decl = decl(call.actor(), kind);
    if let Some(schema) = call.config("answer").cloned().or(schema) {
        decl.output = Some(schema);
    }
    decl.input = None;
    let actor = &call.actor;
    let other = ActorConfig { name: actor.name.clone(), kind: kind.into(), decl, policy: actor.policy.clone() };
    match perform(executor.as_ref(), call.delegate(other, input)).await? {
        Outcome::Done(answer) => Ok(answer),
        Outcome::Waits => Err(Fault::new(
            "config",
            format!("an actor of kind `{kind}` answers later, so a workspace actor cannot ask it"),
        )),
    }
}

/// The JSON Schema of a changeset of at most so many changes.
pub(super) fn changeset_schema(max_changes: usize) -> Json {
    json!({
        "type": "object",
        "required": ["summary", "changes"],
        "additionalProperties": false,
        "properties": {
            "summary": {"type": "string", "minLength": 1, "description": "What the changes do, in one line."},
            "changes": {"type": "array", "minItems": 1, "maxItems": max_changes, "items": {
                "type": "object",
                "required": ["operation", "file_path"],
                "additionalProperties": false,
                "properties": {
                    "operation": {"enum": ["CREATE", "MODIFY", "DELETE"]},
                    "file_path": {"type": "string", "description": "Relative to the workspace, like src/main.rs."},
                    "content": {"type": "string", "description": "The whole new content of the file; not for DELETE, and not beside `edits`."},
                    "edits": {
                        "type": "array", "minItems": 1,
                        "description": "Only for MODIFY, in place of `content`: places that change.",
                        "items": {
                            "type": "object",
                            "required": ["search", "replace"],
                            "additionalProperties": false,
                            "properties": {
                                "search": {"type": "string", "minLength": 1, "description": "Text of the file, exactly; the file has it exactly once."},
                                "replace": {"type": "string", "description": "What takes its place."}
                            }
                        }
                    },
                    "executable": {"type": "boolean", "description": "Whether the file is executable; left out, its mode stays as it was."}
                }
            }}
        }
    })
}
