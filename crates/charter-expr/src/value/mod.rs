//! Values, which expressions read and return. They are borrowed from JSON or from the host where
//! possible.

mod compare;
mod convert;
mod delay;
mod duration;
mod key;
mod length;
mod list;
mod map;
mod owned;
mod show;
mod text;
mod time;
mod to_json;

pub use delay::{DELAY_PATTERN, MAX_DELAY_MS, delay_ms, delay_of, parse_delay, resembles_delay};
pub use duration::Duration;
pub use key::Key;
pub use list::List;
pub use map::{Map, Object};
pub use text::{Bytes, Str};
pub use time::ExprTimestamp;

pub(crate) use compare::{equal, int_double, order};
pub(crate) use convert::number;
pub(crate) use map::MapBuilder;
pub(crate) use time::Field;

/// A value of the language (CEL specification, "Values"), without messages, enums and optionals.
///
/// Cloning is cheap: owned strings and containers are shared, borrowed ones are pointers.
/// `==` is CEL's equality: `Int(1) == Double(1.0)`, and NaN differs from itself.
// The tag takes a whole word: with a smaller one, values are moved in unaligned pieces, which is
// slower.
#[derive(Clone)]
#[repr(u64)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `int`: 64 bits, signed
    Int(i64),
    /// `uint`: 64 bits, unsigned
    Uint(u64),
    /// `double`: IEEE 754 binary64
    Double(f64),
    /// `string`: Unicode
    String(Str<'a>),
    /// `bytes`
    Bytes(Bytes<'a>),
    /// `list`
    List(List<'a>),
    /// `map`
    Map(Map<'a>),
    /// `google.protobuf.Timestamp`: years 1 to 9999, nanoseconds
    Timestamp(ExprTimestamp),
    /// `google.protobuf.Duration`: up to 10,000 years, nanoseconds
    Duration(Duration),
    /// `type`
    Type(TypeName),
}

/// A type as a value: the result of `type(x)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TypeName {
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `list`
    List,
    /// `map`
    Map,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `google.protobuf.Duration`
    Duration,
    /// `type`
    Type,
}

impl TypeName {
    /// All types.
    pub const ALL: [TypeName; 12] = [
        TypeName::Null,
        TypeName::Bool,
        TypeName::Int,
        TypeName::Uint,
        TypeName::Double,
        TypeName::String,
        TypeName::Bytes,
        TypeName::List,
        TypeName::Map,
        TypeName::Timestamp,
        TypeName::Duration,
        TypeName::Type,
    ];

    /// The name in the language.
    pub const fn name(self) -> &'static str {
        match self {
            TypeName::Null => "null_type",
            TypeName::Bool => "bool",
            TypeName::Int => "int",
            TypeName::Uint => "uint",
            TypeName::Double => "double",
            TypeName::String => "string",
            TypeName::Bytes => "bytes",
            TypeName::List => "list",
            TypeName::Map => "map",
            TypeName::Timestamp => "google.protobuf.Timestamp",
            TypeName::Duration => "google.protobuf.Duration",
            TypeName::Type => "type",
        }
    }

    /// Returns the type with that name.
    pub fn from_name(name: &str) -> Option<TypeName> {
        TypeName::ALL.into_iter().find(|t| t.name() == name)
    }
}

impl<'a> Value<'a> {
    /// The value's type.
    pub fn type_of(&self) -> TypeName {
        match self {
            Value::Null => TypeName::Null,
            Value::Bool(_) => TypeName::Bool,
            Value::Int(_) => TypeName::Int,
            Value::Uint(_) => TypeName::Uint,
            Value::Double(_) => TypeName::Double,
            Value::String(_) => TypeName::String,
            Value::Bytes(_) => TypeName::Bytes,
            Value::List(_) => TypeName::List,
            Value::Map(_) => TypeName::Map,
            Value::Timestamp(_) => TypeName::Timestamp,
            Value::Duration(_) => TypeName::Duration,
            Value::Type(_) => TypeName::Type,
        }
    }

    /// The name of the value's type as messages show it: `null`, `int`, `timestamp`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Timestamp(_) => "timestamp",
            Value::Duration(_) => "duration",
            other => other.type_of().name(),
        }
    }

    /// Creates a borrowed string.
    pub fn str(s: &'a str) -> Value<'a> {
        Value::String(Str::Borrowed(s))
    }

    /// Creates an owned string.
    pub fn string(s: impl Into<std::sync::Arc<str>>) -> Value<'static> {
        Value::String(Str::Owned(s.into()))
    }

    /// Creates an owned list.
    pub fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::from(items))
    }

    /// Creates a map whose fields are requested from `object` when they are read.
    pub fn object(object: &'a dyn Object) -> Value<'a> {
        Value::Map(Map::Object(object))
    }

    /// The instant `ms` milliseconds after 1970-01-01T00:00:00Z, clamped to the years 1 to 9999.
    pub fn timestamp_millis(ms: i64) -> Value<'static> {
        Value::Timestamp(ExprTimestamp::from_millis(ms))
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s.as_str()),
            _ => None,
        }
    }

    /// The whole number, if it is an int, or a uint or double with the same value.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            Value::Uint(u) => i64::try_from(*u).ok(),
            Value::Double(d) => number::exact_i64(*d),
            _ => None,
        }
    }

    /// The number as the nearest double, if it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(*i as f64),
            Value::Uint(u) => Some(*u as f64),
            Value::Double(d) => Some(*d),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        // This is enough for any data within the limits. Without a limit, comparing values with
        // many shared parts could take forever.
        equal(self, other, &mut crate::Fuel::new(1 << 26)).unwrap_or(false)
    }
}

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<i64> for Value<'_> {
    fn from(i: i64) -> Self {
        Value::Int(i)
    }
}

impl From<f64> for Value<'_> {
    fn from(d: f64) -> Self {
        Value::Double(d)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(s: &'a str) -> Self {
        Value::str(s)
    }
}

impl From<String> for Value<'_> {
    fn from(s: String) -> Self {
        Value::string(s)
    }
}
