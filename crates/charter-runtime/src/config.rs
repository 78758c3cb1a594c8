//! What the charter says about an actor to its host: retries, idempotency, on whose behalf it acts.

use charter_kernel::definition::ActorDecl;
use charter_kernel::{Digest, parse_delay};
use serde_json::Value as Json;

/// The longest pause between two attempts, unless the actor says otherwise: five minutes.
const MAX_PAUSE: i64 = 300_000;
/// The most attempts an actor may ask for.
const MAX_ATTEMPTS: u64 = 100;

/// The part of an actor's configuration that is the same for every kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ActorPolicy {
    /// Doing it twice under the same key is like doing it once: an interrupted call may be made again.
    pub idempotent: Option<bool>,
    /// When it is tried again.
    pub retry: Retry,
    /// How long one attempt may take, in milliseconds (`attemptTimeout`); none: as long as its kind allows.
    pub attempt_timeout: Option<i64>,
    /// The roles under which it may send events to its run (`as`).
    pub roles: Vec<String>,
    /// The id under which it sends them (`id`); default: its name.
    pub id: Option<String>,
}

/// `retry` of an actor.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// How often it is tried in all; 1: once.
    pub attempts: u32,
    /// The pause after the first failure, in milliseconds.
    pub backoff: i64,
    /// By how much the pause grows each time.
    pub factor: f64,
    /// The longest pause, in milliseconds.
    pub most: i64,
    /// How much of the pause is left to chance, 0 to 1.
    pub jitter: f64,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 1, backoff: 1_000, factor: 2.0, most: MAX_PAUSE, jitter: 0.5 }
    }
}

impl Retry {
    /// The pause after attempt `attempt` (the first is 1) of an effect, in milliseconds. The same effect and attempt always give the
    /// same pause: chance comes from the effect's id.
    #[must_use]
    pub fn pause(&self, effect: &str, attempt: u32) -> i64 {
        let doublings = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let full = (self.backoff as f64 * self.factor.powi(doublings)).min(self.most as f64);
        let Digest(hash) = Digest::of_bytes(format!("{effect}#{attempt}").as_bytes());
        let seed = hash.iter().take(6).fold(0u64, |n, b| n.wrapping_mul(256).wrapping_add(u64::from(*b)));
        let chance = seed as f64 / (1u64 << 48) as f64;
        let pause = full * (1.0 - self.jitter * chance);
        // Within 0 and `most`, so the cast loses nothing.
        pause.max(0.0) as i64
    }
}

impl ActorPolicy {
    /// Reads what an actor says.
    ///
    /// # Errors
    /// One sentence that names the key.
    pub fn read(decl: &ActorDecl) -> Result<ActorPolicy, String> {
        let config = &decl.config;
        let idempotent = match config.get("idempotent") {
            None | Some(Json::Null) => None,
            Some(Json::Bool(b)) => Some(*b),
            Some(other) => return Err(format!("`idempotent` is `true` or `false`, not `{other}`")),
        };
        let attempt_timeout = match config.get("attemptTimeout") {
            None | Some(Json::Null) => None,
            Some(value) => Some(delay("attemptTimeout", value)?.max(1)),
        };
        let roles = match config.get("as") {
            None | Some(Json::Null) => Vec::new(),
            Some(value) => texts("as", value)?,
        };
        let id = match config.get("id") {
            None | Some(Json::Null) => None,
            Some(Json::String(id)) if !id.is_empty() => Some(id.clone()),
            Some(other) => {
                return Err(format!("`id` is the name under which it acts, not `{other}`"));
            }
        };
        let retry = config.get("retry").map(retry).transpose()?.unwrap_or_default();
        Ok(ActorPolicy { idempotent, retry, attempt_timeout, roles, id })
    }
}

fn retry(value: &Json) -> Result<Retry, String> {
    let mut out = Retry::default();
    let Json::Object(map) = value else {
        return Err(format!("`retry` is an object such as `{{attempts: 3, backoff: 2s}}`, not `{value}`"));
    };
    for (key, value) in map {
        match key.as_str() {
            "attempts" => {
                let n = value.as_u64().filter(|n| (1..=MAX_ATTEMPTS).contains(n));
                out.attempts = n
                    .and_then(|n| u32::try_from(n).ok())
                    .ok_or_else(|| format!("`retry.attempts` is a number from 1 to {MAX_ATTEMPTS}, not `{value}`"))?;
            }
            "backoff" => out.backoff = delay("retry.backoff", value)?,
            "max" => out.most = delay("retry.max", value)?,
            "factor" => {
                out.factor = value
                    .as_f64()
                    .filter(|f| (1.0..=10.0).contains(f))
                    .ok_or_else(|| format!("`retry.factor` is a number from 1 to 10, not `{value}`"))?;
            }
            "jitter" => {
                out.jitter = value
                    .as_f64()
                    .filter(|f| (0.0..=1.0).contains(f))
                    .ok_or_else(|| format!("`retry.jitter` is a number from 0 to 1, not `{value}`"))?;
            }
            other => {
                let known = ["attempts", "backoff", "factor", "max", "jitter"];
                let near =
                    charter_expr::nearest(other, known).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                return Err(format!("`retry` has no key `{other}`{near}"));
            }
        }
    }
    Ok(out)
}

/// A length of time in a configuration: `2s`, `1h30m`, or milliseconds.
///
/// # Errors
/// One sentence that names the key.
pub fn delay(key: &str, value: &Json) -> Result<i64, String> {
    let ms = match value {
        Json::String(text) => parse_delay(text).map(|ms| ms.0),
        Json::Number(n) => n.as_i64(),
        _ => None,
    };
    ms.filter(|ms| *ms >= 0)
        .ok_or_else(|| format!("`{key}` is a length of time such as `2s` or `1h30m`, not `{value}`"))
}

/// A text or a list of texts.
///
/// # Errors
/// One sentence that names the key.
pub fn texts(key: &str, value: &Json) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is a text or a list of texts, not `{value}`");
    match value {
        Json::String(text) => Ok(vec![text.clone()]),
        Json::Array(items) => items.iter().map(|i| i.as_str().map(str::to_owned).ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}
