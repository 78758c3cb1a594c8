//! Functions on strings: the standard ones and the strings extension. Indexes count code points,
//! starting at 0.

use super::Function;
use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::{Fuel, Value};

type Called<'a> = Result<Option<Value<'a>>, EvalError>;

pub(super) fn call<'a>(f: Function, args: &[Value<'a>], fuel: &mut Fuel) -> Called<'a> {
    for arg in args {
        if let Value::String(s) = arg {
            fuel.spend_bytes(s.len())?;
        }
    }
    Ok(Some(match (f, args) {
        (Function::Contains, [Value::String(s), Value::String(part)]) => Value::Bool(s.contains(part.as_str())),
        (Function::StartsWith, [Value::String(s), Value::String(part)]) => Value::Bool(s.starts_with(part.as_str())),
        (Function::EndsWith, [Value::String(s), Value::String(part)]) => Value::Bool(s.ends_with(part.as_str())),
        (Function::CharAt, [Value::String(s), Value::Int(at)]) => char_at(s, *at)?,
        (Function::IndexOf, [Value::String(s), Value::String(part)]) => index_of(s, part, 0)?,
        (Function::IndexOf, [Value::String(s), Value::String(part), Value::Int(from)]) => index_of(s, part, *from)?,
        (Function::LastIndexOf, [Value::String(s), Value::String(part)]) => last_index_of(s, part, None)?,
        (Function::LastIndexOf, [Value::String(s), Value::String(part), Value::Int(from)]) => {
            last_index_of(s, part, Some(*from))?
        }
        (Function::LowerAscii, [Value::String(s)]) => Value::string(s.to_ascii_lowercase()),
        (Function::UpperAscii, [Value::String(s)]) => Value::string(s.to_ascii_uppercase()),
        (Function::Replace, [Value::String(s), Value::String(from), Value::String(to)]) => {
            replace(s, from, to, -1, fuel)?
        }
        (Function::Replace, [Value::String(s), Value::String(from), Value::String(to), Value::Int(limit)]) => {
            replace(s, from, to, *limit, fuel)?
        }
        (Function::Split, [Value::String(s), Value::String(at)]) => split(s, at, -1, fuel)?,
        (Function::Split, [Value::String(s), Value::String(at), Value::Int(limit)]) => split(s, at, *limit, fuel)?,
        (Function::Substring, [Value::String(s), Value::Int(from)]) => substring(s, *from, None)?,
        (Function::Substring, [Value::String(s), Value::Int(from), Value::Int(to)]) => substring(s, *from, Some(*to))?,
        (Function::Trim, [Value::String(s)]) => Value::string(s.trim()),
        (Function::Reverse, [Value::String(s)]) => Value::string(s.chars().rev().collect::<String>()),
        (Function::Quote, [Value::String(s)]) => Value::string(quote(s)),
        (Function::Join, [Value::List(_)]) => return join(args, "", fuel),
        (Function::Join, [Value::List(_), Value::String(between)]) => {
            return join(args, between, fuel);
        }
        _ => return Ok(None),
    }))
}

fn out_of_range(index: i64) -> EvalError {
    EvalDetail::Position { index }.into()
}

/// Returns the byte offset of the code point at `index`, which may be the end of the string.
fn offset(s: &str, index: i64) -> Result<usize, EvalError> {
    let mut left = usize::try_from(index).map_err(|_| out_of_range(index))?;
    for (at, _) in s.char_indices() {
        if left == 0 {
            return Ok(at);
        }
        left = left.saturating_sub(1);
    }
    if left == 0 { Ok(s.len()) } else { Err(out_of_range(index)) }
}

/// Returns the number of code points before a byte offset.
fn position(s: &str, at: usize) -> Value<'static> {
    let n = s.get(..at).unwrap_or("").chars().count();
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

fn char_at(s: &str, at: i64) -> Result<Value<'static>, EvalError> {
    let rest = s.get(offset(s, at)?..).unwrap_or("");
    Ok(rest.chars().next().map_or(Value::str(""), |c| Value::string(c.to_string())))
}

fn index_of(s: &str, part: &str, from: i64) -> Result<Value<'static>, EvalError> {
    let start = offset(s, from)?;
    let found = s.get(start..).unwrap_or("").find(part);
    Ok(found.map_or(Value::Int(-1), |at| position(s, start.saturating_add(at))))
}

/// Finds the last match that starts at or before `from`.
fn last_index_of(s: &str, part: &str, from: Option<i64>) -> Result<Value<'static>, EvalError> {
    let end = match from {
        None => s.len(),
        Some(from) => {
            let start = offset(s, from)?;
            // The match may start at `from` and thus end after it.
            let mut end = start.saturating_add(part.len()).min(s.len());
            while !s.is_char_boundary(end) {
                end = end.saturating_sub(1);
            }
            end
        }
    };
    let found = s.get(..end).unwrap_or("").rfind(part);
    Ok(found.map_or(Value::Int(-1), |at| position(s, at)))
}

fn replace(s: &str, from: &str, to: &str, limit: i64, fuel: &mut Fuel) -> Result<Value<'static>, EvalError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = if from.is_empty() { s.chars().count().saturating_add(1) } else { s.matches(from).count() };
    fuel.spend_bytes(count.min(limit).saturating_mul(to.len()).saturating_add(s.len()))?;
    Ok(Value::string(s.replacen(from, to, limit)))
}

/// Splits a string into at most `limit` parts, of which the last one contains the rest. A negative
/// limit means no limit; 0 returns an empty list.
fn split(s: &str, at: &str, limit: i64, fuel: &mut Fuel) -> Result<Value<'static>, EvalError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<Value<'static>> = Vec::new();
    if limit == 0 {
        return Ok(Value::list(parts));
    }
    if at.is_empty() {
        let mut rest = s;
        while let Some(c) = rest.chars().next() {
            fuel.spend(1)?;
            if parts.len().saturating_add(1) == limit {
                break;
            }
            parts.push(Value::string(c.to_string()));
            rest = rest.get(c.len_utf8()..).unwrap_or("");
        }
        if !rest.is_empty() {
            parts.push(Value::string(rest));
        }
    } else {
        for part in s.splitn(limit, at) {
            fuel.spend(1)?;
            parts.push(Value::string(part));
        }
    }
    Ok(Value::list(parts))
}

fn substring(s: &str, from: i64, to: Option<i64>) -> Result<Value<'static>, EvalError> {
    let start = offset(s, from)?;
    let end = match to {
        None => s.len(),
        Some(to) => offset(s, to)?,
    };
    match s.get(start..end) {
        Some(part) => Ok(Value::string(part)),
        None => Err(EvalDetail::Substring { from, to: to.unwrap_or(0) }.into()),
    }
}

fn join<'a>(args: &[Value<'a>], between: &str, fuel: &mut Fuel) -> Called<'a> {
    let Some(Value::List(list)) = args.first() else {
        return Ok(None);
    };
    let mut out = String::new();
    for (i, item) in list.iter().enumerate() {
        let Value::String(s) = &item else {
            return Ok(None);
        };
        fuel.spend(1)?;
        fuel.spend_bytes(s.len().saturating_add(between.len()))?;
        if i > 0 {
            out.push_str(between);
        }
        out.push_str(s);
    }
    Ok(Some(Value::string(out)))
}

/// Formats the string as a literal in double quotes.
pub(crate) fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
