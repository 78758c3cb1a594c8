//! Single operations of the language on values, for evaluators of their own: an analysis that does
//! not know all values evaluates the known parts of an expression as [`crate::Program`] does.

use crate::ast::{BinaryOp, Link, LinkKind, Node};
use crate::error::EvalError;
use crate::functions::{LIBRARY, Style};
use crate::names::{self, Meaning};
use crate::{Env, Fuel, TypeName, Value, eval, functions};

/// The meaning of a name that is neither a variable nor a root, and how many links belong to it.
#[derive(Clone, Copy, Debug)]
pub enum Name<'n> {
    /// A type: `int`, `google.protobuf.Timestamp`.
    Type {
        /// The type.
        name: TypeName,
        /// The links after the first name that are part of the type's.
        used: usize,
    },
    /// A call of a function in a namespace: `math.abs(x)`.
    Call {
        /// The function with its namespace, as [`call`] takes it.
        function: &'static str,
        /// Its arguments.
        args: &'n [Node],
        /// The links after the namespace that are part of the call.
        used: usize,
    },
}

/// Resolves a name followed by links. `None` if it is neither a type nor a function in a namespace.
pub fn name<'n>(name: &str, links: &'n [Link]) -> Option<Name<'n>> {
    match names::resolve(&Env::new(), &[], name, true, links) {
        Meaning::Type { name, used } => Some(Name::Type { name, used }),
        Meaning::Library { entry, used } => match &links.get(used.checked_sub(1)?)?.kind {
            LinkKind::Method { args, .. } => Some(Name::Call { function: entry.name, args, used }),
            _ => None,
        },
        _ => None,
    }
}

/// The functions of the library, as [`call`] takes them: each name, and whether it is called as a
/// method. A function that can be called in both ways is there twice.
pub fn functions() -> impl Iterator<Item = (&'static str, bool)> {
    let global = LIBRARY.iter().filter(|e| e.style != Style::Method).map(|e| (e.name, false));
    global.chain(LIBRARY.iter().filter(|e| e.style != Style::Global).map(|e| (e.name, true)))
}

/// Applies an infix operator.
///
/// # Errors
/// The same as in a program.
pub fn binary<'a>(op: BinaryOp, left: Value<'a>, right: Value<'a>, fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
    eval::binary(op, left, right, fuel)
}

/// Applies the prefix operator `-`.
///
/// # Errors
/// The same as in a program.
pub fn negate(value: Value<'_>) -> Result<Value<'_>, EvalError> {
    eval::negate(value)
}

/// Reads a field.
///
/// # Errors
/// The value has no fields, or not this one.
pub fn field<'a>(value: &Value<'a>, name: &str) -> Result<Value<'a>, EvalError> {
    eval::field(value, name, &mut Fuel::new(u64::MAX))
}

/// Reads an item of a list or of a map.
///
/// # Errors
/// There is no such item.
pub fn index<'a>(value: &Value<'a>, at: &Value<'_>, fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
    eval::index(value, at, fuel)
}

/// Calls a function of the library, with the receiver first if it is called as a method. `None` if
/// there is no such function.
pub fn call<'a>(name: &str, method: bool, args: &[Value<'a>], fuel: &mut Fuel) -> Option<Result<Value<'a>, EvalError>> {
    let entry = functions::find(name, method).filter(|e| (e.least..=e.most).contains(&args.len()))?;
    Some(functions::call(entry.function, args, fuel))
}
