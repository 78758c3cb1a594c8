//! Asks a run about what an agent is about to do: the call becomes an event, and its record the
//! decision. The same for the command line, the local socket and HTTP.

mod reason;
mod waiting;

use std::path::{Path, PathBuf};

use charter_journal::{Record, Verdict};
use charter_kernel::{Auth, Digest, Effect, EffectKind, Envelope, Principal, PrincipalKind, Timestamp};
use charter_runtime::backend::{Acknowledged, Backend};
use charter_runtime::{RuntimeError, SendEvent, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::client::{Client, Decision, Moment, Request};
use crate::{ToolCall, Workspace, WorkspaceError, describe};

/// The event of a call that an agent wants to make.
pub const CALL: &str = "tool.call";
/// The event of its outcome.
pub const RESULT: &str = "tool.result";
/// The role of an agent that is given none.
pub const ROLE: &str = "agent";

/// What a tool has returned is recorded up to this many bytes.
const MAX_OUTPUT_BYTES: usize = 4 << 10;
/// Records of a page, when a run is searched.
const PAGE: usize = 500;
/// How often a call is sent again with another id, because the run has moved on meanwhile.
const MAX_AGAIN: usize = 8;

/// What the machine of an agent is like.
#[derive(Debug, Clone, Default)]
pub struct Here {
    /// The folder of the process, if the client names none.
    pub cwd: Option<PathBuf>,
    /// The home folder of the agent.
    pub home: Option<PathBuf>,
    /// Files and folders that no agent may change: the journal, keys.
    pub guarded: Vec<PathBuf>,
}

/// What a run is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The run.
    pub run: String,
    /// What the question is about.
    pub about: About,
    /// The sender.
    pub by: Principal,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// A call that an agent wants to make.
    Call {
        /// The id of the event.
        id: String,
        /// Its data.
        data: Json,
    },
    /// The outcome of a call.
    Result {
        /// The id of the event.
        id: String,
        /// Its data.
        data: Json,
    },
    /// Whether something is due before the agent stops.
    Stop,
}

/// Where a person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the page of the server with this address.
    Page(String),
    /// With these options of the command line; empty for the usual journal file.
    Command(String),
}

/// Why there is no decision. The call must not be allowed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The host of the run has failed, or does not know it.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The run has no workspace to compare paths with.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The folder of the agent is not known.
    #[error("the request of {} names no absolute working folder (`cwd`)", .0.title())]
    NoFolder(Client),
    /// The ids of the client's events are those of the host.
    #[error("run `{0}` has the name of a client, so its events cannot have ids; start a run with another id")]
    RunName(String),
}

/// The agent of a session, as a process of this machine names it.
#[must_use]
pub fn principal(request: &Request, roles: &[String]) -> Principal {
    let by = Principal { roles: roles.to_vec(), ..Principal::new(&request.principal(), &[]) };
    by.of_kind(PrincipalKind::Agent).authenticated(Auth::Local)
}

/// Makes the question of a request. Resolves paths on this machine; `input` is the input of the
/// run, `nonce` tells apart the calls of clients that have no ids for them.
///
/// # Errors
/// See [`GateError`].
pub fn question(
    run: &str,
    request: &Request,
    input: &Json,
    here: &Here,
    by: Principal,
    nonce: &str,
) -> Result<Question, GateError> {
    if Client::ALL.iter().any(|client| client.name() == run) {
        return Err(GateError::RunName(run.to_owned()));
    }
    let about = match request.moment {
        Moment::Stop => About::Stop,
        Moment::Before => About::Call { id: request.event_id(nonce), data: described(request, input, here)? },
        Moment::After => {
            let mut data = described(request, input, here)?;
            if let (Some(fields), Some(outcome)) = (data.as_object_mut(), &request.outcome) {
                fields.insert("ok".to_owned(), json!(outcome.ok));
                fields.insert("output".to_owned(), bounded(&outcome.output));
            }
            About::Result { id: format!("{}/result", request.event_id(nonce)), data }
        }
    };
    Ok(Question { run: run.to_owned(), about, by })
}

/// What a tool returned if it is small, else its digest and size.
fn bounded(output: &Json) -> Json {
    let text = charter_kernel::digest::canonical(output);
    match text.len() > MAX_OUTPUT_BYTES {
        true => json!({"digest": Digest::of_bytes(text.as_bytes()), "bytes": text.len()}),
        false => output.clone(),
    }
}

/// The data of the event for a call.
fn described(request: &Request, input: &Json, here: &Here) -> Result<Json, GateError> {
    let mut workspace = Workspace::from_input(input)?.with_guarded(here.guarded.iter().cloned());
    if let Some(home) = &here.home {
        workspace = workspace.with_home(home);
    }
    let cwd = request.cwd.as_ref().map(PathBuf::from).or_else(|| here.cwd.clone());
    let cwd = cwd.filter(|cwd| cwd.is_absolute()).ok_or(GateError::NoFolder(request.client))?;
    let call = ToolCall {
        tool: request.tool.clone(),
        input: request.input.clone(),
        cwd,
        client: request.client.name().to_owned(),
        session: request.session.clone(),
        call: request.call(),
    };
    Ok(describe(&call, &workspace).event_data())
}

/// The input of a run, which says what its workspace is.
///
/// # Errors
/// There is no such run.
pub async fn input(backend: &dyn Backend, run: &str) -> Result<Json, RuntimeError> {
    let first = backend.records(run.to_owned(), 0, 1).await?.into_iter().next();
    first.map(|record| input_of(&record)).ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))
}

/// The input of a run, in its record 0.
#[must_use]
pub fn input_of(first: &Record) -> Json {
    first.event.data.clone().into_owned()
}

/// Everything at once: makes the question of a request, and asks it.
///
/// # Errors
/// See [`GateError`].
pub async fn decide(
    backend: &dyn Backend,
    run: &str,
    request: &Request,
    here: Here,
    by: Principal,
    place: &Place,
) -> Result<Decision, GateError> {
    let input = input(backend, run).await?;
    let (run, request) = (run.to_owned(), request.clone());
    // Reads folders, which can take long.
    let made = tokio::task::spawn_blocking(move || {
        question(&run, &request, &input, &here, by, &charter_runtime::new_run_id())
    });
    let question = made.await.unwrap_or(Err(GateError::Runtime(RuntimeError::Closing)))?;
    Ok(ask(backend, question, place).await?)
}

/// Asks a run, and explains its answer.
///
/// # Errors
/// The host has failed, or there is no such run.
pub async fn ask(backend: &dyn Backend, question: Question, place: &Place) -> Result<Decision, RuntimeError> {
    let Question { run, about, by } = question;
    match about {
        About::Stop => reason::due(backend, &run, &by).await,
        About::Result { id, data } => {
            let view = backend.view(run.clone()).await?;
            // Without the event, the charter does not want to know.
            if view.charter.machine().definition().events.contains_key(RESULT) {
                tell(backend, SendEvent::new(&run, RESULT, data, by), &id).await?;
            }
            Ok(Decision::Legal)
        }
        About::Call { id, data } => {
            if let Some(reason) = reason::undecided(backend, &run, &data).await? {
                return Ok(Decision::Refused { reason });
            }
            let record = settled(backend, SendEvent::new(&run, CALL, data, by), &id).await?;
            match record.verdict {
                Verdict::Accepted => Ok(Decision::Legal),
                _ => reason::refused(backend, &record, place).await,
            }
        }
    }
}

/// Sends a result. The first that the run has accepted counts, unless a later one is worse: the
/// charter decides about that. One that was refused, perhaps because it was not that of the call,
/// does not keep the next from being told.
async fn tell(backend: &dyn Backend, event: SendEvent, id: &str) -> Result<(), RuntimeError> {
    let failed = event.data.get("ok") == Some(&Json::Bool(false));
    let mut current = id.to_owned();
    for _ in 0..MAX_AGAIN {
        let taken = match send(backend, event.clone().id(&current)).await {
            Ok(done) if done.repeated && done.is_refused() => event.run.clone(),
            Ok(_) => return Ok(()),
            Err(RuntimeError::IdTaken { run, seq, .. }) => {
                let before = backend.records(run.clone(), seq, 1).await?.into_iter().next();
                let accepted = before.is_none_or(|record| record.verdict != Verdict::Refused);
                if accepted && !(failed && current == id) {
                    return Ok(());
                }
                run
            }
            Err(e) => return Err(e),
        };
        let head = backend.run(taken.clone()).await?.ok_or(RuntimeError::UnknownRun(taken))?;
        current = format!("{id}/{}", head.seq);
    }
    Ok(())
}

async fn send(backend: &dyn Backend, event: SendEvent) -> Result<Acknowledged, RuntimeError> {
    let run = event.run.clone();
    let done = backend.send(event).await?;
    if !done.is_refused() && !done.repeated {
        // Failures are reported to the subscribers of the run.
        let _ = backend.resume(run).await;
    }
    Ok(done)
}

/// Sends a call. A call that the run has answered before is answered with that record, unless the
/// run has changed since in a way that may change the answer: then it is a new event, with the
/// number of that record behind its id.
async fn settled(backend: &dyn Backend, event: SendEvent, id: &str) -> Result<Record, RuntimeError> {
    let mut current = id.to_owned();
    for _ in 0..MAX_AGAIN {
        match send(backend, event.clone().id(&current)).await {
            Ok(done) if !done.repeated => return Ok(done.record),
            Ok(done) => match changed_since(backend, &done.record).await? {
                Some(seq) => current = format!("{id}/{seq}"),
                None => return Ok(done.record),
            },
            // The same call, but the files that it names are others now: it is decided again.
            Err(RuntimeError::IdTaken { run, .. }) => {
                let head = backend.run(run.clone()).await?.ok_or(RuntimeError::UnknownRun(run))?;
                current = format!("{id}/{}", head.seq);
            }
            Err(e) => return Err(e),
        }
    }
    Err(RuntimeError::Remote(format!(
        "the run changes faster than the call can be decided ({MAX_AGAIN} attempts); try again"
    )))
}

/// The last record that may have changed the answer to an event that was recorded before: after a
/// refusal a decision, which is what somebody else than an agent did; after consent anything that
/// was accepted.
async fn changed_since(backend: &dyn Backend, before: &Record) -> Result<Option<u64>, RuntimeError> {
    let accepted = before.verdict == Verdict::Accepted;
    let decides = |record: &&Record| {
        let changes = matches!(record.verdict, Verdict::Accepted | Verdict::Vote);
        changes && (accepted || record.by.kind() != PrincipalKind::Agent)
    };
    let (mut from, mut found) = (before.seq.saturating_add(1), None);
    loop {
        let page = backend.records(before.run.to_string(), from, PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        from = last.seq.saturating_add(1);
        found = page.iter().rev().find(decides).map(|record| record.seq).or(found);
    }
}

/// Whether an event would start an actor, or an invocation is open already: then the run needs a
/// host that stays. Found out on a copy of the run.
#[must_use]
pub fn starts_actor(view: &View, question: &Question, now: Timestamp) -> bool {
    let machine = view.charter.machine();
    if !view.working.is_empty() || !view.unattended().is_empty() {
        return true;
    }
    let (name, data) = match &question.about {
        About::Call { data, .. } => (CALL, data),
        About::Result { data, .. } => (RESULT, data),
        About::Stop => return false,
    };
    let seq = view.snapshot.seq().saturating_add(1);
    let envelope = Envelope::event(seq, name, data.clone(), question.by.clone(), now);
    let starts = |effect: &Effect| matches!(&effect.kind, EffectKind::Invoke { service, .. } if **service != *"human");
    // What the kernel does not take starts nothing.
    machine.step(&view.snapshot, &envelope).is_ok_and(|step| step.effects.iter().any(starts))
}

/// The files that no agent may change, as far as a host knows them: the journal file, and what is
/// beside it under its name.
#[must_use]
pub fn guarded(journal: &Path) -> Vec<PathBuf> {
    vec![std::path::absolute(journal).unwrap_or_else(|_| journal.to_owned())]
}
