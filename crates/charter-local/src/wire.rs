//! The protocol: lines of JSON. The holder greets, then each request has one answer; after the
//! answer to `updates` the events follow. `docs/local-access.md` describes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use charter_actors::Folder;
use charter_expr::strict_json;
use charter_journal::{RunFilter, StoreError};
use charter_kernel::{Digest, Principal, Timestamp};
use charter_runtime::{RuntimeError, SendEvent, Start, Working};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// The version of the protocol. A holder and a client with different versions do not talk.
pub(crate) const PROTOCOL: u32 = 2;

/// Maximum size of a request in bytes: the largest charter that can be handed over.
pub(crate) const MAX_REQUEST_BYTES: usize = 8 << 20;

/// Maximum nesting of JSON: event data has at most 128 levels, a record some more.
const MAX_DEPTH: usize = 400;

/// The first line of the holder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) protocol: u32,
    /// The version of its program.
    pub(crate) version: String,
    pub(crate) pid: u32,
    /// Why the peer is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// What the program tells its clients.
    #[serde(default)]
    pub(crate) about: Json,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    Add(CharterText),
    Charter { digest: Digest },
    Start { charter: Digest, run: Option<String>, input: Json, by: Principal },
    Send(SendText),
    Answer { task: String, output: Option<Json>, declined: Option<String>, by: Principal },
    Resume { run: String },
    View { run: String },
    Legal { run: String, by: Principal },
    Tasks { by: Principal, limit: usize },
    Run { run: String },
    Runs(RunFilter),
    Records { run: String, from: u64, limit: usize },
    Updates { run: Option<String> },
    Fork { run: String, at: u64, new: String, dry: bool },
    Import { file: PathBuf },
    Rebuild {},
    Keep { run: String, all_timers: bool },
}

/// An event.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SendText {
    run: String,
    #[serde(default)]
    to: Option<String>,
    r#type: String,
    data: Json,
    by: Principal,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    expected_seq: Option<u64>,
}

impl From<SendEvent> for SendText {
    fn from(send: SendEvent) -> SendText {
        let SendEvent { run, to, r#type, data, by, id, expected_seq } = send;
        SendText { run, to, r#type, data, by, id, expected_seq }
    }
}

impl From<SendText> for SendEvent {
    fn from(text: SendText) -> SendEvent {
        let SendText { run, to, r#type, data, by, id, expected_seq } = text;
        SendEvent { run, to, r#type, data, by, id, expected_seq }
    }
}

impl From<Start> for Request {
    fn from(start: Start) -> Request {
        let Start { charter, run, input, by } = start;
        Request::Start { charter, run, input, by }
    }
}

/// A charter and its files.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CharterText {
    pub(crate) digest: Digest,
    pub(crate) name: String,
    pub(crate) core: String,
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) folder: FolderText,
}

/// The files beside a charter: an absolute folder, or their texts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FolderText {
    #[default]
    None,
    Dir(PathBuf),
    Texts(BTreeMap<String, String>),
}

impl FolderText {
    pub(crate) fn of(folder: &Folder) -> std::io::Result<FolderText> {
        Ok(match folder.at() {
            Folder::Dir(dir) => FolderText::Dir(std::path::absolute(dir)?),
            Folder::Texts(texts) => FolderText::Texts(texts.as_ref().clone()),
            _ => FolderText::None,
        })
    }
}

impl From<FolderText> for Folder {
    fn from(text: FolderText) -> Folder {
        match text {
            FolderText::None => Folder::None,
            FolderText::Dir(dir) => Folder::Dir(dir),
            FolderText::Texts(texts) => Folder::Texts(Arc::new(texts)),
        }
    }
}

/// A recorded event.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AcknowledgedText {
    /// The text of the record.
    pub(crate) record: String,
    pub(crate) repeated: bool,
}

/// The state of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ViewText {
    pub(crate) charter: Digest,
    /// The canonical text of the snapshot.
    pub(crate) snapshot: String,
    pub(crate) working: Vec<Working>,
    #[serde(default)]
    pub(crate) untrusted: bool,
    #[serde(default)]
    pub(crate) dry: bool,
    /// When the next timer fires.
    #[serde(default)]
    pub(crate) next_due: Option<Timestamp>,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply<T> {
    Ok(T),
    Error(ErrorText),
}

/// An error; the fields depend on the code.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErrorText {
    code: String,
    message: String,
    #[serde(default)]
    of: Json,
}

impl ErrorText {
    pub(crate) fn request(message: String) -> ErrorText {
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
            RuntimeError::UnknownCharter(digest) => ("unknown-charter", json!(digest)),
            RuntimeError::NoTask { run, task } => ("no-task", json!([run, task])),
            RuntimeError::NotYours { run, task, roles, by } => ("not-yours", json!([run, task, roles, by])),
            RuntimeError::PersonsOnly { run, task, by, kind } => ("persons-only", json!([run, task, by, kind])),
            RuntimeError::Store(StoreError::Conflict { run, seq, expected, why }) => {
                ("conflict", json!([run, seq, expected, why]))
            }
            RuntimeError::Closing => ("closing", Json::Null),
            _ => ("other", Json::Null),
        };
        ErrorText { code: code.into(), message: error.to_string(), of }
    }
}

impl ErrorText {
    /// The error as the caller of the client sees it. A holder that is shutting down does nothing
    /// more, so its client looks for the next one.
    pub(crate) fn into_error(self, pid: u32) -> RuntimeError {
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
            "no-task" => of(fields).map(|(run, task)| RuntimeError::NoTask { run, task }),
            "not-yours" => of(fields).map(|(run, task, roles, by)| RuntimeError::NotYours { run, task, roles, by }),
            "persons-only" => of(fields).map(|(run, task, by, kind)| RuntimeError::PersonsOnly { run, task, by, kind }),
            "conflict" => {
                of(fields).map(|(run, seq, expected, why)| StoreError::Conflict { run, seq, expected, why }.into())
            }
            "closing" => Some(RuntimeError::Lost { pid }),
            _ => None,
        };
        known.unwrap_or(RuntimeError::Remote(message))
    }
}

/// Parses JSON that nests deeper than the default limit of `serde_json`, but not without a limit.
/// Refuses duplicate keys.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let unlimited = depth(text) <= MAX_DEPTH;
    let reader = || {
        let mut reader = serde_json::Deserializer::from_str(text);
        if unlimited {
            reader.disable_recursion_limit();
        }
        reader
    };
    strict_json::check_with(reader())?;
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
        assert!(parse::<Json>(&nested(MAX_DEPTH)).is_ok());
        assert!(parse::<Json>(&nested(MAX_DEPTH + 1)).is_err());
        assert!(parse::<Json>(&nested(1_000_000)).is_err());
        assert!(parse::<Json>("1 2").is_err());
    }

    #[test]
    fn a_duplicate_key_in_a_request_is_refused() {
        let send = |data: &str| {
            let by = r#"{"id": "ana", "roles": []}"#;
            parse::<Request>(&format!(r#"{{"send": {{"run": "r", "type": "GO", "data": {data}, "by": {by}}}}}"#))
        };
        assert!(matches!(send(r#"{"n": 1}"#), Ok(Request::Send(_))));
        let error = send(r#"{"n": {"m": 1, "m": 2}}"#).unwrap_err();
        assert!(error.to_string().starts_with("duplicate key `m` at line 1 column"), "{error}");
    }

    #[test]
    fn known_errors_survive_the_socket() {
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
        ];
        for error in errors {
            let text = serde_json::to_string(&ErrorText::from(&error)).unwrap();
            assert_eq!(parse::<ErrorText>(&text).unwrap().into_error(7), error);
        }
        let other = RuntimeError::Limit { limit: "mailbox", value: 1, what: "too many".into() };
        assert_eq!(ErrorText::from(&other).into_error(7).to_string(), other.to_string());
        assert_eq!(ErrorText::from(&RuntimeError::Closing).into_error(7), RuntimeError::Lost { pid: 7 });
    }
}
