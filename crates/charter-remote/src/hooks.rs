//! Webhooks of a server. Administrators only.

use charter_runtime::RuntimeError;
use serde_json::{Value as Json, json};

use crate::http::part;
use crate::remote::{Remote, json as read};

impl Remote {
    /// The webhooks, as `GET /v1/hooks` answers.
    ///
    /// # Errors
    /// The server does not answer, or the key is not that of an administrator.
    pub fn hooks(&self) -> Result<Json, RuntimeError> {
        read(&self.http.get("/v1/hooks")?)
    }

    /// Adds a webhook: `{"url", "on", "charter", "allow_private", "note"}`. The answer has its id
    /// and its secret.
    ///
    /// # Errors
    /// See [`Remote::hooks`]; or the server refuses the webhook.
    pub fn add_hook(&self, hook: &Json) -> Result<Json, RuntimeError> {
        read(&self.http.post("/v1/hooks", hook)?)
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// See [`Remote::hooks`]; or there is no such webhook.
    pub fn remove_hook(&self, hook: &str) -> Result<(), RuntimeError> {
        self.http.delete(&format!("/v1/hooks/{}", part(hook))).map(drop)
    }

    /// Asks for another attempt now.
    ///
    /// # Errors
    /// See [`Remote::remove_hook`].
    pub fn retry_hook(&self, hook: &str) -> Result<(), RuntimeError> {
        self.http.post(&format!("/v1/hooks/{}/retry", part(hook)), &json!({})).map(drop)
    }

    /// The messages of a webhook that could not be delivered, as `GET /v1/hooks/{hook}/dead`
    /// answers.
    ///
    /// # Errors
    /// See [`Remote::remove_hook`].
    pub fn dead_letters(&self, hook: &str) -> Result<Json, RuntimeError> {
        read(&self.http.get(&format!("/v1/hooks/{}/dead", part(hook)))?)
    }
}
