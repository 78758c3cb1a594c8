//! Data in any representation, as the validator reads it.

use serde_json::Value as Json;

use super::number::ExactNumber;

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

/// Data for the validator: `serde_json`'s, or a host's own representation. The result and its cost
/// are the same in all of them, also if they have the fields of objects in different orders.
pub trait View: Copy {
    /// The kind of the data.
    fn kind(self) -> Kind;
    /// Whether the data is `true`.
    fn is_true(self) -> bool;
    /// Calls `with` with the text; `None` if the data is not text.
    fn text<R>(self, with: impl FnOnce(&str) -> R) -> Option<R>;
    /// The number.
    fn number(self) -> Option<ExactNumber>;
    /// Number of items or fields.
    fn len(self) -> usize;
    /// Whether it is empty.
    fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Calls `each` with the items in their order, until it returns false. Returns whether it never
    /// did.
    fn items(self, each: impl FnMut(Self) -> bool) -> bool;
    /// Calls `each` with the fields, in any order, until it returns false. Returns whether it never
    /// did.
    fn fields(self, each: impl FnMut(&str, Self) -> bool) -> bool;
    /// A number that only this value within the data has.
    fn place(self) -> usize;
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
    fn is_true(self) -> bool {
        *self == Json::Bool(true)
    }
    fn text<R>(self, with: impl FnOnce(&str) -> R) -> Option<R> {
        self.as_str().map(with)
    }
    fn number(self) -> Option<ExactNumber> {
        match self {
            Json::Number(n) => Some(n.into()),
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
    fn place(self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The name of a property as data, for `propertyNames`.
#[derive(Clone, Copy)]
pub(super) struct Name<'n>(pub(super) &'n str);

impl View for Name<'_> {
    fn kind(self) -> Kind {
        Kind::Text
    }
    fn is_true(self) -> bool {
        false
    }
    fn text<R>(self, with: impl FnOnce(&str) -> R) -> Option<R> {
        Some(with(self.0))
    }
    fn number(self) -> Option<ExactNumber> {
        None
    }
    fn len(self) -> usize {
        0
    }
    fn items(self, _: impl FnMut(Self) -> bool) -> bool {
        true
    }
    fn fields(self, _: impl FnMut(&str, Self) -> bool) -> bool {
        true
    }
    fn place(self) -> usize {
        0
    }
}
