//! `size`, `type`, `dyn`, and the conversions between types (CEL specification, "Standard
//! definitions").

use super::Function;
use crate::detail::{EvalDetail, Expected};
use crate::error::EvalError;
use crate::{Duration, ExprTimestamp, Fuel, Value};

type Called<'a> = Result<Option<Value<'a>>, EvalError>;

pub(super) fn call<'a>(f: Function, args: &[Value<'a>], fuel: &mut Fuel) -> Called<'a> {
    let [arg] = args else { return Ok(None) };
    match f {
        Function::Size => size(arg, fuel),
        Function::Type => Ok(Some(Value::Type(arg.type_of()))),
        Function::Dyn => Ok(Some(arg.clone())),
        Function::Bool => to_bool(arg),
        Function::Int => to_int(arg),
        Function::Uint => to_uint(arg),
        Function::Double => to_double(arg),
        Function::String => to_string(arg, fuel),
        Function::Bytes => to_bytes(arg, fuel),
        Function::Timestamp => to_timestamp(arg),
        Function::Duration => to_duration(arg),
        _ => Ok(None),
    }
}

fn size<'a>(arg: &Value<'a>, fuel: &mut Fuel) -> Called<'a> {
    let n = match arg {
        Value::String(s) => {
            fuel.spend_bytes(s.len())?;
            s.chars().count()
        }
        Value::Bytes(b) => b.len(),
        Value::List(l) => l.len(),
        Value::Map(m) => m.len(),
        _ => return Ok(None),
    };
    Ok(Some(Value::Int(i64::try_from(n).unwrap_or(i64::MAX))))
}

fn cannot(text: &str, expected: Expected) -> EvalError {
    EvalDetail::not_a(expected, text).into()
}

fn range(expected: Expected) -> EvalError {
    EvalDetail::OutOfRange { expected }.into()
}

fn to_bool<'a>(arg: &Value<'a>) -> Called<'a> {
    Ok(Some(Value::Bool(match arg {
        Value::Bool(b) => *b,
        Value::String(s) => match s.as_str() {
            "true" | "TRUE" | "True" | "t" | "1" => true,
            "false" | "FALSE" | "False" | "f" | "0" => false,
            other => return Err(cannot(other, Expected::Bool)),
        },
        _ => return Ok(None),
    })))
}

fn to_int<'a>(arg: &Value<'a>) -> Called<'a> {
    Ok(Some(Value::Int(match arg {
        Value::Int(i) => *i,
        Value::Uint(u) => i64::try_from(*u).map_err(|_| range(Expected::Int))?,
        // The bounds are excluded, because the nearest doubles are not exactly these ints.
        Value::Double(d) if *d > -9_223_372_036_854_775_808.0 && *d < 9_223_372_036_854_775_808.0 => *d as i64,
        Value::Double(_) => return Err(range(Expected::Int)),
        Value::String(s) => s.parse().map_err(|_| cannot(s, Expected::Int))?,
        Value::Timestamp(t) => t.seconds(),
        Value::Duration(d) => d.seconds(),
        _ => return Ok(None),
    })))
}

fn to_uint<'a>(arg: &Value<'a>) -> Called<'a> {
    Ok(Some(Value::Uint(match arg {
        Value::Uint(u) => *u,
        Value::Int(i) => u64::try_from(*i).map_err(|_| range(Expected::Uint))?,
        Value::Double(d) if *d >= 0.0 && *d < 18_446_744_073_709_551_616.0 => *d as u64,
        Value::Double(_) => return Err(range(Expected::Uint)),
        Value::String(s) => s.parse().map_err(|_| cannot(s, Expected::Uint))?,
        _ => return Ok(None),
    })))
}

fn to_double<'a>(arg: &Value<'a>) -> Called<'a> {
    Ok(Some(Value::Double(match arg {
        Value::Double(d) => *d,
        Value::Int(i) => *i as f64,
        Value::Uint(u) => *u as f64,
        Value::String(s) => s.parse().map_err(|_| cannot(s, Expected::Double))?,
        _ => return Ok(None),
    })))
}

/// Formats a double: the shortest digits that parse back to the same double, with an exponent
/// outside 1e-6..1e21.
pub(super) fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "NaN".to_owned();
    }
    if d.is_infinite() {
        return if d > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = d.abs();
    if d != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{d:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{d}")
}

fn to_string<'a>(arg: &Value<'a>, fuel: &mut Fuel) -> Called<'a> {
    Ok(Some(match arg {
        Value::String(s) => Value::String(s.clone()),
        Value::Bool(b) => Value::str(if *b { "true" } else { "false" }),
        Value::Int(i) => Value::string(i.to_string()),
        Value::Uint(u) => Value::string(u.to_string()),
        Value::Double(d) => Value::string(double_text(*d)),
        Value::Bytes(b) => {
            fuel.spend_bytes(b.len())?;
            let text = std::str::from_utf8(b).map_err(|_| EvalDetail::NotUtf8)?;
            Value::string(text)
        }
        Value::Timestamp(t) => Value::string(t.to_string()),
        Value::Duration(d) => Value::string(d.to_string()),
        _ => return Ok(None),
    }))
}

fn to_bytes<'a>(arg: &Value<'a>, fuel: &mut Fuel) -> Called<'a> {
    Ok(Some(match arg {
        Value::Bytes(b) => Value::Bytes(b.clone()),
        Value::String(s) => {
            fuel.spend_bytes(s.len())?;
            Value::Bytes(s.as_bytes().to_vec().into())
        }
        _ => return Ok(None),
    }))
}

fn to_timestamp<'a>(arg: &Value<'a>) -> Called<'a> {
    Ok(Some(Value::Timestamp(match arg {
        Value::Timestamp(t) => *t,
        Value::String(s) => ExprTimestamp::parse(s)?,
        Value::Int(i) => ExprTimestamp::from_seconds(*i)?,
        _ => return Ok(None),
    })))
}

fn to_duration<'a>(arg: &Value<'a>) -> Called<'a> {
    Ok(Some(Value::Duration(match arg {
        Value::Duration(d) => *d,
        Value::String(s) => Duration::parse(s)?,
        _ => return Ok(None),
    })))
}
