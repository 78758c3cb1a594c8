//! Hooks in the run `host`.

use charter_kernel::Principal;
use serde_json::json;

use super::{HookSecret, NewHook, check_url, forget, prepare};
use crate::identity::{HostError, Office};

impl Office {
    /// Adds a hook, which begins with the next record. Its id and its secret are returned; the
    /// secret is kept beside the records, because messages are signed with it.
    ///
    /// # Errors
    /// The URL cannot be that of a hook, the run refuses it, or the journal failed.
    pub async fn add_hook(&self, hook: NewHook, by: Principal) -> Result<(String, HookSecret), HostError> {
        let NewHook { url, on, charter, private, note } = hook;
        check_url(&url, private)?;
        self.knows("HOOK_ADDED").await?;
        let secret = HookSecret::random().map_err(HostError::Random)?;
        let id: String = charter_kernel::Digest::of_bytes(secret.reveal().as_bytes()).hex().chars().take(12).collect();
        let mut data = json!({"hook": id, "url": url, "on": on, "private": private});
        if let serde_json::Value::Object(data) = &mut data {
            data.extend(charter.map(|charter| ("charter".to_owned(), charter.into())));
            data.extend(note.map(|note| ("note".to_owned(), note.into())));
        }
        prepare(self.backend(), &id, &secret).await?;
        match self.send("HOOK_ADDED", data, by).await {
            Ok(()) => Ok((id, secret)),
            Err(e) => {
                // What nobody uses may stay if it cannot be removed now.
                if matches!(e, HostError::Refused { .. }) {
                    let _ = forget(self.backend(), &id).await;
                }
                Err(e)
            }
        }
    }

    /// Removes a hook, with its secret and its dead letters.
    ///
    /// # Errors
    /// The run refuses it, or the journal failed.
    pub async fn remove_hook(&self, hook: &str, by: Principal) -> Result<(), HostError> {
        self.knows("HOOK_REMOVED").await?;
        self.send("HOOK_REMOVED", json!({"hook": hook}), by).await?;
        Ok(forget(self.backend(), hook).await?)
    }

    /// Asks for another attempt now: of what waits, and of the dead letters. A hook that was closed
    /// is opened again.
    ///
    /// # Errors
    /// The run refuses it, or the journal failed.
    pub async fn retry_hook(&self, hook: &str, by: Principal) -> Result<(), HostError> {
        self.knows("HOOK_RETRIED").await?;
        self.send("HOOK_RETRIED", json!({"hook": hook}), by).await
    }

    /// Closes a hook whose receiver wants nothing any more.
    pub(crate) async fn close_hook(&self, hook: &str, reason: &str, owner: &str) -> Result<(), HostError> {
        self.send("HOOK_CLOSED", json!({"hook": hook, "reason": reason}), Office::owner(owner)).await
    }
}
