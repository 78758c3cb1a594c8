//! What the expressions of a charter can read, and how values are computed with them.

use std::sync::Arc;

use charter_expr::{
    DelayError, Env, ErrorKind, EvalDetail, EvalError, Fuel, FunctionId, Key, List, Map, NumberType, Numbers, Program,
    RootId, Scope, Type, Value,
};
use serde_json::Value as Json;

use crate::budget::{Budget, Work};
use crate::digest::Digest;
use crate::event::{Ev, Meta, Origin};
use crate::ledger::Entry;
use crate::machine::{Functions, Guard, Machine, Template};
use crate::observer::Observer;
use crate::principal::Principal;
use crate::snapshot::{Actor, Snapshot};
use crate::time::{Millis, Timestamp};

/// The names that every expression of a charter may use, in the order of their slots. `entry` has a
/// value in `requires` only.
pub const ROOTS: [&str; 9] = ["context", "event", "by", "now", "run", "actors", "ledger", "input", "entry"];

/// The functions that every expression of a charter may call besides the library, in the order of
/// their ids.
pub const FUNCTIONS: [&str; 3] = ["in", "In", "digest"];

/// SCXML's system variables (REC 5.10): additional names in machines that are not strict.
pub const SCXML_ROOTS: [&str; 4] = ["_event", "_name", "_sessionid", "_ioprocessors"];

/// Returns the environment in which expressions are compiled.
pub(crate) fn env(strict: bool) -> (Env, Functions) {
    let mut env = Env::new();
    let lenient: &[&str] = if strict { &[] } else { &SCXML_ROOTS };
    for name in ROOTS.iter().chain(lenient) {
        env.root(name, Type::Dyn);
    }
    let functions = Functions {
        is_in: env.function(FUNCTIONS[0], vec![Type::String], Type::Bool),
        is_in_scxml: env.function(FUNCTIONS[1], vec![Type::String], Type::Bool),
        digest: env.function(FUNCTIONS[2], vec![Type::Dyn], Type::String),
        fail: (!strict).then(|| env.function("fail", vec![Type::String], Type::Dyn)),
    };
    (env, functions)
}

/// What a list, or an entry of a map, in a template takes besides its values.
const PART_BYTES: u64 = 64;

/// What a value that `each` binds takes besides its JSON.
const LOCAL_BYTES: u64 = 64;

/// A value that `each` binds.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    json: Arc<Json>,
    numbers: Option<Numbers>,
}

impl Local {
    /// Keeps the types that the numbers of a value have.
    pub(crate) fn new(value: &Value<'_>, budget: &Budget) -> Result<Local, EvalError> {
        let numbers = match value {
            Value::Int(_) => Some(Numbers::of(NumberType::Int).clone()),
            Value::Double(_) => Some(Numbers::of(NumberType::Double).clone()),
            Value::List(List::Json(_, numbers)) | Value::Map(Map::Json(_, numbers)) => numbers.cloned(),
            _ => None,
        };
        budget.build(LOCAL_BYTES, Work::Values);
        Ok(Local { json: Arc::new(budget.json(value)?), numbers })
    }

    fn value(&self) -> Value<'_> {
        Value::typed(&self.json, self.numbers.as_ref())
    }
}

/// What an expression of one actor reads.
#[derive(Clone, Copy)]
pub(crate) struct EvalContext<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) actor: &'a Actor,
    pub(crate) event: Option<&'a Ev<'a>>,
    pub(crate) by: &'a Principal,
    pub(crate) now: Timestamp,
    /// Values bound by `each`, outermost first.
    pub(crate) locals: &'a [Local],
    pub(crate) entry: Option<&'a Entry>,
    /// The budget of the event, or of the question.
    pub(crate) budget: &'a Budget,
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
            7 => self.actor.input_value(),
            8 => Value::object(self.entry?),
            other => return self.more_roots(other.checked_sub(ROOTS.len())?),
        })
    }

    fn call(&self, function: FunctionId, args: &[Value<'a>], fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
        let f = &self.machine.functions;
        let Some(arg) = args.first() else {
            return Err(EvalError::new(ErrorKind::NoSuchOverload, "this function takes one argument"));
        };
        if function == f.is_in || function == f.is_in_scxml {
            let Some(path) = arg.as_str() else {
                let detail = EvalDetail::needs("`in()`", "the path of a state as a string", arg.type_name());
                return Err(detail.into());
            };
            let chart = self.machine.chart(self.actor.chart());
            return match chart.find(path) {
                Some(state) => Ok(Value::Bool(self.actor.is_active(state))),
                None if function == f.is_in_scxml => Ok(Value::Bool(false)),
                None => Err(EvalDetail::NoState { path: Value::from(path).brief() }.into()),
            };
        }
        if f.fail == Some(function) {
            return Err(EvalError::new(
                ErrorKind::Host,
                arg.as_str().unwrap_or("the expression cannot be evaluated").to_string(),
            ));
        }
        if function == f.digest {
            let json = self.budget.json(arg)?;
            if !self.budget.hash(&json) {
                return Err(EvalError::out_of_fuel());
            }
            let text = crate::digest::canonical(&json);
            fuel.spend(u64::try_from(text.len()).unwrap_or(u64::MAX).checked_div(64).unwrap_or(0))?;
            return Ok(Value::from(Digest::of_bytes(text.as_bytes()).hex()));
        }
        Err(EvalError::new(ErrorKind::NoSuchOverload, "no such function"))
    }
}

impl<'a> EvalContext<'a> {
    /// Returns a root after the fixed ones: first SCXML's system variables in a lenient machine,
    /// then the variables that `each` binds.
    fn more_roots(&self, place: usize) -> Option<Value<'a>> {
        if self.machine.definition.strict {
            return self.locals.get(place).map(Local::value);
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
            local => self.locals.get(local.checked_sub(SCXML_ROOTS.len())?)?.value(),
        })
    }

    pub(crate) fn cel(&self, program: &'a Program) -> Result<Value<'a>, EvalError> {
        let limit = self.machine.definition.limits.expression;
        let mut fuel = self.budget.lend(limit);
        let mut result = match self.budget.unknowns() {
            None => program.eval(self, &mut fuel),
            Some(unknowns) => unknowns.eval(self, program, &mut fuel),
        };
        self.budget.settle(limit, &fuel, result.is_err());
        if let Err(e) = &mut result {
            e.in_expression(program.source());
        }
        result
    }

    /// Evaluates a condition; a value that is not a bool is an error.
    pub(crate) fn holds(&self, program: &'a Program) -> Result<bool, EvalError> {
        let value = self.cel(program)?;
        if let Some(unknowns) = self.budget.unknowns()
            && let Some(holds) = unknowns.truth(&value)
        {
            return Ok(holds);
        }
        value
            .as_bool()
            .ok_or_else(|| wrong(EvalDetail::needs("a condition", "a bool", value.type_name()).into(), Some(program)))
    }

    /// Evaluates a guard; also returns the expression that decided. An error means that neither the
    /// guard nor its negation holds; `and` and `or` ignore an error if another operand decides.
    pub(crate) fn guard<O: Observer<'a>>(&self, guard: &'a Guard) -> (Result<bool, EvalError>, O::Leaf) {
        if !matches!(guard, Guard::Cel(_)) {
            self.budget.spend(1, Work::Expressions);
        }
        match guard {
            Guard::Cel(program) => (self.holds(program), O::leaf(program)),
            Guard::Named(named) => {
                let (holds, leaf) = self.guard::<O>(&named.1);
                (holds, O::named(&named.0, leaf))
            }
            Guard::Not(guard) => {
                let (holds, leaf) = self.guard::<O>(guard);
                (holds.map(|b| !b), leaf)
            }
            Guard::And(all) => self.combine::<O>(all, false),
            Guard::Or(any) => self.combine::<O>(any, true),
        }
    }

    fn combine<O: Observer<'a>>(&self, guards: &'a [Guard], decides: bool) -> (Result<bool, EvalError>, O::Leaf) {
        let (mut error, mut first) = (None, None);
        for guard in guards {
            match self.guard::<O>(guard) {
                (Ok(b), leaf) if b == decides => return (Ok(decides), leaf),
                (Ok(_), leaf) => first = first.or(Some(leaf)),
                (Err(e), leaf) => error = error.or(Some((e, leaf))),
            }
        }
        match error {
            Some((e, leaf)) => (Err(e), leaf),
            None => (Ok(!decides), first.unwrap_or_default()),
        }
    }

    /// Copies a literal.
    fn copy(&self, json: &Json) -> Result<Json, EvalError> {
        match self.budget.copy(json, Work::Values) {
            true => Ok(json.clone()),
            false => Err(EvalError::out_of_fuel()),
        }
    }

    /// Computes a value.
    pub(crate) fn value(&self, template: &'a Template) -> Result<Arc<Json>, EvalError> {
        match template {
            // Shared, but a record and a snapshot repeat it.
            Template::Literal(json) => match self.budget.hash(json) {
                true => Ok(json.clone()),
                false => Err(EvalError::out_of_fuel()),
            },
            other => self.json(other).map(Arc::new),
        }
    }

    pub(crate) fn json(&self, template: &'a Template) -> Result<Json, EvalError> {
        Ok(match template {
            Template::Literal(json) => self.copy(json)?,
            Template::Cel(program) => self.budget.json(&self.cel(program)?).map_err(|e| in_program(e, program))?,
            Template::List(items) => {
                self.budget.build(PART_BYTES, Work::Values);
                Json::Array(items.iter().map(|t| self.json(t)).collect::<Result<_, _>>()?)
            }
            Template::Object(fields) => {
                let fields = fields.iter().map(|(k, t)| {
                    self.budget.build(PART_BYTES.saturating_add(k.len() as u64), Work::Values);
                    Ok((k.to_string(), self.json(t)?))
                });
                Json::Object(fields.collect::<Result<_, EvalError>>()?)
            }
        })
    }

    /// Computes a string (a key, an id, an event type). Numbers and bools are converted.
    pub(crate) fn text(&self, template: &'a Template) -> Result<Arc<str>, EvalError> {
        let value = self.value(template)?;
        if let Some(unknowns) = self.budget.unknowns().filter(|u| u.is_unknown(&value)) {
            return Err(unknowns.give_up("a name (of an event, an actor, a timer or a key) is not known"));
        }
        Ok(match &*value {
            Json::String(s) => s.as_str().into(),
            other @ (Json::Number(_) | Json::Bool(_)) => other.to_string().into(),
            other => {
                let found = Value::from_json(other).type_name();
                let detail = EvalDetail::needs("a key, an id or an event type", "a string, a number or a bool", found);
                let error = EvalError::with_detail(ErrorKind::InvalidArgument, detail);
                return Err(wrong(error, program_of(template)));
            }
        })
    }

    /// Computes a time from a timestamp, an RFC 3339 string, milliseconds since 1970, or a duration
    /// from now; null means no time.
    pub(crate) fn timestamp(&self, template: &'a Template) -> Result<Option<Timestamp>, EvalError> {
        let value = match template {
            Template::Cel(program) => self.cel(program)?,
            Template::Literal(json) => Value::from_json(json),
            Template::List(_) | Template::Object(_) => {
                let found = if matches!(template, Template::List(_)) { "list" } else { "map" };
                let detail = EvalDetail::needs("a time", "a timestamp, an int, a string or a duration", found);
                return Err(EvalError::with_detail(ErrorKind::InvalidArgument, detail));
            }
        };
        let bad = || wrong(EvalDetail::NotATime { value: value.brief() }.into(), program_of(template));
        let from_now = || {
            let ms = charter_expr::delay_of(&value).map_err(|e| wrong(e, program_of(template)))?;
            Ok(Some(self.now.saturating_add(Millis(ms))))
        };
        match &value {
            Value::Null => Ok(None),
            Value::Timestamp(t) => Ok(Some(Timestamp(t.millis()))),
            Value::Duration(_) => from_now(),
            Value::Int(ms) => Ok(Some(Timestamp(*ms))),
            Value::Double(_) => value.as_i64().map(|ms| Some(Timestamp(ms))).ok_or_else(bad),
            other => {
                let text = other.as_str().ok_or_else(bad)?;
                match charter_expr::ExprTimestamp::parse(text) {
                    Ok(t) => Ok(Some(Timestamp(t.millis()))),
                    Err(_) if charter_expr::parse_delay(text) == Err(DelayError::Malformed) => Err(bad()),
                    Err(_) => from_now(),
                }
            }
        }
    }

    /// Computes a delay.
    pub(crate) fn delay(&self, delay: &'a crate::machine::Delay) -> Result<Millis, EvalError> {
        let program = match delay {
            crate::machine::Delay::Ms(ms) => return Ok(*ms),
            crate::machine::Delay::Cel(program) => program,
        };
        let value = self.cel(program)?;
        if let Some(unknowns) = self.budget.unknowns().filter(|u| value.to_json().is_ok_and(|v| u.is_unknown(&v))) {
            // The times of timers do not matter there.
            return if unknowns.choose(2) == 0 {
                Ok(Millis(1))
            } else {
                Err(EvalDetail::NotATime { value: value.brief() }.into())
            };
        }
        charter_expr::delay_of(&value).map(Millis).map_err(|e| wrong(e, Some(program)))
    }
}

fn program_of(template: &Template) -> Option<&Program> {
    if let Template::Cel(program) = template { Some(program) } else { None }
}

/// Adds the source of the expression to an error about its value.
fn wrong(error: EvalError, program: Option<&Program>) -> EvalError {
    match program {
        Some(program) => in_program(error, program),
        None => error,
    }
}

/// Says which expression an error is about.
pub(crate) fn in_program(mut error: EvalError, program: &Program) -> EvalError {
    error.in_expression(program.source());
    error
}

/// Returns the id of an actor's session (SCXML 5.10): the run's id for the root, else `RUN/ACTOR`.
pub(crate) fn session_id(run: &str, actor: &str) -> String {
    if actor == "root" { run.to_string() } else { format!("{run}/{actor}") }
}

/// Builds `_event` with SCXML's seven fields (REC 5.10.1); blank fields are null.
fn scxml_event<'a>(ev: &'a Ev<'a>) -> Value<'a> {
    if ev.name() == "charter.start" {
        return Value::Null; // unbound until the first event
    }
    let kind = match ev.origin {
        Origin::External | Origin::Sent => "external",
        Origin::Internal => "internal",
        Origin::Platform => "platform",
    };
    // In SCXML, `data` is the output or error itself; charters read it under `output` and `error`.
    let data = match ev.origin {
        Origin::Platform => ev.field("output").or_else(|| ev.field("error")).unwrap_or_else(|| ev.value()),
        _ => ev.value(),
    };
    let of = |field: fn(&Meta) -> &Option<Arc<str>>| {
        ev.meta.as_deref().and_then(|m| field(m).as_deref()).map_or(Value::Null, Value::from)
    };
    let sent = matches!(ev.origin, Origin::External | Origin::Sent);
    map([
        ("data", data),
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
