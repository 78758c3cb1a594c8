//! The protocol: lines of JSON. The holder greets, then each request has one answer; after the
//! answer to `updates` the events follow. `docs/local-access.md` describes it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use charter_actors::Folder;
use charter_guard::gate::Question;
use charter_journal::{RunFilter, StateChange};
use charter_kernel::{Digest, Principal, Timestamp};
use charter_runtime::{ErrorText, SendEvent, Start, Working};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The version of the protocol. A holder and a client with different versions do not talk.
pub(crate) const PROTOCOL: u32 = 4;

/// Maximum size of a request in bytes: the largest charter that can be handed over.
pub(crate) const MAX_REQUEST_BYTES: usize = 8 << 20;

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
    Charter {
        digest: Digest,
    },
    Start {
        charter: Digest,
        run: Option<String>,
        input: Json,
        by: Principal,
        /// The name of the copy of the charter.
        #[serde(default)]
        place: Option<String>,
    },
    Send(SendText),
    Answer {
        task: String,
        output: Option<Json>,
        declined: Option<String>,
        by: Principal,
    },
    Resume {
        run: String,
    },
    View {
        run: String,
    },
    Legal {
        run: String,
        by: Principal,
    },
    Tasks {
        by: Principal,
        limit: usize,
    },
    Run {
        run: String,
    },
    Runs(RunFilter),
    Records {
        run: String,
        from: u64,
        limit: usize,
    },
    RecordsAfter {
        position: u64,
        limit: usize,
    },
    LastPosition {},
    At {
        run: String,
        seq: u64,
    },
    Updates {
        run: Option<String>,
    },
    Fork {
        run: String,
        at: u64,
        new: String,
        dry: bool,
    },
    Import {
        file: PathBuf,
    },
    Rebuild {},
    Keep {
        run: String,
        all_timers: bool,
    },
    Usage {
        run: String,
    },
    Models {
        run: String,
    },
    HostState {
        area: String,
    },
    PutHostState(Vec<StateChange>),
    Ask(Question),
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

impl Request {
    pub(crate) fn start(start: Start, place: Option<String>) -> Request {
        let Start { charter, run, input, by } = start;
        Request::Start { charter, run, input, by, place }
    }
}

/// The models of the actors of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AskedModels {
    /// Those that were asked last: actor, model and address.
    pub last: Vec<(String, String, String)>,
    /// Those when the run began, like `now`.
    pub begun: BTreeMap<String, Vec<String>>,
    /// Those that the holder asks, by actor, in order, with their addresses.
    pub now: BTreeMap<String, Vec<String>>,
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

#[cfg(test)]
mod tests {
    use charter_runtime::parse_json as parse;

    use super::*;

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
}
