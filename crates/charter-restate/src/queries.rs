//! What the SQL of a Restate server tells: runs, records, charters, what does not get on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_journal::{Record, RunInfo, StoredCharter};
use charter_kernel::Digest;
use charter_run::Task;
use charter_runtime::RuntimeError;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::client::Engine;
use crate::object::record_key;
use crate::shelf::Stored;

/// Records with emitted events that are read at a time; how many events are searched, and of what
/// size in bytes.
const SEARCHED: usize = 200;
const MAX_EMITTED: usize = 100_000;
const MAX_EMITTED_BYTES: usize = 64 << 20;

/// An event that a run has emitted.
#[derive(Debug)]
pub(crate) struct Emitted {
    /// The time of its record, RFC 3339.
    at: String,
    pub(crate) run: String,
    pub(crate) seq: u64,
    /// Its data, as JSON.
    pub(crate) data: String,
}

/// A charter and the contents of its files.
type WithFiles = (StoredCharter, Vec<Vec<u8>>);

/// An invocation that does not get on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Troubled {
    /// Its id.
    pub id: String,
    /// What it calls.
    pub target: String,
    /// `paused`, `backing-off` and so on.
    pub status: String,
    /// How often it was tried.
    #[serde(default)]
    pub retry_count: u64,
    /// Why it failed last.
    #[serde(default)]
    pub last_failure: Option<String>,
}

/// Invocations that wait to be called.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Lagging {
    /// What they call.
    pub target: String,
    /// How many there are.
    pub calls: u64,
    /// For how long the oldest one has waited, in seconds.
    pub seconds: u64,
}

impl Engine {
    /// Asks the engine in SQL; returns the rows.
    fn query(&self, sql: &str) -> Result<Vec<Json>, RuntimeError> {
        let text = self.ask(&format!("{}/query", self.admin), &json!({ "query": sql }))?;
        let mut answer: Json = self.read(&text)?;
        match answer.get_mut("rows").map(Json::take) {
            Some(Json::Array(rows)) => Ok(rows),
            _ => Err(RuntimeError::Remote(format!("{} answers a query without rows", self.admin))),
        }
    }

    /// Returns the values of a key of many runs, ordered by run.
    fn state<T: DeserializeOwned>(&self, key: &str, after: Option<&str>, limit: usize) -> Result<Vec<T>, RuntimeError> {
        let after = match after {
            Some(run) => {
                charter_run::check_run_id(run)?;
                format!(" and service_key > '{run}'")
            }
            None => String::new(),
        };
        let sql = format!(
            "select value_utf8 from state where service_name = 'Run' and key = '{key}'{after} order by service_key limit {limit}"
        );
        self.query(&sql)?.iter().map(|row| self.read(text_of(row)?)).collect()
    }

    /// Lists runs, ordered by id, after one of them.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn runs(&self, after: Option<&str>, limit: usize) -> Result<Vec<RunInfo>, RuntimeError> {
        self.state(crate::object::INFO, after, limit)
    }

    /// Looks up a run.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn run(&self, run: &str) -> Result<Option<RunInfo>, RuntimeError> {
        charter_run::check_run_id(run)?;
        let sql = format!(
            "select value_utf8 from state where service_name = 'Run' and service_key = '{run}' and key = '{}'",
            crate::object::INFO
        );
        self.query(&sql)?.first().map(|row| self.read(text_of(row)?)).transpose()
    }

    /// Lists the open tasks of at most `limit` runs that have some, ordered by run, after a run.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn tasks(&self, after: Option<&str>, limit: usize) -> Result<Vec<Task>, RuntimeError> {
        let tasks: Vec<Vec<Task>> = self.state(crate::object::TASKS, after, limit)?;
        Ok(tasks.into_iter().flatten().collect())
    }

    /// Returns records of a run, in order, from a number on.
    ///
    /// # Errors
    /// The server does not answer, or a record is damaged.
    pub fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, RuntimeError> {
        charter_run::check_run_id(run)?;
        let sql = format!(
            "select value_utf8 from state where service_name = 'Run' and service_key = '{run}' and key >= '{}' and key < 'r0' order by key limit {limit}",
            record_key(from)
        );
        let damaged = |e| RuntimeError::Remote(format!("run `{run}`: {e}"));
        self.query(&sql)?.iter().map(|row| Record::read(text_of(row)?).map_err(damaged)).collect()
    }

    /// Returns the data of the events of a type that runs have emitted, the latest first.
    ///
    /// # Errors
    /// The server does not answer, there are too many of them, or a record is damaged.
    pub(crate) fn emitted(&self, r#type: &str) -> Result<Vec<Emitted>, RuntimeError> {
        if let Some(bad) = r#type.chars().find(|c| !c.is_ascii_alphanumeric() && !"._-:".contains(*c)) {
            return Err(RuntimeError::Remote(format!("this host does not search events with `{bad}` in their type")));
        }
        let too_many =
            || RuntimeError::Remote(format!("runs have emitted too many events `{type}` to search them all"));
        // Canonical JSON has these keys beside each other; `_` matches any character, so that each
        // record is looked at again.
        let part = format!(r#"%"kind":"emit","type":"{type}"%"#);
        let (mut found, mut bytes, mut after) = (Vec::new(), 0usize, None::<(String, String)>);
        loop {
            let from = after.as_ref().map_or_else(String::new, |(run, key)| {
                format!(" and (service_key > '{run}' or (service_key = '{run}' and key > '{key}'))")
            });
            let sql = format!(
                "select service_key, key, value_utf8 from state where service_name = 'Run' and key >= 'r/' and key < 'r0' and value_utf8 like '{part}'{from} order by service_key, key limit {SEARCHED}"
            );
            let rows = self.query(&sql)?;
            for row in &rows {
                let text = text_of(row)?;
                let record = Record::read(text).map_err(|e| RuntimeError::Remote(e.to_string()))?;
                let record: Json = self.read(record.text())?;
                let field = |name: &str| record.get(name).cloned().unwrap_or_default();
                let (run, seq, at) = (field("run"), field("seq"), field("at"));
                for effect in field("effects").as_array().into_iter().flatten().rev() {
                    if effect.get("kind").and_then(Json::as_str) != Some("emit")
                        || effect.get("type").and_then(Json::as_str) != Some(r#type)
                    {
                        continue;
                    }
                    let data = effect.get("data").unwrap_or(&Json::Null).to_string();
                    bytes = bytes.saturating_add(data.len());
                    found.push(Emitted {
                        at: at.as_str().unwrap_or_default().to_owned(),
                        run: run.as_str().unwrap_or_default().to_owned(),
                        seq: seq.as_u64().unwrap_or_default(),
                        data,
                    });
                }
                if bytes > MAX_EMITTED_BYTES || found.len() > MAX_EMITTED {
                    return Err(too_many());
                }
            }
            let name = |row: &Json, name: &str| row.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
            after = rows.last().map(|row| (name(row, "service_key"), name(row, "key")));
            if rows.len() < SEARCHED {
                break;
            }
        }
        // The engine has no order over all runs. Times are text that sorts.
        found.sort_by(|a, b| (&b.at, &b.run, b.seq).cmp(&(&a.at, &a.run, a.seq)));
        Ok(found)
    }

    /// Returns a charter and its files.
    ///
    /// # Errors
    /// The server does not answer, or the charter is damaged.
    pub fn charter(&self, digest: Digest) -> Result<Option<WithFiles>, RuntimeError> {
        let sql = format!(
            "select value_utf8 from state where service_name = 'Charter' and service_key = '{digest}' and key = 'stored'"
        );
        let rows = self.query(&sql)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let stored: Stored = self.read(text_of(row)?)?;
        let damaged = |e| RuntimeError::Remote(format!("a file of the charter {digest}: {e}"));
        let blobs: Result<_, _> = stored.blobs.values().map(|text| STANDARD.decode(text).map_err(damaged)).collect();
        Ok(Some((stored.charter(digest), blobs?)))
    }

    /// Lists invocations that are paused or that fail, at most `limit`.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn troubled(&self, limit: usize) -> Result<Vec<Troubled>, RuntimeError> {
        let sql = format!(
            "select id, target, status, coalesce(retry_count, 0) as retry_count, last_failure from sys_invocation where status in ('paused', 'backing-off') order by id limit {limit}"
        );
        self.query(&sql)?
            .into_iter()
            .map(|row| serde_json::from_value(row).map_err(|e| RuntimeError::Remote(e.to_string())))
            .collect()
    }

    /// Lists what waits for longer than some seconds to be called at all, at most `limit` targets.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn lagging(&self, seconds: u32, limit: usize) -> Result<Vec<Lagging>, RuntimeError> {
        let sql = format!(
            "select target, count(*) as calls, cast(max(date_part('epoch', now()) - date_part('epoch', modified_at)) as bigint) as seconds from sys_invocation where status in ('pending', 'ready') and modified_at < now() - interval '{seconds} seconds' group by target order by seconds desc limit {limit}"
        );
        self.query(&sql)?
            .into_iter()
            .map(|row| serde_json::from_value(row).map_err(|e| RuntimeError::Remote(e.to_string())))
            .collect()
    }
}

fn text_of(row: &Json) -> Result<&str, RuntimeError> {
    let value = row.get("value_utf8").and_then(Json::as_str);
    value.ok_or_else(|| RuntimeError::Remote("a stored value is not UTF-8".into()))
}
