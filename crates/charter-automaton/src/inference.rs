//! The inference port, with a deterministic mock and a stub.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::PortError;

/// The input of the inference of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InferenceRequest {
    /// The id of the turn.
    pub turn: String,
    /// The agent's description of itself.
    pub soul: String,
    /// The text that the turn is about; `None` if the loop started the turn.
    #[serde(default)]
    pub input: Option<String>,
    /// Why the turn started.
    pub reason: String,
    /// The context that was loaded: the enabled skills and the last episodes.
    #[serde(default)]
    pub context: Json,
}

/// The result of the inference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InferenceOutput {
    /// The reasoning, for the log.
    pub thought: String,
    /// The reply to the input.
    pub reply: String,
    /// The requested actions, each as `{kind, input}`.
    pub actions: Vec<Json>,
}

/// The inference port.
pub trait Inference {
    /// Runs the inference once.
    ///
    /// # Errors
    /// The adapter failed.
    fn infer(&self, request: &InferenceRequest) -> Result<InferenceOutput, PortError>;
}

/// A fixed rule instead of a model. The same request gives the same output, which is marked as a
/// mock.
#[derive(Debug, Clone, Copy, Default)]
pub struct MockInference;

impl Inference for MockInference {
    fn infer(&self, request: &InferenceRequest) -> Result<InferenceOutput, PortError> {
        let heard = request.input.as_deref().unwrap_or("").trim();
        let skills: Vec<&str> = request
            .context
            .get("skills")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .filter_map(|s| s["name"].as_str())
            .collect();
        let mut actions = vec![
            json!({"kind": "note", "input": {"text": if heard.is_empty() { request.reason.as_str() } else { heard }}}),
        ];
        if heard.to_lowercase().contains("sign") {
            actions.push(json!({"kind": "sign", "input": {"message": heard}}));
        }
        let reply = if heard.is_empty() {
            format!("(mock) Nobody asked for anything; I woke because: {}.", request.reason)
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

/// Always fails with `not-configured`.
#[derive(Debug, Clone, Copy, Default)]
pub struct StubInference;

impl Inference for StubInference {
    fn infer(&self, _: &InferenceRequest) -> Result<InferenceOutput, PortError> {
        Err(PortError::not_configured("inference"))
    }
}
