//! What hosts and their clients in other processes exchange as text.

use charter_expr::strict_json;
use charter_journal::{ReplayError, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::error::RuntimeError;

/// Maximum nesting of JSON: event data has at most 128 levels, a record some more.
const MAX_DEPTH: usize = 400;

/// An error of a host as text for another process, which makes the same error of it again if it is
/// one that callers distinguish.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ErrorText {
    code: String,
    message: String,
    #[serde(default)]
    of: Json,
}

impl ErrorText {
    /// An error of a request that cannot be read.
    #[must_use]
    pub fn request(message: String) -> ErrorText {
        ErrorText { code: "request".into(), message, of: Json::Null }
    }
}

impl From<&RuntimeError> for ErrorText {
    fn from(error: &RuntimeError) -> ErrorText {
        let (code, of) = match error {
            RuntimeError::UnknownRun(run) => ("unknown-run", json!(run)),
            RuntimeError::NeverStarted(run) => ("never-started", json!(run)),
            RuntimeError::RunExists(run) => ("run-exists", json!(run)),
            RuntimeError::NotAwaited(run) => ("not-awaited", json!(run)),
            RuntimeError::IdTaken { run, id, seq } => ("id-taken", json!([run, id, seq])),
            RuntimeError::UnknownCharter(digest) => ("unknown-charter", json!(digest)),
            RuntimeError::NoTask { run, task } => ("no-task", json!([run, task])),
            RuntimeError::NotYours { run, task, roles, by } => ("not-yours", json!([run, task, roles, by])),
            RuntimeError::PersonsOnly { run, task, by, kind } => ("persons-only", json!([run, task, by, kind])),
            RuntimeError::Store(StoreError::Conflict { run, seq, expected, why }) => {
                ("conflict", json!([run, seq, expected, why]))
            }
            RuntimeError::Store(StoreError::RunDeleted { run, at, help })
            | RuntimeError::Replay(ReplayError::Store(StoreError::RunDeleted { run, at, help })) => {
                ("run-deleted", json!([run, at, help]))
            }
            RuntimeError::Store(StoreError::KeyTaken { run, seq, event, key, holder })
            | RuntimeError::Replay(ReplayError::Store(StoreError::KeyTaken { run, seq, event, key, holder })) => {
                ("key-taken", json!([run, seq, event, key, holder]))
            }
            RuntimeError::Closing => ("closing", Json::Null),
            _ => ("other", Json::Null),
        };
        ErrorText { code: code.into(), message: error.to_string(), of }
    }
}

impl ErrorText {
    /// The error as the caller of the client sees it; `closing` is what it is if the host was
    /// shutting down, and so has done nothing.
    #[must_use]
    pub fn into_error(self, closing: RuntimeError) -> RuntimeError {
        fn of<T: DeserializeOwned>(of: Json) -> Option<T> {
            serde_json::from_value(of).ok()
        }
        let ErrorText { code, message, of: fields } = self;
        let known = match code.as_str() {
            "unknown-run" => of(fields).map(RuntimeError::UnknownRun),
            "never-started" => of(fields).map(RuntimeError::NeverStarted),
            "run-exists" => of(fields).map(RuntimeError::RunExists),
            "not-awaited" => of(fields).map(RuntimeError::NotAwaited),
            "unknown-charter" => of(fields).map(RuntimeError::UnknownCharter),
            "id-taken" => of(fields).map(|(run, id, seq)| RuntimeError::IdTaken { run, id, seq }),
            "no-task" => of(fields).map(|(run, task)| RuntimeError::NoTask { run, task }),
            "not-yours" => of(fields).map(|(run, task, roles, by)| RuntimeError::NotYours { run, task, roles, by }),
            "persons-only" => of(fields).map(|(run, task, by, kind)| RuntimeError::PersonsOnly { run, task, by, kind }),
            "conflict" => {
                of(fields).map(|(run, seq, expected, why)| StoreError::Conflict { run, seq, expected, why }.into())
            }
            "run-deleted" => of(fields).map(|(run, at, help)| StoreError::RunDeleted { run, at, help }.into()),
            "key-taken" => of(fields)
                .map(|(run, seq, event, key, holder)| StoreError::KeyTaken { run, seq, event, key, holder }.into()),
            "closing" => Some(closing),
            _ => None,
        };
        known.unwrap_or(RuntimeError::Remote(message))
    }
}

/// Parses JSON that nests deeper than the default limit of `serde_json`, but not without a limit.
/// Refuses duplicate keys.
///
/// # Errors
/// The text is not JSON, nests too deep, or is not a `T`.
pub fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    parse(text, false)
}

/// Like [`parse_json`], for a request: also refuses many small lists and objects, which take many
/// times the memory of their text.
///
/// # Errors
/// See [`parse_json`]; also, the value would take more than
/// [`MAX_MEMORY`](charter_expr::strict_json::MAX_MEMORY).
pub fn parse_request<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    parse(text, true)
}

fn parse<T: DeserializeOwned>(text: &str, is_request: bool) -> Result<T, serde_json::Error> {
    let unlimited = depth(text) <= MAX_DEPTH;
    let reader = || {
        let mut reader = serde_json::Deserializer::from_str(text);
        if unlimited {
            reader.disable_recursion_limit();
        }
        reader
    };
    match is_request {
        true => strict_json::check_request(reader())?,
        false => strict_json::check_with(reader())?,
    }
    let mut reader = reader();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The nesting of a JSON text, or more: brackets in strings count.
fn depth(text: &str) -> usize {
    let (mut depth, mut max) = (0usize, 0usize);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                max = max.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_json_is_read_up_to_a_limit() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse_json::<Json>(&nested(MAX_DEPTH)).is_ok());
        assert!(parse_json::<Json>(&nested(MAX_DEPTH + 1)).is_err());
        assert!(parse_json::<Json>(&nested(1_000_000)).is_err());
        assert!(parse_json::<Json>("1 2").is_err());
    }

    #[test]
    fn many_small_objects_are_no_request() {
        let many = format!("[{}]", vec!["{\"a\":0}"; 200_000].join(","));
        assert!(parse_json::<Json>(&many).is_ok());
        let refused = parse_request::<Json>(&many).unwrap_err();
        assert!(strict_json::is_too_large(&refused), "{refused}");
        // Texts count as they are: a request may bring a charter with its files.
        let text = format!("{{\"charter\":\"{}\"}}", "x".repeat(41 << 20));
        assert!(parse_request::<Json>(&text).is_ok());
    }

    #[test]
    fn known_errors_survive_as_text() {
        let errors = [
            RuntimeError::UnknownRun("r".into()),
            RuntimeError::RunExists("r".into()),
            RuntimeError::NoTask { run: "r".into(), task: "r/0/0".into() },
            RuntimeError::NotYours { run: "r".into(), task: "r/0/0".into(), roles: "a, b".into(), by: "c".into() },
            RuntimeError::PersonsOnly {
                run: "r".into(),
                task: "r/0/0".into(),
                by: "c".into(),
                kind: charter_kernel::PrincipalKind::Agent,
            },
            StoreError::Conflict { run: "r".into(), seq: 1, expected: 2, why: "because".into() }.into(),
            StoreError::RunDeleted { run: "r".into(), at: "then".into(), help: "do".into() }.into(),
            StoreError::KeyTaken {
                run: "r".into(),
                seq: 1,
                event: "PAY".into(),
                key: "\"o1\"".into(),
                holder: "s".into(),
            }
            .into(),
        ];
        for error in errors {
            let text = serde_json::to_string(&ErrorText::from(&error)).unwrap();
            assert_eq!(parse_json::<ErrorText>(&text).unwrap().into_error(RuntimeError::Closing), error);
        }
        let other = RuntimeError::Limit { limit: "mailbox", value: 1, what: "too many".into() };
        assert_eq!(ErrorText::from(&other).into_error(RuntimeError::Closing).to_string(), other.to_string());
        assert_eq!(
            ErrorText::from(&RuntimeError::Closing).into_error(RuntimeError::Lost { pid: 7 }),
            RuntimeError::Lost { pid: 7 }
        );
    }
}
