//! Which events a principal may send now, and whether anything can still happen to a run.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::event::Ev;
use crate::machine::{Machine, NONE, Pattern, RoleSet};
use crate::principal::Principal;
use crate::refusal::{Code, Explanation, Refusal, RefusalDetails};
use crate::selection::region_candidates;
use crate::snapshot::{Actor, Snapshot, Status};
use crate::time::Timestamp;

/// Stands for an event of any type that a lenient machine accepts because of a transition for `*`.
pub const ANY_EVENT: &str = "*";

/// An event that may be sent now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Legal {
    /// The actor that can take it.
    pub to: String,
    /// Event type; [`ANY_EVENT`] for any one that no other transition names.
    pub r#type: String,
    /// JSON Schema of its data, if declared.
    pub data: Option<Json>,
    /// Its description, if declared.
    pub description: Option<String>,
    /// Whether it can still be refused because of its data.
    pub depends_on_data: bool,
}

/// An event that a principal may not send now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NotLegal {
    /// The actor that would take it.
    pub to: String,
    /// Event type.
    pub r#type: String,
    /// Why not.
    pub reason: Explanation,
}

/// Why an event is not legal.
pub(crate) enum Obstacle {
    /// The sender has none of the roles that the event needs.
    Roles(RoleSet),
    /// No transition takes it.
    Candidates(Box<RefusalDetails>),
    /// The step with minimal data was refused.
    Trial(Refusal),
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

    /// Returns the events that `principal` may not send now, whatever their data is, although a
    /// transition of an active state names them, with the reason. None if the run is paused or has
    /// ended.
    #[must_use]
    pub fn not_legal(&self, snapshot: &Snapshot, principal: &Principal, at: impl Into<Timestamp>) -> Vec<NotLegal> {
        if snapshot.status != Status::Active {
            return Vec::new();
        }
        let budget = Budget::new(&self.definition.limits);
        let of = |(event, envelope): (Result<Legal, Option<Obstacle>>, &Envelope)| {
            let reason = self.explain_obstacle(snapshot, envelope, event.err()??);
            let to = envelope.to.clone().unwrap_or_default();
            Some(NotLegal { to, r#type: envelope.event.type_name(None).into_owned(), reason })
        };
        let mut out = Vec::new();
        self.each_event(snapshot, principal, at.into(), &budget, |event, envelope| out.extend(of((event, envelope))));
        out
    }

    /// Like [`Machine::legal`]; events that the budget is not enough for are left out.
    pub(crate) fn legal_within(
        &self,
        snapshot: &Snapshot,
        principal: &Principal,
        at: Timestamp,
        budget: &Budget,
    ) -> Vec<Legal> {
        let mut out = Vec::new();
        self.each_event(snapshot, principal, at, budget, |event, _| out.extend(event));
        out
    }

    /// Calls `each` for each event and each active actor, with the envelope that was tried: the
    /// event if it is legal, or why it is not, if a transition names it.
    fn each_event(
        &self,
        snapshot: &Snapshot,
        principal: &Principal,
        at: Timestamp,
        budget: &Budget,
        mut each: impl FnMut(Result<Legal, Option<Obstacle>>, &Envelope),
    ) {
        if snapshot.charter() != self.digest || snapshot.status.is_finished() {
            return;
        }
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
        let any = (!self.definition.strict).then_some(NONE);
        let all: Vec<u32> = declared.into_iter().chain(named.map(|(_, id)| id)).chain(any).collect();
        let expired = snapshot.with_expired_permits(at);
        for id in all {
            if snapshot.status == Status::Paused && !self.events.info(id).is_some_and(|info| info.while_paused) {
                continue;
            }
            for actor in expired.actors().filter(|a| a.status == Status::Active) {
                if budget.is_over() {
                    return;
                }
                let event = self.legal_event((snapshot, &expired), actor, id, &mut envelope, held, budget);
                if !budget.is_over() {
                    each(event, &envelope);
                }
            }
        }
    }

    /// Decides whether an event to an actor is legal, with the snapshot before and after permits
    /// have expired. Sets the addressee, type and data of the envelope.
    fn legal_event(
        &self,
        (snapshot, expired): (&Snapshot, &Snapshot),
        actor: &Actor,
        id: u32,
        envelope: &mut Envelope,
        held: RoleSet,
        budget: &Budget,
    ) -> Result<Legal, Option<Obstacle>> {
        let info = self.events.info(id);
        let name = info.map_or(ANY_EVENT, |info| info.name.as_ref());
        let to = actor.identity().id.to_string();
        let empty = Json::Object(serde_json::Map::new());
        envelope.to = Some(to.clone());
        envelope.event = Event::External { r#type: name.to_string(), data: empty.clone() };
        let decl = self.definition.events.get(name);
        let schema = decl.and_then(|d| d.data.as_ref());
        if schema == Some(&Json::Bool(false)) {
            return Err(None);
        }
        let ev = Ev::external(&self.events, id, name, &empty);
        let by = info.map(|info| info.by).unwrap_or_default();
        if !by.admits(held) {
            let named = region_candidates(self.chart(actor.chart()), &actor.configuration, &ev);
            return Err(named.iter().any(|of| !of.is_empty()).then_some(Obstacle::Roles(by)));
        }
        let depends = {
            let ctx = self.context_of(expired, actor, &ev, envelope, budget);
            let sent = (name, held, &ev);
            let ways = self.ways(&ctx, actor, sent);
            if ways.found.is_none() {
                let obstacle = self.obstacle(&ctx, actor, sent);
                return Err(obstacle.map(|details| Obstacle::Candidates(Box::new(details))));
            }
            ways.depends_on_data || info.is_some_and(|info| info.unique.is_some())
        };
        let fits_empty = info.and_then(|info| info.schema.as_ref()).is_none_or(|s| s.accepts(&empty));
        if !depends {
            // No check reads the data, so a trial step with minimal data also finds interlocks and
            // errors of actions.
            let data = if fits_empty { empty } else { sample(schema, 0) };
            envelope.event = Event::External { r#type: name.to_string(), data };
            match self.step_within(snapshot, envelope, budget) {
                Ok(_) => {}
                Err(refusal) if refusal.code == Code::Schema => {}
                Err(refusal) if matches!(refusal.code, Code::Execution | Code::Runaway) && !fits_empty => {}
                Err(refusal) => return Err(Some(Obstacle::Trial(refusal))),
            }
        }
        Ok(Legal {
            to,
            r#type: name.to_string(),
            data: schema.cloned(),
            description: decl.map_or_else(|| self.of_pattern(actor, name), |d| d.description.clone()),
            depends_on_data: depends || !fits_empty,
        })
    }

    /// Describes the events that are accepted beside one that is not declared.
    fn of_pattern(&self, actor: &Actor, name: &str) -> Option<String> {
        if name == ANY_EVENT {
            return Some("an event of any other type".to_owned());
        }
        let mut states = actor.configuration.iter().map(|state| self.chart(actor.chart()).state(*state));
        let is_prefix = |pattern: &Pattern| matches!(pattern, Pattern::Prefix(prefix) if **prefix == *name);
        states
            .any(|state| state.patterns.iter().any(|(pattern, _)| is_prefix(pattern)))
            .then(|| format!("and any type that begins with `{name}.`"))
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
