//! The operators on values (CEL specification, "Standard definitions").

use std::cmp::Ordering;

use crate::ast::BinaryOp;
use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::value::{equal, order};
use crate::{Fuel, Key, List, Value};

use super::Evaluated;

#[inline]
pub(crate) fn binary<'a>(op: BinaryOp, left: Value<'a>, right: Value<'a>, fuel: &mut Fuel) -> Evaluated<'a> {
    if op.level() == 1 { relation(op, &left, &right, fuel).map(Value::Bool) } else { arithmetic(op, left, right, fuel) }
}

/// The operators that return a bool.
#[inline]
pub(super) fn relation(op: BinaryOp, left: &Value<'_>, right: &Value<'_>, fuel: &mut Fuel) -> Result<bool, EvalError> {
    match op {
        BinaryOp::Eq => equal(left, right, fuel),
        BinaryOp::Ne => equal(left, right, fuel).map(|equal| !equal),
        BinaryOp::In => contains(left, right, fuel),
        _ => match order(left, right, fuel)?.map(|ordering| holds(op, ordering)) {
            Some(Some(answer)) => Ok(answer),
            _ => Err(no_overload(op, left, right)),
        },
    }
}

/// Whether a comparison holds, given the order of its operands (`None` if one is NaN); `None` for
/// operators that do not compare.
#[inline]
pub(super) fn holds(op: BinaryOp, ordering: Option<Ordering>) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => ordering == Some(Ordering::Equal),
        BinaryOp::Ne => ordering != Some(Ordering::Equal),
        BinaryOp::Lt => ordering.is_some_and(Ordering::is_lt),
        BinaryOp::Le => ordering.is_some_and(Ordering::is_le),
        BinaryOp::Gt => ordering.is_some_and(Ordering::is_gt),
        BinaryOp::Ge => ordering.is_some_and(Ordering::is_ge),
        _ => return None,
    })
}

/// `item in container`.
#[inline(never)]
fn contains(item: &Value<'_>, container: &Value<'_>, fuel: &mut Fuel) -> Result<bool, EvalError> {
    match container {
        Value::List(list) => {
            for candidate in list.iter() {
                fuel.spend(1)?;
                if equal(item, &candidate, fuel)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => {
            if let Value::String(s) = item {
                fuel.spend_bytes(s.len())?;
            }
            Ok(match Key::lookup(item) {
                Some(key) => map.find(&key, fuel)?.is_some(),
                None => false,
            })
        }
        _ => Err(no_overload(BinaryOp::In, item, container)),
    }
}

#[inline(never)]
fn arithmetic<'a>(op: BinaryOp, left: Value<'a>, right: Value<'a>, fuel: &mut Fuel) -> Evaluated<'a> {
    match (&left, &right) {
        (Value::Int(a), Value::Int(b)) => int(op, *a, *b).map(Value::Int),
        (Value::Uint(a), Value::Uint(b)) => uint(op, *a, *b).map(Value::Uint),
        (Value::Double(a), Value::Double(b)) => double(op, *a, *b).ok_or_else(|| no_overload(op, &left, &right)),
        // An extension of CEL: the int is converted.
        (Value::Int(a), Value::Double(b)) => double(op, *a as f64, *b).ok_or_else(|| no_overload(op, &left, &right)),
        (Value::Double(a), Value::Int(b)) => double(op, *a, *b as f64).ok_or_else(|| no_overload(op, &left, &right)),
        _ => match op {
            BinaryOp::Add => add(left, right, fuel),
            BinaryOp::Sub => match (&left, &right) {
                (Value::Timestamp(a), Value::Timestamp(b)) => a.since(*b).map(Value::Duration),
                (Value::Timestamp(a), Value::Duration(b)) => a.minus(*b).map(Value::Timestamp),
                (Value::Duration(a), Value::Duration(b)) => a.minus(*b).map(Value::Duration),
                _ => Err(no_overload(op, &left, &right)),
            },
            _ => Err(no_overload(op, &left, &right)),
        },
    }
}

fn add<'a>(left: Value<'a>, right: Value<'a>, fuel: &mut Fuel) -> Evaluated<'a> {
    match (&left, &right) {
        (Value::String(a), Value::String(b)) => {
            let len = a.len().saturating_add(b.len());
            fuel.spend_bytes(len)?;
            let mut out = String::with_capacity(len);
            out.push_str(a);
            out.push_str(b);
            Ok(Value::string(out))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            fuel.spend_bytes(a.len().saturating_add(b.len()))?;
            Ok(Value::Bytes([a.as_slice(), b.as_slice()].concat().into()))
        }
        (Value::List(a), Value::List(b)) => {
            if b.is_empty() {
                return Ok(left);
            }
            if a.is_empty() {
                return Ok(right);
            }
            fuel.spend_elements(a.len().saturating_add(b.len()))?;
            Ok(Value::List(List::Owned(a.iter().chain(b.iter()).collect())))
        }
        (Value::Timestamp(a), Value::Duration(b)) => a.add(*b).map(Value::Timestamp),
        (Value::Duration(a), Value::Timestamp(b)) => b.add(*a).map(Value::Timestamp),
        (Value::Duration(a), Value::Duration(b)) => a.add(*b).map(Value::Duration),
        _ => Err(no_overload(BinaryOp::Add, &left, &right)),
    }
}

fn overflow(op: BinaryOp, a: impl std::fmt::Display, b: impl std::fmt::Display) -> EvalError {
    EvalDetail::Overflow { operation: format!("{a} {} {b}", op.symbol()) }.into()
}

fn by_zero(op: BinaryOp) -> EvalError {
    EvalDetail::ByZero { operator: op.symbol().to_owned() }.into()
}

fn int(op: BinaryOp, a: i64, b: i64) -> Result<i64, EvalError> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => return Err(by_zero(op)),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        _ => None,
    };
    result.ok_or_else(|| overflow(op, a, b))
}

fn double<'a>(op: BinaryOp, a: f64, b: f64) -> Option<Value<'a>> {
    Some(Value::Double(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        _ => return None,
    }))
}

fn uint(op: BinaryOp, a: u64, b: u64) -> Result<u64, EvalError> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => return Err(by_zero(op)),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        _ => None,
    };
    result.ok_or_else(|| overflow(op, a, b))
}

pub(crate) fn negate(value: Value<'_>) -> Evaluated<'_> {
    match value {
        Value::Int(i) => {
            i.checked_neg().map(Value::Int).ok_or_else(|| EvalDetail::Overflow { operation: format!("-({i})") }.into())
        }
        Value::Double(d) => Ok(Value::Double(-d)),
        Value::Duration(d) => d.negated().map(Value::Duration),
        other => {
            Err(EvalDetail::Operands { operator: "-".to_owned(), types: vec![other.type_name().to_owned()] }.into())
        }
    }
}

#[cold]
fn no_overload(op: BinaryOp, left: &Value<'_>, right: &Value<'_>) -> EvalError {
    let types = [left, right].map(|value| value.type_name().to_owned());
    EvalDetail::Operands { operator: op.symbol().to_owned(), types: types.into() }.into()
}
