//! Equality and order (CEL specification, "Equality" and "Ordering"). Numbers of different types
//! can be compared.

use std::cmp::Ordering;

use super::{List, Map, Value};
use crate::error::EvalError;
use crate::{Fuel, MAX_DATA_DEPTH};

/// Compares two values as CEL's `==` does. Spends fuel for the compared data.
#[inline]
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>, fuel: &mut Fuel) -> Result<bool, EvalError> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::String(a), Value::String(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            fuel.spend_bytes(a.len())?;
            Ok(a.as_str() == b.as_str())
        }
        _ => equal_at(a, b, fuel, 0),
    }
}

fn equal_at(a: &Value<'_>, b: &Value<'_>, fuel: &mut Fuel, depth: usize) -> Result<bool, EvalError> {
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            fuel.spend_bytes(a.len())?;
            a.as_str() == b.as_str()
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            fuel.spend_bytes(a.len().min(b.len()))?;
            a.as_slice() == b.as_slice()
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::List(a), Value::List(b)) => equal_lists(a, b, fuel, depth)?,
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b, fuel, depth)?,
        _ => numbers(a, b) == Some(Some(Ordering::Equal)),
    })
}

fn deeper(depth: usize) -> Result<usize, EvalError> {
    if depth >= MAX_DATA_DEPTH { Err(EvalError::too_deep()) } else { Ok(depth.saturating_add(1)) }
}

fn equal_lists(a: &List<'_>, b: &List<'_>, fuel: &mut Fuel, depth: usize) -> Result<bool, EvalError> {
    let depth = deeper(depth)?;
    if a.len() != b.len() {
        return Ok(false);
    }
    for (x, y) in a.iter().zip(b.iter()) {
        fuel.spend(1)?;
        if !equal_at(&x, &y, fuel, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, fuel: &mut Fuel, depth: usize) -> Result<bool, EvalError> {
    let depth = deeper(depth)?;
    if a.len() != b.len() {
        return Ok(false);
    }
    fuel.spend_elements(a.len())?;
    for key in a.keys() {
        let (Some(x), Some(y)) = (a.find(&key, fuel)?, b.find(&key, fuel)?) else {
            return Ok(false);
        };
        if let super::Key::String(s) = &key {
            fuel.spend_bytes(s.len())?;
        }
        if !equal_at(&x, &y, fuel, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Orders two values as CEL's `<`, `<=`, `>` and `>=` do. Returns `None` if the types have no
/// order, and `Some(None)` if one of the values is NaN.
#[inline]
pub(crate) fn order(a: &Value<'_>, b: &Value<'_>, fuel: &mut Fuel) -> Result<Option<Option<Ordering>>, EvalError> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(Some(a.cmp(b))),
        (Value::Double(a), Value::Double(b)) => Some(a.partial_cmp(b)),
        (Value::String(a), Value::String(b)) => {
            fuel.spend_bytes(a.len().min(b.len()))?;
            Some(Some(a.as_str().cmp(b.as_str())))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            fuel.spend_bytes(a.len().min(b.len()))?;
            Some(Some(a.as_slice().cmp(b.as_slice())))
        }
        (Value::Bool(a), Value::Bool(b)) => Some(Some(a.cmp(b))),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(Some(a.cmp(b))),
        (Value::Duration(a), Value::Duration(b)) => Some(Some(a.cmp(b))),
        _ => numbers(a, b),
    })
}

/// Compares numbers of any types.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Option<Ordering>> {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => int_double(*a, *b),
        (Value::Double(a), Value::Int(b)) => int_double(*b, *a).map(Ordering::reverse),
        (Value::Uint(a), Value::Double(b)) => uint_double(*a, *b),
        (Value::Double(a), Value::Uint(b)) => uint_double(*b, *a).map(Ordering::reverse),
        _ => return None,
    })
}

/// Compares an int with a double. The conformance suite compares the nearest doubles at the ends of
/// the range (9223372036854775807 and 9223372036854775808.0 are equal), so the int is converted. If
/// the double is out of range, its sign decides.
pub(crate) fn int_double(a: i64, b: f64) -> Option<Ordering> {
    if b < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    if b > 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    (a as f64).partial_cmp(&b)
}

fn uint_double(a: u64, b: f64) -> Option<Ordering> {
    if b < 0.0 {
        return Some(Ordering::Greater);
    }
    if b > 18_446_744_073_709_551_616.0 {
        return Some(Ordering::Less);
    }
    (a as f64).partial_cmp(&b)
}
