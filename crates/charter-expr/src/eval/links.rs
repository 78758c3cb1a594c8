//! Evaluates the links of a chain: fields, indexes and methods.

use super::{Evaluated, Evaluation, unbound};
use crate::detail::{EvalDetail, shorten};
use crate::error::EvalError;
use crate::functions::{self, Function};
use crate::pattern::Pattern;
use crate::program::{Fields, Op, Step, StepKind};
use crate::types::a;
use crate::value::number;
use crate::{Fuel, Key, Map, Numbers, RootId, Value};

/// The value at a path.
pub(super) enum Leaf<'a> {
    /// Borrowed JSON, not yet converted to a [`Value`], and the types of its numbers.
    Json(&'a serde_json::Value, Option<&'a Numbers>),
    /// Anything else.
    Value(Value<'a>),
}

impl<'a> Evaluation<'a, '_> {
    #[inline]
    pub(super) fn root(&self, id: RootId, name: &str, op: &Op) -> Evaluated<'a> {
        match self.scope.root(id) {
            Some(value) => Ok(value),
            None => Err(unbound(name).at(op.span)),
        }
    }

    /// `root.a.b`
    pub(super) fn fields(&mut self, fields: &'a Fields, op: &Op) -> Evaluated<'a> {
        self.leaf(fields, op).map(|leaf| match leaf {
            Leaf::Json(json, numbers) => Value::typed(json, numbers),
            Leaf::Value(value) => value,
        })
    }

    /// `root.a.b`: walks JSON from object to object without creating a value for each.
    #[inline]
    pub(super) fn leaf(&mut self, fields: &'a Fields, op: &Op) -> Result<Leaf<'a>, EvalError> {
        self.fuel.spend(fields.steps.len() as u64).map_err(|e| e.at(op.span))?;
        let mut value = self.root(fields.root, &fields.name, op)?;
        if let Value::Map(Map::Json(mut object, mut numbers)) = value {
            let mut steps = fields.steps.iter();
            while let Some(step) = steps.next() {
                numbers = numbers.and_then(|n| n.field(&step.name));
                match object.get(&*step.name) {
                    Some(found) if steps.as_slice().is_empty() => return Ok(Leaf::Json(found, numbers)),
                    Some(serde_json::Value::Object(inner)) => object = inner,
                    Some(found) => {
                        let next = steps.as_slice().first().unwrap_or(step);
                        return Err(no_fields(&Value::typed(found, numbers), &next.name).at(next.span));
                    }
                    None => return Err(no_such_field(&step.name).at(step.span)),
                }
            }
            return Ok(Leaf::Value(Value::Map(Map::Json(object, numbers))));
        }
        for step in &fields.steps {
            value = field(&value, &step.name, self.fuel).map_err(|e| e.at(step.span))?;
        }
        Ok(Leaf::Value(value))
    }

    pub(super) fn links(&mut self, base: &'a Op, steps: &'a [Step]) -> Evaluated<'a> {
        let mut value = self.eval(base)?;
        for step in steps {
            self.fuel.spend(1).map_err(|e| e.at(step.span))?;
            value = self.step(value, step).map_err(|e| e.at(step.span))?;
        }
        Ok(value)
    }

    #[inline(never)]
    fn step(&mut self, value: Value<'a>, step: &'a Step) -> Evaluated<'a> {
        match &step.kind {
            StepKind::Field(name) => field(&value, name, self.fuel),
            StepKind::Index(op) => {
                let at = self.eval(op)?;
                index(&value, &at, self.fuel)
            }
            StepKind::Method(f, args) => self.method(*f, value, args),
            StepKind::Matches(pattern) => self.matches(&value, pattern),
            StepKind::Macro(step) => self.run_macro(value, step),
            StepKind::UnknownMethod(name) => Err(EvalDetail::NoFunction { name: name.to_string() }.into()),
        }
    }

    #[inline(never)]
    fn method(&mut self, f: Function, value: Value<'a>, args: &'a [Op]) -> Evaluated<'a> {
        match args {
            [] => functions::call(f, &[value], self.fuel),
            [a] => {
                let args = [value, self.eval(a)?];
                functions::call(f, &args, self.fuel)
            }
            _ => {
                let mut all = vec![value];
                for arg in args {
                    all.push(self.eval(arg)?);
                }
                functions::call(f, &all, self.fuel)
            }
        }
    }

    pub(super) fn matches(&mut self, value: &Value<'a>, pattern: &Pattern) -> Evaluated<'a> {
        match value {
            Value::String(s) => pattern.is_match(s, self.fuel).map(Value::Bool),
            other => {
                let types = vec![other.type_name().to_owned(), "string".to_owned()];
                Err(EvalDetail::Arguments { function: "matches".to_owned(), types }.into())
            }
        }
    }

    #[inline(never)]
    pub(super) fn has(&mut self, of: &'a Op, name: &'a str) -> Evaluated<'a> {
        match self.eval(of)? {
            Value::Map(Map::Json(m, _)) => Ok(Value::Bool(m.contains_key(name))),
            Value::Map(map) => Ok(Value::Bool(map.find_str(name, self.fuel)?.is_some())),
            other => Err(no_fields(&other, name).at(of.span)),
        }
    }
}

/// `value.name`
#[inline]
pub(crate) fn field<'a>(value: &Value<'a>, name: &str, fuel: &mut Fuel) -> Evaluated<'a> {
    match value {
        Value::Map(map) => match map.find_str(name, fuel)? {
            Some(value) => Ok(value),
            None => Err(no_such_field(name)),
        },
        other => Err(no_fields(other, name)),
    }
}

#[cold]
fn no_such_field(name: &str) -> EvalError {
    EvalDetail::NoField { field: shorten(name) }.into()
}

#[cold]
fn no_fields(value: &Value<'_>, name: &str) -> EvalError {
    EvalDetail::FieldOf { field: shorten(name), found: value.type_name().to_owned() }.into()
}

/// `value[at]`
pub(crate) fn index<'a>(value: &Value<'a>, at: &Value<'_>, fuel: &mut Fuel) -> Evaluated<'a> {
    match value {
        Value::Map(map) => {
            if let Value::String(s) = at {
                fuel.spend_bytes(s.len())?;
            }
            let found = match Key::lookup(at) {
                Some(key) => map.find(&key, fuel)?,
                None => None,
            };
            found.ok_or_else(|| EvalDetail::NoKey { key: brief(at) }.into())
        }
        Value::List(list) => {
            let wanted = match at {
                Value::Int(i) => Some(*i),
                Value::Uint(u) => Some(i64::try_from(*u).unwrap_or(i64::MAX)),
                Value::Double(d) => number::exact_i64(*d),
                _ => None,
            };
            let Some(i) = wanted else {
                return Err(EvalDetail::NotAnIndex { value: brief(at) }.into());
            };
            let item = usize::try_from(i).ok().and_then(|i| list.get(i));
            item.ok_or_else(|| EvalDetail::Index { index: i, length: list.len() }.into())
        }
        other => Err(EvalDetail::IndexOf { found: other.type_name().to_owned() }.into()),
    }
}

/// Formats a value for a message, truncated if it is long.
fn brief(value: &Value<'_>) -> String {
    match value {
        Value::String(s) => format!("`{}`", shorten(s)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) => {
            format!("`{value:?}`")
        }
        other => a(other.type_name()),
    }
}
