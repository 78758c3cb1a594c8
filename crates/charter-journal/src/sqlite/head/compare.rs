//! Compares the entries of a file with the heads that were noted of them: beside the file, in the
//! table `heads`, and in anchors.

use std::path::Path;

use charter_kernel::Digest;
use rusqlite::{Connection, OptionalExtension as _};

use super::entries::{self, Entry, START};
use super::file::{self, Found, Slot};
use super::interventions;
use crate::head::{HeadCheck, JournalHead};

/// Maximum number of problems reported of one kind.
pub(super) const MAX_PROBLEMS: usize = 20;

/// Returns why a file is not what was last acknowledged; `None` if nothing shows that. Reads only
/// the end of the file. `found` must have been read before the file.
pub(super) fn problem(
    connection: &Connection,
    path: &Path,
    found: &Found,
    journal: &str,
    open: bool,
) -> rusqlite::Result<Option<String>> {
    if let Some(problem) = cut_off(connection)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = interventions::problem(connection)? {
        return Ok(Some(problem));
    }
    let beside = file::name(path);
    let beside = beside.display();
    let unknown = |why: &str| {
        let text = format!(
            "the last process that wrote to it did not close it, and `{beside}`, which says how many records it then had, {why}: records may be missing"
        );
        Ok(open.then_some(text))
    };
    let slot = match found {
        Found::Absent => return unknown("is missing"),
        Found::Damaged(_) => return unknown("is damaged"),
        Found::Newest(slot) => slot,
    };
    let (said, has) = (&slot.head, entries::position(connection)?.head);
    if slot.journal != journal {
        // An earlier version keeps no head.
        let other = entries::has_tables(connection)? && said.entries > 0;
        return Ok(other.then(|| format!("`{beside}` belongs to another journal, which had {said}")));
    }
    if said.entries > has.entries {
        let missing = missing(connection, slot, &has)?;
        return Ok(Some(format!(
            "records that were acknowledged are missing: according to `{beside}`, the journal has {said}; the file has {has}; missing: {missing}"
        )));
    }
    match entries::head_at(connection, said.entries)? {
        Some(head) if head == *said => Ok(None),
        other => Ok(Some(format!(
            "its entries are not those that were acknowledged: after {} entries, the head is {} according to `{beside}`, but the file gives {}",
            said.entries,
            said.hash,
            other.map_or_else(|| "none".to_owned(), |h| h.hash.to_string())
        ))),
    }
}

/// Whether entries are missing that the file itself has counted.
fn cut_off(connection: &Connection) -> rusqlite::Result<Option<String>> {
    if !entries::has_tables(connection)? {
        return Ok(None);
    }
    let stored: Option<(i64, i64)> = connection
        .query_row("SELECT n, entries FROM heads ORDER BY n DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((n, counted)) = stored else {
        return Ok(None);
    };
    let last = last_position(connection)?;
    Ok((last < n).then(|| {
        format!("the last entries are missing: according to the table `heads`, there were {counted} with the last at position {n}; the last one is at {last}")
    }))
}

/// Returns the position of the last entry; 0 if there is none.
pub(in crate::sqlite) fn last_position(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row(
        "SELECT max(coalesce((SELECT max(n) FROM records), 0), coalesce((SELECT max(n) FROM deleted), 0),
         coalesce((SELECT max(n) FROM interventions), 0))",
        [],
        |row| row.get(0),
    )
}

/// Names the records that a slot has and the file does not.
fn missing(connection: &Connection, slot: &Slot, has: &JournalHead) -> rusqlite::Result<String> {
    let total = slot.head.records.saturating_sub(has.records);
    let mut named = 0u64;
    let mut parts = Vec::new();
    for (run, last) in &slot.latest {
        let stored: Option<i64> =
            connection.query_row("SELECT seq FROM runs WHERE run = ?1", [run], |row| row.get(0)).optional()?;
        let from = stored.and_then(|seq| u64::try_from(seq).ok()).map_or(0, |seq| seq.saturating_add(1));
        if from > *last {
            continue;
        }
        named = named.saturating_add(last.saturating_sub(from).saturating_add(1));
        parts.push(match from == *last {
            true => format!("record {last} of run `{run}`"),
            false => format!("records {from} to {last} of run `{run}`"),
        });
    }
    match total.saturating_sub(named) {
        0 if parts.is_empty() => parts.push("an intervention".to_owned()),
        0 => {}
        1 if parts.is_empty() => parts.push("1 record".to_owned()),
        rest if parts.is_empty() => parts.push(format!("{rest} records")),
        rest => parts.push(format!("{rest} more")),
    }
    Ok(parts.join(", "))
}

/// Checks the head of a file. With `full`, recomputes it from all entries; otherwise only compares
/// it with `FILE-head`.
pub(in crate::sqlite) fn check(
    connection: &Connection,
    path: &Path,
    anchors: &[(u64, Digest)],
    full: bool,
) -> rusqlite::Result<HeadCheck> {
    // Read first: a concurrent writer writes it after its commit.
    let found = file::read(path);
    let connection = &*connection.unchecked_transaction()?;
    let (journal, open) = entries::journal(connection)?;
    let mut check = HeadCheck::default();
    let problem = problem(connection, path, &found, &journal, open)?;
    let beside = file::name(path);
    let beside = beside.display();
    match (&problem, &found) {
        (None, Found::Absent) => check.remarks.push(format!(
            "`{beside}` is missing: the file has everything it had when it was closed, but whether that was the last time cannot be told"
        )),
        (None, Found::Damaged(why)) => check.remarks.push(format!("`{beside}` tells nothing: {why}")),
        _ => {}
    }
    check.problems.extend(problem);
    if full {
        recompute(connection, anchors, &mut check)?;
        interventions::check(connection, &mut check)?;
    }
    Ok(check)
}

/// Computes the head from all entries and compares it with stored heads and anchors.
fn recompute(connection: &Connection, anchors: &[(u64, Digest)], check: &mut HeadCheck) -> rusqlite::Result<()> {
    let mut stored = stored_heads(connection)?.into_iter().peekable();
    let mut position = START;
    let mut last = String::from("the start");
    let (mut gaps, mut broken) = (Vec::new(), false);
    let mut differs = None;
    let mut left: Vec<(u64, Digest)> = anchors.to_vec();
    entries::scan(connection, 0, &mut |entry| {
        let expected = position.n.saturating_add(1);
        if entry.n != expected {
            broken = true;
            if gaps.len() < MAX_PROBLEMS {
                gaps.push(gap(expected, entry, &last));
            }
        }
        entries::add(&mut position, entry);
        let head = position.head;
        while let Some((n, said)) = stored.next_if(|(n, _)| *n <= entry.n) {
            if !broken && differs.is_none() && (n, said) != (entry.n, head) {
                differs = Some(format!(
                    "the head after entry {n} is {} according to the table `heads`, but the entries give {}",
                    said.hash, head.hash
                ));
            }
        }
        left.retain(|(at, hash)| *at != head.entries || *hash != head.hash);
        last.clear();
        describe(entry, &mut last);
        true
    })?;
    check.problems.extend(gaps);
    check.problems.extend(differs.filter(|_| !broken));
    check.problems.extend(left.into_iter().map(|(at, hash)| position.head.not_anchored(at, hash)));
    check.head = Some(position.head);
    Ok(())
}

fn gap(expected: i64, entry: &Entry<'_>, last: &str) -> String {
    let mut next = String::new();
    describe(entry, &mut next);
    let to = entry.n.saturating_sub(1);
    let what = match to <= expected {
        true => format!("entry {expected} is"),
        false => format!("entries {expected} to {to} are"),
    };
    format!("{what} missing, between {last} and {next}")
}

/// Names an entry.
fn describe(entry: &Entry<'_>, out: &mut String) {
    use std::fmt::Write as _;
    // Writing to a string cannot fail.
    let _ = match entry.record {
        Some((run, seq)) if entry.deleted => write!(out, "the deleted record {seq} of run `{run}`"),
        Some((run, seq)) => write!(out, "record {seq} of run `{run}`"),
        None => write!(out, "an intervention"),
    };
}

fn stored_heads(connection: &Connection) -> rusqlite::Result<Vec<(i64, JournalHead)>> {
    if !entries::has_tables(connection)? {
        return Ok(Vec::new());
    }
    let mut select = connection.prepare("SELECT n, runs, records, entries, hash FROM heads ORDER BY n")?;
    let rows = select.query_map([], |row| {
        let number = |i: usize| row.get::<_, i64>(i).map(|n| u64::try_from(n).unwrap_or_default());
        let hash: String = row.get(4)?;
        let hash = entries::stored_hash(&hash);
        Ok((row.get(0)?, JournalHead { runs: number(1)?, records: number(2)?, entries: number(3)?, hash }))
    })?;
    // The row of a file without entries is at position 0.
    rows.filter(|row| !matches!(row, Ok((0, _)))).collect()
}
