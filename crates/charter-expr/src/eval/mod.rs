//! Evaluation of a program. It recurses only where the source is nested, and every step costs fuel.

mod links;
mod macros;
mod operators;
#[cfg(test)]
mod tests;
mod truth;

pub(crate) use links::{field, index};
pub(crate) use operators::{binary, negate};

use crate::ast::BinaryOp;
use crate::detail::EvalDetail;
use crate::error::{ErrorKind, EvalError};
use crate::functions;
use crate::program::{Code, Constant, Op};
use crate::value::{MapBuilder, equal};
use crate::{Fuel, Key, Scope, Value};

pub(crate) type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// One evaluation: the source of values, the remaining fuel, and the variables of the enclosing
/// macros.
pub(crate) struct Evaluation<'a, 's> {
    scope: &'s (dyn Scope<'a> + 's),
    fuel: &'s mut Fuel,
    locals: Vec<Value<'a>>,
}

impl<'a, 's> Evaluation<'a, 's> {
    pub(crate) fn new(scope: &'s (dyn Scope<'a> + 's), fuel: &'s mut Fuel) -> Self {
        Evaluation { scope, fuel, locals: Vec::new() }
    }

    /// Evaluates an operation. Frequent operations are inline and the others behind calls: a small
    /// stack frame allows deep nesting.
    pub(crate) fn eval(&mut self, op: &'a Op) -> Evaluated<'a> {
        self.fuel.spend(1).map_err(|e| e.at(op.span))?;
        match &op.code {
            Code::Constant(c) => Ok(c.value()),
            Code::Fields(fields) => self.fields(fields, op),
            Code::And(operands) => self.decided_by(operands, false).map(Value::Bool),
            Code::Or(operands) => self.decided_by(operands, true).map(Value::Bool),
            Code::Chain(first, rest) => self.chain(first, rest, op),
            Code::Local(slot, name) => self.local(*slot, name, op),
            Code::Links(base, steps) => self.links(base, steps),
            Code::Root(id, name) => self.root(*id, name, op),
            Code::Not(count, operand) => self.not(*count, operand).map(Value::Bool),
            Code::Conditional(arms, otherwise) => self.conditional(arms, otherwise),
            Code::InConstants(item, constants) => self.in_constants(item, constants),
            code => self.rare(code, op),
        }
    }

    #[inline(never)]
    fn rare(&mut self, code: &'a Code, op: &'a Op) -> Evaluated<'a> {
        match code {
            Code::List(items) => self.list(items),
            Code::Map(entries) => self.map(entries),
            Code::Has(of, field) => self.has(of, field),
            Code::Bind(value, body) => self.bind(value, body),
            Code::Negate(count, operand) => self.negate(*count, operand, op),
            Code::Call(f, args) => self.call(*f, args).map_err(|e| e.at(op.span)),
            Code::HostCall(id, args) => {
                let args = self.all(args)?;
                self.scope.call(*id, &args, self.fuel).map_err(|e| e.at(op.span))
            }
            Code::Matches(subject, pattern) => {
                let subject = self.eval(subject)?;
                self.matches(&subject, pattern).map_err(|e| e.at(op.span))
            }
            Code::Unbound(name) => Err(unbound(name).at(op.span)),
            Code::UnknownCall(name) => {
                Err(EvalError::from(EvalDetail::NoFunction { name: name.to_string() }).at(op.span))
            }
            // All other operations are handled in `eval`.
            _ => Err(EvalError::new(ErrorKind::Unbound, "this cannot be evaluated").at(op.span)),
        }
    }

    fn local(&self, slot: usize, name: &str, op: &Op) -> Evaluated<'a> {
        self.locals.get(slot).cloned().ok_or_else(|| unbound(name).at(op.span))
    }

    #[inline(never)]
    fn list(&mut self, items: &'a [Op]) -> Evaluated<'a> {
        Ok(Value::list(self.all(items)?))
    }

    fn all(&mut self, items: &'a [Op]) -> Result<Vec<Value<'a>>, EvalError> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            out.push(self.eval(item)?);
        }
        Ok(out)
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [(Op, Op)]) -> Evaluated<'a> {
        let mut builder = MapBuilder::default();
        for (key_op, value_op) in entries {
            let key = self.eval(key_op)?;
            let key = Key::from_value(&key).ok_or_else(|| bad_key(&key).at(key_op.span))?;
            builder.push(key, self.eval(value_op)?);
        }
        let span = entries.first().zip(entries.last()).map(|(a, b)| a.0.span.to(b.1.span));
        match (builder.finish(), span) {
            (Err(e), Some(span)) => Err(e.at(span)),
            (result, _) => result.map(Value::Map),
        }
    }

    #[inline(never)]
    fn bind(&mut self, value: &'a Op, body: &'a Op) -> Evaluated<'a> {
        let value = self.eval(value)?;
        let before = self.locals.len();
        self.locals.push(value);
        let result = self.eval(body);
        self.locals.truncate(before);
        result
    }

    #[inline(never)]
    fn conditional(&mut self, arms: &'a [(Op, Op)], otherwise: &'a Op) -> Evaluated<'a> {
        for (condition, result) in arms {
            if self.truth(condition, &|| "a condition".to_owned())? {
                return self.eval(result);
            }
        }
        self.eval(otherwise)
    }

    fn chain(&mut self, first: &'a Op, rest: &'a [(BinaryOp, Op)], op: &Op) -> Evaluated<'a> {
        let mut left = self.eval(first)?;
        for (i, (operator, right)) in rest.iter().enumerate() {
            if i > 0 {
                self.fuel.spend(1).map_err(|e| e.at(op.span))?;
            }
            let right_value = self.eval(right)?;
            left = operators::binary(*operator, left, right_value, self.fuel)
                .map_err(|e| e.at(first.span.to(right.span)))?;
        }
        Ok(left)
    }

    #[inline(never)]
    fn in_constants(&mut self, item: &'a Op, constants: &'a [Constant]) -> Evaluated<'a> {
        let item = self.eval(item)?;
        for constant in constants {
            self.fuel.spend(1)?;
            if equal(&item, &constant.value(), self.fuel)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    #[inline(never)]
    fn negate(&mut self, count: usize, operand: &'a Op, op: &Op) -> Evaluated<'a> {
        let mut value = self.eval(operand)?;
        for _ in 0..count {
            self.fuel.spend(1).map_err(|e| e.at(op.span))?;
            value = operators::negate(value).map_err(|e| e.at(op.span))?;
        }
        Ok(value)
    }

    /// Calls a library function, without an allocation for the usual numbers of arguments.
    #[inline(never)]
    fn call(&mut self, f: functions::Function, args: &'a [Op]) -> Evaluated<'a> {
        match args {
            [a] => {
                let args = [self.eval(a)?];
                functions::call(f, &args, self.fuel)
            }
            [a, b] => {
                let args = [self.eval(a)?, self.eval(b)?];
                functions::call(f, &args, self.fuel)
            }
            _ => {
                let args = self.all(args)?;
                functions::call(f, &args, self.fuel)
            }
        }
    }
}

fn unbound(name: &str) -> EvalError {
    EvalDetail::Unbound { name: name.to_owned() }.into()
}

fn bad_key(key: &Value<'_>) -> EvalError {
    EvalDetail::KeyType { found: key.type_name().to_owned() }.into()
}

fn not_a_bool(value: &Value<'_>, wanted_by: &str) -> EvalError {
    EvalDetail::needs(wanted_by, "a bool", value.type_name()).into()
}
