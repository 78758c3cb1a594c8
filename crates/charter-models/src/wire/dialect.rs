//! What servers with OpenAI's API take or refuse.

use crate::model::{Model, Provider};

/// What is different from what is expected of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dialect {
    /// Whether the limit of the answer has the other one of its two names.
    other_limit: bool,
    /// Whether the usage must not be asked for.
    pub(super) no_stream_options: bool,
}

/// How servers say that they do not know a parameter.
const UNKNOWN: [&str; 7] =
    ["unsupported", "not supported", "unrecognized", "unknown", "not permitted", "unexpected", "instead"];

impl Dialect {
    /// The name of the limit of the answer. OpenAI has renamed it; most other servers know the old
    /// name only.
    pub(super) fn limit(self, model: &Model) -> &'static str {
        let renamed = model.provider == Provider::Azure || model.base_url == Provider::OpenAi.base_url();
        if renamed == self.other_limit { "max_tokens" } else { "max_completion_tokens" }
    }

    /// The dialect to try if a server rejects a request with this message, and the parameter that
    /// it does not know.
    pub(crate) fn next(self, model: &Model, message: &str) -> Option<(Dialect, &'static str)> {
        let message = message.to_lowercase();
        if !matches!(model.provider, Provider::OpenAi | Provider::Azure) || !UNKNOWN.iter().any(|w| message.contains(w))
        {
            return None;
        }
        let limit = self.limit(model);
        if !self.other_limit && message.contains(limit) {
            return Some((Dialect { other_limit: true, ..self }, limit));
        }
        let blames_options = !self.no_stream_options && message.contains("stream_options");
        blames_options.then_some((Dialect { no_stream_options: true, ..self }, "stream_options"))
    }
}
