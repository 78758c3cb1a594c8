//! Statements that are prepared once and kept. The cache of the connection would look up each one
//! by its text and clear its bindings after use.

use rusqlite::{Connection, Params, Statement};
use rustc_hash::FxHashMap;

/// The prepared statements of a connection.
pub(super) struct Prepared<'c> {
    connection: &'c Connection,
    /// Keyed by the address and length of the SQL text.
    kept: FxHashMap<(usize, usize), Statement<'c>>,
}

impl<'c> Prepared<'c> {
    pub(super) fn new(connection: &'c Connection) -> Prepared<'c> {
        Prepared { connection, kept: FxHashMap::default() }
    }

    pub(super) fn get(&mut self, sql: &'static str) -> rusqlite::Result<&mut Statement<'c>> {
        use std::collections::hash_map::Entry;
        Ok(match self.kept.entry((sql.as_ptr().addr(), sql.len())) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(place) => place.insert(self.connection.prepare(sql)?),
        })
    }

    /// Executes a statement; returns the number of changed rows.
    pub(super) fn execute(&mut self, sql: &'static str, params: impl Params) -> rusqlite::Result<usize> {
        self.get(sql)?.execute(params)
    }
}

/// Converts a number to a SQLite integer. One out of range is clamped: no record has it.
pub(super) fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
