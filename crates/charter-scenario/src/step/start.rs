//! Parses how a run starts.

use charter_kernel::{Principal, Timestamp};
use serde::de;
use serde_json::Value as Json;

use super::input::{time, wrong_type};
use super::principal::principal;
use crate::timestamp::abbreviate;

/// How a run starts.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct StartLine {
    /// Its input; `None`: what is given elsewhere.
    pub input: Option<Json>,
    /// Who starts it.
    pub by: Option<Principal>,
    /// The time.
    pub at: Option<Timestamp>,
}

/// Parses `{input, by, at}`.
pub(super) fn start_line<E: de::Error>(value: Json) -> Result<StartLine, E> {
    let Json::Object(fields) = value else {
        return Err(wrong_type("start", "an object with `input`, `by` and `at`"));
    };
    let mut start = StartLine::default();
    for (key, value) in fields {
        match key.as_str() {
            "input" => start.input = Some(value),
            "by" => start.by = principal(value)?,
            "at" => start.at = time(value)?,
            other => {
                let other = abbreviate(other);
                return Err(E::custom(format!("unknown key `{other}` in `start`: expected `input`, `by` or `at`")));
            }
        }
    }
    Ok(start)
}
