//! `budget` of an actor.

use std::time::Duration;

use charter_actors::ConfigError;
use serde_json::Value as Json;

use crate::ask::Budget;

/// Default token budget.
const TOKENS: u64 = 50_000;
/// Default time budget, in seconds.
const SECONDS: f64 = 120.0;

/// Reads `budget`.
pub(crate) fn budget(given: Option<&Json>) -> Result<Budget, ConfigError> {
    let mut budget = Budget { tokens: TOKENS, time: Duration::from_secs_f64(SECONDS) };
    let map = match given {
        None | Some(Json::Null) => return Ok(budget),
        Some(Json::Object(map)) => map,
        Some(other) => {
            return Err(ConfigError::invalid("budget", "an object such as `{tokens: 20000, seconds: 60}`", other));
        }
    };
    for (key, value) in map {
        match key.as_str() {
            "tokens" => {
                let tokens = value.as_u64().filter(|n| *n > 0);
                budget.tokens =
                    tokens.ok_or_else(|| ConfigError::invalid("budget.tokens", "a number above 0", value))?;
            }
            "seconds" => {
                let seconds = value.as_f64().filter(|n| *n > 0.0 && *n <= 86_400.0);
                let expected = "a number above 0 and at most 86400";
                let seconds = seconds.ok_or_else(|| ConfigError::invalid("budget.seconds", expected, value))?;
                budget.time = Duration::from_secs_f64(seconds);
            }
            other => {
                return Err(charter_actors::KeyError::unknown_in("budget", other, ["tokens", "seconds"]).into());
            }
        }
    }
    Ok(budget)
}
