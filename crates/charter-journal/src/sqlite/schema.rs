//! The tables of a journal file. `docs/sql.md` documents them; a test keeps the two in sync.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rusqlite::{Connection, ErrorCode};

use super::host_state::TABLE as HOST_STATE;
use super::ids;
use super::keys::TABLE as KEYS;
use super::objects::{drop_foreign, partial_index};
use super::usage::TABLE as USAGE;
use crate::error::StoreError;

/// Schema version, in `PRAGMA user_version`.
pub(crate) const VERSION: i64 = 5;

/// The version whose head did not cover imports, which were in a table `imports`; upgraded when it
/// is opened for writing.
pub(crate) const WITH_IMPORTS: i64 = 4;

/// The version before the table `unique_keys`; upgraded when it is opened for writing.
pub(crate) const WITHOUT_KEYS: i64 = 3;

/// The version before the journal had a head; upgraded when it is opened for writing.
pub(crate) const WITHOUT_HEAD: i64 = 2;

/// The versions that this program reads.
pub(crate) const READABLE: [i64; 4] = [VERSION, WITH_IMPORTS, WITHOUT_KEYS, WITHOUT_HEAD];

/// `PRAGMA application_id`: "chrt".
pub(crate) const APPLICATION: i64 = 0x6368_7274;

/// The primary data: written once and never changed, except for the head of a run.
const CANONICAL: &str = "
CREATE TABLE charters(
  digest TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL,
  version TEXT NOT NULL,
  name TEXT NOT NULL,
  core TEXT NOT NULL,
  source TEXT NOT NULL,
  check_digest TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE runs(
  run TEXT NOT NULL PRIMARY KEY,
  charter TEXT NOT NULL,
  status TEXT NOT NULL,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL,
  started TEXT NOT NULL,
  updated TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_status ON runs(status, run);
CREATE TABLE records(
  n INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  at TEXT NOT NULL,
  type TEXT NOT NULL,
  verdict TEXT NOT NULL,
  hash TEXT NOT NULL,
  json TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_run ON records(run, seq);
CREATE TABLE snapshots(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  json TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX snapshots_run ON snapshots(run, seq);
CREATE TABLE blobs(
  digest TEXT NOT NULL,
  data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX blobs_digest ON blobs(digest);
";

/// The head of the journal, and what an operator did to the file.
pub(crate) const HEAD: &str = "
CREATE TABLE journal(
  id TEXT NOT NULL PRIMARY KEY,
  open INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE heads(
  n INTEGER PRIMARY KEY,
  runs INTEGER NOT NULL,
  records INTEGER NOT NULL,
  entries INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;
CREATE TABLE interventions(
  n INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  run TEXT,
  reason TEXT NOT NULL,
  hash TEXT NOT NULL,
  json TEXT NOT NULL
) STRICT;
CREATE TABLE deleted(
  n INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO journal(id, open) VALUES (lower(hex(randomblob(16))), 0);
";

/// For what is known about a run: that it was deleted, or came from another journal.
pub(crate) const BY_RUN: &str = "
CREATE INDEX interventions_run ON interventions(run);
";

/// The projections, which can be rebuilt from the records.
///
/// Each keyed table dirties one page per run in a commit. So append-only tables have no key (rows
/// are written at the end), and finished entries are removed from keyed tables.
const PROJECTIONS: &str = "
CREATE TABLE transitions(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  transition TEXT NOT NULL
) STRICT;
CREATE TABLE refusals(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at TEXT NOT NULL,
  type TEXT NOT NULL,
  by TEXT NOT NULL,
  code TEXT NOT NULL,
  rule TEXT
) STRICT;
CREATE TABLE effects(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT NOT NULL,
  invocation TEXT,
  src TEXT,
  data TEXT,
  status TEXT NOT NULL,
  ended_seq INTEGER
) STRICT;
CREATE INDEX effects_emitted ON effects(src) WHERE kind = 'emit';
CREATE INDEX effects_open ON effects(run, seq, idx) WHERE status = 'open';
CREATE TABLE timers(
  run TEXT NOT NULL,
  timer TEXT NOT NULL,
  generation INTEGER NOT NULL,
  due INTEGER NOT NULL,
  set_seq INTEGER NOT NULL,
  PRIMARY KEY(run, timer, generation)
) STRICT, WITHOUT ROWID;
CREATE TABLE approvals(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  by TEXT NOT NULL,
  roles TEXT NOT NULL,
  actor TEXT NOT NULL,
  transition TEXT,
  approves TEXT,
  digest TEXT,
  reason TEXT,
  PRIMARY KEY(run, seq, idx)
) STRICT, WITHOUT ROWID;
CREATE TABLE ledger(
  run TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  status TEXT NOT NULL,
  uses INTEGER,
  expires INTEGER,
  due INTEGER,
  data TEXT NOT NULL,
  how TEXT,
  first_seq INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY(run, kind, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE decisions(
  run TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  outcome TEXT,
  confidence REAL,
  data TEXT NOT NULL,
  by TEXT NOT NULL,
  waiting INTEGER NOT NULL,
  review_seq INTEGER,
  review TEXT,
  reviewer TEXT,
  PRIMARY KEY(run, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_waiting ON decisions(run) WHERE waiting = 1;
CREATE VIEW events AS
  SELECT run, seq, at, type, verdict,
    json_extract(json, '$.by.id') AS by,
    json_extract(json, '$.by.roles') AS roles,
    json_extract(json, '$.to') AS \"to\",
    json_extract(json, '$.event.data') AS data,
    json_extract(json, '$.from') AS \"from\",
    json_extract(json, '$.state') AS state
  FROM records;
";

/// The projections, in the order in which they are cleared and compared, with their sort columns.
pub(crate) const TABLES: [(&str, &str); 7] = [
    ("transitions", "rowid"),
    ("refusals", "rowid"),
    ("effects", "rowid"),
    ("timers", "run, timer, generation"),
    ("approvals", "run, seq, idx"),
    ("ledger", "run, kind, key"),
    ("decisions", "run, seq"),
];

/// Creates the tables in an empty file.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(&format!(
        "{CANONICAL}\n{HEAD}\n{BY_RUN}\n{HOST_STATE}\n{USAGE}\n{KEYS}\n{PROJECTIONS}\nPRAGMA application_id = {APPLICATION};\nPRAGMA user_version = {VERSION};"
    ))?;
    ids::create(&transaction)?;
    transaction.commit()
}

/// The kind and definition of tables, indexes and views, by name.
pub(super) type Objects = BTreeMap<String, (String, Option<String>)>;

/// Reads the tables, indexes, views and triggers of a file, without those that SQLite makes.
pub(super) fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    connection
        .prepare(
            "SELECT name, type, sql FROM sqlite_schema WHERE NOT (type = 'index' AND name GLOB 'sqlite_autoindex_*')
             AND NOT (type = 'table' AND (name = 'sqlite_sequence' OR name GLOB 'sqlite_stat[1-4]'))",
        )?
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .collect()
}

/// Returns the tables, indexes and views of a new file.
pub(crate) fn fresh() -> rusqlite::Result<Objects> {
    static FRESH: OnceLock<Objects> = OnceLock::new();
    if let Some(known) = FRESH.get() {
        return Ok(known.clone());
    }
    let fresh = Connection::open_in_memory()?;
    create(&fresh)?;
    Ok(FRESH.get_or_init(|| objects(&fresh).unwrap_or_default()).clone())
}

/// Creates only the projections, for comparison with the stored ones.
pub(crate) fn create_projections(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("CREATE TABLE records(run, seq, at, type, verdict, json);")?;
    connection.execute_batch(PROJECTIONS)
}

/// Gives every object that can be rebuilt the definition it has in a new file: the tables of the
/// projections (recreated empty if their definition differs), indexes and views. An index with a
/// condition is recreated in any case. Primary data and objects with other names are not touched.
pub(crate) fn repair(connection: &Connection) -> rusqlite::Result<Result<(), StoreError>> {
    let damaged = |why: String| Ok(Err(StoreError::Damaged(why)));
    let expected = fresh()?;
    drop_foreign(connection)?;
    // Tables first: dropping a table drops its indexes.
    for tables in [true, false] {
        let mut found = objects(connection)?;
        let of_this_turn = expected.iter().filter(|(_, o)| (o.0 == "table") == tables);
        for (name, object) in of_this_turn {
            let (kind, sql) = object;
            let other = found.remove(name);
            // Whether it can be read is not tried: after that, SQLite would not drop it.
            let may_be_damaged = sql.as_deref().is_some_and(|sql| partial_index(sql).is_some());
            if other.as_ref() == Some(object) && !may_be_damaged {
                continue;
            }
            if is_primary(name, kind) {
                match other {
                    Some((other, _)) if other == "table" => continue,
                    _ => {
                        return damaged(format!("the table `{name}` is missing, and its content cannot be rebuilt"));
                    }
                }
            }
            match other {
                None => {}
                Some((other, _)) if other == "table" && !tables => {
                    return damaged(format!(
                        "a table named `{name}` is in the place of the {kind} `{name}`; rename it"
                    ));
                }
                Some((other, _)) => {
                    connection.execute_batch(&format!("DROP {other} \"{name}\""))?;
                }
            }
            let made = connection.execute_batch(sql.as_deref().unwrap_or_default());
            match made {
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                    return damaged(format!("the {kind} `{name}` cannot be recreated: existing rows violate it ({e})"));
                }
                made => made?,
            }
        }
    }
    Ok(Ok(()))
}

/// Whether an object is a table of the primary data.
pub(super) fn is_primary(name: &str, kind: &str) -> bool {
    let rebuilt = TABLES.iter().chain(&ids::TABLES);
    kind == "table" && !rebuilt.into_iter().any(|(table, _)| *table == name)
}
