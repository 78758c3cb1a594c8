//! Which events a principal may send now, and whether anything can still happen to a run.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::event::Ev;
use crate::machine::{Machine, RoleSet, Transition};
use crate::observer::{Observer, Unmet};
use crate::principal::Principal;
use crate::refusal::Code;
use crate::scope::EvalContext;
use crate::selection::{Evaluation, active_candidates, evaluate};
use crate::snapshot::{Actor, Snapshot, Status};
use crate::time::Timestamp;

/// Evaluates candidates without the event's data: checks that read the data are skipped.
pub(crate) struct WithoutData;

impl<'a> Observer<'a> for WithoutData {
    type Leaf = ();
    const HAS_DATA: bool = false;
    fn leaf(_: &'a charter_expr::Program) {}
    fn named(_: &'a str, (): ()) {}
    fn unmet(&mut self, _: &EvalContext<'a>, _: &'a Transition, _: Unmet<'a, ()>) {}
}

/// An event that may be sent now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Legal {
    /// The actor that can take it.
    pub to: String,
    /// Event type.
    pub r#type: String,
    /// JSON Schema of its data, if declared.
    pub data: Option<Json>,
    /// Its description, if declared.
    pub description: Option<String>,
    /// Whether it can still be refused because of its data.
    pub depends_on_data: bool,
}

impl Machine {
    /// Returns the events that `principal` may send now, to any actor of the run, in the order of
    /// their declaration.
    ///
    /// Authority, guards, requirements and interlocks are taken into account as far as they do not
    /// depend on the event's data; [`Legal::depends_on_data`] tells whether the data can still
    /// decide.
    #[must_use]
    pub fn legal(&self, snapshot: &Snapshot, principal: &Principal, at: impl Into<Timestamp>) -> Vec<Legal> {
        self.legal_within(snapshot, principal, at.into(), &Budget::new(&self.definition.limits))
    }

    /// Like [`Machine::legal`]; events that the budget is not enough for are left out.
    pub(crate) fn legal_within(
        &self,
        snapshot: &Snapshot,
        principal: &Principal,
        at: Timestamp,
        budget: &Budget,
    ) -> Vec<Legal> {
        if snapshot.charter() != self.digest || snapshot.status.is_finished() {
            return Vec::new();
        }
        let mut out = Vec::new();
        let mut envelope = Envelope::event(snapshot.seq.saturating_add(1), "", Json::Null, principal.clone(), at);
        let held = self.held(&envelope);
        let declared: Vec<u32> =
            self.events.list.iter().zip(0u32..).filter(|(i, _)| i.declared).map(|(_, id)| id).collect();
        // A lenient machine also accepts events that are not declared, if a state names them.
        let named = self
            .events
            .list
            .iter()
            .zip(0u32..)
            .filter(|(i, _)| !self.definition.strict && !i.declared && !crate::compile::is_platform(&i.name));
        let all: Vec<u32> = declared.into_iter().chain(named.map(|(_, id)| id)).collect();
        let expired = snapshot.with_expired_permits(at);
        for id in all {
            let Some(info) = self.events.info(id).filter(|_| !budget.is_over()) else {
                continue;
            };
            if !info.by.admits(held) || (snapshot.status == Status::Paused && !info.while_paused) {
                continue;
            }
            let decl = self.definition.events.get(info.name.as_ref());
            let schema = decl.and_then(|d| d.data.as_ref());
            if schema == Some(&Json::Bool(false)) {
                continue;
            }
            for actor in expired.actors().filter(|a| a.status == Status::Active) {
                let Some(depends) = self.possible(&expired, actor, id, &envelope, held, budget) else {
                    continue;
                };
                let to = actor.identity().id.to_string();
                // A principal who has voted already cannot send the event again, and what has no
                // value cannot be approved.
                if depends && self.demands(&expired, &to, &info.name, &envelope.by, at).is_none() {
                    continue;
                }
                let empty = Json::Object(serde_json::Map::new());
                let fits_empty = info.schema.as_ref().is_none_or(|s| s.accepts(&empty));
                let depends = depends || info.unique.is_some();
                if !depends {
                    // No check reads the data, so a trial step with minimal data also finds
                    // interlocks and errors of actions.
                    envelope.to = Some(to.clone());
                    let data = if fits_empty { empty } else { sample(schema, 0) };
                    envelope.event = Event::External { r#type: info.name.to_string(), data };
                    let trial = self.step_within(snapshot, &envelope, budget).map_err(|r| r.code);
                    if budget.is_over() {
                        return out;
                    }
                    match trial {
                        Ok(_) => {}
                        Err(Code::Schema) => {}
                        Err(Code::Execution | Code::Runaway) if !fits_empty => {}
                        Err(_) => continue,
                    }
                }
                out.push(Legal {
                    to,
                    r#type: info.name.to_string(),
                    data: schema.cloned(),
                    description: decl.and_then(|d| d.description.clone()),
                    depends_on_data: depends || !fits_empty,
                });
            }
        }
        out
    }

    /// Whether a transition of this actor could take the event: `None` if none could, `Some(true)`
    /// if it depends on the data.
    fn possible(
        &self,
        snapshot: &Snapshot,
        actor: &Actor,
        id: u32,
        envelope: &Envelope,
        held: RoleSet,
        budget: &Budget,
    ) -> Option<bool> {
        let (by, now) = (&envelope.by, envelope.at);
        let name = self.events.info(id).map_or("", |i| i.name.as_ref());
        let nothing = Json::Object(serde_json::Map::new());
        let ev = Ev::external(&self.events, id, name, &nothing);
        let ctx =
            EvalContext { machine: self, snapshot, actor, event: Some(&ev), by, now, locals: &[], entry: None, budget };
        let chart = self.chart(actor.chart());
        let mut depends = None;
        let mut may_be_forbidden = false;
        for (tid, t) in active_candidates(chart, &actor.configuration, &ev) {
            match evaluate(&ctx, held, Some(&ev), tid, t, &mut WithoutData) {
                Evaluation::Enabled | Evaluation::Vote => return Some(depends.unwrap_or(may_be_forbidden)),
                Evaluation::Refused => break,
                Evaluation::Unknown if t.refuse.is_some() => may_be_forbidden = true,
                Evaluation::Unknown => depends = Some(true),
                Evaluation::Failed(..) => {}
            }
        }
        depends
    }

    /// Whether the run can never continue: no timer or answer is awaited, and no event of any
    /// sender has a transition.
    #[must_use]
    pub fn is_stuck(&self, snapshot: &Snapshot) -> bool {
        if snapshot.status != Status::Active
            || !snapshot.timers.is_empty()
            || snapshot.invocations().any(|(_, i)| !i.is_machine())
        {
            return false;
        }
        let active = snapshot.actors().filter(|a| a.status == Status::Active);
        let takes = |a: &Actor| {
            let chart = self.chart(a.chart());
            a.configuration.iter().any(|s| {
                let node = chart.state(*s);
                let sent = |id: &u32| self.events.info(*id).is_some_and(|i| !crate::compile::is_platform(&i.name));
                !node.patterns.is_empty() || node.exact.iter().any(|(id, _)| sent(id))
            })
        };
        !active.into_iter().any(takes)
    }
}

/// Builds minimal data for a schema: the required members with simple values. Used only to try an
/// event whose data no check reads.
fn sample(schema: Option<&Json>, depth: usize) -> Json {
    let Some(schema) = schema.filter(|_| depth < 8) else {
        return Json::Null;
    };
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").and_then(Json::as_array).and_then(|e| e.first()) {
        return first.clone();
    }
    let kind = schema.get("type").map(|t| t.as_array().and_then(|a| a.first()).unwrap_or(t)).and_then(Json::as_str);
    match kind {
        Some("string") => {
            let least = schema.get("minLength").and_then(Json::as_u64).unwrap_or(1).clamp(1, 100);
            Json::String("x".repeat(usize::try_from(least).unwrap_or(1)))
        }
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| Json::from(1)),
        Some("boolean") => Json::Bool(true),
        Some("array") => {
            let least = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0).min(100);
            Json::Array((0..least).map(|_| sample(schema.get("items"), depth.saturating_add(1))).collect())
        }
        Some("object") => {
            let required =
                schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
            let property =
                |key: &str| sample(schema.get("properties").and_then(|p| p.get(key)), depth.saturating_add(1));
            Json::Object(required.map(|key| (key.to_string(), property(key))).collect())
        }
        _ => Json::Null,
    }
}
