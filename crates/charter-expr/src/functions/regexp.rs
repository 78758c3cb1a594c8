//! `matches` with a pattern that is not constant.

use crate::error::EvalError;
use crate::{Fuel, Pattern, Value};

/// Evaluates `matches` with a pattern that is not constant; compiling it costs fuel.
pub(super) fn call<'a>(args: &[Value<'a>], fuel: &mut Fuel) -> Result<Option<Value<'a>>, EvalError> {
    let [Value::String(text), Value::String(pattern)] = args else {
        return Ok(None);
    };
    let pattern = Pattern::once(pattern, fuel)?;
    Ok(Some(Value::Bool(pattern.is_match(text, fuel)?)))
}
