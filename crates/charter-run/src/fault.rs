//! A failed call of an actor, as data.

use charter_kernel::{BadAnswer, Principal};
use serde_json::{Map, Value as Json};

/// A failed call of an actor.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Stable code, for conditions in charters (`docs/actors.md` lists them).
    pub code: String,
    /// The message, in one sentence.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// Further members of `event.error`, besides code and message.
    pub details: Map<String, Json>,
}

impl Fault {
    /// Creates a failure that another attempt would not fix.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Fault {
        Fault { code: code.into(), message: message.into(), retryable: false, details: Map::new() }
    }

    /// Creates the failure of a call that the host's stop interrupted and that must not be
    /// repeated.
    #[must_use]
    pub fn unknown(src: &str) -> Fault {
        let message = format!("the host stopped during a call of `{src}`; whether the call took effect is unknown");
        Fault::new("unknown", message)
    }

    /// Creates the failure of an actor for which the host has no executor.
    #[must_use]
    pub fn no_executor(src: &str, kind: &str) -> Fault {
        Fault::new("no-executor", format!("this host has no executor for `{src}` (kind `{kind}`)"))
    }

    /// Creates the failure of a task that a person declines.
    #[must_use]
    pub fn declined(reason: &str, by: &Principal) -> Fault {
        Fault::new("declined", reason).with("by", by.id.as_str())
    }

    /// Marks the failure as one that another attempt may fix.
    #[must_use]
    pub fn retryable(mut self) -> Fault {
        self.retryable = true;
        self
    }

    /// Adds a member to `event.error`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Fault {
        self.details.insert(key.into(), value.into());
        self
    }

    /// Reads a failure that [`Fault::json`] has written.
    #[must_use]
    pub fn read(error: &Json) -> Fault {
        let text = |key: &str| error.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
        let mut details = error.as_object().cloned().unwrap_or_default();
        for key in ["code", "message", "retryable"] {
            details.remove(key);
        }
        let retryable = error.get("retryable").and_then(Json::as_bool) == Some(true);
        Fault { code: text("code"), message: text("message"), retryable, details }
    }

    /// Returns the error as the charter sees it: `{code, message, retryable, ...}`.
    #[must_use]
    pub fn json(&self) -> Json {
        let mut map = self.details.clone();
        map.insert("code".into(), self.code.as_str().into());
        map.insert("message".into(), self.message.as_str().into());
        map.insert("retryable".into(), self.retryable.into());
        Json::Object(map)
    }
}

impl From<BadAnswer> for Fault {
    fn from(why: BadAnswer) -> Fault {
        let fault = Fault::new(why.code, &why.message).retryable();
        match why.misfits.is_empty() {
            true => fault,
            false => fault.with("misfits", serde_json::to_value(why.misfits).unwrap_or_default()),
        }
    }
}

/// Converts to a fault with the code `config`.
impl From<crate::KeyError> for Fault {
    fn from(error: crate::KeyError) -> Fault {
        Fault::new("config", error.to_string())
    }
}
