//! What is known about a value: its possible types, an interval for numbers, a finite set of
//! values, or values that it does not have. Everything here errs on the side of more values.

use charter_expr::Value;
use charter_expr::ast::BinaryOp;
use serde_json::Value as Json;

/// A set of types, as bits.
pub(super) type Types = u8;
pub(super) const NULL: Types = 1;
pub(super) const BOOL: Types = 2;
/// A whole number.
pub(super) const INT: Types = 4;
/// Any number.
pub(super) const DOUBLE: Types = 8;
pub(super) const STRING: Types = 16;
pub(super) const LIST: Types = 32;
pub(super) const MAP: Types = 64;
/// Timestamps, durations, bytes and types, which JSON stores as strings; and NaN.
pub(super) const OTHER: Types = 128;
pub(super) const NUMBER: Types = INT | DOUBLE;
pub(super) const ANY: Types = 255;

/// Upper limit of the values that are remembered as excluded.
const MAX_EXCLUDED: usize = 8;
/// Upper limit of the characters of a short text.
pub(super) const MAX_SHORT: u64 = 256;
/// From here on, doubles do not hold every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The values that something can have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    pub(super) types: Types,
    /// The least number and the greatest, each with whether it is excluded.
    pub(super) low: (f64, bool),
    pub(super) high: (f64, bool),
    /// If it is a bool, a number or a string, one of these.
    pub(super) one_of: Option<Vec<Json>>,
    /// It is none of these.
    pub(super) not: Vec<Json>,
    /// The characters that it has at most if it is a text.
    pub(super) length: Option<u64>,
    /// The schema that it matches, as an index; for its fields and items.
    pub(super) schema: Option<u32>,
}

impl Values {
    pub(super) fn of(types: Types) -> Values {
        let (low, high) = ((f64::NEG_INFINITY, false), (f64::INFINITY, false));
        Values { types, low, high, one_of: None, not: Vec::new(), length: None, schema: None }
    }

    /// A digest, the id of a principal and other texts of which even many cost little fuel.
    pub(super) fn short_text() -> Values {
        Values { length: Some(MAX_SHORT), ..Values::of(STRING) }
    }

    pub(super) fn any() -> Values {
        Values::of(ANY)
    }

    /// The numbers from `low` to `high`.
    pub(super) fn between(types: Types, low: f64, high: f64) -> Values {
        let low = if low.is_nan() || low.abs() > EXACT { f64::NEG_INFINITY } else { low };
        let high = if high.is_nan() || high.abs() > EXACT { f64::INFINITY } else { high };
        Values { low: (low, false), high: (high, false), ..Values::of(types) }
    }

    /// The values that match a schema. Keywords that are not understood exclude nothing.
    pub(super) fn matching(schema: &Json, number: u32) -> Values {
        let mut values = Values::any();
        let Some(map) = schema.as_object() else { return values };
        // Data has none of the other types.
        values.types &= !OTHER;
        let word = |name: &str| match name {
            "null" => NULL,
            "boolean" => BOOL,
            "integer" => INT,
            "number" => NUMBER,
            "string" => STRING,
            "array" => LIST,
            "object" => MAP,
            _ => ANY,
        };
        match map.get("type") {
            Some(Json::String(name)) => values.types &= word(name),
            Some(Json::Array(names)) => {
                values.types &= names.iter().filter_map(Json::as_str).fold(0, |types, name| types | word(name));
            }
            _ => {}
        }
        let bound = |key: &str| map.get(key).and_then(Json::as_f64).filter(|n| n.abs() < EXACT);
        if let Some(low) = bound("minimum") {
            values.low = (low, false);
        }
        if let Some(low) = bound("exclusiveMinimum").filter(|low| *low >= values.low.0) {
            values.low = (low, true);
        }
        if let Some(high) = bound("maximum") {
            values.high = (high, false);
        }
        if let Some(high) = bound("exclusiveMaximum").filter(|high| *high <= values.high.0) {
            values.high = (high, true);
        }
        let list = match (map.get("const"), map.get("enum")) {
            (Some(value), _) => Some(vec![value.clone()]),
            (None, Some(Json::Array(list))) => Some(list.clone()),
            _ => None,
        };
        if let Some(list) = list {
            let types = list.iter().fold(0, |types, value| types | types_of(value));
            // A number in a list may be an int or a double.
            values.types &= if types & INT != 0 { types | NUMBER } else { types };
            values.one_of = Some(list);
        }
        values.length = map.get("maxLength").and_then(Json::as_u64);
        values.schema = Some(number);
        values
    }

    pub(super) fn is_empty(&self) -> bool {
        self.types == 0
    }

    /// Whether it can only be of these types.
    pub(super) fn within(&self, types: Types) -> bool {
        self.types & !types == 0
    }

    /// Whether it can be this bool, number, string or null.
    pub(super) fn admits(&self, value: &Json) -> bool {
        let listed = |list: &[Json]| list.iter().any(|known| same(known, value));
        if self.not.iter().any(|n| same(n, value))
            || !value.is_null() && self.one_of.as_ref().is_some_and(|l| !listed(l))
        {
            return false;
        }
        let of_type = self.types & OTHER != 0 && value.is_string()
            || self.types & types_of(value) != 0
            || value.is_number() && self.types & DOUBLE != 0;
        let inside = value.as_f64().is_none_or(|n| {
            (n > self.low.0 || n == self.low.0 && !self.low.1) && (n < self.high.0 || n == self.high.0 && !self.high.1)
        });
        of_type && inside
    }

    /// The values that are also in `other`; `None` if there are none.
    pub(super) fn meet(&self, other: &Values) -> Option<Values> {
        let mut types = self.types & other.types;
        // A whole number may be an int on one side and a double on the other.
        if self.types & NUMBER != 0 && other.types & NUMBER != 0 {
            types |= INT;
        }
        let tighter = |a: (f64, bool), b: (f64, bool), up: bool| match a.0.partial_cmp(&b.0) {
            Some(std::cmp::Ordering::Equal) => (a.0, a.1 || b.1),
            Some(order) if order.is_gt() == up => a,
            _ => b,
        };
        let mut met = Values { types, ..self.clone() };
        met.low = tighter(self.low, other.low, true);
        met.high = tighter(self.high, other.high, false);
        met.one_of = match (&self.one_of, &other.one_of) {
            (Some(a), Some(b)) => Some(a.iter().filter(|v| b.iter().any(|w| same(v, w))).cloned().collect()),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        met.length = match (self.length, other.length) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        met.schema = self.schema.or(other.schema);
        for value in &other.not {
            met.exclude(value);
        }
        met.tidy().then_some(met)
    }

    /// Removes types that the other facts exclude; whether anything is left.
    pub(super) fn tidy(&mut self) -> bool {
        if self.types & (INT | DOUBLE) == INT {
            if self.low.1 || self.low.0.fract() != 0.0 {
                let next = if self.low.0.fract() == 0.0 { self.low.0 + 1.0 } else { self.low.0.ceil() };
                self.low = (next, false);
            }
            if self.high.1 || self.high.0.fract() != 0.0 {
                let next = if self.high.0.fract() == 0.0 { self.high.0 - 1.0 } else { self.high.0.floor() };
                self.high = (next, false);
            }
        }
        let empty = self.low.0 > self.high.0 || self.low.0 == self.high.0 && (self.low.1 || self.high.1);
        if empty {
            self.types &= !NUMBER;
        }
        if let Some(list) = &mut self.one_of {
            let not = std::mem::take(&mut self.not);
            list.retain(|v| !not.iter().any(|n| same(n, v)));
            let left = list.iter().fold(0, |types, v| types | types_of(v));
            let left = if left & INT != 0 { left | NUMBER } else { left };
            self.types &= left | NULL | OTHER | LIST | MAP;
        }
        !self.is_empty()
    }

    /// Excludes a value.
    pub(super) fn exclude(&mut self, value: &Json) {
        match value {
            Json::Null => self.types &= !NULL,
            Json::Number(n) => {
                let Some(n) = n.as_f64() else { return };
                if n == self.low.0 {
                    self.low.1 = true;
                } else if n == self.high.0 {
                    self.high.1 = true;
                } else if self.not.len() < MAX_EXCLUDED && !self.not.contains(value) {
                    self.not.push(value.clone());
                }
            }
            Json::Bool(_) | Json::String(_) => {
                if self.not.len() < MAX_EXCLUDED && !self.not.contains(value) {
                    self.not.push(value.clone());
                }
            }
            Json::Array(_) | Json::Object(_) => {}
        }
    }

    /// Splits numbers by a comparison with a constant: those for which it holds, and the others.
    /// `None` where there are none.
    pub(super) fn split(&self, op: BinaryOp, n: f64) -> (Option<Values>, Option<Values>) {
        if n.abs() > EXACT {
            return (Some(self.clone()), Some(self.clone()));
        }
        let below = |open: bool| Values { high: (n, open), ..Values::of(self.types) }.meet(self);
        let above = |open: bool| Values { low: (n, open), ..Values::of(self.types) }.meet(self);
        let numbers = |v: Option<Values>| v.filter(|v| v.types & NUMBER != 0);
        let (yes, no) = match op {
            BinaryOp::Lt => (below(true), above(false)),
            BinaryOp::Le => (below(false), above(true)),
            BinaryOp::Gt => (above(true), below(false)),
            BinaryOp::Ge => (above(false), below(true)),
            _ => (Some(self.clone()), Some(self.clone())),
        };
        (numbers(yes), numbers(no))
    }
}

/// The type of a JSON value, as a bit.
pub(super) fn types_of(value: &Json) -> Types {
    match value {
        Json::Null => NULL,
        Json::Bool(_) => BOOL,
        Json::Number(n) => {
            if n.as_f64().is_some_and(|n| n.fract() == 0.0) {
                INT
            } else {
                DOUBLE
            }
        }
        Json::String(_) => STRING,
        Json::Array(_) => LIST,
        Json::Object(_) => MAP,
    }
}

/// The values that a known value has.
pub(super) fn known(value: &Value<'_>) -> Values {
    match value {
        Value::Null => Values::of(NULL),
        Value::Bool(_) => Values::of(BOOL),
        Value::Int(_) | Value::Uint(_) => {
            let n = value.as_f64().unwrap_or(f64::NAN);
            Values::between(INT, n, n)
        }
        Value::Double(n) if n.is_nan() => Values::of(DOUBLE | OTHER),
        Value::Double(n) => Values::between(NUMBER, *n, *n),
        Value::String(_) => Values::of(STRING),
        Value::List(_) => Values::of(LIST),
        Value::Map(_) => Values::of(MAP),
        _ => Values::of(OTHER),
    }
}

/// Whether two values are equal, numbers by their value.
pub(super) fn same(a: &Json, b: &Json) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
