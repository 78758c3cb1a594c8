//! The inbox: what waits for the caller in all runs, and exactly what a decision would be about.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use charter_journal::{Record, RunFilter, RunInfo, Verdict};
use charter_kernel::{
    Auth, Definition, Demands, Digest, Legal, Principal, PrincipalKind, Status, Timestamp, WithheldBy,
};
use charter_runtime::approval;
use charter_runtime::{Task, View};
use charter_scenario::timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::app::{App, takes_part};
use super::expired::{self, Expired};
use super::problem::Problem;
use crate::identity::{Caller, HOST_RUN};
use crate::marks;

/// Requests in an answer, and runs that are looked at for it.
const MAX_REQUESTS: usize = 1_000;
const MAX_RUNS: usize = 10_000;
/// Bytes of what a run is about, in an answer.
const MAX_ABOUT: usize = 1_000;
/// Records that are searched for the one that led to a request.
const SEARCHED: usize = 50;
/// The tag of states in which a person is expected to act.
const WAITING: &str = "waiting";

/// Something that waits.
#[derive(Debug, Serialize)]
pub(super) struct Request {
    /// The same as long as the same value waits in the same place.
    pub(super) id: String,
    kind: &'static str,
    run: String,
    charter: Value,
    /// The actor.
    to: String,
    /// The last record of the run.
    seq: u64,
    state: Vec<String>,
    title: Option<String>,
    about: Option<About>,
    due: Option<String>,
    since: Option<Since>,
    decisions: Vec<Decision>,
    task: Option<Task>,
    marks: Value,
    /// If it does not wait any more.
    pub(super) expired: Option<Expired>,
}

impl Request {
    pub(super) fn is_to(&self, actor: &str) -> bool {
        self.to == actor
    }
}

/// What a run is about: the first row of its page.
#[derive(Debug, Clone, Serialize)]
struct About {
    label: String,
    value: Value,
}

/// The record that led to a request.
#[derive(Debug, Serialize)]
struct Since {
    seq: u64,
    at: String,
    by: Principal,
    r#type: String,
}

/// An event that somebody with the roles of the caller may send.
#[derive(Debug, Serialize)]
struct Decision {
    r#type: String,
    data: Option<Value>,
    description: Option<String>,
    depends_on_data: bool,
    demands: Option<Demands>,
    /// Exactly what is approved.
    value: Option<Value>,
    /// Why the caller may not send it.
    withheld: Option<WithheldBy>,
}

impl Decision {
    /// Whether somebody is asked for consent: an approval, or a vote.
    fn is_approval(&self) -> bool {
        self.demands.as_ref().is_some_and(approval::is_approval)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxQuery {
    run: Option<String>,
    /// Instead of what waits: what expired since this time.
    expired_since: Option<String>,
}

/// `GET /v1/inbox`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Result<Query<InboxQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|e| Problem::request(e.body_text()))?;
    if let Some(since) = &query.expired_since {
        if query.run.is_some() {
            return Err(Problem::request("give either `run` or `expired_since`"));
        }
        let since = timestamp::parse(since).map_err(|e| Problem::request(format!("`expired_since`: {e}")))?;
        let (requests, all) = expired::since(&app, &caller, since).await?;
        return Ok(Json(json!({"requests": requests, "all": all})).into_response());
    }
    let runs = match query.run {
        Some(run) => vec![app.run(&caller, &run).await?.info],
        None => {
            let filter = RunFilter { status: Some(Status::Active), limit: MAX_RUNS, ..RunFilter::default() };
            app.backend.runs(filter).await?
        }
    };
    let mut all = runs.len() < MAX_RUNS;
    let mut requests = Vec::new();
    for info in runs {
        if requests.len() >= MAX_REQUESTS {
            all = false;
            break;
        }
        requests.extend(of_run(&app, &caller, info).await?);
    }
    all = all && requests.len() <= MAX_REQUESTS;
    // What ends first is first; what never ends comes last, the oldest first.
    requests.sort_by_cached_key(|request| {
        let since = request.since.as_ref().map(|since| since.at.clone());
        (request.due.is_none(), request.due.clone(), since)
    });
    requests.truncate(MAX_REQUESTS);
    Ok(Json(json!({"requests": requests, "all": all})).into_response())
}

/// What waits for a caller in a run.
pub(super) async fn of_run(app: &App, caller: &Caller, info: RunInfo) -> Result<Vec<Request>, Problem> {
    let charter = app.charter(info.charter).await?;
    if &*info.run == HOST_RUN || info.status != Some(Status::Active) || !takes_part(caller, &charter, Some(&info.run)) {
        return Ok(Vec::new());
    }
    let definition = charter.machine().definition();
    let by = caller.principal(&definition.id, Some(&info.run), definition.roles.keys());
    let view = app.backend.view(info.run.clone()).await?;
    // A decision in a dry fork has no effect outside: who tries one looks at its run.
    if view.dry {
        return Ok(Vec::new());
    }
    let charter = described_charter(definition, info.charter);
    let mut found = open_requests(&view, &by, app.now(), &charter);
    describe(app, caller, &view, &mut found, app.now()).await?;
    Ok(found)
}

/// What a request says of the charter of its run.
pub(super) fn described_charter(definition: &Definition, digest: Digest) -> Value {
    json!({"id": definition.id, "version": definition.version, "title": definition.title, "digest": digest})
}

/// Adds to the requests of a run what the run is about, what led to them, and their marks.
pub(super) async fn describe(
    app: &App,
    caller: &Caller,
    view: &View,
    found: &mut [Request],
    at: Timestamp,
) -> Result<(), Problem> {
    if found.is_empty() {
        return Ok(());
    }
    let about = about(view, at);
    let last = view.snapshot.seq();
    let from = last.saturating_sub(SEARCHED as u64);
    let mut records = app.backend.records(view.snapshot.run().to_owned(), from, SEARCHED.saturating_add(1)).await?;
    records.retain(|record| record.seq <= last);
    for request in found {
        let asked: Option<u64> = request.task.as_ref().and_then(|task| task.effect.rsplit('/').nth(1)?.parse().ok());
        let since = records.iter().rev().find(|record| match asked {
            Some(seq) => record.seq == seq,
            None => led_here(record, &request.to),
        });
        request.since = since.map(led);
        request.about.clone_from(&about);
        request.marks = app.inbox.of(&request.id, &caller.id, app.now());
    }
    Ok(())
}

/// What a run is about; a long value is the beginning of its text.
fn about(view: &View, now: Timestamp) -> Option<About> {
    let rows = charter_runtime::page_rows(view.charter.machine(), &view.snapshot, now);
    let (label, value) = rows.into_iter().next()?;
    let mut text = match &value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let value = match text.len() > MAX_ABOUT {
        true => {
            text.truncate(text.floor_char_boundary(MAX_ABOUT));
            format!("{text}…").into()
        }
        false => value,
    };
    Some(About { label, value })
}

/// Whether a record brought an actor into the states in which it is now, if no later one did.
fn led_here(record: &Record, actor: &str) -> bool {
    record.verdict == Verdict::Accepted && *record.to == *actor && (record.from != record.state || record.seq == 0)
}

fn led(record: &Record) -> Since {
    let (at, r#type) = (timestamp::text(record.at), record.event.r#type.to_string());
    Since { seq: record.seq, at, by: record.by.clone().into_owned(), r#type }
}

/// What waits in a run: tasks, and the decisions of each actor.
pub(super) fn open_requests(view: &View, by: &Principal, now: Timestamp, charter: &Value) -> Vec<Request> {
    let run = view.snapshot.run();
    let request = |id: String, kind: &'static str, to: &str| Request {
        id,
        kind,
        run: run.to_owned(),
        charter: charter.clone(),
        to: to.to_owned(),
        seq: view.snapshot.seq(),
        state: states(view, to),
        title: None,
        about: None,
        due: due(view, to),
        since: None,
        decisions: Vec::new(),
        task: None,
        marks: marks::none(),
        expired: None,
    };
    let mut found = Vec::new();
    for task in view.tasks.iter().filter(|task| task.is_for(by)) {
        let mut request = request(task.effect.clone(), "task", &task.actor);
        (request.title, request.task) = (task.title.clone(), Some(task.clone()));
        found.push(request);
    }
    for (actor, decisions) in decisions(view, by, now) {
        let main = decisions.iter().find(|decision| decision.is_approval());
        let may_act = decisions.iter().any(|decision| decision.withheld.is_none());
        let (kind, place) = match main.and_then(|decision| decision.demands.as_ref()) {
            Some(demands) => ("approval", approval::place(demands)),
            None if may_act && view.is_tagged(&actor, WAITING) => ("waiting", states(view, &actor).join("+")),
            None => continue,
        };
        let mut request = request(format!("{run}/{actor}/{place}"), kind, &actor);
        request.decisions = decisions;
        found.push(request);
    }
    found
}

fn states(view: &View, actor: &str) -> Vec<String> {
    view.snapshot.actor(actor).iter().flat_map(|a| a.state().map(str::to_owned)).collect()
}

/// When the next timer of an actor fires.
fn due(view: &View, actor: &str) -> Option<String> {
    let own = view.snapshot.timers().iter().filter(|timer| *timer.actor == *actor);
    own.map(|timer| timer.due).min().map(timestamp::text)
}

/// The events that the caller may send to each actor, and those that somebody else with the same
/// roles may send, with the reason why the caller may not.
fn decisions(view: &View, by: &Principal, now: Timestamp) -> BTreeMap<String, Vec<Decision>> {
    let machine = view.charter.machine();
    let snapshot = &view.snapshot;
    let somebody = approval::somebody(by.roles.clone());
    let mine = machine.legal(snapshot, by, now);
    let theirs = machine.legal(snapshot, &somebody, now);
    let is_in = |list: &[Legal], event: &Legal| list.iter().any(|e| e.to == event.to && e.r#type == event.r#type);
    let mut found: BTreeMap<String, Vec<Decision>> = BTreeMap::new();
    let withheld = theirs.iter().filter(|event| !is_in(&mine, event)).map(|event| (event, false));
    for (event, is_mine) in mine.iter().map(|event| (event, true)).chain(withheld) {
        let who = if is_mine { by } else { &somebody };
        let demands = machine.demands(snapshot, &event.to, &event.r#type, who, now);
        let why = match (is_mine, &demands) {
            (true, _) => None,
            (false, Some(demands)) => match why_not(demands, by) {
                Some(why) => Some(why),
                None => continue,
            },
            (false, None) => continue,
        };
        let value = demands.as_ref().and_then(|demands| approval::value(machine, snapshot, &event.to, demands, now));
        let decision = Decision {
            r#type: event.r#type.clone(),
            data: event.data.clone(),
            description: event.description.clone(),
            depends_on_data: event.depends_on_data,
            demands,
            value,
            withheld: why,
        };
        found.entry(event.to.clone()).or_default().push(decision);
    }
    found
}

/// Why a principal may not make a decision that others with its roles may make.
fn why_not(demands: &Demands, by: &Principal) -> Option<WithheldBy> {
    let has_voted = demands.quorum.iter().flat_map(|quorum| quorum.votes.iter().flatten()).any(|id| *id == by.id);
    if demands.not_by.contains(&by.id) {
        Some(WithheldBy::NotBy)
    } else if demands.persons_only && by.kind() != PrincipalKind::Person {
        Some(WithheldBy::PersonsOnly)
    } else if has_voted {
        Some(WithheldBy::Voted)
    } else if by.auth == Some(Auth::None) {
        Some(WithheldBy::AuthenticatedOnly)
    } else {
        None
    }
}
