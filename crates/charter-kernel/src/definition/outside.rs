//! Parts of a definition for programs around the kernel: how items of a stream become events, and
//! SQL views.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// An entry of `projections`: a view with a row for each emitted event of one type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// A description of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Type of the emitted events.
    pub of: String,
    /// For each column, the path of its value in the event data: field names joined by dots. Each
    /// view starts with the columns `run`, `seq` and `at`.
    pub columns: IndexMap<String, String>,
}

impl Projection {
    /// Whether a view or a column can have this name: a lowercase letter, then lowercase letters,
    /// digits and underscores, at most 63 characters, and not the prefix `sqlite_`.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        name.len() <= 63
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
            && !name.starts_with("sqlite_")
    }

    /// Whether this is a valid path: names of letters, digits, underscores and hyphens, joined by
    /// dots.
    #[must_use]
    pub fn is_path(path: &str) -> bool {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        path.len() <= 256 && path.split('.').all(|p| !p.is_empty() && p.bytes().all(plain))
    }
}

/// The entry `stream`: CEL expressions over `item`, without the leading `= `.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The id of the run that an item belongs to.
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
    /// The addressed actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Principal: `{id, roles, kind, auth}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Input of the run that an item starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Alternative times of an item, by name (`--clock NAME`).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub clocks: IndexMap<String, String>,
    /// The entry of `rules` that refuses a repeated item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<String>,
    /// Additional values in the report of a run, by name: CEL over the run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub summary: IndexMap<String, String>,
}

impl Stream {
    /// The expressions that turn an item into an event, with their keys, in the order of the
    /// language reference.
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
