//! Generates the moves that a run can make next: events from principals, answers from actors,
//! ticks.

mod apply;
mod senders;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::{Digest, Principal, PrincipalKind, Query, Schema, Snapshot};
use serde_json::{Value as Json, json};

use super::cone::{ConeOfInfluence, Probes, Source};
use super::data::{Samples, samples, set};
use crate::Options;
use crate::effort::units;
use crate::model::{Chart, Model, matches, named_event};
pub(crate) use apply::{Move, MoveKind, START, StepRefused, start};
use senders::Senders;

/// What a question costs besides the fuel of its evaluation.
pub(crate) const FUEL_PER_QUESTION: u64 = 10;
/// The field in which an approval names what it approves.
const DIGEST: &str = "digest";

/// The moves that an exploration tries.
pub(crate) struct Moves<'m, 'd> {
    model: &'m Model<'d>,
    cone: &'m ConeOfInfluence,
    events: Vec<EventMoves>,
    outputs: BTreeMap<String, Vec<Arc<Json>>>,
    errors: Vec<Arc<Json>>,
    pub(crate) inputs: Vec<Json>,
    /// Who starts the run; nobody in particular if it does not matter.
    starters: Vec<Option<Arc<Principal>>>,
    /// Who answers the tasks of actors of kind `human`, if it matters.
    answerers: BTreeMap<String, Vec<Arc<Principal>>>,
    /// What was not tried, and why.
    pub(crate) cut: Vec<String>,
    /// Schemas for which no data could be generated: pointer and name.
    pub(crate) missing: Vec<(String, String)>,
    /// The fuel that finding moves has used, since it was taken last.
    spent: Cell<u64>,
}

struct EventMoves {
    name: Arc<str>,
    data: Vec<Arc<Json>>,
    senders: Senders,
    /// The `approves` expressions of the transitions for it.
    approves: Vec<Query>,
    /// Paths that are compared with expressions over the state of the run.
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
            starters: vec![None],
            answerers: BTreeMap::new(),
            cut: Vec::new(),
            missing: Vec::new(),
            spent: Cell::new(0),
        };
        for (name, decl) in &model.def.events {
            let at = format!("/events/{}/data", crate::model::escape(name));
            let data = moves.make(&Source::Event(name.clone()), decl.data.as_ref(), options, &at, &format!("`{name}`"));
            moves.add_event(name, data);
        }
        if !model.def.strict {
            let of_transitions = model.charts.iter().flat_map(|c| &c.transitions).flat_map(|t| descriptors(t));
            let mut named: Vec<String> = of_transitions.filter_map(|d| named_event(&d).map(str::to_owned)).collect();
            named.sort();
            named.dedup();
            for name in named.into_iter().filter(|name| !model.def.events.contains_key(name)) {
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
            moves.outputs.insert(name.clone(), shared(values));
        }
        if model.reads_starter_or_answerer() {
            let somebody = |senders: Senders| senders.fixed.into_iter().map(Arc::new);
            let starters = Senders::new(model, cone, ("the start", &[]), &[], &mut moves.cut);
            moves.starters = somebody(starters).map(Some).collect();
            for (name, actor) in model.def.actors.iter().filter(|(_, actor)| actor.kind == "human") {
                let roles: Vec<String> = actor.config.get("by").map(role_names).unwrap_or_default();
                let senders = Senders::new(model, cone, (name, &roles), &[], &mut moves.cut);
                let agents = actor.config.get("agents") == Some(&Json::Bool(true));
                let may = |by: &Arc<Principal>| agents || by.kind() == PrincipalKind::Person;
                moves.answerers.insert(name.clone(), somebody(senders).filter(may).collect());
            }
        }
        moves.errors = shared(moves.make_errors(options));
        moves.inputs = moves.make(&Source::Input, model.def.root.input.as_ref(), options, "/root/input", "the input");
        moves
    }

    /// Inputs with as little as their schema allows.
    pub(crate) fn plain_inputs(&self, options: &Options) -> Vec<Json> {
        let schema = self.model.def.root.input.as_ref();
        let plain = samples(schema, &Probes::new(), options.max_data).values;
        let nothing = json!({});
        let is_allowed = schema.and_then(|s| Schema::compile(s).ok()).is_none_or(|s| s.accepts(&nothing));
        let all = std::iter::once(nothing).filter(|_| is_allowed).chain(plain);
        all.filter(|input| !self.inputs.contains(input)).collect()
    }

    /// The starts with these inputs, by each who may matter.
    pub(crate) fn starts<'i>(
        &'i self,
        inputs: &'i [Json],
    ) -> impl Iterator<Item = (&'i Json, &'i Option<Arc<Principal>>)> + 'i {
        inputs.iter().flat_map(|input| self.starters.iter().map(move |by| (input, by)))
    }

    fn make(&mut self, source: &Source, schema: Option<&Json>, options: &Options, at: &str, what: &str) -> Vec<Json> {
        let empty = Probes::new();
        let probes = self.cone.probes.get(source).unwrap_or(&empty);
        let Samples { mut values, possible } = samples(schema, probes, options.max_data);
        // What is sent or started without data; null is tried only if it is compared.
        if let (Source::Event(_) | Source::Input, None) = (source, schema) {
            let is_compared = probes.contains_key(&Vec::new());
            let has_empty = values.contains(&json!({}));
            match values.iter().find(|value| value.is_null()) {
                Some(_) if !is_compared => {
                    values.iter_mut().filter(|value| value.is_null()).for_each(|v| *v = json!({}))
                }
                Some(_) if !has_empty => values.insert(0, json!({})),
                _ => {}
            }
        }
        if values.is_empty() {
            self.missing.push((at.to_string(), what.to_string()));
        }
        if possible > options.max_data.saturating_mul(4) {
            self.cut.push(format!("{what}: only {} of {possible} combinations of data were tried", values.len()));
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
        let of_event = model.def.events.get(name).map(|e| e.by.as_slice()).unwrap_or_default();
        let senders = Senders::new(model, self.cone, (name, of_event), &takers, &mut self.cut);
        let data = if approves.is_empty() { data } else { without_digests(data) };
        self.events.push(EventMoves { name: name.into(), data: shared(data), senders, approves, like });
    }

    /// The most principals and the most data that are tried for one event.
    pub(crate) fn tried(&self) -> (usize, usize) {
        let most = |count: &dyn Fn(&EventMoves) -> usize| self.events.iter().map(count).max().unwrap_or(0);
        (most(&|e| e.senders.count()), most(&|e| e.data.len()))
    }

    /// Appends the moves that are possible for a snapshot. `used`: who has sent an event before.
    pub(crate) fn of(&self, snapshot: &Snapshot, now: i64, used: &[String], out: &mut Vec<Move>) {
        let model = self.model;
        for (actor, invocation) in snapshot.invocations().filter(|(_, i)| !i.is_machine()) {
            let (to, id): (Arc<str>, Arc<str>) = (actor.id().into(), invocation.id.clone());
            // Only the actor itself, or each of these; a task that is over fails without a person.
            let persons = self.answerers.get(invocation.src.as_ref());
            let persons: Vec<_> = persons.into_iter().flatten().cloned().map(Some).collect();
            let nobody = [None];
            let answerers = if persons.is_empty() { &nobody[..] } else { &persons[..] };
            for output in self.outputs.get(invocation.src.as_ref()).into_iter().flatten() {
                out.extend(answerers.iter().cloned().map(|by| {
                    let (to, invocation, output) = (to.clone(), id.clone(), output.clone());
                    Move { at: now, kind: MoveKind::Done { to, invocation, output, by } }
                }));
            }
            for error in &self.errors {
                out.extend(nobody.iter().chain(&persons).cloned().map(|by| {
                    let (to, invocation, error) = (to.clone(), id.clone(), error.clone());
                    Move { at: now, kind: MoveKind::Failed { to, invocation, error, by } }
                }));
            }
        }
        if let Some(timer) = snapshot.next_timer() {
            out.push(Move { at: timer.due.0.max(now), kind: MoveKind::Tick });
        }
        // An event may also arrive after a permit has expired.
        let next = snapshot.next_timer().map_or(i64::MAX, |t| t.due.0);
        let expiry = snapshot
            .ledger()
            .into_iter()
            .flat_map(|l| l.entries())
            .filter(|(_, _, e)| e.status == charter_kernel::EntryStatus::Granted);
        let expiry = expiry.filter_map(|(_, _, e)| Some(e.expires?.0)).filter(|t| *t > now && *t < next).min();
        for event in &self.events {
            for actor in snapshot.actors().filter(|a| a.status() == charter_kernel::Status::Active) {
                let (chart, configuration) = actor.configuration();
                let Some(chart) = model.charts.get(chart) else {
                    continue;
                };
                self.spend(units(configuration.len()).checked_div(4).unwrap_or(0));
                if !configuration.iter().any(|s| takes(chart, *s, &event.name)) {
                    continue;
                }
                let to: Arc<str> = actor.id().into();
                let senders = event.senders.of(used, |query| self.ask(snapshot, actor.id(), query, now));
                self.spend(units(senders.len()).saturating_pow(2) / 16);
                let senders: Vec<Arc<Principal>> = senders.iter().cloned().map(Arc::new).collect();
                for data in self.data_of(event, snapshot, actor.id(), now) {
                    for by in &senders {
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

    /// Returns the data to try for one event to an actor.
    pub(crate) fn data_for(&self, name: &str, snapshot: &Snapshot, actor: &str, now: i64) -> Vec<Arc<Json>> {
        let event = self.events.iter().find(|event| *event.name == *name);
        event.map(|event| self.data_of(event, snapshot, actor, now)).unwrap_or_default()
    }

    /// The fuel that finding moves has used since it was asked last.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.take()
    }

    fn spend(&self, fuel: u64) {
        self.spent.set(self.spent.get().saturating_add(fuel));
    }

    fn ask(&self, snapshot: &Snapshot, actor: &str, query: &Query, now: i64) -> Option<Json> {
        let (answer, fuel) = self.model.machine.ask_metered(snapshot, actor, query, now);
        self.spend(fuel.saturating_add(FUEL_PER_QUESTION));
        answer.ok()
    }

    /// Returns the data to try for an event: the generated samples, adapted to values in the run.
    fn data_of(&self, event: &EventMoves, snapshot: &Snapshot, actor: &str, now: i64) -> Vec<Arc<Json>> {
        let mut out = event.data.clone();
        let ask = |query: &Query| self.ask(snapshot, actor, query, now);
        if !event.like.is_empty() {
            let mut alike = Vec::new();
            for data in out.iter().take(8) {
                let mut data = data.as_ref().clone();
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
                let is_known = |known: &Arc<Json>| known.as_ref() == &data;
                if changed && !out.iter().any(is_known) && !alike.iter().any(is_known) {
                    alike.push(Arc::new(data));
                }
            }
            out.extend(alike);
        }
        if event.approves.is_empty() {
            return out;
        }
        let mut digests: Vec<String> = Vec::new();
        for value in event.approves.iter().filter_map(ask) {
            self.spend(charter_expr::json::memory(&value) / 64);
            let digest = Digest::of_json(&value).hex();
            if !digests.contains(&digest) {
                digests.push(digest);
            }
        }
        let named = |digest: &String| {
            let with = |data: &Arc<Json>| {
                let mut data = data.as_ref().clone();
                set(&mut data, &[DIGEST.to_string()], Some(json!(digest)));
                Arc::new(data)
            };
            out.iter().map(with).collect::<Vec<_>>()
        };
        digests.iter().flat_map(named).collect()
    }
}

/// The roles that `by` of an actor names.
fn role_names(by: &Json) -> Vec<String> {
    match by {
        Json::String(role) => vec![role.clone()],
        Json::Array(roles) => roles.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn shared(values: Vec<Json>) -> Vec<Arc<Json>> {
    values.into_iter().map(Arc::new).collect()
}

/// The data of an approval, each once: what it names as its digest is replaced.
fn without_digests(data: Vec<Json>) -> Vec<Json> {
    let mut out: Vec<Json> = Vec::new();
    for mut data in data {
        set(&mut data, &[DIGEST.to_string()], Some(Json::Null));
        if !out.contains(&data) {
            out.push(data);
        }
    }
    out
}

fn descriptors(t: &crate::model::Transition<'_>) -> Vec<String> {
    match t.trigger {
        crate::model::Trigger::On(d) => d.to_vec(),
        _ => Vec::new(),
    }
}

pub(crate) fn takes(chart: &Chart<'_>, state: u32, event: &str) -> bool {
    chart.state(state).transitions.iter().any(|t| match chart.transition(*t).trigger {
        crate::model::Trigger::On(d) => d.iter().any(|d| matches(d, event)),
        _ => false,
    })
}
