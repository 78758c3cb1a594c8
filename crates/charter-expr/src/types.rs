//! Static types: what the checker knows about a value before evaluation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of a value, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any type; checked at run time.
    Dyn,
    /// `null`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// A JSON number: an int or a double, by its value.
    Number,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `timestamp`
    Timestamp,
    /// `duration`
    Duration,
    /// `list` with the type of its items
    List(Box<Type>),
    /// `map` with the types of its keys and values
    Map(Box<Type>, Box<Type>),
    /// A map with known string keys.
    Object {
        /// The known fields. They are shared, because the type of a context is part of many
        /// environments.
        fields: Arc<BTreeMap<String, Field>>,
        /// Whether there may be other fields.
        open: bool,
    },
    /// One of several types.
    Union(Vec<Type>),
    /// A type as a value.
    Type,
}

/// A field of a [`Type::Object`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its type.
    pub ty: Type,
    /// Whether it is always present.
    pub required: bool,
}

impl Field {
    /// A field that is always present.
    pub fn required(ty: Type) -> Field {
        Field { ty, required: true }
    }

    /// A field that may be absent.
    pub fn optional(ty: Type) -> Field {
        Field { ty, required: false }
    }
}

impl Type {
    /// A list with the type of its items.
    pub fn list(item: Type) -> Type {
        Type::List(Box::new(item))
    }

    /// A map with the types of its keys and values.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Box::new(key), Box::new(value))
    }

    /// An object with exactly these fields.
    pub fn object<N: Into<String>>(fields: impl IntoIterator<Item = (N, Field)>) -> Type {
        Type::Object { fields: Arc::new(fields.into_iter().map(|(n, f)| (n.into(), f)).collect()), open: false }
    }

    /// Returns the union of several types: flattened, without duplicates, and [`Type::Dyn`] if one
    /// of them is.
    pub fn union(types: impl IntoIterator<Item = Type>) -> Type {
        let mut out: Vec<Type> = Vec::new();
        for ty in types {
            let parts = match ty {
                Type::Dyn => return Type::Dyn,
                Type::Union(parts) => parts,
                other => vec![other],
            };
            for part in parts {
                if !out.contains(&part) {
                    out.push(part);
                }
            }
        }
        if out.contains(&Type::Number) {
            out.retain(|t| !matches!(t, Type::Int | Type::Double));
        }
        match out.len() {
            0 => Type::Dyn,
            1 => out.pop().unwrap_or(Type::Dyn),
            _ => Type::Union(out),
        }
    }
}

/// The name of a type with its article: `a string`, `an int`.
pub(crate) fn a(name: impl fmt::Display) -> String {
    let name = name.to_string();
    match name.as_str() {
        _ if name.starts_with("anything") => name,
        _ if name.starts_with(['i', 'o']) => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

/// The beginning of a string, for messages.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or("")),
        None => text.to_owned(),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Dyn => "anything",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::Number => "number",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Object { .. } => "object",
            Type::Type => "type",
            Type::Union(types) => {
                for (i, ty) in types.iter().enumerate() {
                    if i > 0 {
                        f.write_str(" or ")?;
                    }
                    write!(f, "{ty}")?;
                }
                return Ok(());
            }
        })
    }
}
