//! Questions about the whole journal, which only its file can answer.

use std::fmt::Debug;
use std::sync::Arc;

use charter_actors::BoxFuture;
use serde::Serialize;
use serde_json::Value as Json;

/// The file of a journal.
pub trait JournalFile: Debug + Send + Sync {
    /// Size in bytes of the file and of what belongs to it; `None` if it is not known.
    fn bytes(&self) -> Option<u64>;

    /// Answers one SQL statement that only reads. The time, memory and size of the answer are
    /// limited.
    fn select(&self, query: String) -> BoxFuture<'_, Result<Rows, QueryError>>;
}

/// The rows that a query has found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows: a value for each column. Bytes are hex digits.
    pub rows: Vec<Vec<Json>>,
    /// Whether there are more rows than these.
    pub more: bool,
}

/// Why a query has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The query is wrong, or needs more than it may use; the text says what.
    #[error("{0}")]
    Query(String),
    /// The file cannot be read.
    #[error("the journal cannot be queried: {0}")]
    Journal(String),
}

/// The file, shared.
pub(crate) type SharedFile = Arc<dyn JournalFile>;
