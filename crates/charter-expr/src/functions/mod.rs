//! The functions of the standard library and the extensions: their names and the modules that
//! implement them.

mod convert;
pub(crate) mod encode;
mod format;
mod math;
mod regexp;
mod strings;
mod times;

pub(crate) use strings::quote;

use crate::detail::EvalDetail;
use crate::error::EvalError;
use crate::{Fuel, Value};

/// How a function can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `f(x)`
    Global,
    /// `x.f()`
    Method,
    /// Both.
    Both,
}

/// A function of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Size,
    Type,
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
    CharAt,
    IndexOf,
    LastIndexOf,
    LowerAscii,
    UpperAscii,
    Replace,
    Split,
    Substring,
    Trim,
    Join,
    Reverse,
    Format,
    Quote,
    Greatest,
    Least,
    Ceil,
    Floor,
    Round,
    Trunc,
    Sqrt,
    Abs,
    Sign,
    IsNan,
    IsInf,
    IsFinite,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    BitShiftLeft,
    BitShiftRight,
    Base64Encode,
    Base64Decode,
}

/// The name of a function, how it is called, and how many arguments it takes. The first argument of
/// a method is the receiver before the dot.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    pub(crate) function: Function,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

const fn entry(name: &'static str, style: Style, function: Function, least: usize, most: usize) -> Entry {
    Entry { name, style, function, least, most }
}

/// All functions of the library.
pub(crate) const LIBRARY: &[Entry] = {
    use Function::*;
    use Style::*;
    &[
        entry("size", Both, Size, 1, 1),
        entry("type", Global, Type, 1, 1),
        entry("dyn", Global, Dyn, 1, 1),
        entry("bool", Global, Bool, 1, 1),
        entry("int", Global, Int, 1, 1),
        entry("uint", Global, Uint, 1, 1),
        entry("double", Global, Double, 1, 1),
        entry("string", Global, String, 1, 1),
        entry("bytes", Global, Bytes, 1, 1),
        entry("timestamp", Global, Timestamp, 1, 1),
        entry("duration", Global, Duration, 1, 1),
        entry("matches", Both, Matches, 2, 2),
        entry("contains", Method, Contains, 2, 2),
        entry("startsWith", Method, StartsWith, 2, 2),
        entry("endsWith", Method, EndsWith, 2, 2),
        entry("getFullYear", Method, FullYear, 1, 2),
        entry("getMonth", Method, Month, 1, 2),
        entry("getDate", Method, Date, 1, 2),
        entry("getDayOfMonth", Method, DayOfMonth, 1, 2),
        entry("getDayOfWeek", Method, DayOfWeek, 1, 2),
        entry("getDayOfYear", Method, DayOfYear, 1, 2),
        entry("getHours", Method, Hours, 1, 2),
        entry("getMinutes", Method, Minutes, 1, 2),
        entry("getSeconds", Method, Seconds, 1, 2),
        entry("getMilliseconds", Method, Milliseconds, 1, 2),
        entry("charAt", Method, CharAt, 2, 2),
        entry("indexOf", Method, IndexOf, 2, 3),
        entry("lastIndexOf", Method, LastIndexOf, 2, 3),
        entry("lowerAscii", Method, LowerAscii, 1, 1),
        entry("upperAscii", Method, UpperAscii, 1, 1),
        entry("replace", Method, Replace, 3, 4),
        entry("split", Method, Split, 2, 3),
        entry("substring", Method, Substring, 2, 3),
        entry("trim", Method, Trim, 1, 1),
        entry("join", Method, Join, 1, 2),
        entry("reverse", Method, Reverse, 1, 1),
        entry("format", Method, Format, 2, 2),
        entry("strings.quote", Global, Quote, 1, 1),
        entry("math.greatest", Global, Greatest, 1, usize::MAX),
        entry("math.least", Global, Least, 1, usize::MAX),
        entry("math.ceil", Global, Ceil, 1, 1),
        entry("math.floor", Global, Floor, 1, 1),
        entry("math.round", Global, Round, 1, 1),
        entry("math.trunc", Global, Trunc, 1, 1),
        entry("math.sqrt", Global, Sqrt, 1, 1),
        entry("math.abs", Global, Abs, 1, 1),
        entry("math.sign", Global, Sign, 1, 1),
        entry("math.isNaN", Global, IsNan, 1, 1),
        entry("math.isInf", Global, IsInf, 1, 1),
        entry("math.isFinite", Global, IsFinite, 1, 1),
        entry("math.bitAnd", Global, BitAnd, 2, 2),
        entry("math.bitOr", Global, BitOr, 2, 2),
        entry("math.bitXor", Global, BitXor, 2, 2),
        entry("math.bitNot", Global, BitNot, 1, 1),
        entry("math.bitShiftLeft", Global, BitShiftLeft, 2, 2),
        entry("math.bitShiftRight", Global, BitShiftRight, 2, 2),
        entry("base64.encode", Global, Base64Encode, 1, 1),
        entry("base64.decode", Global, Base64Decode, 1, 1),
    ]
};

/// Finds the function with this name, called with a receiver (`method`) or without one.
pub(crate) fn find(name: &str, method: bool) -> Option<&'static Entry> {
    let style = if method { Style::Method } else { Style::Global };
    LIBRARY.iter().find(|e| e.name == name && (e.style == style || e.style == Style::Both))
}

impl Function {
    /// The name in source text.
    pub(crate) fn name(self) -> &'static str {
        LIBRARY.iter().find(|e| e.function == self).map_or("", |e| e.name)
    }
}

/// Calls a function of the library. The number of arguments is checked here as well, because the
/// program may not have been checked.
pub(crate) fn call<'a>(f: Function, args: &[Value<'a>], fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
    use Function::*;
    let result = match f {
        Size | Type | Dyn | Bool | Int | Uint | Double | String | Bytes | Timestamp | Duration => {
            convert::call(f, args, fuel)?
        }
        Matches => regexp::call(args, fuel)?,
        Contains | StartsWith | EndsWith | CharAt | IndexOf | LastIndexOf | LowerAscii | UpperAscii | Replace
        | Split | Substring | Trim | Join | Reverse | Quote => strings::call(f, args, fuel)?,
        Format => format::call(args, fuel)?,
        FullYear | Month | Date | DayOfMonth | DayOfWeek | DayOfYear | Hours | Minutes | Seconds | Milliseconds => {
            times::call(f, args)?
        }
        Base64Encode | Base64Decode => encode::call(f, args, fuel)?,
        _ => math::call(f, args, fuel)?,
    };
    result.ok_or_else(|| no_overload(f, args))
}

/// Returns the error `no such overload`, with the types of the arguments.
fn no_overload(f: Function, args: &[Value<'_>]) -> EvalError {
    let types = args.iter().map(|arg| arg.type_name().to_owned()).collect();
    EvalDetail::Arguments { function: f.name().to_string(), types }.into()
}

#[cfg(test)]
mod tests {
    use super::{LIBRARY, find};

    const PAGE: &str = include_str!("../../../../docs/language.md");
    /// Macros, and functions of the kernel.
    const OTHERS: [&str; 12] = [
        "has",
        "all",
        "exists",
        "exists_one",
        "map",
        "filter",
        "transformList",
        "transformMap",
        "transformMapEntry",
        "cel.bind",
        "in",
        "digest",
    ];

    /// The calls in the first column of the table of functions: `in` of `in("a.b")`, `charAt` of
    /// `s.charAt(i)`.
    fn described() -> Vec<&'static str> {
        let (_, table) = PAGE.split_once("<!-- names: functions -->").unwrap();
        let lines = table.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
        let calls = lines.flat_map(|line| line.split(" | ").next().unwrap().split('`').skip(1).step_by(2));
        let name = |call: &'static str| call.split('(').next().unwrap();
        calls.map(name).collect()
    }

    /// Whether a call in the table is of this function: without a receiver, or with one.
    fn is(call: &str, name: &str) -> bool {
        call == name || call.split_once('.').is_some_and(|(_, method)| method == name)
    }

    #[test]
    fn the_reference_describes_the_functions_of_the_library() {
        for entry in LIBRARY {
            assert!(described().iter().any(|call| is(call, entry.name)), "`{}` is missing in the table", entry.name);
        }
        for name in OTHERS {
            assert!(described().iter().any(|call| is(call, name)), "`{name}` is missing in the table");
        }
        for call in described() {
            let method = call.split_once('.').map_or(call, |(_, method)| method);
            let known = find(call, false).is_some() || find(method, true).is_some();
            assert!(known || OTHERS.iter().any(|name| is(call, name)), "there is no function `{call}`");
        }
    }
}
