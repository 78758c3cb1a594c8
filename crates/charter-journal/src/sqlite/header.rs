//! Checks the pages of a journal file with SQLite's own integrity check, and what that check does
//! not look at: the first 100 bytes (<https://www.sqlite.org/fileformat2.html#the_database_header>)
//! and, in files with views, the list of free pages.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusqlite::Connection;

use super::objects::partial_index;
use super::open_files::OpenFile;
use super::schema::{APPLICATION, READABLE, fresh, objects};

/// Length of the header in bytes.
const HEADER: usize = 100;

/// Returns what SQLite finds damaged. An unreadable page is a finding, not an error.
pub(super) fn integrity(connection: &Connection) -> Vec<String> {
    let lines = |sql: &str| -> rusqlite::Result<Vec<String>> {
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
    };
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let mut problems = Vec::new();
    // If a view is the first object in memory, SQLite takes the first check for that of a single
    // table, and skips the free pages. The second one never does.
    for check in ["PRAGMA integrity_check(20)", "PRAGMA integrity_check('sqlite_schema')"] {
        if problems.is_empty() {
            match lines(check) {
                Ok(lines) => {
                    problems.extend(lines.iter().filter(|l| *l != "ok").map(|l| format!("SQLite integrity check: {l}")))
                }
                Err(e) => problems.push(format!("SQLite integrity check failed: {e}")),
            }
        }
    }
    if problems.is_empty() {
        match partial_indexes(connection) {
            Ok(unreadable) => problems.extend(unreadable),
            Err(e) => problems.push(format!("the indexes cannot be read: {e}")),
        }
    }
    if problems.is_empty() {
        let counts = || -> rusqlite::Result<_> {
            // In one transaction, because another connection may be writing.
            let _open = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
            let used = number("SELECT count(*) FROM dbstat")?;
            Ok((number("PRAGMA page_count")?, used, number("PRAGMA freelist_count")?))
        };
        match counts() {
            Ok((all, used, free)) => {
                // Above 1 GiB, one page is reserved for locks.
                let reserved = i64::from(all > LOCK_PAGE);
                if all != used.saturating_add(free).saturating_add(reserved) {
                    problems.push(format!("the file has {all} pages, but {used} are used and {free} are free"));
                }
            }
            Err(e) => problems.push(format!("the pages cannot be counted: {e}")),
        }
    }
    problems
}

/// The indexes with a condition that cannot be read. SQLite's own check does not open one without
/// entries: its root can be a page of something else.
fn partial_indexes(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let (found, expected) = (objects(connection)?, fresh()?);
    let same = expected.iter().filter(|(name, object)| found.get(*name) == Some(object));
    Ok(same
        .filter_map(|(name, (_, sql))| {
            let (table, condition) = partial_index(sql.as_deref()?)?;
            let count = format!("SELECT count(*) FROM {table} INDEXED BY {name} WHERE {condition}");
            let e = connection.query_row(&count, [], |row| row.get::<_, i64>(0)).err()?;
            Some(format!("the index `{name}` cannot be read: {e}; `charter rebuild` may recreate it"))
        })
        .collect())
}

/// Number of the page that SQLite leaves out: the one at 1 GiB.
const LOCK_PAGE: i64 = (1 << 30) / 4_096;

/// Returns what is damaged in the header of a file. `is_new`: it has no entries; its creation may
/// have ended before it had a log.
pub(super) fn problems(path: &Path, open: &OpenFile, is_new: bool) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let limit = u64::try_from(HEADER).unwrap_or(u64::MAX);
        let read = file.by_ref().take(limit).read_to_end(&mut bytes);
        // Closing it now would release the locks of SQLite.
        open.close_later(file);
        read
    });
    match read {
        Err(e) => vec![format!("the header of the file cannot be read: {e}")],
        Ok(_) => damage(&bytes, is_new)
            .into_iter()
            .map(|what| format!("the header of the file is damaged: {what}"))
            .collect(),
    }
}

fn damage(header: &[u8], is_new: bool) -> Vec<String> {
    let number = |at: usize, length: usize| -> u64 {
        let bytes = header.get(at..at.saturating_add(length)).unwrap_or_default();
        bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    };
    if header.len() < HEADER {
        return vec![format!("it has {} bytes instead of {HEADER}", header.len())];
    }
    // 2: with a log.
    let modes = if is_new { &[2, 1][..] } else { &[2][..] };
    let mut found = Vec::new();
    if header.get(..16) != Some(b"SQLite format 3\0") {
        found.push("it does not begin with `SQLite format 3`".to_owned());
    }
    let application = u64::try_from(APPLICATION).unwrap_or_default();
    let versions = READABLE.map(|version| u64::try_from(version).unwrap_or_default());
    for (name, at, length, expected) in [
        ("page size", 16, 2, &[4_096][..]),
        ("write version", 18, 1, modes),
        ("read version", 19, 1, modes),
        ("reserved space", 20, 1, &[0][..]),
        ("payload fractions", 21, 3, &[0x40_2020][..]),
        ("schema format", 44, 4, &[4][..]),
        ("default cache size", 48, 4, &[0][..]),
        ("largest root page", 52, 4, &[0][..]),
        ("text encoding", 56, 4, &[1][..]),
        ("user version", 60, 4, &versions),
        ("incremental vacuum", 64, 4, &[0][..]),
        ("application id", 68, 4, &[application][..]),
        ("reserved bytes", 72, 8, &[0][..]),
        ("reserved bytes", 80, 8, &[0][..]),
        ("reserved bytes", 88, 4, &[0][..]),
    ] {
        let value = number(at, length);
        if !expected.contains(&value) {
            found.push(format!("{name} (byte {at}): {value} instead of {}", expected.first().unwrap_or(&0)));
        }
    }
    let (changes, valid_for) = (number(24, 4), number(92, 4));
    if changes != valid_for {
        found.push(format!("the change counter is {changes} in byte 24, and {valid_for} in byte 92"));
    }
    if !(3_000_000..4_000_000).contains(&number(96, 4)) {
        found.push(format!("version of SQLite (byte 96): {}", number(96, 4)));
    }
    found
}
