//! The details of a failed evaluation, as data. Records store them, and [`EvalDetail::message`]
//! renders the message when it is shown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::delay_error::DelayError;
use crate::types::a;
pub(crate) use crate::types::shorten;

/// The details of a failed evaluation. Values are shortened to at most 40 characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EvalDetail {
    /// A string does not have the expected form.
    NotA {
        /// The expected form.
        expected: Expected,
        /// The text.
        value: String,
    },
    /// A value is not a delay.
    NotADelay {
        /// The value.
        value: String,
        /// The reason.
        error: DelayError,
    },
    /// A value is not a time: a timestamp, an RFC 3339 text, milliseconds or a duration.
    NotATime {
        /// The value.
        value: String,
    },
    /// A result is outside the range of its type.
    OutOfRange {
        /// The type.
        expected: Expected,
    },
    /// An arithmetic operation does not fit in 64 bits.
    Overflow {
        /// The operation, e.g. `3 * 4`.
        operation: String,
    },
    /// Division or modulus by zero.
    ByZero {
        /// `/` or `%`.
        operator: String,
    },
    /// No function of that name takes these types.
    Arguments {
        /// The function.
        function: String,
        /// The types of the arguments.
        types: Vec<String>,
    },
    /// No operator takes these types.
    Operands {
        /// The operator.
        operator: String,
        /// The types of the operands.
        types: Vec<String>,
    },
    /// A value has the wrong type for the operator or function.
    Needs {
        /// The operator or function that requires a different type, e.g. `&&`.
        by: String,
        /// The required type.
        expected: String,
        /// The type of the value.
        found: String,
    },
    /// A value of this type has no fields.
    FieldOf {
        /// The field.
        field: String,
        /// The type.
        found: String,
    },
    /// A value of this type has no index.
    IndexOf {
        /// The type.
        found: String,
    },
    /// A map has no such field.
    NoField {
        /// The field.
        field: String,
    },
    /// A map has no such key.
    NoKey {
        /// The key.
        key: String,
    },
    /// A value cannot be the index of a list.
    NotAnIndex {
        /// The value.
        value: String,
    },
    /// An index is beyond the end of a list.
    Index {
        /// The index.
        index: i64,
        /// The number of items.
        length: usize,
    },
    /// An index is beyond the end of a string.
    Position {
        /// The index.
        index: i64,
    },
    /// A substring ends before it starts.
    Substring {
        /// Where it starts.
        from: i64,
        /// Where it ends.
        to: i64,
    },
    /// A value of this type cannot be the key of a map.
    KeyType {
        /// The type.
        found: String,
    },
    /// A map has a key twice.
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// A map has two keys that are the same name in JSON.
    RepeatedName {
        /// The name.
        name: String,
    },
    /// A regular expression is too large.
    LargePattern {
        /// The pattern.
        pattern: String,
    },
    /// A format ends in the middle of a clause.
    FormatEnds,
    /// A format has more clauses than values.
    FormatValues {
        /// The index of the missing value.
        index: usize,
        /// The number of values.
        length: usize,
    },
    /// The precision in a format is not a number up to the limit.
    FormatPrecision {
        /// The limit.
        limit: usize,
    },
    /// A format contains an unknown clause.
    FormatClause {
        /// The clause, without `%`.
        clause: String,
    },
    /// A clause of a format cannot format a value of this type.
    FormatType {
        /// The clause, without `%`.
        clause: String,
        /// The type.
        found: String,
    },
    /// A shift by a negative number of bits.
    Shift {
        /// The number.
        bits: i64,
    },
    /// `math.greatest` or `math.least` was called without numbers.
    NoNumbers,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A value has no JSON form.
    NotJson {
        /// Its type.
        found: String,
        /// The value.
        value: String,
    },
    /// The JSON of a value is larger than the limit.
    LargeJson {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A name has no value here.
    Unbound {
        /// The name.
        name: String,
    },
    /// There is no such function.
    NoFunction {
        /// The name.
        name: String,
    },
    /// There is no such state.
    NoState {
        /// The path.
        path: String,
    },
}

/// The expected form of a string, or the type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Expected {
    /// A bool.
    Bool,
    /// An int.
    Int,
    /// A uint.
    Uint,
    /// A double.
    Double,
    /// A timestamp.
    Timestamp,
    /// A duration.
    Duration,
    /// A time zone.
    TimeZone,
    /// A regular expression.
    Regex,
    /// Base64.
    Base64,
}

impl EvalDetail {
    /// Describes a string that does not have the expected form.
    pub(crate) fn not_a(expected: Expected, text: &str) -> EvalDetail {
        EvalDetail::NotA { expected, value: shorten(text) }
    }

    /// Describes a value of the type `found` where a different type is required.
    pub fn needs(by: impl Into<String>, expected: impl Into<String>, found: &str) -> EvalDetail {
        EvalDetail::Needs { by: by.into(), expected: expected.into(), found: found.to_owned() }
    }

    /// What is wrong, in one sentence.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            EvalDetail::NotA { expected, value } => format!("`{value}` is not {}", an_expected(*expected)),
            EvalDetail::NotADelay { value, error } => error.message(value),
            EvalDetail::NotATime { value } => format!("`{value}` is not a time"),
            EvalDetail::OutOfRange { expected: Expected::Duration } => {
                "the duration is out of range (10,000 years)".to_owned()
            }
            EvalDetail::OutOfRange { expected: Expected::Timestamp } => {
                "the timestamp is out of range (years 1 to 9999)".to_owned()
            }
            EvalDetail::OutOfRange { expected } => format!("the number is out of range for {}", word(*expected)),
            EvalDetail::Overflow { operation } => format!("overflow: {operation} does not fit in 64 bits"),
            EvalDetail::ByZero { operator } if operator == "%" => "modulus by zero".to_owned(),
            EvalDetail::ByZero { .. } => "division by zero".to_owned(),
            EvalDetail::Arguments { function, types } => {
                format!("no such overload: `{function}` with ({})", types.join(", "))
            }
            EvalDetail::Operands { operator, types } => match types.as_slice() {
                [operand] => format!("no such overload: `{operator}` of {}", a(operand)),
                types => format!("no such overload: {}", types.join(&format!(" `{operator}` "))),
            },
            EvalDetail::Needs { by, expected, found } => {
                format!("no such overload: {by} needs {expected}, but this is {}", a(found))
            }
            EvalDetail::FieldOf { field, found } => format!("no such overload: the field `{field}` of {}", a(found)),
            EvalDetail::IndexOf { found } => format!("no such overload: an index of {}", a(found)),
            EvalDetail::NoField { field } => format!("no such field `{field}`"),
            EvalDetail::NoKey { key } => format!("no such key: {key}"),
            EvalDetail::NotAnIndex { value } => format!("{value} cannot be the index of a list"),
            EvalDetail::Index { index, length } => {
                format!("the index {index} is out of range: the list has {length} items")
            }
            EvalDetail::Position { index } => format!("index out of range: {index}"),
            EvalDetail::Substring { from, to } => format!("the substring ends at {to} before it starts at {from}"),
            EvalDetail::KeyType { found } => format!("{} cannot be the key of a map", a(found)),
            EvalDetail::RepeatedKey { key } => format!("duplicate key `{key}` in a map"),
            EvalDetail::RepeatedName { name } => format!("duplicate key `{name}` in JSON"),
            EvalDetail::LargePattern { pattern } => format!("the regular expression `{pattern}` is too large"),
            EvalDetail::FormatEnds => "the format ends in the middle of a clause".to_owned(),
            EvalDetail::FormatValues { index, length } => {
                format!("the format needs a value at index {index}; the number of values is {length}")
            }
            EvalDetail::FormatPrecision { limit } => {
                format!("the precision in a format must be a number up to {limit}")
            }
            EvalDetail::FormatClause { clause } => format!("`%{clause}` is not a clause of a format"),
            EvalDetail::FormatType { clause, found } => format!("`%{clause}` cannot show a value of type {found}"),
            EvalDetail::Shift { bits } => format!("a shift by {bits} bits: the number of bits must not be negative"),
            EvalDetail::NoNumbers => "`math.greatest` and `math.least` need at least one number".to_owned(),
            EvalDetail::NotUtf8 => "the bytes are not valid UTF-8".to_owned(),
            EvalDetail::NotJson { found, value } if is_integer(found) => {
                format!("the integer {value} (beyond ±9007199254740991) has no JSON form")
            }
            EvalDetail::NotJson { found, value } if found == "double" => {
                format!("the double {value} has no JSON form; it comes from a division by zero or an overflow")
            }
            EvalDetail::NotJson { found, value } => format!("the {found} {value} has no JSON form"),
            EvalDetail::LargeJson { limit } => format!("the value is larger than {limit} bytes as JSON"),
            EvalDetail::Unbound { name } => format!("`{name}` has no value here"),
            EvalDetail::NoFunction { name } => format!("there is no function `{name}`"),
            EvalDetail::NoState { path } => format!("no state `{path}`"),
        }
    }

    /// How to fix it, if known.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            EvalDetail::NotA { expected: Expected::Timestamp, .. } => {
                "write it as RFC 3339, e.g. `2026-01-31T23:59:59Z`"
            }
            EvalDetail::NotA { expected: Expected::Duration, .. } => {
                "write numbers with the units h, m, s, ms, us or ns, e.g. `1h30m` or `2.5s`"
            }
            EvalDetail::NotA { expected: Expected::TimeZone, .. } => {
                "use a name of the IANA database such as `Europe/Berlin`, or `+02:00`"
            }
            EvalDetail::NotA { expected: Expected::Regex, .. } => "the syntax is RE2's",
            EvalDetail::NotADelay { .. } => DelayError::HELP,
            EvalDetail::NotATime { .. } => {
                "give a timestamp, an RFC 3339 string with an offset, milliseconds since 1970, or a duration such as `24h`"
            }
            EvalDetail::LargePattern { .. } => "use fewer or smaller repetitions",
            EvalDetail::FormatEnds => "write `%%` for a percent sign",
            EvalDetail::FormatClause { .. } => "the clauses are %s %d %f %e %b %o %x %X, and %% for a percent sign",
            EvalDetail::KeyType { .. } => "keys are strings, ints, uints and bools",
            EvalDetail::NotJson { found, .. } if is_integer(found) => "use `string(x)` to keep it exact",
            EvalDetail::Operands { operator, types } => return conversion(operator, types),
            _ => return None,
        })
    }
}

impl fmt::Display for EvalDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

fn is_integer(name: &str) -> bool {
    matches!(name, "int" | "uint")
}

/// Suggests how to convert operands of different types.
fn conversion(operator: &str, types: &[String]) -> Option<&'static str> {
    let [left, right] = types else { return None };
    let number = |name: &str| is_integer(name) || name == "double";
    if number(left) && number(right) {
        let double = left == "double" || right == "double";
        return Some(match operator {
            "%" if double => "convert with `int(x)`",
            _ if double => "convert with `double(x)`",
            _ => "convert with `int(x)` or `uint(x)`",
        });
    }
    (operator == "+" && (left == "string" || right == "string")).then_some("convert with `string(x)`")
}

fn word(expected: Expected) -> &'static str {
    match expected {
        Expected::Bool => "bool",
        Expected::Int => "int",
        Expected::Uint => "uint",
        Expected::Double => "double",
        Expected::Timestamp => "timestamp",
        Expected::Duration => "duration",
        Expected::TimeZone => "time zone",
        Expected::Regex => "regular expression",
        Expected::Base64 => "base64",
    }
}

fn an_expected(expected: Expected) -> String {
    match expected {
        Expected::Base64 => "base64".to_owned(),
        Expected::Uint => "a uint".to_owned(),
        other => a(word(other)),
    }
}
