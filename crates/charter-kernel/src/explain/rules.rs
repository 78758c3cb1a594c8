//! The messages of a charter's `rules`. A record stores the values that a message depends on; the
//! message is computed from them when the refusal is shown.

use charter_expr::{Fuel, FunctionId, Program, RootId, Scope, Segment, Value};
use serde_json::{Map, Value as Json};

use super::RefusalContext;
use super::candidates::reads;
use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::event::Ev;
use crate::machine::{Machine, Template};
use crate::scope::{EvalContext, ROOTS};
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

impl Machine {
    /// Returns the index of a rule.
    pub(super) fn rule(&self, name: &str) -> Option<u32> {
        let place = self.rules.iter().position(|(known, _)| known.as_ref() == name)?;
        u32::try_from(place).ok()
    }

    pub(crate) fn rule_name(&self, rule: u32) -> &str {
        self.rules.get(rule as usize).map_or("", |(name, _)| name)
    }

    /// Returns the values that the message of a rule depends on, by path.
    pub(crate) fn rule_reads(&self, rule: u32, ctx: &EvalContext<'_>) -> Map<String, Json> {
        match self.rules.get(rule as usize) {
            Some((_, Template::Cel(program))) => reads(ctx, program),
            _ => Map::new(),
        }
    }

    /// Renders the message of an entry of `rules` for an event; `None` if there is no such entry.
    #[must_use]
    pub fn say(&self, rule: &str, snapshot: &Snapshot, envelope: &Envelope) -> Option<String> {
        let number = self.rule(rule)?;
        let nothing = Json::Null;
        let (name, data) = match &envelope.event {
            Event::External { r#type, data } => (r#type.as_str(), data),
            _ => ("", &nothing),
        };
        let ev = Ev::external(&self.events, self.events.id(name), name, data);
        let actor = snapshot.actors.find(envelope.to.as_deref().unwrap_or("root"))?;
        let budget = Budget::new(&self.definition.limits);
        let read = self.rule_reads(number, &self.context_of(snapshot, actor, &ev, envelope, &budget));
        Some(rule_sentence(rule, &read, &RefusalContext::new(self, Some(snapshot), envelope)))
    }
}

/// Renders the message of a rule from the stored values.
pub(super) fn rule_sentence(rule: &str, read: &Map<String, Json>, ctx: &RefusalContext<'_>) -> String {
    let template = ctx.machine.and_then(|m| Some((m, &m.rules.get(m.rule(rule)? as usize)?.1)));
    let computed = template.and_then(|(machine, template)| match template {
        Template::Literal(text) => text.as_str().map(str::to_string),
        Template::Cel(program) => compute(machine, program, read, ctx),
        Template::List(_) | Template::Object(_) => None,
    });
    // Without the charter, or if the message cannot be computed, name the rule.
    computed.unwrap_or_else(|| format!("rule `{rule}` of the charter forbids it"))
}

fn compute(machine: &Machine, program: &Program, read: &Map<String, Json>, ctx: &RefusalContext<'_>) -> Option<String> {
    let kept = KeptValues::new(program, read, ctx);
    let mut fuel = Fuel::new(machine.definition.limits.expression);
    match program.eval(&&kept, &mut fuel).and_then(|value| value.to_json()).ok()? {
        Json::String(text) => Some(text),
        other @ (Json::Number(_) | Json::Bool(_)) => Some(other.to_string()),
        _ => None,
    }
}

/// The roots of an expression, rebuilt from the values at the paths that it reads.
struct KeptValues<'a> {
    roots: Vec<Json>,
    now: Timestamp,
    states: &'a [&'a str],
    machine: Option<&'a Machine>,
}

impl<'a> KeptValues<'a> {
    fn new(program: &Program, read: &Map<String, Json>, ctx: &'a RefusalContext<'a>) -> KeptValues<'a> {
        let mut roots = vec![Json::Null; ROOTS.len()];
        for path in program.reads() {
            let root = path.root_id().and_then(|id| roots.get_mut(usize::from(id.0)));
            // Null stands for a missing value; leave it missing.
            let value = read.get(path.text()).filter(|value| !value.is_null());
            if let (Some(root), Some(value)) = (root, value) {
                put(root, path.segments(), value);
            }
        }
        KeptValues { roots, now: ctx.at, states: &ctx.state, machine: ctx.machine }
    }
}

fn put(mut at: &mut Json, segments: &[Segment], value: &Json) {
    for segment in segments {
        let key = match segment {
            Segment::Field(name) => name.to_string(),
            Segment::Index(key) => match key.clone().into_value().to_json() {
                Ok(Json::String(key)) => key,
                // List elements are not rebuilt; the message then only names the rule.
                _ => return,
            },
        };
        if !at.is_object() {
            *at = Json::Object(Map::new());
        }
        let Json::Object(map) = at else { return };
        at = map.entry(key).or_insert(Json::Null);
    }
    *at = value.clone();
}

impl<'a> Scope<'a> for &'a KeptValues<'a> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        let place = usize::from(id.0);
        if ROOTS.get(place) == Some(&"now") {
            return Some(Value::timestamp_millis(self.now.0));
        }
        self.roots.get(place).filter(|root| !root.is_null()).map(Value::from_json)
    }

    fn call(
        &self,
        function: FunctionId,
        args: &[Value<'a>],
        _: &mut Fuel,
    ) -> Result<Value<'a>, charter_expr::EvalError> {
        let unknown = || charter_expr::EvalError::new(charter_expr::ErrorKind::Unbound, "unknown without the charter");
        let functions = &self.machine.ok_or_else(unknown)?.functions;
        let path = args.first().and_then(Value::as_str).ok_or_else(unknown)?;
        if function != functions.is_in && function != functions.is_in_scxml {
            return Err(unknown());
        }
        let inside =
            |state: &&str| state.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        Ok(Value::Bool(self.states.iter().any(inside)))
    }
}
