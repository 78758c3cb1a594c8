//! The math extension.

use std::cmp::Ordering;

use super::Function;
use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::value::order;
use crate::{Fuel, Value};

type Called<'a> = Result<Option<Value<'a>>, EvalError>;

pub(super) fn call<'a>(f: Function, args: &[Value<'a>], fuel: &mut Fuel) -> Called<'a> {
    match f {
        Function::Greatest => extreme(args, Ordering::Greater, fuel),
        Function::Least => extreme(args, Ordering::Less, fuel),
        Function::Abs | Function::Sign | Function::Sqrt => unary(f, args),
        Function::BitAnd | Function::BitOr | Function::BitXor | Function::BitNot => bits(f, args),
        Function::BitShiftLeft | Function::BitShiftRight => shift(f, args),
        _ => Ok(on_double(f, args)),
    }
}

fn is_number(v: &Value<'_>) -> bool {
    matches!(v, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// Evaluates `greatest` and `least` of the arguments or of one list. Of equal values, the first one
/// is returned.
fn extreme<'a>(args: &[Value<'a>], wanted: Ordering, fuel: &mut Fuel) -> Called<'a> {
    fn pick<'a>(items: impl Iterator<Item = Value<'a>>, wanted: Ordering, fuel: &mut Fuel) -> Called<'a> {
        let mut best: Option<Value<'a>> = None;
        for item in items {
            fuel.spend(1)?;
            if !is_number(&item) {
                return Ok(None);
            }
            let better = match &best {
                None => true,
                Some(best) => order(&item, best, fuel)?.flatten() == Some(wanted),
            };
            if better {
                best = Some(item);
            }
        }
        Ok(best)
    }
    match args {
        [Value::List(list)] if list.is_empty() => Err(EvalDetail::NoNumbers.into()),
        [Value::List(list)] => pick(list.iter(), wanted, fuel),
        _ => pick(args.iter().cloned(), wanted, fuel),
    }
}

fn unary<'a>(f: Function, args: &[Value<'a>]) -> Called<'a> {
    let [arg] = args else { return Ok(None) };
    Ok(Some(match (f, arg) {
        (Function::Abs, Value::Int(i)) => {
            Value::Int(i.checked_abs().ok_or_else(|| EvalDetail::Overflow { operation: format!("math.abs({i})") })?)
        }
        (Function::Abs, Value::Uint(u)) => Value::Uint(*u),
        (Function::Abs, Value::Double(d)) => Value::Double(d.abs()),
        (Function::Sign, Value::Int(i)) => Value::Int(i.signum()),
        (Function::Sign, Value::Uint(u)) => Value::Uint((*u).min(1)),
        (Function::Sign, Value::Double(d)) => Value::Double(if d.is_nan() || *d == 0.0 { *d } else { d.signum() }),
        (Function::Sqrt, Value::Int(i)) => Value::Double((*i as f64).sqrt()),
        (Function::Sqrt, Value::Uint(u)) => Value::Double((*u as f64).sqrt()),
        (Function::Sqrt, Value::Double(d)) => Value::Double(d.sqrt()),
        _ => return Ok(None),
    }))
}

fn on_double<'a>(f: Function, args: &[Value<'a>]) -> Option<Value<'a>> {
    let [Value::Double(d)] = args else {
        return None;
    };
    Some(match f {
        Function::Ceil => Value::Double(d.ceil()),
        Function::Floor => Value::Double(d.floor()),
        Function::Round => Value::Double(d.round()),
        Function::Trunc => Value::Double(d.trunc()),
        Function::IsNan => Value::Bool(d.is_nan()),
        Function::IsInf => Value::Bool(d.is_infinite()),
        Function::IsFinite => Value::Bool(d.is_finite()),
        _ => return None,
    })
}

fn bits<'a>(f: Function, args: &[Value<'a>]) -> Called<'a> {
    Ok(Some(match (f, args) {
        (Function::BitAnd, [Value::Int(a), Value::Int(b)]) => Value::Int(a & b),
        (Function::BitAnd, [Value::Uint(a), Value::Uint(b)]) => Value::Uint(a & b),
        (Function::BitOr, [Value::Int(a), Value::Int(b)]) => Value::Int(a | b),
        (Function::BitOr, [Value::Uint(a), Value::Uint(b)]) => Value::Uint(a | b),
        (Function::BitXor, [Value::Int(a), Value::Int(b)]) => Value::Int(a ^ b),
        (Function::BitXor, [Value::Uint(a), Value::Uint(b)]) => Value::Uint(a ^ b),
        (Function::BitNot, [Value::Int(a)]) => Value::Int(!a),
        (Function::BitNot, [Value::Uint(a)]) => Value::Uint(!a),
        _ => return Ok(None),
    }))
}

/// Shifts the 64 bits, so that a right shift of a negative int fills with zeros. A shift by 64 bits
/// or more returns 0.
fn shift<'a>(f: Function, args: &[Value<'a>]) -> Called<'a> {
    let (bits, signed, by) = match args {
        [Value::Int(a), Value::Int(by)] => (a.cast_unsigned(), true, *by),
        [Value::Uint(a), Value::Int(by)] => (*a, false, *by),
        _ => return Ok(None),
    };
    if by < 0 {
        return Err(EvalDetail::Shift { bits: by }.into());
    }
    let by = u32::try_from(by).unwrap_or(64);
    let shifted = if f == Function::BitShiftLeft { bits.checked_shl(by) } else { bits.checked_shr(by) }.unwrap_or(0);
    Ok(Some(if signed { Value::Int(shifted.cast_signed()) } else { Value::Uint(shifted) }))
}
