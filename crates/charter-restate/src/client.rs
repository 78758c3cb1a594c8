//! The client of a Restate server: its ingress, and its queries.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_actors::{Blobs, ClientOptions, http_client, unreachable_server};
use charter_journal::{Record, StoredCharter};
use charter_kernel::{EffectId, Principal, Timestamp};
use charter_run::{Kept, Run};
use charter_runtime::{RuntimeError, SendEvent, Start, parse_json};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::charters::Charters;
use crate::shelf::Stored;
use crate::wire::{Answer, Doc, EventRequest, Head, Outcome, SettleRequest, StartRequest, WaitsRequest};

/// How long a request is repeated while the server cannot be reached.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
const REQUEST: Duration = Duration::from_secs(30);
/// Bytes of an answer.
const MAX_ANSWER: u64 = 512 << 20;

/// A Restate server.
#[derive(Debug, Clone)]
pub struct Engine {
    ingress: String,
    pub(crate) admin: String,
    agent: ureq::Agent,
    patience: Duration,
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
    pub(crate) fn ask(&self, url: &str, body: &Json) -> Result<String, RuntimeError> {
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

    pub(crate) fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, RuntimeError> {
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

    /// Tells the server where an endpoint is.
    ///
    /// # Errors
    /// The server does not answer, or does not accept the endpoint.
    pub fn register(&self, endpoint: &str) -> Result<(), RuntimeError> {
        self.ask(&format!("{}/deployments", self.admin), &json!({ "uri": endpoint })).map(drop)
    }
}
