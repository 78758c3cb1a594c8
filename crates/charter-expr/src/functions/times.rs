//! Accessors of timestamps and durations (CEL specification, "Date/Time Functions").

use super::Function;
use crate::Value;
use crate::error::EvalError;
use crate::value::Field;

pub(super) fn call<'a>(f: Function, args: &[Value<'a>]) -> Result<Option<Value<'a>>, EvalError> {
    let field = match f {
        Function::FullYear => Field::FullYear,
        Function::Month => Field::Month,
        Function::Date => Field::Date,
        Function::DayOfMonth => Field::DayOfMonth,
        Function::DayOfWeek => Field::DayOfWeek,
        Function::DayOfYear => Field::DayOfYear,
        Function::Hours => Field::Hours,
        Function::Minutes => Field::Minutes,
        Function::Seconds => Field::Seconds,
        Function::Milliseconds => Field::Milliseconds,
        _ => return Ok(None),
    };
    Ok(match args {
        [Value::Timestamp(t)] => Some(Value::Int(t.field(field, None)?)),
        [Value::Timestamp(t), Value::String(zone)] => Some(Value::Int(t.field(field, Some(zone))?)),
        [Value::Duration(d)] => d.field(field).map(Value::Int),
        _ => None,
    })
}
