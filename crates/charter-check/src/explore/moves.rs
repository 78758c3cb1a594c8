//! MoveKind can happen next to a run: events by principals, answers of the host's work, time.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::{Digest, Envelope, Event, Machine, Principal, Query, Refusal, Snapshot, Step, Verdict};
use serde_json::{Map, Value as Json, json};

use super::cone::{ConeOfInfluence, Probes, Source};
use super::data::{Samples, samples, set};
use crate::Options;
use crate::model::{Chart, Model, matches};

/// Midnight of the first day of 2026, in milliseconds since 1970: explorations have to begin some time.
pub(crate) const START: i64 = 1_767_225_600_000;
/// Timers that may fire at one moment.
const MAX_FIRINGS: usize = 1_000;

/// Something that happens, and when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Move {
    pub(crate) at: i64,
    pub(crate) kind: MoveKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MoveKind {
    Start { input: Json },
    Send { to: Arc<str>, kind: Arc<str>, data: Json, by: Principal },
    Done { to: Arc<str>, invocation: Arc<str>, output: Json },
    Failed { to: Arc<str>, invocation: Arc<str>, error: Json },
    Tick,
}

impl Move {
    /// As `charter step` accepts it; the start is no line but the input.
    pub(crate) fn line(&self) -> Json {
        let mut line = Map::new();
        let to_actor = |line: &mut Map<String, Json>, to: &Arc<str>| {
            if to.as_ref() != "root" {
                line.insert("to".into(), json!(to.as_ref()));
            }
        };
        match &self.kind {
            MoveKind::Start { input } => drop(line.insert("input".into(), input.clone())),
            MoveKind::Send { to, kind, data, by } => {
                line.insert("type".into(), json!(kind.as_ref()));
                if !data.is_null() {
                    line.insert("data".into(), data.clone());
                }
                to_actor(&mut line, to);
                line.insert("by".into(), json!({"id": by.id, "roles": by.roles}));
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Done { to, invocation, output } => {
                line.insert("done".into(), json!(invocation.as_ref()));
                line.insert("output".into(), output.clone());
                to_actor(&mut line, to);
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Failed { to, invocation, error } => {
                line.insert("failed".into(), json!(invocation.as_ref()));
                line.insert("error".into(), error.clone());
                to_actor(&mut line, to);
                line.insert("at".into(), json!(time(self.at)));
            }
            MoveKind::Tick => drop(line.insert("tick".into(), json!(time(self.at)))),
        }
        Json::Object(line)
    }

    /// MoveKind it is called in messages.
    pub(crate) fn label(&self) -> String {
        match &self.kind {
            MoveKind::Start { .. } => "the start".into(),
            MoveKind::Send { kind, .. } => format!("`{kind}`"),
            MoveKind::Done { invocation, .. } => format!("the answer of `{invocation}`"),
            MoveKind::Failed { invocation, .. } => format!("the failure of `{invocation}`"),
            MoveKind::Tick => "a timer".into(),
        }
    }

    /// The type of an event that is sent.
    pub(crate) fn event_type(&self) -> Option<&str> {
        match &self.kind {
            MoveKind::Send { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Whether the sender can be told no without harm; else it is the platform that gets nowhere.
    pub(crate) fn is_from_outside(&self) -> bool {
        matches!(self.kind, MoveKind::Send { .. })
    }

    /// Lets it happen.
    pub(crate) fn apply(&self, machine: &Machine, snapshot: &Snapshot) -> Result<Successor, StepRefused> {
        let seq = snapshot.seq().saturating_add(1);
        let step = |snapshot: &Snapshot, envelope: Envelope| match machine.step(snapshot, &envelope) {
            Ok(step) => Ok(Successor::of(step)),
            Err(refusal) => Err(StepRefused { refusal, envelope: Box::new(envelope) }),
        };
        let host =
            |to: &Arc<str>, event: Event| Envelope { to: Some(to.to_string()), ..Envelope::host(seq, event, self.at) };
        match &self.kind {
            MoveKind::Start { input } => start(machine, input, self.at),
            MoveKind::Send { to, kind, data, by } => {
                let mut envelope = Envelope::event(seq, kind, data.clone(), by.clone(), self.at);
                envelope.to = Some(to.to_string());
                step(snapshot, envelope)
            }
            MoveKind::Done { to, invocation, output } => step(
                snapshot,
                host(to, Event::Done { invocation: invocation.to_string(), effect: None, output: output.clone() }),
            ),
            MoveKind::Failed { to, invocation, error } => step(
                snapshot,
                host(to, Event::Failed { invocation: invocation.to_string(), effect: None, error: error.clone() }),
            ),
            MoveKind::Tick => {
                // All that is due by now, as a host does it.
                let mut whole = Successor { verdict: Verdict::Ignored, snapshot: snapshot.clone(), taken: Vec::new() };
                for _ in 0..MAX_FIRINGS {
                    let now = &whole.snapshot;
                    let Some(timer) = now.next_timer().filter(|t| t.due <= self.at) else {
                        break;
                    };
                    let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
                    let next = step(now, Envelope::host(now.seq().saturating_add(1), event, self.at))?;
                    whole.taken.extend(next.taken);
                    whole.snapshot = next.snapshot;
                    if next.verdict != Verdict::Ignored {
                        whole.verdict = next.verdict;
                    }
                }
                Ok(whole)
            }
        }
    }
}

/// Starts a run.
pub(crate) fn start(machine: &Machine, input: &Json, at: i64) -> Result<Successor, StepRefused> {
    let envelope = Envelope::host(0, Event::Start { input: input.clone() }, at);
    match machine.start("explored", &envelope) {
        Ok(step) => Ok(Successor::of(step)),
        Err(refusal) => Err(StepRefused { refusal, envelope: Box::new(envelope) }),
    }
}

/// MoveKind a move came to.
pub(crate) struct Successor {
    pub(crate) verdict: Verdict,
    pub(crate) snapshot: Snapshot,
    /// Chart and transition, by number.
    pub(crate) taken: Vec<(usize, u32)>,
}

impl Successor {
    fn of(step: Step) -> Successor {
        Successor { verdict: step.verdict, taken: step.taken().collect(), snapshot: step.snapshot }
    }
}

/// A move that the kernel refused.
pub(crate) struct StepRefused {
    pub(crate) refusal: Refusal,
    pub(crate) envelope: Box<Envelope>,
}

/// RFC 3339.
pub(crate) fn time(ms: i64) -> String {
    let value = charter_expr::Value::timestamp_millis(ms).to_json();
    value.ok().and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default()
}

/// All moves that an exploration tries.
pub(crate) struct Moves<'m, 'd> {
    model: &'m Model<'d>,
    cone: &'m ConeOfInfluence,
    events: Vec<EventMoves>,
    outputs: BTreeMap<String, Vec<Json>>,
    errors: Vec<Json>,
    pub(crate) inputs: Vec<Json>,
    /// Why not everything is tried.
    pub(crate) cut: Vec<String>,
    /// Schemas that no data was found for: pointer, what.
    pub(crate) missing: Vec<(String, String)>,
}

struct EventMoves {
    name: Arc<str>,
    data: Vec<Json>,
    principals: Vec<Principal>,
    /// `approves` of the transitions that take it.
    approves: Vec<Query>,
    /// Paths that are compared with parts of the run.
    like: Vec<(Vec<String>, Query)>,
}

impl<'m, 'd> Moves<'m, 'd> {
    pub(crate) fn new(model: &'m Model<'d>, cone: &'m ConeOfInfluence, options: &Options) -> Moves<'m, 'd> {
        let mut moves = Moves {
            model,
            cone,
            events: Vec::new(),
            outputs: BTreeMap::new(),
            errors: Vec::new(),
            inputs: Vec::new(),
            cut: Vec::new(),
            missing: Vec::new(),
        };
        for (name, decl) in &model.def.events {
            let at = format!("/events/{}/data", crate::model::escape(name));
            let data = moves.make(&Source::Event(name.clone()), decl.data.as_ref(), options, &at, &format!("`{name}`"));
            moves.add_event(name, data);
        }
        if !model.def.strict {
            let mut named: Vec<String> = model
                .charts
                .iter()
                .flat_map(|c| &c.transitions)
                .flat_map(|t| descriptors(t))
                .filter(|d| !d.contains('*'))
                .collect();
            named.sort();
            named.dedup();
            for name in named.into_iter().filter(|n| !crate::model::is_platform(n) && !model.def.events.contains_key(n))
            {
                let data = moves.make(&Source::Event(name.clone()), None, options, "/events", &format!("`{name}`"));
                moves.add_event(&name, data);
            }
        }
        for (name, actor) in &model.def.actors {
            let at = format!("/actors/{}/output", crate::model::escape(name));
            let values = moves.make(
                &Source::Output(name.clone()),
                actor.output.as_ref(),
                options,
                &at,
                &format!("the output of `{name}`"),
            );
            moves.outputs.insert(name.clone(), values);
        }
        moves.errors = moves.make_errors(options);
        moves.inputs = moves.make(&Source::Input, model.def.root.input.as_ref(), options, "/root/input", "the input");
        moves
    }

    fn make(&mut self, source: &Source, schema: Option<&Json>, options: &Options, at: &str, what: &str) -> Vec<Json> {
        let empty = Probes::new();
        let probes = self.cone.probes.get(source).unwrap_or(&empty);
        let Samples { values, possible } = samples(schema, probes, options.max_data);
        if values.is_empty() {
            self.missing.push((at.to_string(), what.to_string()));
        }
        if possible > options.max_data.saturating_mul(4) {
            self.cut.push(format!("{what}: {} of {possible} combinations of data were tried", values.len()));
        }
        values
    }

    fn make_errors(&mut self, options: &Options) -> Vec<Json> {
        let empty = Probes::new();
        let probes = self.cone.probes.get(&Source::Error).unwrap_or(&empty);
        let schema = json!({"type": "object", "required": ["code", "message"], "properties": {
            "code": {"type": "string", "default": "failed"}, "message": {"type": "string", "default": "it failed"}, "retryable": {"type": "boolean"}}});
        let schema = if probes.keys().any(|p| p.first().is_some_and(|f| f == "code")) {
            let mut schema = schema;
            set(&mut schema, &["properties".into(), "code".into()], Some(json!({"type": "string"})));
            schema
        } else {
            schema
        };
        samples(Some(&schema), probes, options.max_data).values
    }

    fn add_event(&mut self, name: &str, data: Vec<Json>) {
        let model = self.model;
        let mut approves = Vec::new();
        let takers: Vec<_> = model
            .charts
            .iter()
            .flat_map(|c| &c.transitions)
            .filter(|t| descriptors(t).iter().any(|d| matches(d, name)))
            .collect();
        for t in &takers {
            approves.extend(t.def.approves.iter().filter_map(|cel| model.machine.query(cel).ok()));
        }
        let mut like = Vec::new();
        for (path, probe) in self.cone.probes.get(&Source::Event(name.to_string())).into_iter().flatten() {
            like.extend(probe.like.iter().filter_map(|cel| model.machine.query(cel).ok()).map(|q| (path.clone(), q)));
        }
        let principals = principals(model, self.cone, name, &takers);
        self.events.push(EventMoves { name: name.into(), data, principals, approves, like });
    }

    /// MoveKind can happen to this snapshot.
    pub(crate) fn of(&self, snapshot: &Snapshot, now: i64, out: &mut Vec<Move>) {
        let model = self.model;
        for (actor, invocation) in snapshot.invocations().filter(|(_, i)| !i.is_machine()) {
            let (to, id): (Arc<str>, Arc<str>) = (actor.id().into(), invocation.id.clone());
            for output in self.outputs.get(invocation.src.as_ref()).into_iter().flatten() {
                out.push(Move {
                    at: now,
                    kind: MoveKind::Done { to: to.clone(), invocation: id.clone(), output: output.clone() },
                });
            }
            for error in &self.errors {
                out.push(Move {
                    at: now,
                    kind: MoveKind::Failed { to: to.clone(), invocation: id.clone(), error: error.clone() },
                });
            }
        }
        if let Some(timer) = snapshot.next_timer() {
            out.push(Move { at: timer.due.max(now), kind: MoveKind::Tick });
        }
        // A permit may have expired by the time of an event.
        let next = snapshot.next_timer().map_or(i64::MAX, |t| t.due);
        let expiry = snapshot
            .ledger()
            .into_iter()
            .flat_map(|l| l.entries())
            .filter(|(_, _, e)| e.status == charter_kernel::EntryStatus::Granted);
        let expiry = expiry.filter_map(|(_, _, e)| e.expires).filter(|t| *t > now && *t < next).min();
        for event in &self.events {
            for actor in snapshot.actors().filter(|a| a.status() == charter_kernel::Status::Active) {
                let (chart, configuration) = actor.configuration();
                let Some(chart) = model.charts.get(chart) else {
                    continue;
                };
                if !configuration.iter().any(|s| takes(chart, *s, &event.name)) {
                    continue;
                }
                let to: Arc<str> = actor.id().into();
                for data in self.data_of(event, snapshot, actor.id(), now) {
                    for by in &event.principals {
                        for at in std::iter::once(now).chain(expiry) {
                            out.push(Move {
                                at,
                                kind: MoveKind::Send {
                                    to: to.clone(),
                                    kind: event.name.clone(),
                                    data: data.clone(),
                                    by: by.clone(),
                                },
                            });
                        }
                    }
                }
            }
        }
    }

    /// The data of an event at this moment: what was made up, fitted to what the run holds.
    fn data_of(&self, event: &EventMoves, snapshot: &Snapshot, actor: &str, now: i64) -> Vec<Json> {
        let mut out = event.data.clone();
        let ask = |query: &Query| self.model.machine.ask(snapshot, actor, query, now).ok();
        if !event.like.is_empty() {
            let mut alike = Vec::new();
            for data in out.iter().take(8) {
                let mut data = data.clone();
                let mut changed = false;
                for (path, query) in &event.like {
                    let found = match ask(query) {
                        Some(Json::Array(items)) => items.into_iter().next(),
                        Some(Json::Object(map)) => map.into_iter().next().map(|(key, _)| Json::String(key)),
                        other => other,
                    };
                    if let Some(value) = found.filter(|v| !v.is_null()) {
                        set(&mut data, path, Some(value));
                        changed = true;
                    }
                }
                if changed && !out.contains(&data) && !alike.contains(&data) {
                    alike.push(data);
                }
            }
            out.extend(alike);
        }
        if event.approves.is_empty() {
            return out;
        }
        let mut approving = Vec::new();
        for query in &event.approves {
            let Some(value) = ask(query) else { continue };
            for data in &out {
                let mut data = data.clone();
                set(&mut data, &["digest".to_string()], Some(json!(Digest::of_json(&value).hex())));
                if !approving.contains(&data) {
                    approving.push(data);
                }
            }
        }
        approving
    }
}

fn descriptors(t: &crate::model::Transition<'_>) -> Vec<String> {
    match t.trigger {
        crate::model::Trigger::On(d) => d.to_vec(),
        _ => Vec::new(),
    }
}

fn takes(chart: &Chart<'_>, state: u32, event: &str) -> bool {
    chart.state(state).transitions.iter().any(|t| match chart.transition(*t).trigger {
        crate::model::Trigger::On(d) => d.iter().any(|d| matches(d, event)),
        _ => false,
    })
}

/// The senders that are told apart: each role that counts; two people (or as many as a quorum needs) where it matters who they are.
fn principals(
    model: &Model<'_>,
    cone: &ConeOfInfluence,
    name: &str,
    takers: &[&crate::model::Transition<'_>],
) -> Vec<Principal> {
    let of_event = model.def.events.get(name).map(|e| e.by.clone()).unwrap_or_default();
    let mut sets: Vec<Vec<String>> = Vec::new();
    let mut add = |roles: Vec<String>| {
        if !roles.iter().any(|r| r == "system") && !sets.contains(&roles) {
            sets.push(roles);
        }
    };
    for role in &of_event {
        add(vec![role.clone()]);
    }
    for t in takers {
        for role in t.def.by.iter().chain(t.def.quorum.iter().filter_map(|q| q.of.as_ref())) {
            if of_event.is_empty() || of_event.contains(role) {
                add(vec![role.clone()]);
            } else {
                of_event.iter().for_each(|e| add(vec![e.clone(), role.clone()]));
            }
        }
    }
    if of_event.is_empty() {
        if cone.sender {
            model.def.roles.keys().for_each(|r| add(vec![r.clone()]));
        }
        if takers.iter().any(|t| t.def.by.is_empty()) && sets.is_empty() {
            sets.push(Vec::new());
        }
    }
    let quorum = takers.iter().filter_map(|t| t.def.quorum.as_ref()).map(|q| q.count).max().unwrap_or(1);
    let people = ["ana", "ben", "cleo", "dan", "eva", "fay"];
    let wanted = if cone.sender { quorum.max(2) } else { quorum };
    let count = usize::try_from(wanted).unwrap_or(usize::MAX).clamp(1, people.len());
    people
        .iter()
        .take(count)
        .flat_map(|id| sets.iter().map(|roles| Principal { id: (*id).to_string(), roles: roles.clone() }))
        .collect()
}
