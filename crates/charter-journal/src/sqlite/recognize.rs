//! What a file is: a journal of a supported version, an empty file, or something else.

use std::path::Path;

use rusqlite::Connection;

use super::{failed, schema};
use crate::error::StoreError;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Empty,
    Journal { version: i64 },
}

/// What identifies a journal: the application, the schema version, the number of tables.
pub(super) type Identity = (i64, i64, i64);

pub(super) fn identity(connection: &Connection) -> rusqlite::Result<Identity> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok((
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?,
        number("SELECT count(*) FROM sqlite_schema")?,
    ))
}

/// Checks that a file is empty or a journal with a supported version.
pub(super) fn recognize(read: rusqlite::Result<Identity>, path: &Path) -> Result<Found, StoreError> {
    let shown = || path.display().to_string();
    match read {
        Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(StoreError::NotAJournal { path: shown(), why: "it is not a SQLite file".into() })
        }
        // Without a log, only the tables of a new file are written.
        Err(e) if e.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK) => {
            Err(StoreError::NotAJournal {
                path: shown(),
                why: "it is empty, because its creation was interrupted".into(),
            })
        }
        Err(e) => Err(failed("opening the journal", &e)),
        Ok((0, 0, 0)) => Ok(Found::Empty),
        Ok((schema::APPLICATION, version, _)) if schema::READABLE.contains(&version) => Ok(Found::Journal { version }),
        Ok((schema::APPLICATION, 1, _)) => Err(StoreError::PreRelease { path: shown() }),
        Ok((schema::APPLICATION, found, _)) if found > schema::VERSION => {
            Err(StoreError::Newer { path: shown(), found, known: schema::VERSION })
        }
        Ok((schema::APPLICATION, found, _)) => {
            Err(StoreError::NotAJournal { path: shown(), why: format!("unknown schema version {found}") })
        }
        Ok(_) => {
            Err(StoreError::NotAJournal { path: shown(), why: "it is a SQLite file of another application".into() })
        }
    }
}
