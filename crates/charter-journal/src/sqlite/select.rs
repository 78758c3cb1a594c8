//! Queries by users: one statement that only reads, with limits of time and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use super::SqliteStore;
use super::clock::QueryClock;
use super::connect::reader;
use crate::store::MAX_RECORD_BYTES;

const HOST_STATE: &str = "host_state";

/// Number of steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 2_000;

/// Maximum length of a value, in bytes: any record fits.
const MAX_VALUE_BYTES: usize = 2 * MAX_RECORD_BYTES;

/// Maximum length of the statement, in bytes.
const MAX_SQL_BYTES: i32 = 1 << 20;

/// PRAGMAs that only tell something.
const READING: [&str; 12] = [
    "application_id",
    "collation_list",
    "compile_options",
    "encoding",
    "freelist_count",
    "function_list",
    "page_count",
    "page_size",
    "pragma_list",
    "schema_version",
    "table_list",
    "user_version",
];

/// PRAGMAs that only tell something about their argument.
const READING_OF: [&str; 8] = [
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_xinfo",
];

/// Receives the names of the columns: once without a row, then with each row.
pub type Visit<'v> = dyn FnMut(&[String], Option<&[ValueRef<'_>]>) -> std::io::Result<()> + 'v;

/// Limits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectLimits {
    /// Maximum time in SQLite; the time in which rows are visited does not count.
    pub timeout: Duration,
    /// Maximum memory of SQLite in this process, in bytes. It cannot be raised again.
    pub memory_bytes: u64,
    /// Whether the table `host_state` may be read, which has what the host keeps for itself, such
    /// as the secrets that sign webhooks.
    pub host_state: bool,
}

/// Why a query was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The statement is empty or only a comment.
    #[error("empty SQL statement")]
    Empty,
    /// There is more than one statement.
    #[error("only one statement at a time is allowed")]
    Several,
    /// The statement would do something else than read the journal.
    #[error("queries are read-only: only `SELECT` is allowed")]
    NotReading,
    /// The statement reads a table that it may not.
    #[error("the table `{HOST_STATE}` is not for queries from here: it has what the host keeps for itself")]
    Hidden,
    /// It took too long.
    #[error("the query was stopped after {0:?}")]
    TimeOut(Duration),
    /// It needs too much memory.
    #[error("the query needs more than {0} MiB of memory")]
    Memory(u64),
    /// The journal cannot be read, or the statement is not valid.
    #[error("{0}")]
    Failed(String),
    /// The visitor has stopped.
    #[error("{0}")]
    Visitor(std::io::Error),
}

impl SqliteStore {
    /// Runs a query by a user. `visit` is called with the names of the columns and each row. The
    /// query is stopped between two steps of SQLite; `clock` tells another thread when it is late.
    ///
    /// # Errors
    /// See [`SelectError`].
    pub fn select(
        &self,
        sql: &str,
        limits: &SelectLimits,
        clock: &QueryClock,
        visit: &mut Visit<'_>,
    ) -> Result<(), SelectError> {
        let mut denied = Ok(());
        clock.go();
        let hidden = Arc::new(AtomicBool::new(false));
        let result = (|| {
            let (_guest, reach) = self.reach();
            let connection = reader(&self.path, reach)?;
            restrict(&connection, limits, clock, &hidden)?;
            let mut statement = connection.prepare(sql)?;
            if !statement.readonly() {
                denied = Err(SelectError::NotReading);
                return Ok(());
            }
            let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
            if names.is_empty() {
                denied = Err(SelectError::Empty);
                return Ok(());
            }
            let mut visited = |row: Option<&[ValueRef<'_>]>| {
                clock.stop();
                let result = visit(&names, row);
                clock.go();
                result.map_err(SelectError::Visitor)
            };
            denied = visited(None);
            let mut rows = statement.query([])?;
            while denied.is_ok()
                && let Some(row) = rows.next()?
            {
                let cells = (0..names.len()).map(|i| row.get_ref(i)).collect::<rusqlite::Result<Vec<_>>>()?;
                denied = visited(Some(&cells));
            }
            Ok(())
        })();
        clock.stop();
        denied?;
        result.map_err(|e: rusqlite::Error| match (&e, e.sqlite_error_code()) {
            (rusqlite::Error::MultipleStatement, _) => SelectError::Several,
            (_, Some(ErrorCode::OperationInterrupted)) => SelectError::TimeOut(limits.timeout),
            (_, Some(ErrorCode::OutOfMemory)) => SelectError::Memory(limits.memory_bytes >> 20),
            (_, Some(ErrorCode::AuthorizationForStatementDenied)) if hidden.load(Ordering::Relaxed) => {
                SelectError::Hidden
            }
            (_, Some(ErrorCode::AuthorizationForStatementDenied)) => SelectError::NotReading,
            _ => SelectError::Failed(super::said(&e)),
        })
    }
}

/// Takes away everything from a connection but reading the file.
fn restrict(
    connection: &Connection,
    limits: &SelectLimits,
    clock: &QueryClock,
    hidden: &Arc<AtomicBool>,
) -> rusqlite::Result<()> {
    connection.pragma_update(None, "query_only", true)?;
    // Sorting must not write temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Returns the new limit as a row.
    let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
    connection.query_row(&format!("PRAGMA hard_heap_limit = {memory}"), [], |_| Ok(()))?;
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, i32::try_from(MAX_VALUE_BYTES).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    let (clock, timeout) = (clock.clone(), limits.timeout);
    let late = move || clock.spent() > timeout;
    connection.progress_handler(STEPS, Some(late))?;
    let (host_state, hidden) = (limits.host_state, hidden.clone());
    connection.authorizer(Some(move |context: AuthContext<'_>| match context.action {
        AuthAction::Read { table_name, .. } if !host_state && table_name.eq_ignore_ascii_case(HOST_STATE) => {
            hidden.store(true, Ordering::Relaxed);
            Authorization::Deny
        }
        _ => authorize(context),
    }))
}

/// Allows what only reads.
fn authorize(context: AuthContext<'_>) -> Authorization {
    let reads = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let name = pragma_name.to_ascii_lowercase();
            READING_OF.contains(&name.as_str()) || READING.contains(&name.as_str()) && pragma_value.is_none()
        }
        _ => false,
    };
    match reads {
        true => Authorization::Allow,
        false => Authorization::Deny,
    }
}
