//! What an expression of a charter can see, and how values are computed from it.

use std::sync::Arc;

use charter_expr::{Env, ErrorKind, EvalError, Fuel, FunctionId, Key, List, Map, Program, RootId, Scope, Type, Value};
use serde_json::Value as Json;

use crate::digest::Digest;
use crate::envelope::Principal;
use crate::event::{Ev, Meta, Origin};
use crate::ledger::Entry;
use crate::machine::{Functions, Guard, Machine, Template};
use crate::snapshot::{Actor, Snapshot};
use crate::time::{Millis, Timestamp};

/// The names every expression of a charter may use, in the order of their slots. `entry` means something in `requires` only.
pub const ROOTS: [&str; 9] = ["context", "event", "by", "now", "run", "actors", "ledger", "input", "entry"];

/// SCXML's system variables (REC 5.10): further names in a machine that is not strict.
pub const SCXML_ROOTS: [&str; 4] = ["_event", "_name", "_sessionid", "_ioprocessors"];

/// The environment that expressions are compiled in.
pub(crate) fn env(strict: bool) -> (Env, Functions) {
    let mut env = Env::new();
    let lenient: &[&str] = if strict { &[] } else { &SCXML_ROOTS };
    for name in ROOTS.iter().chain(lenient) {
        env.root(name, Type::Dyn);
    }
    let functions = Functions {
        is_in: env.function("in", vec![Type::String], Type::Bool),
        is_in_scxml: env.function("In", vec![Type::String], Type::Bool),
        digest: env.function("digest", vec![Type::Dyn], Type::String),
        fail: (!strict).then(|| env.function("fail", vec![Type::String], Type::Dyn)),
    };
    (env, functions)
}

/// What is visible at one moment to one actor.
#[derive(Clone, Copy)]
pub(crate) struct EvalContext<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) actor: &'a Actor,
    pub(crate) event: Option<&'a Ev<'a>>,
    pub(crate) by: &'a Principal,
    pub(crate) now: Timestamp,
    /// Values bound by `each`, outermost first.
    pub(crate) locals: &'a [Arc<Json>],
    pub(crate) entry: Option<&'a Entry>,
}

impl<'a> Scope<'a> for EvalContext<'a> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        Some(match usize::from(id.0) {
            0 => Value::object(&self.actor.context),
            1 => Value::object(self.event?),
            2 => Value::object(self.by),
            3 => Value::timestamp_millis(self.now.0),
            4 => Value::object(self.snapshot.run.as_ref()),
            5 => Value::object(&self.snapshot.actors),
            6 => Value::object(self.snapshot.ledger.as_deref()?),
            7 => Value::from_json(&self.actor.identity().input),
            8 => Value::object(self.entry?),
            other => return self.further(other.checked_sub(ROOTS.len())?),
        })
    }

    fn call(&self, function: FunctionId, args: &[Value<'a>], fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
        let f = &self.machine.functions;
        let Some(arg) = args.first() else {
            return Err(EvalError::new(ErrorKind::NoSuchOverload, "a function of the kernel takes one argument"));
        };
        if function == f.is_in || function == f.is_in_scxml {
            let Some(path) = arg.as_str() else {
                return Err(EvalError::new(ErrorKind::NoSuchOverload, "`in()` takes the path of a state, as a string"));
            };
            let chart = self.machine.chart(self.actor.chart());
            return match chart.find(path) {
                Some(state) => Ok(Value::Bool(self.actor.is_active(state))),
                None if function == f.is_in_scxml => Ok(Value::Bool(false)),
                None => Err(EvalError::new(ErrorKind::InvalidArgument, format!("no state `{path}`"))),
            };
        }
        if f.fail == Some(function) {
            return Err(EvalError::new(
                ErrorKind::Host,
                arg.as_str().unwrap_or("the expression cannot be evaluated").to_string(),
            ));
        }
        if function == f.digest {
            let json = arg.to_json()?;
            let text = crate::digest::canonical(&json);
            fuel.spend(u64::try_from(text.len()).unwrap_or(u64::MAX).checked_div(64).unwrap_or(0))?;
            return Ok(Value::from(Digest::of_bytes(text.as_bytes()).hex()));
        }
        Err(EvalError::new(ErrorKind::NoSuchOverload, "no such function"))
    }
}

impl<'a> EvalContext<'a> {
    /// What comes after the fixed roots: SCXML's system variables where there are any, then what `each` binds.
    fn further(&self, place: usize) -> Option<Value<'a>> {
        if self.machine.definition.strict {
            return self.locals.get(place).map(|l| Value::from_json(l));
        }
        Some(match place {
            0 => self.event.map_or(Value::Null, scxml_event),
            1 if self.actor.chart() == 0 => {
                Value::from(self.machine.definition.title.as_deref().unwrap_or(&self.machine.definition.id))
            }
            1 => Value::from(self.actor.machine()),
            2 => Value::from(session_id(&self.snapshot.run.id, &self.actor.identity().id)),
            3 => {
                let location =
                    Value::from(format!("#_scxml_{}", session_id(&self.snapshot.run.id, &self.actor.identity().id)));
                let entry = map([("location", location)]);
                map([("http://www.w3.org/TR/scxml/#SCXMLEventProcessor", entry.clone()), ("scxml", entry)])
            }
            local => Value::from_json(self.locals.get(local.checked_sub(SCXML_ROOTS.len())?)?),
        })
    }

    pub(crate) fn cel(&self, program: &'a Program) -> Result<Value<'a>, EvalError> {
        program.eval(self, &mut Fuel::new(self.machine.definition.limits.expression))
    }

    /// A condition: anything but a bool is an error.
    pub(crate) fn holds(&self, program: &'a Program) -> Result<bool, EvalError> {
        let value = self.cel(program)?;
        value.as_bool().ok_or_else(|| {
            EvalError::new(
                ErrorKind::NoSuchOverload,
                format!("a condition gives a bool, this one gave a {}", value.type_name()),
            )
        })
    }

    /// A guard. An error does not hold, nor does its negation; a combination that is decided without it is decided.
    pub(crate) fn guard(&self, guard: &'a Guard) -> Result<bool, EvalError> {
        match guard {
            Guard::Cel(program) => self.holds(program),
            Guard::Named(named) => self.guard(&named.1),
            Guard::Not(guard) => self.guard(guard).map(|b| !b),
            Guard::And(all) => self.combine(all, false),
            Guard::Or(any) => self.combine(any, true),
        }
    }

    fn combine(&self, guards: &'a [Guard], decides: bool) -> Result<bool, EvalError> {
        let mut error = None;
        for guard in guards {
            match self.guard(guard) {
                Ok(b) if b == decides => return Ok(decides),
                Ok(_) => {}
                Err(e) => error = error.or(Some(e)),
            }
        }
        error.map_or(Ok(!decides), Err)
    }

    /// Computes a value.
    pub(crate) fn value(&self, template: &'a Template) -> Result<Arc<Json>, EvalError> {
        match template {
            Template::Literal(json) => Ok(json.clone()),
            other => self.json(other).map(Arc::new),
        }
    }

    pub(crate) fn json(&self, template: &'a Template) -> Result<Json, EvalError> {
        Ok(match template {
            Template::Literal(json) => Json::clone(json),
            Template::Cel(program) => self.cel(program)?.to_json()?,
            Template::List(items) => Json::Array(items.iter().map(|t| self.json(t)).collect::<Result<_, _>>()?),
            Template::Object(fields) => {
                let fields = fields.iter().map(|(k, t)| Ok((k.to_string(), self.json(t)?)));
                Json::Object(fields.collect::<Result<_, EvalError>>()?)
            }
        })
    }

    /// Computes a value that has to be a text (a key, an id, an event type). Numbers and bools are written out.
    pub(crate) fn text(&self, template: &'a Template) -> Result<Arc<str>, EvalError> {
        Ok(match &*self.value(template)? {
            Json::String(s) => s.as_str().into(),
            other @ (Json::Number(_) | Json::Bool(_)) => other.to_string().into(),
            _ => {
                return Err(EvalError::new(ErrorKind::InvalidArgument, "a text is needed here"));
            }
        })
    }

    /// Computes a moment: a timestamp, RFC 3339 text, milliseconds since 1970, or a length of time from now; null is none.
    pub(crate) fn moment(&self, template: &'a Template) -> Result<Option<Timestamp>, EvalError> {
        let bad = || {
            EvalError::new(
                ErrorKind::InvalidArgument,
                "a time is needed here: a timestamp, an RFC 3339 text with offset, milliseconds since 1970, or a length such as `24h`",
            )
        };
        let value = match template {
            Template::Cel(program) => self.cel(program)?,
            Template::Literal(json) => Value::from_json(json),
            _ => return Err(bad()),
        };
        let from_now = |ms: i64| self.now.0.checked_add(ms).map(Timestamp).ok_or_else(bad);
        match &value {
            Value::Null => Ok(None),
            Value::Timestamp(t) => Ok(Some(Timestamp(t.millis()))),
            Value::Duration(d) => from_now(d.millis()).map(Some),
            Value::Int(ms) => Ok(Some(Timestamp(*ms))),
            other => {
                let text = other.as_str().ok_or_else(bad)?;
                match charter_expr::parse_delay(text) {
                    Some(ms) => from_now(ms).map(Some),
                    None => {
                        charter_expr::Timestamp::parse(text).map(|t| Some(Timestamp(t.millis()))).map_err(|_| bad())
                    }
                }
            }
        }
    }

    /// Computes a length of time in milliseconds; a negative one is none.
    pub(crate) fn delay(&self, delay: &'a crate::machine::Delay) -> Result<Millis, EvalError> {
        let program = match delay {
            crate::machine::Delay::Ms(ms) => return Ok(*ms),
            crate::machine::Delay::Cel(program) => program,
        };
        let bad = || {
            EvalError::new(
                ErrorKind::InvalidArgument,
                "a length of time is needed here: a duration, milliseconds, or a text such as `24h`",
            )
        };
        let ms = match &self.cel(program)? {
            Value::Duration(d) => d.millis(),
            Value::Int(ms) => *ms,
            other => charter_expr::parse_delay(other.as_str().ok_or_else(bad)?).ok_or_else(bad)?,
        };
        if ms > crate::time::MAX_DELAY.0 { Err(bad()) } else { Ok(Millis(ms.max(0))) }
    }
}

/// The id of an actor's session (SCXML 5.10): the run's id for the root, else `RUN/ACTOR`.
pub(crate) fn session_id(run: &str, actor: &str) -> String {
    if actor == "root" { run.to_string() } else { format!("{run}/{actor}") }
}

/// `_event` with SCXML's seven fields (REC 5.10.1); what is blank is null.
fn scxml_event<'a>(ev: &'a Ev<'a>) -> Value<'a> {
    if ev.name() == "charter.start" {
        return Value::Null; // unbound until the first event
    }
    let kind = match ev.origin {
        Origin::External | Origin::Sent => "external",
        Origin::Internal => "internal",
        Origin::Platform => "platform",
    };
    // What is done or has failed gives its data as it is; charters see it under `output` and `error`.
    let data = match ev.origin {
        Origin::Platform => ev.data().get("output").or_else(|| ev.data().get("error")).unwrap_or(ev.data()),
        _ => ev.data(),
    };
    let of = |field: fn(&Meta) -> &Option<Arc<str>>| {
        ev.meta.as_deref().and_then(|m| field(m).as_deref()).map_or(Value::Null, Value::from)
    };
    let sent = matches!(ev.origin, Origin::External | Origin::Sent);
    map([
        ("data", Value::from_json(data)),
        ("invokeid", of(|m| &m.invoke_id)),
        ("name", Value::from(ev.name())),
        ("origin", of(|m| &m.origin)),
        ("origintype", if sent { Value::from("http://www.w3.org/TR/scxml/#SCXMLEventProcessor") } else { Value::Null }),
        ("sendid", of(|m| &m.send_id)),
        ("type", Value::from(kind)),
    ])
}

fn map<'a, const N: usize>(fields: [(&'a str, Value<'a>); N]) -> Value<'a> {
    let entries = fields.into_iter().filter_map(|(k, v)| Some((Key::from_value(&Value::from(k))?, v)));
    Map::from_entries(entries.collect()).map_or(Value::Null, Value::Map)
}

/// An item, and its position or key.
type Item = (Arc<Json>, Arc<Json>);

/// Turns a list (or the values of a map, with their keys) into what `each` walks through.
pub(crate) fn items(value: &Value<'_>) -> Result<Vec<Item>, EvalError> {
    let mut out = Vec::new();
    match value {
        Value::List(list) => {
            for (i, item) in List::iter(list).enumerate() {
                out.push((Arc::new(item.to_json()?), Arc::new(Json::from(i))));
            }
        }
        Value::Map(map) => {
            for (key, item) in map.entries() {
                let item = item.to_json()?;
                out.push((Arc::new(item), Arc::new(key.into_value().to_json()?)));
            }
        }
        _ => {
            return Err(EvalError::new(ErrorKind::InvalidArgument, "`each` walks through a list or a map"));
        }
    }
    Ok(out)
}
