//! The table `unique_keys`: the unique keys of events that were accepted. A deleted run keeps its
//! keys; all others can be rebuilt from the records.

use charter_kernel::Digest;
use charter_kernel::digest::canonical;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::prepared::integer;
use super::schema::WITH_IMPORTS;
use crate::error::StoreError;
use crate::keys::{Claim, KeyHolder, Lookup, Reservation, claim, is_shared, reserve};
use crate::record::{Origin, Record, RecordInput};
use crate::store::Append;

/// The table. `n` is the position of the record in the file.
pub(super) const TABLE: &str = "
CREATE TABLE unique_keys(
  event TEXT NOT NULL,
  key TEXT NOT NULL,
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY(event, key)
) STRICT, WITHOUT ROWID;
";

/// The records with a key: every record with one has this text, and few others.
const RECORDS: &str =
    "SELECT n, json FROM records WHERE verdict = 'accepted' AND instr(json, ',\"unique\":') > 0 ORDER BY n";

/// Whether the file has the table. One of an earlier version that was not opened for writing since
/// has none.
fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(version >= WITH_IMPORTS)
}

/// Returns the run that has a key.
pub(super) fn holder(connection: &Connection, event: &str, key: &str) -> rusqlite::Result<Option<String>> {
    if !exists(connection)? {
        return Ok(None);
    }
    let mut select = connection.prepare_cached("SELECT run FROM unique_keys WHERE event = ?1 AND key = ?2")?;
    select.query_row([event, key], |row| row.get(0)).optional()
}

/// Returns the keys that a batch reserves, or why it is refused.
pub(super) fn check(
    connection: &Connection,
    batch: &[Append],
) -> rusqlite::Result<Result<Vec<Reservation>, StoreError>> {
    reserve(batch, connection)
}

/// Writes the keys of records that were just written.
pub(super) fn put(connection: &Connection, reserved: &[Reservation]) -> rusqlite::Result<()> {
    for Reservation { event, key, run, seq } in reserved {
        let mut insert = connection.prepare_cached(
            "INSERT INTO unique_keys(event, key, run, seq, n) SELECT ?1, ?2, run, seq, n FROM records WHERE run = ?3 AND seq = ?4",
        )?;
        insert.execute(params![event, key, run, integer(*seq)])?;
    }
    Ok(())
}

impl Lookup for &Connection {
    type Error = rusqlite::Error;

    fn origin(&mut self, run: &str) -> rusqlite::Result<Option<Option<Origin<'static>>>> {
        let mut select = self.prepare_cached("SELECT json FROM records WHERE run = ?1 AND seq = 0")?;
        let first: Option<String> = select.query_row([run], |row| row.get(0)).optional()?;
        // An unreadable record is a finding of the verification.
        Ok(first.map(|text| RecordInput::read(&text).ok()?.forked_from.map(Origin::owned)))
    }

    fn hash(&mut self, run: &str, seq: u64) -> rusqlite::Result<Option<Digest>> {
        let mut select = self.prepare_cached("SELECT hash FROM records WHERE run = ?1 AND seq = ?2")?;
        let hash: Option<String> = select.query_row(params![run, integer(seq)], |row| row.get(0)).optional()?;
        Ok(hash.as_deref().and_then(Digest::parse))
    }

    fn holder(&mut self, key: &Reservation) -> rusqlite::Result<Option<KeyHolder>> {
        let mut select = self.prepare_cached(
            "SELECT k.run, k.seq, d.hash FROM unique_keys k LEFT JOIN deleted d ON d.n = k.n WHERE k.event = ?1 AND k.key = ?2",
        )?;
        let found = select.query_row([&key.event, &key.key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let found: Option<(String, i64, Option<String>)> = found.optional()?;
        Ok(found.map(|(run, seq, hash)| {
            let deleted = hash.as_deref().and_then(Digest::parse);
            KeyHolder { run, seq: u64::try_from(seq).unwrap_or(u64::MAX), deleted }
        }))
    }
}

/// Visits the keys that records claim, in the order of the records.
fn claims(
    connection: &Connection,
    mut visit: impl FnMut(i64, &Record, Reservation, Claim) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare(RECORDS)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        // An unreadable record is a finding of the verification.
        let Some(record) = row.get_ref(1)?.as_str().ok().and_then(|text| Record::read(text).ok()) else {
            continue;
        };
        let origin = Lookup::origin(&mut { connection }, &record.run)?.flatten();
        if let Some((reservation, claim)) = claim(&record, origin.as_ref())
            && !visit(row.get(0)?, &record, reservation, claim)?
        {
            break;
        }
    }
    Ok(())
}

/// Rebuilds the keys of the runs that are not deleted.
pub(super) fn rebuild(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM unique_keys WHERE n NOT IN (SELECT n FROM deleted)", [])?;
    claims(connection, |n, record, Reservation { event, key, .. }, _| {
        let mut insert = connection
            .prepare_cached("INSERT OR IGNORE INTO unique_keys(event, key, run, seq, n) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        insert.execute(params![event, key, record.run, integer(record.seq), n])?;
        Ok(true)
    })
}

/// Compares the table with the records and the deletions.
pub(super) fn problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    if !exists(connection)? {
        return Ok(Vec::new());
    }
    let differs = || "table `unique_keys` does not match the records; run `charter rebuild`".to_owned();
    let mut problems = Vec::new();
    let mut right = 0i64;
    claims(connection, |n, record, copy, claim| {
        let Reservation { event, key, run, seq } = copy.clone();
        let mut select = connection.prepare_cached(
            "SELECT k.n, k.run, k.seq, d.hash FROM unique_keys k LEFT JOIN deleted d ON d.n = k.n WHERE k.event = ?1 AND k.key = ?2",
        )?;
        let found = select.query_row([&event, &key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        let found: Option<(i64, String, i64, Option<String>)> = found.optional()?;
        match found {
            Some((of, holder, at, _)) if of == n => {
                right = right.saturating_add(i64::from(holder == run && at == integer(seq)));
            }
            // Nobody can say more about a copy whose origin is not here.
            Some((of, ref holder, at, _))
                if of < n
                    && claim == Claim::Copy
                    && is_shared(&mut { connection }, &copy, (holder, u64::try_from(at).unwrap_or(u64::MAX)))?
                        != Some(false) => {}
            Some((of, _, _, deleted)) if of < n && deleted == Some(record.hash.to_string()) => {}
            Some((of, holder, at, _)) if of < n => problems.push(format!(
                "run `{run}`, record {seq}: it accepts `{event}` with the key {key}, which is unique across runs, but record {at} of run `{holder}` has that key"
            )),
            _ => problems.push(differs()),
        }
        Ok(problems.is_empty())
    })?;
    if !problems.is_empty() {
        return Ok(problems);
    }
    let rows: i64 =
        connection.query_row("SELECT count(*) FROM unique_keys WHERE n NOT IN (SELECT n FROM deleted)", [], |row| {
            row.get(0)
        })?;
    if rows != right {
        problems.push(differs());
    }
    problems.extend(deleted_problems(connection)?);
    Ok(problems)
}

/// Compares the keys of deleted runs with what their deletions say.
fn deleted_problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut select = connection.prepare(
        "SELECT n, run, json_extract(json, '$.keys') FROM interventions i WHERE kind = 'deleted' AND run IS NOT NULL ORDER BY n",
    )?;
    let mut rows = select.query([])?;
    let mut right = 0i64;
    while let Some(row) = rows.next()? {
        let (n, run, said): (i64, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let after = "SELECT coalesce(max(n), 0) FROM interventions WHERE kind = 'deleted' AND run = ?1 AND n < ?2";
        let after: i64 = connection.prepare_cached(after)?.query_row(params![run, n], |row| row.get(0))?;
        let (count, digest) = digest(
            connection,
            "SELECT k.event, k.key, k.seq FROM unique_keys k JOIN deleted d ON d.n = k.n WHERE d.run = ?1 AND k.run = ?1 AND k.seq = d.seq AND k.n > ?2 AND k.n < ?3 ORDER BY k.event, k.key",
            &run,
            (after, n),
        )?;
        right = right.saturating_add(count);
        if said != digest.map(|d| d.to_string()) {
            problems.push(format!(
                "table `unique_keys`: the keys of run `{run}` are not those that it had when it was deleted"
            ));
        }
    }
    let rows: i64 =
        connection
            .query_row("SELECT count(*) FROM unique_keys WHERE n IN (SELECT n FROM deleted)", [], |row| row.get(0))?;
    if problems.is_empty() && rows != right {
        problems.push("table `unique_keys`: a row names a deleted record of another run".into());
    }
    Ok(problems)
}

/// Returns a digest of the keys of a run that is about to be deleted; `None` if it has none.
pub(super) fn of_run(connection: &Connection, run: &str) -> rusqlite::Result<Option<Digest>> {
    let sql = "SELECT event, key, seq FROM unique_keys WHERE run = ?1 AND n > ?2 AND n < ?3 AND n IN (SELECT n FROM records WHERE run = ?1) ORDER BY event, key";
    digest(connection, sql, run, (0, i64::MAX)).map(|(_, digest)| digest)
}

/// Computes the number of keys and their digest; `None` if there are none.
fn digest(
    connection: &Connection,
    sql: &str,
    run: &str,
    (after, before): (i64, i64),
) -> rusqlite::Result<(i64, Option<Digest>)> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params![run, after, before])?;
    // A digest of each row and of those before it: a run may have many keys.
    let (mut count, mut chained) = (0i64, None::<Digest>);
    while let Some(row) = rows.next()? {
        let (event, key, seq): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let row = canonical(&json!([chained, event, key, seq]));
        chained = Some(Digest::of_bytes(row.as_bytes()));
        count = count.saturating_add(1);
    }
    Ok((count, chained))
}
