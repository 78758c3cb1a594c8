//! `format` of the strings extension: `"%s is %.2f".format([name, share])`.

use super::convert::double_text;
use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::{Fuel, Key, MAX_DATA_DEPTH, Value};

/// Maximum number of decimals in a clause.
const MAX_PRECISION: usize = 1000;

pub(super) fn call<'a>(args: &[Value<'a>], fuel: &mut Fuel) -> Result<Option<Value<'a>>, EvalError> {
    let [Value::String(template), Value::List(values)] = args else {
        return Ok(None);
    };
    let mut out = Output { text: String::new(), fuel };
    let mut rest = template.as_str();
    let mut used: usize = 0;
    while let Some((before, after)) = rest.split_once('%') {
        out.push(before)?;
        if let Some(after) = after.strip_prefix('%') {
            out.push("%")?;
            rest = after;
            continue;
        }
        let (precision, after) = precision(after)?;
        let Some(verb) = after.chars().next() else {
            return Err(EvalDetail::FormatEnds.into());
        };
        let value = values.get(used).ok_or_else(|| EvalDetail::FormatValues { index: used, length: values.len() })?;
        used = used.saturating_add(1);
        out.clause(verb, precision, &value)?;
        rest = after.get(verb.len_utf8()..).unwrap_or("");
    }
    out.push(rest)?;
    Ok(Some(Value::string(out.text)))
}

fn precision(text: &str) -> Result<(Option<usize>, &str), EvalError> {
    let Some(figures) = text.strip_prefix('.') else {
        return Ok((None, text));
    };
    let end = figures.find(|c: char| !c.is_ascii_digit()).unwrap_or(figures.len());
    let (figures, rest) = figures.split_at_checked(end).unwrap_or((figures, ""));
    match figures.parse::<usize>() {
        Ok(n) if n <= MAX_PRECISION => Ok((Some(n), rest)),
        _ => Err(EvalDetail::FormatPrecision { limit: MAX_PRECISION }.into()),
    }
}

struct Output<'f> {
    text: String,
    fuel: &'f mut Fuel,
}

impl Output<'_> {
    fn push(&mut self, s: &str) -> Result<(), EvalError> {
        self.fuel.spend_bytes(s.len())?;
        self.text.push_str(s);
        Ok(())
    }

    fn clause(&mut self, verb: char, precision: Option<usize>, value: &Value<'_>) -> Result<(), EvalError> {
        // For a string or bytes, the fuel for the digits is spent before the digits are produced.
        if matches!(verb, 'x' | 'X') {
            let len = match value {
                Value::String(s) => s.len(),
                Value::Bytes(b) => b.len(),
                _ => 0,
            };
            self.fuel.spend_bytes(len)?;
        }
        let text = match verb {
            's' => return self.show(value, 0),
            'd' => decimal(value),
            'f' => fixed(value, precision.unwrap_or(6)),
            'e' => scientific(value, precision.unwrap_or(6)),
            'b' => binary(value),
            'o' => octal(value),
            'x' => hex(value).map(|s| s.to_lowercase()),
            'X' => hex(value).map(|s| s.to_uppercase()),
            other => {
                return Err(EvalDetail::FormatClause { clause: other.escape_debug().to_string() }.into());
            }
        };
        match text {
            Some(text) => self.push(&text),
            None => {
                Err(EvalDetail::FormatType { clause: verb.to_string(), found: value.type_name().to_owned() }.into())
            }
        }
    }

    /// Formats any value as `%s`; lists and maps show their items in order.
    fn show(&mut self, value: &Value<'_>, depth: usize) -> Result<(), EvalError> {
        if depth > MAX_DATA_DEPTH {
            return Err(EvalError::too_deep());
        }
        let deeper = depth.saturating_add(1);
        self.fuel.spend(1)?;
        match value {
            Value::Null => self.push("null"),
            Value::Bool(b) => self.push(if *b { "true" } else { "false" }),
            Value::Int(i) => self.push(&i.to_string()),
            Value::Uint(u) => self.push(&u.to_string()),
            Value::Double(d) => self.push(&special(*d).map_or_else(|| double_text(*d), str::to_owned)),
            Value::String(s) => self.push(s),
            Value::Bytes(b) => self.push(&String::from_utf8_lossy(b)),
            Value::Timestamp(t) => self.push(&t.to_string()),
            Value::Duration(d) => self.push(&d.to_string()),
            Value::Type(t) => self.push(t.name()),
            Value::List(list) => {
                self.push("[")?;
                for (i, item) in list.iter().enumerate() {
                    if i > 0 {
                        self.push(", ")?;
                    }
                    self.show(&item, deeper)?;
                }
                self.push("]")
            }
            Value::Map(map) => {
                self.fuel.spend_elements(map.len())?;
                self.push("{")?;
                for (i, (key, item)) in map.entries().into_iter().enumerate() {
                    if i > 0 {
                        self.push(", ")?;
                    }
                    match &key {
                        Key::String(s) => self.push(s)?,
                        key => self.show(&key.clone().into_value(), deeper)?,
                    }
                    self.push(": ")?;
                    self.show(&item, deeper)?;
                }
                self.push("}")
            }
        }
    }
}

/// Formats doubles that have no digits: NaN and the infinities.
fn special(d: f64) -> Option<&'static str> {
    if d.is_nan() {
        Some("NaN")
    } else if d == f64::INFINITY {
        Some("Infinity")
    } else if d == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

fn decimal(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Int(i) => Some(i.to_string()),
        Value::Uint(u) => Some(u.to_string()),
        Value::Double(d) => special(*d).map(str::to_owned),
        _ => None,
    }
}

fn fixed(value: &Value<'_>, precision: usize) -> Option<String> {
    let d = value.as_f64()?;
    Some(special(d).map_or_else(|| format!("{d:.precision$}"), str::to_owned))
}

/// Formats a number in scientific notation. The exponent has a sign and at least two digits:
/// `2.718280e+00`.
fn scientific(value: &Value<'_>, precision: usize) -> Option<String> {
    let d = value.as_f64()?;
    if let Some(text) = special(d) {
        return Some(text.to_owned());
    }
    let text = format!("{d:.precision$e}");
    let (digits, exponent) = text.split_once('e')?;
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    Some(format!("{digits}e{sign}{exponent:0>2}"))
}

/// Formats the sign and the digits of the absolute value.
fn signed(i: i64, digits: impl Fn(u64) -> String) -> String {
    format!("{}{}", if i < 0 { "-" } else { "" }, digits(i.unsigned_abs()))
}

fn binary(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Int(i) => Some(signed(*i, |u| format!("{u:b}"))),
        Value::Uint(u) => Some(format!("{u:b}")),
        Value::Bool(b) => Some(u8::from(*b).to_string()),
        _ => None,
    }
}

fn octal(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Int(i) => Some(signed(*i, |u| format!("{u:o}"))),
        Value::Uint(u) => Some(format!("{u:o}")),
        _ => None,
    }
}

fn hex(value: &Value<'_>) -> Option<String> {
    fn bytes(b: &[u8]) -> String {
        b.iter().map(|b| format!("{b:02x}")).collect()
    }
    match value {
        Value::Int(i) => Some(signed(*i, |u| format!("{u:x}"))),
        Value::Uint(u) => Some(format!("{u:x}")),
        Value::String(s) => Some(bytes(s.as_bytes())),
        Value::Bytes(b) => Some(bytes(b)),
        _ => None,
    }
}
