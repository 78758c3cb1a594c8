//! The items that `each` goes through.

use charter_expr::{ErrorKind, EvalDetail, EvalError, List, Value};

use crate::budget::Budget;
use crate::scope::Local;

/// An item, and its position or key.
type Item = (Local, Local);

/// Returns the items of a list with their positions, or the values of a map with their keys, for
/// `each`.
/// `list` is the source of the expression.
pub(super) fn items(value: &Value<'_>, list: &str, budget: &Budget) -> Result<Vec<Item>, EvalError> {
    let mut out = Vec::new();
    if let Some(unknowns) = budget.unknowns().filter(|u| value.as_str().is_some_and(|s| u.is_unknown(&s.into()))) {
        if !unknowns.repeats(list) {
            return Err(unknowns.give_up("the list of an `each` is not known"));
        }
        return match unknowns.choose(3) {
            0 => Ok(out),
            1 => {
                let local = || Local::new(&Value::from_json(&unknowns.anything()), budget);
                out.push((local()?, local()?));
                Ok(out)
            }
            _ => Err(EvalError::new(ErrorKind::InvalidArgument, "not a list or a map")),
        };
    }
    match value {
        Value::List(list) => {
            for (i, item) in List::iter(list).enumerate() {
                let index = Value::Int(i64::try_from(i).unwrap_or(i64::MAX));
                out.push((Local::new(&item, budget)?, Local::new(&index, budget)?));
            }
        }
        Value::Map(map) => {
            for (key, item) in map.entries() {
                out.push((Local::new(&item, budget)?, Local::new(&key.into_value(), budget)?));
            }
        }
        other => {
            let detail = EvalDetail::needs("`each`", "a list or a map", other.type_name());
            return Err(EvalError::with_detail(ErrorKind::InvalidArgument, detail));
        }
    }
    Ok(out)
}
