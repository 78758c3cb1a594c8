//! Opens connections to a journal file, also where SQLite cannot create the files beside it.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// How the readers of a file reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As usual, in the presence of a writer.
    Shared,
    /// On a read-only medium or in a folder that cannot be written, with a log: the index of the
    /// log is kept in memory, and nothing is locked.
    AloneWithLog,
    /// The same without a log.
    Alone,
}

/// Opens a connection to exactly this file: to SQLite, a name such as `file:x` or `:memory:` means
/// something else than to the lock. An absolute path has no such meaning.
pub(super) fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let path = std::path::absolute(path).map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Sets whether the log stays when the connection is closed.
pub(super) fn keep_log(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(drop)
}

/// Makes the connection write a log, and the file one that has a log. In another mode, a commit may
/// not survive a power cut.
pub(super) fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut pragma = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = pragma.query([])?;
    // The file is changed after the first row, and an error is reported instead of the end.
    while rows.next()?.is_some() {}
    let pages: i64 = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
    match pages {
        // If the mode cannot be changed, SQLite stays in the earlier one without an error.
        ..0 => {
            let why = "SQLite cannot write a log (`FILE-wal`) for it".to_owned();
            Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN), Some(why)))
        }
        _ => Ok(()),
    }
}

/// Opens a connection for reading.
pub(super) fn reader(path: &Path, reach: Reach) -> rusqlite::Result<Connection> {
    let parameters = match reach {
        Reach::Shared => None,
        Reach::AloneWithLog => Some("vfs=unix-none"),
        Reach::Alone => Some("immutable=1"),
    };
    let connection = match parameters {
        None => connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        Some(parameters) => Connection::open_with_flags(
            format!("{}?mode=ro&{parameters}", uri(path)?),
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?,
    };
    if reach == Reach::AloneWithLog {
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    connection.pragma_update(None, "busy_timeout", 10_000)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// How a file can be reached that could not be opened as usual; `None` if the reason is another
/// one than a file beside it that cannot be created.
pub(super) fn other_reach(path: &Path, error: Option<ErrorCode>) -> Option<Reach> {
    if !cfg!(unix) || !matches!(error, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
        return None;
    }
    let mut log = super::head::without_links(path).into_os_string();
    log.push("-wal");
    match std::fs::metadata(log) {
        Ok(found) if found.len() > 0 => Some(Reach::AloneWithLog),
        _ => Some(Reach::Alone),
    }
}

/// The name of a file as a URI.
fn uri(path: &Path) -> rusqlite::Result<String> {
    use std::fmt::Write as _;
    let path = std::path::absolute(path).map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_lock_is_not_read_without_locks() {
        let found = |code| other_reach(Path::new("/nowhere"), code);
        assert_eq!(found(Some(ErrorCode::CannotOpen)), Some(Reach::Alone));
        assert_eq!(found(Some(ErrorCode::DatabaseBusy)), None);
        assert_eq!(found(None), None);
    }

    #[test]
    fn a_file_name_cannot_add_parameters() {
        assert_eq!(uri(Path::new("/a b/x?mode=rwc&%41#.db")).unwrap(), "file:/a%20b/x%3Fmode%3Drwc%26%2541%23.db");
    }
}
