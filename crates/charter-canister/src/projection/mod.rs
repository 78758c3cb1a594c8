//! The SQL projection: tables computed from the log, for filtering and reporting. They can be
//! dropped and rebuilt at any time.
//!
//! There is a table for each projection that the charter declares (such as `turn_projection`), with
//! the same rows as the corresponding view of a journal file (`charter sql`), and there are the
//! tables `transitions` and `refusals`.

mod tables;

use charter_journal::{Fields, Verdict};
use charter_kernel::digest::Digest;
use ic_stable_structures::Memory;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::api::{Outcome, Refused, Turn, TurnsQuery};
use crate::automaton::Automaton;
use crate::error::CanisterError;
use crate::form;
use crate::platform::rusqlite::types::Value;
use crate::platform::rusqlite::{Connection, Row, params, params_from_iter};
use tables::{TABLES, Table, create, tables};

/// Maximum number of records projected in one message.
pub const PORTION: u64 = 256;

/// Maximum number of rows for which a digest is computed.
const MAX_DIGESTED: u64 = 20_000;

/// The progress of the projection, stored in stable memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Digest of the table definitions.
    pub schema: String,
    /// The first record that the projection covers.
    pub from: u64,
    /// The first record that the projection does not cover yet.
    pub to: u64,
    /// How many times the projection was rebuilt.
    pub replays: u64,
    /// The error that stopped the projection, if any.
    pub error: Option<String>,
}

/// The projection of a run.
pub struct Projection {
    tables: Vec<Table>,
    /// The statements that create the tables.
    definition: String,
    /// The digest of the definition.
    schema: String,
    progress: Progress,
}

impl Projection {
    /// Opens the projection of a charter at its stored progress.
    ///
    /// # Errors
    /// The charter is damaged.
    pub fn open<M: Memory + Clone>(automaton: &Automaton<M>) -> Result<Projection, CanisterError> {
        let tables = tables(automaton.charter().machine.definition());
        let definition: String = tables.iter().map(create).collect();
        let definition = format!("{TABLES}{definition}");
        let progress = form::read("its progress", automaton.stable.projection()).ok();
        Ok(Projection {
            tables,
            schema: Digest::of_bytes(definition.as_bytes()).to_string(),
            definition,
            progress: progress.unwrap_or(Progress { schema: String::new(), from: 0, to: 0, replays: 0, error: None }),
        })
    }

    /// The progress of the projection.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Creates the tables. Starts over if the stored tables have other definitions.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn prepare<M: Memory + Clone>(
        &mut self,
        sql: &mut Connection,
        automaton: &mut Automaton<M>,
    ) -> Result<(), CanisterError> {
        if self.schema == self.progress.schema {
            return Ok(());
        }
        self.anew(sql, automaton)
    }

    /// Drops the tables and starts over; [`Projection::catch_up`] fills them again.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn anew<M: Memory + Clone>(
        &mut self,
        sql: &mut Connection,
        automaton: &mut Automaton<M>,
    ) -> Result<(), CanisterError> {
        // This includes the tables of earlier charters.
        let names: Vec<String> = sql
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            .and_then(|mut select| {
                let rows = select.query_map([], |row| row.get(0))?;
                rows.collect()
            })
            .map_err(broken)?;
        let transaction = sql.transaction().map_err(broken)?;
        for name in names {
            let name = name.replace('"', "\"\"");
            transaction.execute_batch(&format!("DROP TABLE \"{name}\"")).map_err(broken)?;
        }
        transaction.execute_batch(&self.definition).and_then(|()| transaction.commit()).map_err(broken)?;
        let first = automaton.stable.log.first();
        let replays = match self.progress.schema.is_empty() {
            true => 0,
            false => self.progress.replays.saturating_add(1),
        };
        self.progress = Progress { schema: self.schema.clone(), from: first, to: first, replays, error: None };
        self.keep(automaton);
        Ok(())
    }

    fn keep<M: Memory + Clone>(&self, automaton: &mut Automaton<M>) {
        // Encoding plain data does not fail.
        let bytes = form::write(&self.progress).unwrap_or_default();
        automaton.stable.put_projection(bytes);
    }

    /// Projects up to [`PORTION`] records of the log in one transaction. Returns whether there is
    /// more to do.
    ///
    /// # Errors
    /// SQLite fails, or the log is damaged. The error is stored with the progress, and nothing more
    /// is projected until a rebuild.
    pub fn catch_up<M: Memory + Clone>(
        &mut self,
        sql: &mut Connection,
        automaton: &mut Automaton<M>,
    ) -> Result<bool, CanisterError> {
        let (first, end) = (automaton.stable.log.first(), automaton.stable.log.end());
        if self.progress.error.is_some() || !self.is_behind(first, end) {
            return Ok(false);
        }
        let mut next = self.progress.clone();
        match self.portion(sql, automaton, &mut next, first, end) {
            Ok(()) => {
                self.progress = next;
                automaton.forget_before(self.progress.to);
                self.keep(automaton);
                Ok(self.is_behind(first, end))
            }
            Err(e) => {
                self.progress.error = Some(e.to_string());
                self.keep(automaton);
                Err(e)
            }
        }
    }

    /// Whether the projection lags behind the log.
    #[must_use]
    pub fn is_behind(&self, first: u64, end: u64) -> bool {
        self.progress.to < end || self.progress.from < first
    }

    fn portion<M: Memory + Clone>(
        &self,
        sql: &mut Connection,
        automaton: &Automaton<M>,
        next: &mut Progress,
        first: u64,
        end: u64,
    ) -> Result<(), CanisterError> {
        let transaction = sql.transaction().map_err(broken)?;
        // First delete the rows of records that are no longer in the log.
        if next.from < first {
            next.from = first.min(next.from.saturating_add(PORTION));
            let named = self.tables.iter().map(|t| t.name.as_str());
            for table in named.chain(["transitions", "refusals"]) {
                let delete = format!("DELETE FROM \"{table}\" WHERE seq < ?1");
                let mut delete = transaction.prepare_cached(&delete).map_err(broken)?;
                delete.execute([integer(next.from)]).map_err(broken)?;
            }
        }
        let begin = next.to.max(first);
        let stop = end.min(begin.saturating_add(PORTION));
        for seq in begin..stop {
            let record = automaton.record(seq)?;
            self.put(&transaction, &record).map_err(broken)?;
        }
        next.to = stop;
        transaction.commit().map_err(broken)
    }

    /// Inserts the rows of a record.
    fn put(&self, sql: &Connection, r: &Fields<'_>) -> Result<(), crate::platform::rusqlite::Error> {
        let seq = integer(r.seq);
        if let Some(refusal) = r.refusal.as_deref().filter(|_| r.verdict == Verdict::Refused) {
            let mut insert = sql.prepare_cached("INSERT INTO refusals VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
            insert.execute(params![
                r.run,
                seq,
                r.at_text(),
                r.event.r#type,
                r.by.id,
                refusal.code.word(),
                refusal.rule
            ])?;
            return Ok(());
        }
        for (transition, index) in r.transitions.iter().zip(0i64..) {
            let mut insert = sql.prepare_cached("INSERT INTO transitions VALUES(?1, ?2, ?3, ?4)")?;
            insert.execute(params![r.run, seq, index, transition])?;
        }
        for effect in &r.effects {
            let word = |key: &str| effect.get(key).and_then(Json::as_str);
            if word("kind") != Some("emit") {
                continue;
            }
            for table in self.tables.iter().filter(|t| word("type") == Some(&t.of)) {
                let own = [Value::Text(r.run.to_string()), Value::Integer(seq), Value::Text(r.at_text())];
                let data = effect.get("data").unwrap_or(&Json::Null);
                let others = table.columns.iter().map(|(_, at)| data.pointer(at).map_or(Value::Null, value));
                let mut insert = sql.prepare_cached(&table.insert)?;
                insert.execute(params_from_iter(own.into_iter().chain(others)))?;
            }
        }
        Ok(())
    }

    /// Counts the rows of turns, transitions and refusals, and digests all of them if they are few.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn rows(&self, sql: &Connection) -> Result<([u64; 3], Option<String>), CanisterError> {
        let tables = ["turn_projection", "transitions", "refusals"];
        let mut counts = [0u64; 3];
        for (table, count) in tables.iter().zip(&mut counts) {
            let select = format!("SELECT count(*) FROM {table}");
            let found: i64 = sql.query_row(&select, [], |r| r.get(0)).map_err(broken)?;
            *count = u64::try_from(found).unwrap_or_default();
        }
        if counts.iter().fold(0u64, |a, b| a.saturating_add(*b)) > MAX_DIGESTED {
            return Ok((counts, None));
        }
        let mut all = String::new();
        for table in tables {
            let lines = lines(sql, &format!("SELECT * FROM {table} ORDER BY seq")).map_err(broken)?;
            for line in lines {
                all.push_str(&line);
                all.push('\n');
            }
        }
        Ok((counts, Some(Digest::of_bytes(all.as_bytes()).to_string())))
    }

    /// Returns the selected turns; one more than the limit if there are more.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn turns(&self, sql: &Connection, query: &TurnsQuery, limit: u32) -> Result<Vec<Turn>, CanisterError> {
        let newest = query.newest_first == Some(true);
        let (beyond, order) = match newest {
            false => (">", "ASC"),
            true => ("<", "DESC"),
        };
        let select = format!(
            "SELECT seq, turn, id, reason, input, began, ended, outcome, failure, soul_version, context_digest, adapter, thought, reply, \
             actions, results FROM turn_projection WHERE (?1 IS NULL OR turn {beyond} ?1) AND (?2 IS NULL OR outcome = ?2) \
             ORDER BY seq {order} LIMIT ?3"
        );
        let mut select = sql.prepare_cached(&select).map_err(broken)?;
        let after = query.after.map(integer);
        let outcome = query.outcome.map(Outcome::word);
        let rows = select.query_map(params![after, outcome, limit.saturating_add(1)], turn);
        rows.and_then(Iterator::collect).map_err(broken)
    }

    /// Returns the number of the first turn that ended after a record.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn first_turn_after(&self, sql: &Connection, seq: u64) -> Result<Option<u64>, CanisterError> {
        let select = "SELECT turn FROM turn_projection WHERE seq > ?1 ORDER BY seq LIMIT 1";
        let mut select = sql.prepare_cached(select).map_err(broken)?;
        let rows = select.query_map(params![integer(seq)], |row| number(row, 0));
        rows.and_then(|mut rows| rows.next().transpose()).map_err(broken)
    }

    /// Returns refused events from a record on; one more than the limit if there are more.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn refusals(&self, sql: &Connection, from: u64, limit: u32) -> Result<Vec<Refused>, CanisterError> {
        let select = "SELECT seq, at, type, by, code FROM refusals WHERE seq >= ?1 ORDER BY seq LIMIT ?2";
        let mut select = sql.prepare_cached(select).map_err(broken)?;
        let rows = select.query_map(params![integer(from), limit.saturating_add(1)], |row| {
            Ok(Refused {
                seq: number(row, 0)?,
                at: row.get(1)?,
                kind: row.get(2)?,
                by: row.get(3)?,
                code: row.get(4)?,
                // The caller renders the message from the record.
                message: String::new(),
            })
        });
        rows.and_then(Iterator::collect).map_err(broken)
    }
}

/// Returns rows as text, for comparisons and digests.
///
/// # Errors
/// SQLite fails.
pub fn lines(sql: &Connection, select: &str) -> Result<Vec<String>, crate::platform::rusqlite::Error> {
    let mut select = sql.prepare(select)?;
    let columns = select.column_count();
    let rows = select.query_map([], |row| {
        let cells: Result<Vec<String>, _> =
            (0..columns).map(|i| row.get_ref(i).map(|cell| format!("{cell:?}"))).collect();
        Ok(cells?.join(" "))
    })?;
    rows.collect()
}

fn turn(row: &Row<'_>) -> Result<Turn, crate::platform::rusqlite::Error> {
    let (began, ended): (String, String) = (row.get(5)?, row.get(6)?);
    Ok(Turn {
        seq: number(row, 0)?,
        turn: number(row, 1)?,
        id: row.get(2)?,
        reason: row.get(3)?,
        input: row.get(4)?,
        duration_ms: duration(&began, &ended),
        began,
        ended,
        outcome: Outcome::of(&row.get::<_, String>(7)?),
        failure: row.get(8)?,
        soul_version: number(row, 9)?,
        context_digest: row.get(10)?,
        adapter: row.get(11)?,
        thought: row.get(12)?,
        reply: row.get(13)?,
        actions: row.get(14)?,
        results: row.get(15)?,
    })
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, crate::platform::rusqlite::Error> {
    let found: i64 = row.get(column)?;
    Ok(u64::try_from(found).unwrap_or_default())
}

/// Returns the milliseconds between two RFC 3339 timestamps of a charter.
pub(crate) fn duration(began: &str, ended: &str) -> u64 {
    let moment = |text: &str| charter_expr::ExprTimestamp::parse(text).ok().map(|t| t.millis());
    let between = moment(ended).zip(moment(began));
    let between = between.and_then(|(ended, began)| ended.checked_sub(began));
    between.and_then(|ms| u64::try_from(ms).ok()).unwrap_or_default()
}

/// Converts a value as SQLite's `->>` does.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Integer((*b).into()),
        Json::Number(n) => match n.as_i64() {
            Some(i) => Value::Integer(i),
            None => Value::Real(n.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::Text(text.clone()),
        other => Value::Text(charter_kernel::digest::canonical(other)),
    }
}

fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn broken(e: crate::platform::rusqlite::Error) -> CanisterError {
    CanisterError::Projection(e.to_string())
}
