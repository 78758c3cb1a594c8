//! A server as a [`Backend`].

use std::sync::{Arc, Mutex, PoisonError};

use charter_actors::{BoxFuture, Folder};
use charter_expr::ExprTimestamp;
use charter_journal::{Record, RunFilter, RunInfo, StoredCharter};
use charter_kernel::{Digest, Legal, Principal, PrincipalKind, Status, Timestamp};
use charter_runtime::backend::{Acknowledged, Answer as Pending, Backend, TaskAnswer, Update, Updates};
use charter_runtime::{Charter, RuntimeError, SendEvent, Start, Task, View, Working, new_run_id, parse_json};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;

use crate::http::{Answer, BadUrl, Event, Http, part};

/// Runs that a server hosts. Who the caller is and which roles it has comes from the key, not from
/// the principals that operations name.
#[derive(Clone)]
pub struct Remote {
    pub(crate) http: Http,
    charters: Arc<Mutex<Vec<Arc<Charter>>>>,
}

/// Who a key belongs to.
#[derive(Debug, Clone, Deserialize)]
pub struct Me {
    /// The id of the principal.
    pub id: String,
    /// What it is.
    pub kind: PrincipalKind,
    /// Its roles (`ROLE`, `CHARTER/ROLE`, `CHARTER/RUN/ROLE`); `None`: every role.
    pub roles: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct CharterName {
    digest: Digest,
}

/// A run of a list.
#[derive(Deserialize)]
struct Summary {
    run: String,
    charter: CharterName,
    status: Option<Status>,
    seq: u64,
    hash: Digest,
    started: String,
    updated: String,
}

fn time(text: &str) -> Result<Timestamp, RuntimeError> {
    let at = ExprTimestamp::parse(text).map_err(|_| invalid(&format!("`{text}` is not a time")))?;
    Ok(Timestamp(at.millis()))
}

fn invalid(why: &str) -> RuntimeError {
    RuntimeError::Remote(format!("the server's answer is not what a Charter server of this version answers: {why}"))
}

pub(crate) fn json<T: DeserializeOwned>(answer: &Answer) -> Result<T, RuntimeError> {
    parse_json(&answer.text).map_err(|e| invalid(&e.to_string()))
}

impl Summary {
    fn info(self) -> Result<RunInfo, RuntimeError> {
        let Summary { run, charter, status, seq, hash, started, updated } = self;
        let (started, updated) = (time(&started)?, time(&updated)?);
        Ok(RunInfo { run, charter: charter.digest, status, seq, hash, started, updated })
    }
}

fn record(text: &str) -> Result<Record, RuntimeError> {
    Record::read(text).map_err(|e| invalid(&e.to_string()))
}

/// Does what blocks on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(RuntimeError::Closing))
}

impl Remote {
    /// Names a server, and the key to use there. Connects to nothing yet.
    ///
    /// # Errors
    /// The address cannot be that of a server.
    pub fn new(url: &str, key: Option<&str>) -> Result<Remote, BadUrl> {
        Ok(Remote { http: Http::new(url, key)?, charters: Arc::default() })
    }

    /// The address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        self.http.url()
    }

    /// Asks the server who the key belongs to.
    ///
    /// # Errors
    /// The server does not answer, or does not accept the key.
    pub fn me(&self) -> Result<Me, RuntimeError> {
        json(&self.http.get("/v1/me")?)
    }

    pub(crate) fn info_of(&self, run: &str) -> Result<Option<RunInfo>, RuntimeError> {
        match self.http.get(&format!("/v1/runs/{}", part(run))) {
            Ok(answer) => json::<Summary>(&answer)?.info().map(Some),
            Err(RuntimeError::UnknownRun(_)) => Ok(None),
            Err(RuntimeError::NeverStarted(_)) => {
                let mut runs = self.list(&RunFilter::default())?;
                let at = runs.iter().position(|info| info.run == run);
                Ok(at.map(|at| runs.swap_remove(at)))
            }
            Err(e) => Err(e),
        }
    }

    pub(crate) fn list(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, RuntimeError> {
        #[derive(Deserialize)]
        struct Page {
            runs: Vec<Summary>,
            after: Option<String>,
        }
        let mut found = Vec::new();
        let mut after = filter.after.clone();
        loop {
            let mut query = String::from("/v1/runs?limit=1000");
            for (name, value) in [
                ("charter", filter.charter.map(|digest| digest.to_string())),
                ("status", filter.status.map(|status| status.word().to_owned())),
                ("after", after.clone()),
            ] {
                if let Some(value) = value {
                    query.push_str(&format!("&{name}={}", part(&value)));
                }
            }
            let page: Page = json(&self.http.get(&query)?)?;
            for summary in page.runs {
                found.push(summary.info()?);
                if filter.limit > 0 && found.len() == filter.limit {
                    return Ok(found);
                }
            }
            match page.after {
                Some(last) => after = Some(last),
                None => return Ok(found),
            }
        }
    }

    pub(crate) fn records_of(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, RuntimeError> {
        #[derive(Deserialize)]
        struct Page {
            records: Vec<Json>,
        }
        let after = from.checked_sub(1).map(|seq| format!("&after={seq}")).unwrap_or_default();
        let path = format!("/v1/runs/{}/records?limit={}{after}", part(run), limit.clamp(1, 1_000));
        let page: Page = json(&self.http.get(&path)?)?;
        page.records.iter().map(|json| record(&charter_kernel::digest::canonical(json))).collect()
    }

    pub(crate) fn charter_of(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        #[derive(Deserialize)]
        struct Text {
            name: String,
            source: String,
            core: String,
        }
        let known = |charters: &[Arc<Charter>]| charters.iter().find(|c| c.digest() == digest).cloned();
        if let Some(known) = known(&self.charters.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(known);
        }
        let text: Text = json(&self.http.get(&format!("/v1/charters/{}", part(&digest.to_string())))?)?;
        let stored = StoredCharter { digest, name: text.name, core: text.core, source: text.source };
        Ok(self.learn(Charter::restore(&stored, Folder::None)?))
    }

    /// Returns a charter that the server offers, by its id.
    ///
    /// # Errors
    /// The server does not offer it, or cannot be reached.
    pub fn offered(&self, id: &str) -> Result<Arc<Charter>, RuntimeError> {
        #[derive(Deserialize)]
        struct Name {
            digest: Digest,
        }
        let name: Name = json(&self.http.get(&format!("/v1/charters/{}", part(id)))?)?;
        self.charter_of(name.digest)
    }

    fn learn(&self, charter: Charter) -> Arc<Charter> {
        let charter = Arc::new(charter);
        self.charters.lock().unwrap_or_else(PoisonError::into_inner).push(charter.clone());
        charter
    }

    fn view_at(&self, path: &str) -> Result<View, RuntimeError> {
        #[derive(Deserialize)]
        struct State {
            charter: CharterName,
            snapshot: Json,
            working: Vec<Working>,
            next_due: Option<String>,
            dry: bool,
            untrusted: bool,
        }
        let state: State = json(&self.http.get(path)?)?;
        let charter = self.charter_of(state.charter.digest)?;
        let snapshot = charter.machine().restore(&state.snapshot).map_err(|e| invalid(&e.to_string()))?;
        let next_due = state.next_due.as_deref().map(time).transpose()?;
        let view = View::new(charter, snapshot, state.working, state.dry);
        Ok(View { untrusted: state.untrusted, next_due, ..view })
    }

    fn acknowledged(&self, path: &str, body: &Json) -> Result<Acknowledged, RuntimeError> {
        let answer = self.http.post(path, body)?;
        Ok(Acknowledged { record: record(&answer.text)?, repeated: answer.repeated })
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote({})", self.url())
    }
}

/// Runs an operation of a clone on a thread that may block.
fn pending<T: Send + 'static>(
    remote: &Remote,
    work: impl FnOnce(&Remote) -> Result<T, RuntimeError> + Send + 'static,
) -> Pending<'static, T> {
    let remote = remote.clone();
    Box::pin(blocking(move || work(&remote)))
}

impl Backend for Remote {
    /// A server that does not know the charter gets its text, without any file beside it, which
    /// needs the role `admin`.
    fn add(&self, charter: Charter) -> Pending<'_, Arc<Charter>> {
        pending(self, move |remote| {
            if let Ok(known) = remote.charter_of(charter.digest()) {
                return Ok(known);
            }
            let answer = remote.http.post("/v1/charters", &json!({"source": charter.stored().source}))?;
            let name: CharterName = json(&answer)?;
            match name.digest == charter.digest() {
                true => Ok(remote.learn(charter)),
                false => Err(RuntimeError::Charter {
                    charter: charter.machine().definition().id.clone(),
                    why: "it consists of several files, which a server reads from its folder of charters".into(),
                }),
            }
        })
    }

    fn charter(&self, digest: Digest) -> Pending<'_, Arc<Charter>> {
        pending(self, move |remote| remote.charter_of(digest))
    }

    fn start(&self, start: Start) -> Pending<'_, Acknowledged> {
        pending(self, move |remote| {
            let run = start.run.unwrap_or_else(new_run_id);
            let body = json!({"charter": start.charter, "input": start.input, "run": run});
            remote.acknowledged("/v1/runs", &body)
        })
    }

    fn send(&self, send: SendEvent) -> Pending<'_, Acknowledged> {
        pending(self, move |remote| {
            let SendEvent { run, to, r#type, data, id, expected_seq, .. } = send;
            // An event without an id could be recorded twice if its answer is lost.
            let id = id.unwrap_or_else(new_run_id);
            let body = json!({"type": r#type, "data": data, "to": to, "id": id});
            let answer = remote.http.post_if(&format!("/v1/runs/{}/events", part(&run)), &body, expected_seq)?;
            Ok(Acknowledged { record: record(&answer.text)?, repeated: answer.repeated })
        })
    }

    fn answer(&self, task: String, answer: TaskAnswer, _: Principal) -> Pending<'_, Acknowledged> {
        pending(self, move |remote| {
            let run = task.rsplitn(3, '/').nth(2).unwrap_or_default().to_owned();
            let body = match answer {
                TaskAnswer::Output(output) => json!({"task": task, "output": output}),
                TaskAnswer::Declined(reason) => json!({"task": task, "declined": reason}),
            };
            remote.acknowledged(&format!("/v1/runs/{}/answers", part(&run)), &body)
        })
    }

    /// A server resumes its runs by itself.
    fn resume(&self, _: String) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn view(&self, run: String) -> Pending<'_, View> {
        pending(self, move |remote| remote.view_at(&format!("/v1/runs/{}", part(&run))))
    }

    fn legal(&self, run: String, _: Principal) -> Pending<'_, Vec<Legal>> {
        #[derive(Deserialize)]
        struct Events {
            events: Vec<Legal>,
        }
        pending(self, move |remote| {
            let answer = remote.http.get(&format!("/v1/runs/{}/legal", part(&run)))?;
            Ok(json::<Events>(&answer)?.events)
        })
    }

    fn tasks(&self, _: Principal, limit: usize) -> Pending<'_, Vec<Task>> {
        #[derive(Deserialize)]
        struct Tasks {
            tasks: Vec<Task>,
        }
        pending(self, move |remote| {
            let mut tasks = json::<Tasks>(&remote.http.get("/v1/tasks")?)?.tasks;
            tasks.truncate(limit);
            Ok(tasks)
        })
    }

    fn run(&self, run: String) -> Pending<'_, Option<RunInfo>> {
        pending(self, move |remote| remote.info_of(&run))
    }

    fn runs(&self, filter: RunFilter) -> Pending<'_, Vec<RunInfo>> {
        pending(self, move |remote| remote.list(&filter))
    }

    fn records(&self, run: String, from: u64, limit: usize) -> Pending<'_, Vec<Record>> {
        pending(self, move |remote| remote.records_of(&run, from, limit))
    }

    fn records_after(&self, _: u64, _: usize) -> Pending<'_, Vec<(u64, Record)>> {
        Box::pin(async { Err(RuntimeError::Remote("a server gives the records of all runs as a stream only".into())) })
    }

    fn last_position(&self) -> Pending<'_, u64> {
        Box::pin(async { Err(RuntimeError::Remote("a server gives positions with its stream only".into())) })
    }

    fn at(&self, run: String, seq: u64) -> Pending<'_, View> {
        pending(self, move |remote| remote.view_at(&format!("/v1/runs/{}/at/{seq}", part(&run))))
    }

    fn fork(&self, run: String, at: u64, new: String, dry: bool) -> Pending<'_, ()> {
        pending(self, move |remote| {
            let body = json!({"at": at, "run": new, "live": !dry});
            remote.http.post(&format!("/v1/runs/{}/fork", part(&run)), &body).map(drop)
        })
    }

    fn updates(&self, run: Option<String>) -> Pending<'_, Box<dyn Updates>> {
        pending(self, move |remote| {
            let events = match run {
                None => remote.http.follow("/v1/stream")?,
                Some(run) => {
                    let path = format!("/v1/runs/{}/stream", part(&run));
                    match remote.info_of(&run)? {
                        // From now on.
                        Some(info) => remote.http.follow(&format!("{path}?after={}", info.seq))?,
                        // It is about to start.
                        None => remote.http.follow_later(path),
                    }
                }
            };
            Ok(Box::new(Stream(events)) as Box<dyn Updates>)
        })
    }
}

struct Stream(mpsc::Receiver<Event>);

impl Updates for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(async move {
            loop {
                let Event { kind, data } = self.0.recv().await?;
                match kind.as_str() {
                    "record" => return record(&data).ok().map(Update::Recorded),
                    "news" => return parse_json(&data).ok(),
                    _ => {}
                }
            }
        })
    }
}
