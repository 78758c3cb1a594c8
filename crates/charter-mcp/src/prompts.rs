//! Prompts: how to work under the charter of a run.

use serde_json::{Map, Value as Json, json};

use crate::endpoint::{Endpoint, failed, object};
use crate::message::RpcError;

/// The one prompt.
const WORK: &str = "work_under_charter";
/// Characters of the goal of a prompt.
const MAX_GOAL: usize = 10_000;

/// What a client may put into the context of its model.
pub(crate) fn instructions(endpoint: &Endpoint) -> String {
    let definition = endpoint.machine().definition();
    let about = definition.description.as_deref().or(definition.title.as_deref()).unwrap_or_default();
    let about: String = about.chars().take(1_000).collect();
    let about = if about.is_empty() { String::new() } else { format!(" It is about: {about}") };
    let reach = match endpoint.tools.has_static() {
        true => {
            "`status` shows where the run is, `legal` which events you may send now, `send` sends one, and `why_not` \
             explains why an event would be refused."
        }
        false => "Each event that is legal now is a tool.",
    };
    format!(
        "You work in the run `{}` of the charter `{}`.{about} The charter decides what may happen next: an event that \
         is not legal is refused and recorded. {reach} A refusal says why: do what it says, and do not repeat the same \
         event. What a person has to decide, you cannot decide: tell the user, and wait.",
        endpoint.run, definition.id
    )
}

/// `prompts/list`.
pub(crate) fn list() -> Map<String, Json> {
    object(json!({"prompts": [{
        "name": WORK, "title": "Work under this charter",
        "description": "How to reach a goal in this run: what is legal, how to read refusals, when to wait for people.",
        "arguments": [{"name": "goal", "description": "What is to be reached", "required": false}],
    }]}))
}

/// `prompts/get`.
pub(crate) async fn get(endpoint: &Endpoint, params: &Map<String, Json>) -> Result<Map<String, Json>, RpcError> {
    match params.get("name").and_then(Json::as_str) {
        Some(WORK) => {}
        _ => return Err(RpcError::params(format!("unknown prompt; there is one: `{WORK}`"))),
    }
    let goal = match params.get("arguments").and_then(|arguments| arguments.get("goal")) {
        None | Some(Json::Null) => "",
        Some(Json::String(goal)) if goal.chars().count() <= MAX_GOAL => goal,
        Some(_) => return Err(RpcError::params(format!("`goal` must be text of at most {MAX_GOAL} characters"))),
    };
    let look = endpoint.look().await.map_err(|e| failed(&e))?;
    let goal = if goal.is_empty() { String::new() } else { format!("\n\nThe goal: {goal}") };
    let text = format!(
        "{}\n\nNow: the run is {} in the state {} (record {}). {}{goal}\n\nBefore each step, read what is legal. If \
         nothing legal leads to the goal, say so and stop.",
        instructions(endpoint),
        look.snapshot().status().word(),
        look.state().join(", "),
        look.snapshot().seq(),
        look.next_step(),
    );
    Ok(object(json!({
        "description": "How to work under this charter",
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    })))
}
