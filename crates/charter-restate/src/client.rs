//! The client of a Restate server: its ingress, and its queries.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_actors::{Blobs, ClientOptions, http_client, unreachable_server};
use charter_journal::{Record, RunInfo, StoredCharter};
use charter_kernel::{Digest, EffectId, Principal, Timestamp};
use charter_run::{Kept, Run, Task};
use charter_runtime::{RuntimeError, SendEvent, Start, parse_json};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::charters::Charters;
use crate::object::record_key;
use crate::shelf::Stored;
use crate::wire::{Answer, Doc, EventRequest, Head, Outcome, SettleRequest, StartRequest, WaitsRequest};

/// How long a request is repeated while the server cannot be reached.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
const REQUEST: Duration = Duration::from_secs(30);
/// Records with emitted events that are read at a time; how many events are searched, and of what
/// size in bytes.
const SEARCHED: usize = 200;
const MAX_EMITTED: usize = 100_000;
const MAX_EMITTED_BYTES: usize = 64 << 20;
/// Bytes of an answer.
const MAX_ANSWER: u64 = 512 << 20;

/// A Restate server.
#[derive(Debug, Clone)]
pub struct Engine {
    ingress: String,
    admin: String,
    agent: ureq::Agent,
    patience: Duration,
}

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
    /// Names a server by the addresses of its ingress and of its administration.
    #[must_use]
    pub fn new(ingress: &str, admin: &str) -> Engine {
        let options =
            ClientOptions { connect: Some(Duration::from_secs(5)), request: Some(REQUEST), ..Default::default() };
        let plain = |url: &str| url.trim_end_matches('/').to_owned();
        let agent = http_client(options);
        Engine { ingress: plain(ingress), admin: plain(admin), agent, patience: PATIENCE }
    }

    /// Sets how long requests are repeated while the server cannot be reached; a minute, if it is
    /// not set.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Engine {
        Engine { patience, ..self }
    }

    fn post(&self, url: &str, body: Option<&str>) -> Result<(u16, String), ureq::Error> {
        let request = self.agent.post(url).header("accept", "application/json");
        let mut response = match body {
            Some(body) => request.header("content-type", "application/json").send(body)?,
            // Handlers without an argument accept no body.
            None => request.send_empty()?,
        };
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(MAX_ANSWER).read_to_string()?;
        Ok((status, text))
    }

    /// Posts, and posts again while the server is away; `null` is no body. All requests may be
    /// repeated: starts, events with ids and answers have one record.
    fn ask(&self, url: &str, body: &Json) -> Result<String, RuntimeError> {
        let (body, begin) = (Some(body).filter(|body| !body.is_null()).map(Json::to_string), Instant::now());
        loop {
            let problem = match self.post(url, body.as_deref()) {
                Ok((200..=299, text)) => return Ok(text),
                Ok((status, text)) if status < 500 => {
                    return Err(RuntimeError::Remote(format!("{url} answers {status}: {}", text.trim())));
                }
                Ok((status, text)) => format!("{url} answers {status}: {}", text.trim()),
                Err(error) => unreachable_server(url, &error),
            };
            if begin.elapsed() > self.patience {
                return Err(RuntimeError::Remote(problem));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, RuntimeError> {
        let bad = |e| RuntimeError::Remote(format!("the answer of {} cannot be read: {e}", self.ingress));
        parse_json(text).map_err(bad)
    }

    fn call(&self, run: &str, handler: &str, body: &Json) -> Result<(Record, bool), RuntimeError> {
        charter_run::check_run_id(run)?;
        let text = self.ask(&format!("{}/Run/{run}/{handler}", self.ingress), body)?;
        let answer: Answer = self.read(&text)?;
        match (answer.record, answer.error) {
            (Some(record), _) => {
                let record = Record::read(&record).map_err(|e| RuntimeError::Remote(e.to_string()))?;
                Ok((record, answer.repeated))
            }
            (None, Some(error)) => Err(error.into_error(RuntimeError::Closing)),
            (None, None) => Err(RuntimeError::Remote(format!("{} answers without a record", self.ingress))),
        }
    }

    /// Stores a charter and the files that its actors name, for mirrors.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn put_charter(&self, charter: &StoredCharter, blobs: &Blobs) -> Result<(), RuntimeError> {
        let stored = Stored {
            name: charter.plain_name().to_owned(),
            core: charter.core.clone(),
            source: charter.source.clone(),
            blobs: blobs.iter().map(|(digest, bytes)| (*digest, STANDARD.encode(bytes))).collect(),
        };
        self.ask(&format!("{}/Charter/{}/put", self.ingress, charter.digest), &json!(stored)).map(drop)
    }

    /// Starts a run; returns its record 0, and whether it was started earlier.
    ///
    /// # Errors
    /// The run was not started.
    pub fn start(&self, start: Start, at: Timestamp) -> Result<(Record, bool), RuntimeError> {
        let Start { charter, run, input, by } = start;
        let run = run.unwrap_or_else(charter_runtime::new_run_id);
        self.call(&run, "start", &json!(StartRequest { at, charter, input: Doc(input), by }))
    }

    /// Sends an event; returns its record, and whether it was recorded earlier.
    ///
    /// # Errors
    /// It has no record.
    pub fn send(&self, send: SendEvent, at: Timestamp) -> Result<(Record, bool), RuntimeError> {
        let SendEvent { run, to, r#type, data, by, id, expected_seq } = send;
        // With an id, it may be repeated after a lost connection.
        let id = Some(id.unwrap_or_else(charter_runtime::new_run_id));
        self.event(&run, &EventRequest { at, to, r#type, data: Doc(data), by, id, host_id: false, expected_seq })
    }

    pub(crate) fn event(&self, run: &str, request: &EventRequest) -> Result<(Record, bool), RuntimeError> {
        self.call(run, "event", &json!(request))
    }

    /// Gives a run the answer of a person to a task (`RUN/SEQ/INDEX`).
    ///
    /// # Errors
    /// It has no record: there is no such task, or it is for others.
    pub fn settle(
        &self,
        task: &str,
        outcome: Result<Json, Json>,
        by: Principal,
        at: Timestamp,
    ) -> Result<Record, RuntimeError> {
        let no_task = || RuntimeError::NoTask { run: String::new(), task: task.into() };
        let run = task.rsplitn(3, '/').nth(2).ok_or_else(no_task)?;
        let effect = EffectId::parse(task).ok_or_else(no_task)?;
        let request = SettleRequest { at, effect: effect.into(), outcome: Outcome::from(outcome), by };
        self.call(run, "settle", &json!(request)).map(|(record, _)| record)
    }

    /// The number of the last record of a run, and the run; `None` if there is no such run.
    pub(crate) fn look(&self, charters: &Charters, run: &str) -> Result<Option<(u64, Run)>, RuntimeError> {
        let text = self.ask(&format!("{}/Run/{run}/head", self.ingress), &Json::Null)?;
        let Some(head) = self.read::<Option<Head>>(&text)? else {
            return Ok(None);
        };
        let charter = charters.get(head.charter).ok_or(RuntimeError::UnknownCharter(head.charter))?;
        let damaged = |e: charter_run::KeptError| RuntimeError::Remote(format!("run `{run}`: {e}"));
        let kept = Kept::read(head.kept).map_err(damaged)?;
        let seq = kept.last.as_ref().map(|last| last.seq).unwrap_or_default();
        Ok(Some((seq, Run::restore(charter.machine(), run, 0, kept).map_err(damaged)?)))
    }

    /// Whether a run still waits for an attempt.
    pub(crate) fn waits(&self, run: &str, request: &WaitsRequest) -> Result<bool, RuntimeError> {
        let text = self.ask(&format!("{}/Run/{run}/waits", self.ingress), &json!(request))?;
        self.read(&text)
    }

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

    /// Tells the server where an endpoint is.
    ///
    /// # Errors
    /// The server does not answer, or does not accept the endpoint.
    pub fn register(&self, endpoint: &str) -> Result<(), RuntimeError> {
        self.ask(&format!("{}/deployments", self.admin), &json!({ "uri": endpoint })).map(drop)
    }
}

fn text_of(row: &Json) -> Result<&str, RuntimeError> {
    let value = row.get("value_utf8").and_then(Json::as_str);
    value.ok_or_else(|| RuntimeError::Remote("a stored value is not UTF-8".into()))
}
