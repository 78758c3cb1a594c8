//! What a definition says to programs around the kernel: how the items of a stream become events, which views a run is shown in.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// An entry of `projections`: a view with a row for each emitted event of one type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// What a row is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Type of the emitted events.
    pub of: String,
    /// Name of a column -> where its value is in the data of the event: names of fields with dots between them. Each view has the
    /// columns `run`, `seq` and `at` before these.
    pub columns: IndexMap<String, String>,
}

impl Projection {
    /// Whether a view or a column can have this name: it begins with a small letter, has small letters, digits and underscores, at most 63 in
    /// all, and does not begin with `sqlite_`.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        name.len() <= 63
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
            && !name.starts_with("sqlite_")
    }

    /// Whether a path can be used: names of letters, digits, underscores and hyphens, with dots between them.
    #[must_use]
    pub fn is_path(path: &str) -> bool {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        path.len() <= 256 && path.split('.').all(|p| !p.is_empty() && p.bytes().all(plain))
    }
}

/// `stream`: CEL over `item`, without the leading `= `.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Which run an item belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Event type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// Event id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Time of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Event data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Actor addressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Principal: `{id, roles}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Input of a run that an item opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Further times of an item that may be taken as its time, by name (`--clock NAME`).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub clocks: IndexMap<String, String>,
    /// The entry of `rules` that is named when an item comes a second time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<String>,
    /// What a report says of a run beside its state and ledger, by name: CEL over the run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub summary: IndexMap<String, String>,
}

impl Stream {
    /// The expressions that make an event of an item, with their keys, in the order in which they are written.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("run", self.run.as_deref()),
            ("type", self.r#type.as_deref()),
            ("id", self.id.as_deref()),
            ("at", self.at.as_deref()),
            ("data", self.data.as_deref()),
            ("to", self.to.as_deref()),
            ("by", self.by.as_deref()),
            ("input", self.input.as_deref()),
        ]
    }
}
