//! The client of a holder: runs that are hosted by another process of this user.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use charter_actors::Folder;
use charter_journal::{Holder, Record, RunFilter, RunInfo, StateChange, StoredCharter, UsageTotals};
use charter_kernel::{Digest, Legal, Principal};
use charter_runtime::backend::{Acknowledged, Answer, Backend, TaskAnswer, Updates};
use charter_runtime::{Charter, RuntimeError, SendEvent, Start, Task, View, new_run_id, parse_json};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::connection::{ConnectError, Connection, MAX_ANSWER_BYTES, dial};
use crate::lines::write_line;
use crate::wire::{
    AcknowledgedText, AskedModels, CharterText, FolderText, MAX_REQUEST_BYTES, Reply, Request, ViewText,
};

/// How long the holder may take to answer: an event waits for those before it and for its commit.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// The same for what reads or writes a whole journal or run.
const LONG_TIME: Duration = Duration::from_secs(3_600);
/// How long a connection is kept for the next request; less than the holder keeps it.
const KEEP_TIME: Duration = Duration::from_secs(60);
/// Number of connections that are kept.
const MAX_KEPT: usize = 4;

/// A connection to the process that holds a journal.
#[derive(Debug)]
pub struct Client {
    address: PathBuf,
    pid: u32,
    about: Json,
    /// Connections that are ready for a request, and since when.
    idle: Mutex<Vec<(Instant, Connection)>>,
    charters: Mutex<Vec<Arc<Charter>>>,
}

impl Client {
    /// Connects to a holder that has an address.
    ///
    /// # Errors
    /// See [`ConnectError`]; after [`ConnectError::Gone`] there may be another holder, or none.
    pub async fn connect(holder: &Holder) -> Result<Client, ConnectError> {
        let pid = holder.pid;
        let address = holder.address.clone().unwrap_or_default();
        let (connection, greeting) = dial(&address, pid).await?;
        Ok(Client {
            address,
            pid: greeting.pid,
            about: greeting.about,
            idle: Mutex::new(vec![(Instant::now(), connection)]),
            charters: Mutex::default(),
        })
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What the program of the holder says about itself.
    #[must_use]
    pub fn about(&self) -> &Json {
        &self.about
    }

    /// Verifies an exported run and adds it to the journal. The holder reads the file.
    ///
    /// # Errors
    /// The run does not verify, or its id is taken.
    pub async fn import(&self, file: &Path) -> Result<RunInfo, RuntimeError> {
        let file = std::path::absolute(file).map_err(|e| RuntimeError::Remote(e.to_string()))?;
        self.ask(&Request::Import { file }, LONG_TIME).await
    }

    /// Rebuilds the projections of the journal.
    ///
    /// # Errors
    /// A record is unreadable.
    pub async fn rebuild(&self) -> Result<(), RuntimeError> {
        self.ask(&Request::Rebuild {}, LONG_TIME).await
    }

    /// Asks the holder to stay while actors of a run are running or one of its timers is due within
    /// a minute; with `all_timers`, while it has timers.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn keep(&self, run: &str, all_timers: bool) -> Result<(), RuntimeError> {
        self.ask(&Request::Keep { run: run.into(), all_timers }, ANSWER_TIME).await
    }

    /// The models of the actors of a run: those asked last, when it began, and now.
    ///
    /// # Errors
    /// There is no such run, the connection is lost, or the holder is of an earlier version.
    pub async fn models(&self, run: &str) -> Result<AskedModels, RuntimeError> {
        self.ask(&Request::Models { run: run.into() }, ANSWER_TIME).await
    }

    fn lost(&self) -> RuntimeError {
        RuntimeError::Lost { pid: self.pid }
    }

    async fn connection(&self) -> Result<Connection, RuntimeError> {
        let kept = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|(since, _)| since.elapsed() < KEEP_TIME);
            idle.pop()
        };
        match kept {
            Some((_, connection)) => Ok(connection),
            None => match dial(&self.address, self.pid).await {
                Ok((connection, greeting)) if greeting.pid == self.pid => Ok(connection),
                // Another process holds the journal by now.
                Ok(_) | Err(ConnectError::Gone { .. }) => Err(self.lost()),
                Err(e) => Err(RuntimeError::Remote(e.to_string())),
            },
        }
    }

    /// Sends a request and waits for its answer.
    async fn ask<T: DeserializeOwned>(&self, request: &Request, time: Duration) -> Result<T, RuntimeError> {
        let text = serde_json::to_string(request).map_err(|e| RuntimeError::Remote(e.to_string()))?;
        if text.len() > MAX_REQUEST_BYTES {
            return Err(RuntimeError::Remote(format!(
                "the request has {} bytes, and process {} accepts at most {MAX_REQUEST_BYTES}; stop that process first",
                text.len(),
                self.pid
            )));
        }
        let mut connection = self.connection().await?;
        let answer = self.exchange(&mut connection, text, time).await?;
        let reply = self.read(&answer)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_KEPT {
            idle.push((Instant::now(), connection));
        }
        Ok(reply)
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        text: String,
        time: Duration,
    ) -> Result<String, RuntimeError> {
        write_line(&mut connection.to, text).await.map_err(|_| self.lost())?;
        match tokio::time::timeout(time, connection.lines.next(MAX_ANSWER_BYTES)).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err(self.lost()),
            Err(_) => Err(RuntimeError::Remote(format!(
                "process {} holds the journal and has not answered for {} s; the event may still be recorded",
                self.pid,
                time.as_secs()
            ))),
        }
    }

    fn read<T: DeserializeOwned>(&self, answer: &str) -> Result<T, RuntimeError> {
        match parse_json(answer) {
            Ok(Reply::Ok(value)) => Ok(value),
            Ok(Reply::Error(error)) => Err(error.into_error(RuntimeError::Lost { pid: self.pid })),
            Err(e) => Err(RuntimeError::Remote(format!("process {} answers with something else: {e}", self.pid))),
        }
    }

    /// Starts a run of the copy of its charter that has this name.
    fn start_copy(&self, start: Start, place: Option<String>) -> Answer<'_, Acknowledged> {
        let run = start.run.or_else(|| Some(new_run_id()));
        let request = Request::start(Start { run, ..start }, place);
        Box::pin(async move { self.acknowledged(&request).await })
    }

    async fn acknowledged(&self, request: &Request) -> Result<Acknowledged, RuntimeError> {
        let AcknowledgedText { record, repeated } = self.ask(request, ANSWER_TIME).await?;
        Ok(Acknowledged { record: self.record(&record)?, repeated })
    }

    fn record(&self, text: &str) -> Result<Record, RuntimeError> {
        Record::read(text).map_err(|e| RuntimeError::Remote(format!("process {}: invalid record: {e}", self.pid)))
    }

    fn known(&self, digest: Digest) -> Option<Arc<Charter>> {
        let charters = self.charters.lock().unwrap_or_else(PoisonError::into_inner);
        charters.iter().find(|c| c.digest() == digest).cloned()
    }

    fn learn(&self, charter: Charter) -> Arc<Charter> {
        let charter = Arc::new(charter);
        self.charters.lock().unwrap_or_else(PoisonError::into_inner).push(charter.clone());
        charter
    }

    async fn charter_of(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        if let Some(known) = self.known(digest) {
            return Ok(known);
        }
        let CharterText { digest, name, core, source, .. } =
            self.ask(&Request::Charter { digest }, ANSWER_TIME).await?;
        let stored = StoredCharter { digest, name, core, source };
        Ok(self.learn(Charter::restore(&stored, Folder::None)?))
    }

    /// Restores the state of a run.
    async fn restore(&self, view: ViewText) -> Result<View, RuntimeError> {
        let ViewText { charter, snapshot, working, untrusted, dry, next_due } = view;
        let charter = self.charter_of(charter).await?;
        let invalid = |e: String| RuntimeError::Remote(format!("process {}: invalid snapshot: {e}", self.pid));
        let json: Json = parse_json(&snapshot).map_err(|e| invalid(e.to_string()))?;
        let snapshot = charter.machine().restore(&json).map_err(|e| invalid(e.to_string()))?;
        Ok(View { untrusted, next_due, ..View::new(charter, snapshot, working, dry) })
    }
}

impl Backend for Client {
    fn add(&self, charter: Charter) -> Answer<'_, Arc<Charter>> {
        Box::pin(async move {
            let StoredCharter { digest, name, core, source } = charter.stored().clone();
            let folder = FolderText::of(charter.folder()).map_err(|e| RuntimeError::Remote(e.to_string()))?;
            let text = CharterText { digest, name, core, source, folder };
            self.ask::<()>(&Request::Add(text), ANSWER_TIME).await?;
            Ok(self.learn(charter))
        })
    }

    fn charter(&self, digest: Digest) -> Answer<'_, Arc<Charter>> {
        Box::pin(self.charter_of(digest))
    }

    fn start(&self, start: Start) -> Answer<'_, Acknowledged> {
        self.start_copy(start, None)
    }

    fn start_in(&self, start: Start, place: String) -> Answer<'_, Acknowledged> {
        self.start_copy(start, Some(place))
    }

    fn send(&self, send: SendEvent) -> Answer<'_, Acknowledged> {
        Box::pin(async move { self.acknowledged(&Request::Send(send.into())).await })
    }

    fn answer(&self, task: String, answer: TaskAnswer, by: Principal) -> Answer<'_, Acknowledged> {
        let (output, declined) = match answer {
            TaskAnswer::Output(output) => (Some(output), None),
            TaskAnswer::Declined(reason) => (None, Some(reason)),
        };
        Box::pin(async move { self.acknowledged(&Request::Answer { task, output, declined, by }).await })
    }

    fn resume(&self, run: String) -> Answer<'_, ()> {
        Box::pin(async move { self.ask(&Request::Resume { run }, ANSWER_TIME).await })
    }

    fn view(&self, run: String) -> Answer<'_, View> {
        Box::pin(async move {
            let view = self.ask(&Request::View { run }, ANSWER_TIME).await?;
            self.restore(view).await
        })
    }

    fn legal(&self, run: String, by: Principal) -> Answer<'_, Vec<Legal>> {
        Box::pin(async move { self.ask(&Request::Legal { run, by }, ANSWER_TIME).await })
    }

    fn tasks(&self, by: Principal, limit: usize) -> Answer<'_, Vec<Task>> {
        Box::pin(async move { self.ask(&Request::Tasks { by, limit }, ANSWER_TIME).await })
    }

    fn run(&self, run: String) -> Answer<'_, Option<RunInfo>> {
        Box::pin(async move { self.ask(&Request::Run { run }, ANSWER_TIME).await })
    }

    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunInfo>> {
        Box::pin(async move { self.ask(&Request::Runs(filter), ANSWER_TIME).await })
    }

    fn records(&self, run: String, from: u64, limit: usize) -> Answer<'_, Vec<Record>> {
        Box::pin(async move {
            let texts: Vec<String> = self.ask(&Request::Records { run, from, limit }, ANSWER_TIME).await?;
            texts.iter().map(|text| self.record(text)).collect()
        })
    }

    fn records_after(&self, position: u64, limit: usize) -> Answer<'_, Vec<(u64, Record)>> {
        Box::pin(async move {
            let texts: Vec<(u64, String)> = self.ask(&Request::RecordsAfter { position, limit }, ANSWER_TIME).await?;
            texts.iter().map(|(position, text)| Ok((*position, self.record(text)?))).collect()
        })
    }

    fn last_position(&self) -> Answer<'_, u64> {
        Box::pin(async move { self.ask(&Request::LastPosition {}, ANSWER_TIME).await })
    }

    fn at(&self, run: String, seq: u64) -> Answer<'_, View> {
        Box::pin(async move {
            let view = self.ask(&Request::At { run, seq }, LONG_TIME).await?;
            self.restore(view).await
        })
    }

    fn fork(&self, run: String, at: u64, new: String, dry: bool) -> Answer<'_, ()> {
        Box::pin(async move { self.ask(&Request::Fork { run, at, new, dry }, LONG_TIME).await })
    }

    fn usage(&self, run: String) -> Answer<'_, UsageTotals> {
        Box::pin(async move { self.ask(&Request::Usage { run }, ANSWER_TIME).await })
    }

    fn host_state(&self, area: String) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(async move { self.ask(&Request::HostState { area }, ANSWER_TIME).await })
    }

    fn put_host_state(&self, changes: Vec<StateChange>) -> Answer<'_, ()> {
        Box::pin(async move { self.ask(&Request::PutHostState(changes), ANSWER_TIME).await })
    }

    fn updates(&self, run: Option<String>) -> Answer<'_, Box<dyn Updates>> {
        Box::pin(async move {
            let request = serde_json::to_string(&Request::Updates { run });
            let request = request.map_err(|e| RuntimeError::Remote(e.to_string()))?;
            let mut connection = self.connection().await?;
            let answer = self.exchange(&mut connection, request, ANSWER_TIME).await?;
            self.read::<()>(&answer)?;
            Ok(Box::new(connection) as Box<dyn Updates>)
        })
    }
}
