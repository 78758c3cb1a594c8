//! The port for thinking, with a deterministic mock and a stub.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::PortError;

/// What the machine is asked in a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InferenceRequest {
    /// Id of the turn.
    pub turn: String,
    /// Who it is.
    pub soul: String,
    /// What the turn is about; none when only time has passed.
    #[serde(default)]
    pub input: Option<String>,
    /// Why it woke.
    pub reason: String,
    /// What was gathered before: enabled skills, the last episodes.
    #[serde(default)]
    pub context: Json,
}

/// What came of thinking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InferenceOutput {
    /// For the log.
    pub thought: String,
    /// For whoever asked.
    pub reply: String,
    /// What it wants to do: `{kind, input}` each.
    pub actions: Vec<Json>,
}

/// The port for thinking.
pub trait Inference {
    /// Thinks once.
    ///
    /// # Errors
    /// The adapter could not.
    fn infer(&self, ask: &InferenceRequest) -> Result<InferenceOutput, PortError>;
}

/// Thinks nothing: a fixed rule that gives the same for the same question, and says that it is one.
#[derive(Debug, Clone, Copy, Default)]
pub struct MockInference;

impl Inference for MockInference {
    fn infer(&self, ask: &InferenceRequest) -> Result<InferenceOutput, PortError> {
        let heard = ask.input.as_deref().unwrap_or("").trim();
        let skills: Vec<&str> = ask
            .context
            .get("skills")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .filter_map(|s| s["name"].as_str())
            .collect();
        let mut actions = vec![
            json!({"kind": "note", "input": {"text": if heard.is_empty() { ask.reason.as_str() } else { heard }}}),
        ];
        if heard.to_lowercase().contains("sign") {
            actions.push(json!({"kind": "sign", "input": {"message": heard}}));
        }
        let reply = if heard.is_empty() {
            format!("(mock) Nobody asked for anything; I woke because: {}.", ask.reason)
        } else {
            format!("(mock) I heard: {heard}")
        };
        Ok(InferenceOutput {
            thought: format!(
                "A fixed rule answers, no model. Skills at hand: {}.",
                if skills.is_empty() { "none".into() } else { skills.join(", ") }
            ),
            reply,
            actions,
        })
    }
}

/// Answers that nothing is configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct StubInference;

impl Inference for StubInference {
    fn infer(&self, _: &InferenceRequest) -> Result<InferenceOutput, PortError> {
        Err(PortError::not_configured("inference"))
    }
}
