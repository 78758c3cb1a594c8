//! The table `usage`: what models were asked, and what that cost. Like `host_state`, it is part of
//! no proof.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::record::timestamp;
use crate::store::{LastModel, UsageFilter, UsageRow, UsageTotals};

/// The table and its indexes. A file without them gets them when it is opened for writing.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS usage(
  n INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  effect TEXT NOT NULL,
  actor TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  call INTEGER NOT NULL,
  at TEXT NOT NULL,
  model TEXT NOT NULL,
  address TEXT NOT NULL,
  answered_as TEXT,
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_written INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  millis INTEGER NOT NULL,
  picodollars INTEGER,
  outcome TEXT NOT NULL,
  exchange TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS usage_run ON usage(run);
CREATE INDEX IF NOT EXISTS usage_at ON usage(at);
";

/// The table and its indexes.
pub(super) const OBJECTS: [&str; 3] = ["usage", "usage_run", "usage_at"];

/// Whether the table exists. A file that was not opened for writing since has none.
fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'usage'")?.exists([])
}

/// Adds questions.
pub(super) fn write(connection: &Connection, rows: &[UsageRow]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO usage(run, effect, actor, attempt, call, at, model, address, answered_as, requests, input, \
         output, cached, cache_written, estimated, millis, picodollars, outcome, exchange) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    )?;
    for row in rows {
        insert.execute(params![
            row.run,
            row.effect,
            row.actor,
            row.attempt,
            row.call,
            timestamp::text(row.at),
            row.model,
            row.address,
            row.answered_as,
            row.requests,
            integer(row.input),
            integer(row.output),
            integer(row.cached),
            integer(row.cache_written),
            row.estimated,
            integer(row.millis),
            row.cost.map(integer),
            row.outcome,
            row.exchange.map(|digest| digest.to_string()),
        ])?;
    }
    Ok(())
}

/// Adds up questions.
pub(super) fn totals(connection: &Connection, filter: &UsageFilter) -> rusqlite::Result<UsageTotals> {
    if !exists(connection)? {
        return Ok(UsageTotals::default());
    }
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    for (condition, value) in [
        ("run = ?", filter.run.as_deref().map(str::to_owned)),
        ("actor = ?", filter.actor.as_deref().map(str::to_owned)),
        ("at >= ?", filter.since.map(timestamp::text)),
    ] {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(Value::from(value));
        }
    }
    let only = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    // `total`: a `sum` beyond 64 bits is an error.
    let select = format!(
        "SELECT count(*), count(*) - count(picodollars), total(requests), total(input), total(output), \
         total(cached), total(picodollars), max(estimated) FROM usage{only}"
    );
    connection.prepare_cached(&select)?.query_row(params_from_iter(values), |row| {
        let count = |index| row.get(index).map(|n: i64| u64::try_from(n).unwrap_or_default());
        Ok(UsageTotals {
            questions: count(0)?,
            unpriced: count(1)?,
            requests: whole(row.get(2)?),
            input: whole(row.get(3)?),
            output: whole(row.get(4)?),
            cached: whole(row.get(5)?),
            cost: whole(row.get(6)?),
            estimated: row.get::<_, Option<bool>>(7)?.unwrap_or_default(),
        })
    })
}

/// The model that each actor of a run asked last, by actor.
pub(super) fn last_models(connection: &Connection, run: &str) -> rusqlite::Result<Vec<LastModel>> {
    if !exists(connection)? {
        return Ok(Vec::new());
    }
    let select = "SELECT actor, model, address FROM usage WHERE n IN \
         (SELECT max(n) FROM usage WHERE run = ?1 GROUP BY actor) ORDER BY actor";
    let one = |row: &rusqlite::Row<'_>| Ok(LastModel { actor: row.get(0)?, model: row.get(1)?, address: row.get(2)? });
    connection.prepare_cached(select)?.query_map([run], one)?.collect()
}

/// Removes the questions of a run, and returns the blobs that they name.
pub(super) fn delete(connection: &Connection, run: &str) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare("DELETE FROM usage WHERE run = ?1 RETURNING coalesce(exchange, '')")?;
    let exchanges: Vec<String> = select.query_map([run], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(exchanges.into_iter().filter(|digest| !digest.is_empty()).collect())
}

fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "too large sums saturate")]
fn whole(sum: f64) -> u64 {
    sum as u64
}
