//! The keys that every kind of actor has: retries, idempotency, time limit of an attempt, identity.

use charter_kernel::definition::{ActorDecl, Delay};
use charter_kernel::{Digest, Millis, check_name};
use serde_json::Value as Json;

use crate::key_error::KeyError;
use crate::values::{delay, texts};

/// Default upper limit of the pause between two attempts: five minutes.
const MAX_PAUSE: Millis = Millis(300_000);
/// Upper limit of `retry.attempts`.
const MAX_ATTEMPTS: u64 = 100;

/// The keys of an actor's configuration that are the same for every kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ActorPolicy {
    /// Whether repeating a call under the same key has no further effect, so that an interrupted
    /// call may be repeated.
    pub idempotent: Option<bool>,
    /// When a failed call is attempted again.
    pub retry: Retry,
    /// Time limit of one attempt (`attemptTimeout`); `None`: the default of the kind.
    pub attempt_timeout: Option<Millis>,
    /// The roles under which it may send events to its run (`as`).
    pub roles: Vec<String>,
    /// The id under which it sends events (`id`); default: its name.
    pub id: Option<String>,
}

/// `retry` of an actor.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Number of attempts in all.
    pub attempts: u32,
    /// Pause after the first failure.
    pub backoff: Millis,
    /// Factor by which the pause grows with each attempt.
    pub factor: f64,
    /// Upper limit of the pause.
    pub max: Millis,
    /// Fraction of the pause that is random, 0 to 1.
    pub jitter: f64,
    /// A pause that a server requests ends the attempts if it is this long: the actor's time, or
    /// else `max`.
    pub within: Millis,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 1, backoff: Millis(1_000), factor: 2.0, max: MAX_PAUSE, jitter: 0.5, within: MAX_PAUSE }
    }
}

impl Retry {
    /// Returns the pause after attempt `attempt` (the first is 1) of an effect. It is always the
    /// same for the same effect and attempt, because the random part is derived from the effect's
    /// id.
    #[must_use]
    pub fn pause(&self, effect: &str, attempt: u32) -> Millis {
        let doublings = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let full = (self.backoff.0 as f64 * self.factor.powi(doublings)).min(self.max.0 as f64);
        let Digest(hash) = Digest::of_bytes(format!("{effect}#{attempt}").as_bytes());
        let seed = hash.iter().take(6).fold(0u64, |n, b| n.wrapping_mul(256).wrapping_add(u64::from(*b)));
        let random = seed as f64 / (1u64 << 48) as f64;
        let pause = full * (1.0 - self.jitter * random);
        // Between 0 and `max`, so the cast loses nothing.
        Millis(pause.max(0.0) as i64)
    }
}

impl ActorPolicy {
    /// Reads the common keys of an actor.
    ///
    /// # Errors
    /// Returns an error for the first value that is invalid.
    pub fn read(decl: &ActorDecl) -> Result<ActorPolicy, KeyError> {
        let config = &decl.config;
        let idempotent = match config.get("idempotent") {
            None | Some(Json::Null) => None,
            Some(Json::Bool(b)) => Some(*b),
            Some(other) => return Err(KeyError::invalid("idempotent", "`true` or `false`", other)),
        };
        let attempt_timeout = match config.get("attemptTimeout") {
            None | Some(Json::Null) => None,
            Some(value) => Some(delay("attemptTimeout", value)?.max(Millis(1))),
        };
        let roles = match config.get("as") {
            None | Some(Json::Null) => Vec::new(),
            Some(value) => texts("as", value)?,
        };
        let id = match config.get("id") {
            None | Some(Json::Null) => None,
            Some(Json::String(id)) if !id.is_empty() && check_name(id).is_ok() => Some(id.clone()),
            Some(other) => {
                return Err(KeyError::invalid(
                    "id",
                    "a nonempty string, the sender of its events, but not `system`, and without hidden characters",
                    other,
                ));
            }
        };
        let mut retry = config.get("retry").map(retry).transpose()?.unwrap_or_default();
        retry.within = match decl.timeout {
            Some(Delay::Ms(ms)) => Millis(i64::try_from(ms).unwrap_or(i64::MAX)),
            _ => retry.max,
        };
        Ok(ActorPolicy { idempotent, retry, attempt_timeout, roles, id })
    }
}

fn retry(value: &Json) -> Result<Retry, KeyError> {
    let mut out = Retry::default();
    let Json::Object(map) = value else {
        return Err(KeyError::invalid("retry", "an object such as `{attempts: 3, backoff: 2s}`", value));
    };
    for (key, value) in map {
        match key.as_str() {
            "attempts" => {
                let n = value.as_u64().filter(|n| (1..=MAX_ATTEMPTS).contains(n)).and_then(|n| u32::try_from(n).ok());
                out.attempts = n.ok_or_else(|| {
                    KeyError::invalid("retry.attempts", &format!("a number from 1 to {MAX_ATTEMPTS}"), value)
                })?;
            }
            "backoff" => out.backoff = delay("retry.backoff", value)?,
            "max" => out.max = delay("retry.max", value)?,
            "factor" => {
                let factor = value.as_f64().filter(|f| (1.0..=10.0).contains(f));
                out.factor = factor.ok_or_else(|| KeyError::invalid("retry.factor", "a number from 1 to 10", value))?;
            }
            "jitter" => {
                let jitter = value.as_f64().filter(|f| (0.0..=1.0).contains(f));
                out.jitter = jitter.ok_or_else(|| KeyError::invalid("retry.jitter", "a number from 0 to 1", value))?;
            }
            other => {
                let known = ["attempts", "backoff", "factor", "max", "jitter"];
                return Err(KeyError::unknown_in("retry", other, known));
            }
        }
    }
    Ok(out)
}
