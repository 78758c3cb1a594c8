//! Data in any representation, as the fast validator reads it.

use serde_json::Value as Json;

/// The kinds of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool,
    /// A number without fraction and exponent.
    Int,
    /// Any other number.
    Float,
    /// Text.
    Text,
    /// A list.
    List,
    /// An object.
    Object,
}

impl Kind {
    pub(super) fn bit(self) -> u8 {
        match self {
            Kind::Null => 1,
            Kind::Bool => 2,
            Kind::Int => 4,
            Kind::Float => 8,
            Kind::Text => 16,
            Kind::List => 32,
            Kind::Object => 64,
        }
    }
}

/// Data for the validator: `serde_json`'s, or a host's own representation.
pub trait View: Copy {
    /// The kind of the data.
    fn kind(self) -> Kind;
    /// Calls `with` with the text if it is available as a `str`; returns false otherwise.
    fn text(self, with: impl FnOnce(&str) -> bool) -> bool;
    /// The number as a double, if the conversion is exact.
    fn number(self) -> Option<f64>;
    /// Number of items or fields.
    fn len(self) -> usize;
    /// Whether it is empty.
    fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Whether all items satisfy a condition.
    fn items(self, each: impl FnMut(Self) -> bool) -> bool;
    /// Whether all fields satisfy a condition.
    fn fields(self, each: impl FnMut(&str, Self) -> bool) -> bool;
}

impl View for &Json {
    fn kind(self) -> Kind {
        match self {
            Json::Null => Kind::Null,
            Json::Bool(_) => Kind::Bool,
            Json::Number(n) if n.is_f64() => Kind::Float,
            Json::Number(_) => Kind::Int,
            Json::String(_) => Kind::Text,
            Json::Array(_) => Kind::List,
            Json::Object(_) => Kind::Object,
        }
    }
    fn text(self, with: impl FnOnce(&str) -> bool) -> bool {
        self.as_str().is_some_and(with)
    }
    fn number(self) -> Option<f64> {
        match self {
            Json::Number(n) if n.is_f64() => n.as_f64(),
            // A double cannot represent every integer beyond 2^53.
            Json::Number(n) => n.as_i64().filter(|i| i.unsigned_abs() <= 1 << 53).and(n.as_f64()),
            _ => None,
        }
    }
    fn len(self) -> usize {
        match self {
            Json::Array(list) => list.len(),
            Json::Object(map) => map.len(),
            _ => 0,
        }
    }
    fn items(self, mut each: impl FnMut(Self) -> bool) -> bool {
        self.as_array().is_none_or(|list| list.iter().all(&mut each))
    }
    fn fields(self, mut each: impl FnMut(&str, Self) -> bool) -> bool {
        self.as_object().is_none_or(|map| map.iter().all(|(key, value)| each(key, value)))
    }
}
