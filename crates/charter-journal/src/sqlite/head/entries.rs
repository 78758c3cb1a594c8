//! The entries of a journal file in the order of their commits, and the heads they give.

use charter_kernel::Digest;
use charter_kernel::digest::canonical;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Value as Json, json};

use super::{AcceptHead, at_text};
use crate::head::JournalHead;
use crate::imports::{self, Imported};
use crate::sqlite::delete::Deletion;

/// The head after an entry, and the position of that entry in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) head: JournalHead,
    pub(crate) n: i64,
}

/// The position before the first entry.
pub(super) const START: Position = Position { head: JournalHead::EMPTY, n: 0 };

pub(super) const INSERT: &str =
    "INSERT OR REPLACE INTO heads(n, runs, records, entries, hash) VALUES (?1, ?2, ?3, ?4, ?5)";

/// An entry of the journal.
pub(super) struct Entry<'a> {
    pub(super) n: i64,
    /// The run and the sequence number; `None` for an intervention.
    pub(super) record: Option<(&'a str, i64)>,
    /// Whether the record was deleted with its run.
    pub(super) deleted: bool,
    pub(super) hash: &'a str,
}

/// Visits all entries after a position, until `visit` returns false.
pub(super) fn scan(
    connection: &Connection,
    after: i64,
    visit: &mut dyn FnMut(&Entry<'_>) -> bool,
) -> rusqlite::Result<()> {
    let records = "SELECT n, run, seq, hash, 0 AS kind FROM records WHERE n > ?1";
    let sql = match has_tables(connection)? {
        false => format!("{records} ORDER BY n"),
        true => format!(
            "{records} UNION ALL SELECT n, run, seq, hash, 1 FROM deleted WHERE n > ?1
             UNION ALL SELECT n, '', -1, hash, 2 FROM interventions WHERE n > ?1 ORDER BY n"
        ),
    };
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([after])?;
    while let Some(row) = rows.next()? {
        let text = |i: usize| row.get_ref(i).map(|v| v.as_str().unwrap_or("\u{fffd}"));
        let kind: i64 = row.get(4)?;
        let record = (kind != 2).then(|| Ok::<_, rusqlite::Error>((text(1)?, row.get(2)?))).transpose()?;
        if !visit(&Entry { n: row.get(0)?, record, deleted: kind == 1, hash: text(3)? }) {
            break;
        }
    }
    Ok(())
}

/// Adds an entry to a head.
pub(super) fn add(position: &mut Position, entry: &Entry<'_>) {
    // A hash that was changed into something else is reported with its record.
    let hash = Digest::parse(entry.hash).unwrap_or_else(|| Digest::of_bytes(entry.hash.as_bytes()));
    match entry.record {
        Some((_, seq)) => position.head.add_record(u64::try_from(seq).unwrap_or(u64::MAX), hash),
        None => position.head.add_intervention(hash),
    }
    position.n = entry.n;
}

/// Whether the file has the tables of the head: those of an earlier version do not.
pub(super) fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(version > 2)
}

/// The newest stored head with at most this number of entries.
fn newest(connection: &Connection, at_most: Option<u64>) -> rusqlite::Result<Position> {
    if !has_tables(connection)? {
        return Ok(START);
    }
    let at_most = at_most.map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
    let mut select = connection.prepare_cached(
        "SELECT n, runs, records, entries, hash FROM heads WHERE entries <= ?1 ORDER BY n DESC LIMIT 1",
    )?;
    let row = select.query_row([at_most], |row| {
        let number = |i: usize| row.get::<_, i64>(i).map(|n| u64::try_from(n).unwrap_or_default());
        let hash: String = row.get(4)?;
        let hash = stored_hash(&hash);
        Ok(Position {
            n: row.get(0)?,
            head: JournalHead { runs: number(1)?, records: number(2)?, entries: number(3)?, hash },
        })
    });
    Ok(row.optional()?.unwrap_or(START))
}

/// The number of entries of the newest stored head.
pub(super) fn stored(connection: &Connection) -> rusqlite::Result<u64> {
    newest(connection, None).map(|p| p.head.entries)
}

/// The position after the last entry.
pub(super) fn position(connection: &Connection) -> rusqlite::Result<Position> {
    let mut position = newest(connection, None)?;
    scan(connection, position.n, &mut |entry| {
        add(&mut position, entry);
        true
    })?;
    Ok(position)
}

/// The head after this number of entries; `None` if there are fewer.
pub(super) fn head_at(connection: &Connection, entries: u64) -> rusqlite::Result<Option<JournalHead>> {
    let mut position = newest(connection, Some(entries))?;
    if position.head.entries < entries {
        scan(connection, position.n, &mut |entry| {
            add(&mut position, entry);
            position.head.entries < entries
        })?;
    }
    Ok((position.head.entries == entries).then_some(position.head))
}

/// The head of a file, from what it stores.
pub(crate) fn journal_head(connection: &Connection) -> rusqlite::Result<JournalHead> {
    // One read transaction, since a writer may be active.
    let connection = connection.unchecked_transaction()?;
    position(&connection).map(|p| p.head)
}

/// Stores a head.
pub(super) fn store(connection: &Connection, Position { head, n }: &Position) -> rusqlite::Result<()> {
    let number = super::integer;
    let row = params![n, number(head.runs), number(head.records), number(head.entries), head.hash.to_string()];
    connection.execute(INSERT, row).map(drop)
}

/// The id of the journal, and whether a process that writes to it has not closed it.
pub(super) fn journal(connection: &Connection) -> rusqlite::Result<(String, bool)> {
    if !has_tables(connection)? {
        return Ok((String::new(), false));
    }
    let row = connection.query_row("SELECT id, open FROM journal", [], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(row.optional()?.unwrap_or_default())
}

/// What an operator did to the journal itself: an entry of its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intervention {
    kind: &'static str,
    at: String,
    run: Option<String>,
    reason: String,
    json: Json,
}

impl Intervention {
    /// A head that does not match was accepted.
    pub(super) fn accepted(accept: &AcceptHead, problem: &str, head: &JournalHead) -> Intervention {
        let at = at_text(accept.at);
        let json = json!({
            "kind": "accepted-head", "at": at, "by": accept.by, "reason": accept.reason, "problem": problem, "head": head,
        });
        Intervention { kind: "accepted-head", at, run: None, reason: accept.reason.clone(), json }
    }

    /// A run was deleted: its number of records, the hash of the last one, and the digest of its
    /// unique keys, which stay.
    pub(in crate::sqlite) fn deleted(
        deletion: &Deletion,
        records: i64,
        hash: &str,
        keys: Option<Digest>,
    ) -> Intervention {
        let at = at_text(deletion.at);
        let mut json = json!({
            "kind": "deleted", "at": at, "by": deletion.by, "reason": deletion.reason, "run": deletion.run,
            "records": records, "hash": hash,
        });
        if let (Some(keys), Json::Object(json)) = (keys, &mut json) {
            json.insert("keys".into(), keys.to_string().into());
        }
        let (run, reason) = (Some(deletion.run.clone()), deletion.reason.clone());
        Intervention { kind: "deleted", at, run, reason, json }
    }

    /// The first records of a run came from another journal.
    pub(in crate::sqlite) fn imported(imported: &Imported) -> Intervention {
        let (at, run, json) = (imported.at.clone(), Some(imported.run.clone()), imported.json());
        Intervention { kind: imports::KIND, at, run, reason: String::new(), json }
    }

    /// The newest intervention of a kind about a run at this position or later.
    pub(in crate::sqlite) fn newest(
        connection: &Connection,
        kind: &str,
        run: &str,
        from: i64,
    ) -> rusqlite::Result<Option<Row>> {
        let mut select = connection.prepare_cached(
            "SELECT n, at, kind, run, reason, hash, json FROM interventions
             WHERE run = ?1 AND kind = ?2 AND n >= ?3 ORDER BY n DESC LIMIT 1",
        )?;
        select.query_row(params![run, kind, from], Row::read).optional()
    }

    /// The intervention at a position.
    pub(in crate::sqlite) fn at(connection: &Connection, n: i64) -> rusqlite::Result<Option<Row>> {
        let mut select =
            connection.prepare_cached("SELECT n, at, kind, run, reason, hash, json FROM interventions WHERE n = ?1")?;
        select.query_row([n], Row::read).optional()
    }

    /// Its text, and the hash of it.
    pub(in crate::sqlite) fn hashed(&self) -> (String, Digest) {
        let text = canonical(&self.json);
        let hash = Digest::of_bytes(text.as_bytes());
        (text, hash)
    }

    /// Writes it; returns its hash.
    pub(super) fn insert(&self, connection: &Connection, n: i64) -> rusqlite::Result<Digest> {
        let (text, hash) = self.hashed();
        connection.execute(
            "INSERT INTO interventions(n, at, kind, run, reason, hash, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![n, self.at, self.kind, self.run, self.reason, hash.to_string(), text],
        )?;
        Ok(hash)
    }
}

/// A stored intervention, which may have been changed.
pub(in crate::sqlite) struct Row {
    pub(in crate::sqlite) n: i64,
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) run: Option<String>,
    pub(super) reason: String,
    pub(super) hash: String,
    json: String,
}

impl Row {
    /// Reads the columns `n, at, kind, run, reason, hash, json`.
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
        Ok(Row {
            n: row.get(0)?,
            at: row.get(1)?,
            kind: row.get(2)?,
            run: row.get(3)?,
            reason: row.get(4)?,
            hash: row.get(5)?,
            json: row.get(6)?,
        })
    }

    /// Its content, or what is wrong with it: it was changed, or is not what the stored heads
    /// before and after it include.
    pub(in crate::sqlite) fn proven(&self, connection: &Connection) -> rusqlite::Result<Result<Json, String>> {
        let n = self.n;
        let content = match self.content() {
            Ok(content) => content,
            Err(n) => return Ok(Err(changed(n))),
        };
        let before = stored_at(connection, n.saturating_sub(1))?;
        let after = before.zip(Digest::parse(&self.hash)).map(|(mut head, hash)| {
            head.add_intervention(hash);
            head
        });
        Ok(match after.is_some() && after == stored_at(connection, n)? {
            true => Ok(content),
            false => Err(format!("the intervention at position {n} is not one that the head includes")),
        })
    }

    /// Its content if it has its hash and the columns repeat it; otherwise its position.
    pub(super) fn content(&self) -> Result<Json, i64> {
        let content: Json = serde_json::from_str(&self.json).unwrap_or_default();
        let columns = [
            ("at", Some(&self.at)),
            ("kind", Some(&self.kind)),
            ("run", self.run.as_ref()),
            ("reason", Some(&self.reason)),
        ];
        let same = |(key, column): &(&str, Option<&String>)| {
            content.get(*key).and_then(Json::as_str) == column.map(String::as_str)
        };
        match Digest::of_bytes(self.json.as_bytes()).to_string() == self.hash && columns.iter().all(same) {
            true => Ok(content),
            false => Err(self.n),
        }
    }
}

/// What is wrong with a changed intervention.
pub(super) fn changed(n: i64) -> String {
    format!("the intervention at position {n} has been changed")
}

/// Whether there is an entry at this position.
pub(in crate::sqlite) fn has_entry(connection: &Connection, n: i64) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached(
        "SELECT 1 WHERE ?1 IN (SELECT n FROM records WHERE n = ?1) OR ?1 IN (SELECT n FROM deleted WHERE n = ?1)
         OR ?1 IN (SELECT n FROM interventions WHERE n = ?1)",
    )?;
    select.exists([n])
}

/// The hash of a stored head. Written in another way, such as with capital letters, it is not what
/// was stored.
pub(super) fn stored_hash(text: &str) -> Digest {
    Digest::parse(text).filter(|hash| hash.to_string() == text).unwrap_or_default()
}

/// The stored head at a position; that of an empty journal at 0.
pub(super) fn stored_at(connection: &Connection, n: i64) -> rusqlite::Result<Option<JournalHead>> {
    if n <= 0 {
        return Ok(Some(JournalHead::EMPTY));
    }
    let mut select = connection.prepare_cached("SELECT runs, records, entries, hash FROM heads WHERE n = ?1")?;
    let row = select.query_row([n], |row| {
        let number = |i: usize| row.get::<_, i64>(i).map(|n| u64::try_from(n).unwrap_or_default());
        let hash: String = row.get(3)?;
        let hash = stored_hash(&hash);
        Ok(JournalHead { runs: number(0)?, records: number(1)?, entries: number(2)?, hash })
    });
    row.optional()
}

/// Stores the heads before and after each intervention of a file of an earlier version.
pub(super) fn store_around(connection: &Connection) -> rusqlite::Result<()> {
    let mut all: Vec<Position> = Vec::new();
    let mut position = START;
    scan(connection, 0, &mut |entry| {
        let before = position;
        add(&mut position, entry);
        if entry.record.is_none() {
            all.extend([before, position]);
        }
        true
    })?;
    // A stored head that differs is evidence.
    for Position { head, n } in all.into_iter().filter(|position| position.n > 0) {
        let number = super::integer;
        let row = params![n, number(head.runs), number(head.records), number(head.entries), head.hash.to_string()];
        connection.execute(&INSERT.replacen("OR REPLACE", "OR IGNORE", 1), row)?;
    }
    Ok(())
}
