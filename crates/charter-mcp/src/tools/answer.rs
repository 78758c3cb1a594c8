//! The result of a tool: a sentence for the model, and the run as data.

use charter_kernel::{Code, Explanation, PERSONS_ONLY};
use serde_json::{Map, Value as Json, json};

use crate::look::Look;

/// Bytes of a result; a larger one is shortened.
const MAX_BYTES: usize = 512 << 10;

/// A result of a tool.
pub(super) struct Answer {
    /// A sentence that the model can act on.
    pub(super) message: String,
    /// Whether the call did not do what it was for.
    pub(super) is_error: bool,
    /// Members besides those that every result has.
    pub(super) more: Map<String, Json>,
    /// Whether the schemas of legal events belong to it.
    pub(super) schemas: bool,
}

impl Answer {
    pub(super) fn new(message: impl Into<String>) -> Answer {
        Answer { message: message.into(), is_error: false, more: Map::new(), schemas: false }
    }

    pub(super) fn error(message: impl Into<String>) -> Answer {
        Answer { is_error: true, ..Answer::new(message) }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Json>) -> Answer {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// The result for the client, with the run as it is now.
    pub(super) fn result(self, look: &Look) -> Map<String, Json> {
        let mut all = look.json(self.schemas);
        all.extend(self.more);
        all.insert("message".to_owned(), self.message.as_str().into());
        let size = |all: &Map<String, Json>| serde_json::to_vec(all).map_or(usize::MAX, |text| text.len());
        let mut message = self.message;
        if size(&all) > MAX_BYTES {
            all.remove("details");
            if let Some(Json::Array(legal)) = all.get_mut("legal") {
                for offer in legal.iter_mut().filter_map(Json::as_object_mut) {
                    offer.remove("data");
                    offer.remove("conditions");
                }
            }
            message.push_str(" Parts of this result were left out, because it is too large; the resources have them.");
            all.insert("message".to_owned(), message.as_str().into());
        }
        if size(&all) > MAX_BYTES {
            all.remove("refusal");
            all.insert("waiting".to_owned(), json!([]));
        }
        let structured = Json::Object(all);
        let content = json!([{"type": "text", "text": message}, {"type": "text", "text": structured.to_string()}]);
        let mut result = Map::new();
        result.insert("content".to_owned(), content);
        result.insert("structuredContent".to_owned(), structured);
        if self.is_error {
            result.insert("isError".to_owned(), true.into());
        }
        result
    }
}

/// What a refusal tells the model: why, and what to do about it.
pub(super) fn advice(reason: &Explanation, look: &Look) -> String {
    let why = reason.message.trim_end_matches('.');
    let persons = |rule: &Option<String>| rule.as_deref() == Some(PERSONS_ONLY);
    let for_persons = persons(&reason.rule) || reason.candidates.iter().any(|candidate| persons(&candidate.rule));
    let what = match reason.code {
        _ if for_persons => "Only a person may decide this, in the inbox of Charter and not here. Tell the user, and do not try it again".to_owned(),
        Code::Stale => "Read `status`, and decide again".to_owned(),
        Code::Schema => "Correct the data: `legal` shows its schema".to_owned(),
        Code::Authority => "Your roles do not allow it; somebody else has to send it".to_owned(),
        Code::Paused => "The run is paused until an operator resumes it".to_owned(),
        _ => String::new(),
    };
    let what = if what.is_empty() { what } else { format!(" {what}.") };
    format!("{why}.{what} {}", look.next_step())
}

/// A refusal as a member of a result.
pub(super) fn refusal(reason: &Explanation) -> Json {
    serde_json::to_value(reason).unwrap_or_default()
}
