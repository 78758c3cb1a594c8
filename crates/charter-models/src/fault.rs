//! Why there is no answer.

use serde_json::{Map, Value as Json};

/// Codes of faults; charters may look at them in `event.error.code`.
pub mod codes {
    /// The answer did not fit its schema, and neither did the second one.
    pub const INVALID_ANSWER: &str = "invalid-answer";
    /// The answer is larger than is read.
    pub const TOO_LARGE: &str = "too-large";
    /// The answer ended before it was whole.
    pub const CUT_OFF: &str = "cut-off";
    /// The model refused to answer.
    pub const DECLINED: &str = "declined";
    /// The tokens or the time of the actor's budget are used up.
    pub const BUDGET: &str = "budget";
    /// The server asks to wait longer than there is time.
    pub const RATE_LIMITED: &str = "rate-limited";
    /// The server is broken or cannot be reached.
    pub const UNAVAILABLE: &str = "unavailable";
    /// The server does not take the key.
    pub const AUTHENTICATION: &str = "authentication";
    /// The server does not take the request.
    pub const REQUEST: &str = "request";
    /// The server answered something that is not its wire format.
    pub const PROTOCOL: &str = "protocol";
    /// Nobody waits for the answer any more.
    pub const CANCELLED: &str = "cancelled";
    /// The actor is configured wrongly.
    pub const CONFIG: &str = "config";
    /// The cassette has no answer to this.
    pub const CASSETTE: &str = "cassette";
}

/// Why there is no answer: a code of [`codes`], a sentence, and whether asking again may help.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// One of [`codes`].
    pub code: &'static str,
    /// One sentence; never with a key in it.
    pub message: String,
    /// Asking again later may help.
    pub retryable: bool,
    /// What else is known.
    pub details: Map<String, Json>,
}

impl Fault {
    /// A fault that stays.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), retryable: false, details: Map::new() }
    }

    /// Asking again later may help.
    #[must_use]
    pub fn retryable(mut self) -> Fault {
        self.retryable = true;
        self
    }

    /// With something else that is known.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Fault {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}
