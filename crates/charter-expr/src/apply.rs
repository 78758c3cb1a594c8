//! Single operations of the language on values, for evaluators of their own: an analysis that does
//! not know all values evaluates the known parts of an expression as [`crate::Program`] does.

use crate::ast::BinaryOp;
use crate::error::EvalError;
use crate::{Fuel, Value, eval, functions};

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
    eval::field(value, name)
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
