//! Equality of data: a value is written as bytes, which are the same for equal values only. `1` and
//! `1.0` are equal, and the order of fields does not matter.

use smallvec::SmallVec;

use super::TooCostly;
use super::number::ExactNumber;
use super::view::{Kind, View};
use charter_expr::Fuel;

/// The bytes of a value; scalars need no allocation.
pub(super) type Bytes = SmallVec<[u8; 32]>;

/// Upper limit of the nesting of values that are compared; data of events nests less.
const MAX_DEPTH: usize = 300;

/// Returns the bytes of a value, or `None` if there are more than `longest`. Every 64 bytes and
/// every value cost a unit of fuel.
pub(super) fn bytes<V: View>(value: V, longest: usize, fuel: &mut Fuel) -> Result<Option<Bytes>, TooCostly> {
    let mut out = Bytes::new();
    let whole = write(value, longest, 0, fuel, &mut out)?;
    Ok(whole.then_some(out))
}

fn write<V: View>(value: V, longest: usize, depth: usize, fuel: &mut Fuel, out: &mut Bytes) -> Result<bool, TooCostly> {
    if out.len() > longest {
        return Ok(false);
    }
    if depth > MAX_DEPTH {
        return Err(TooCostly);
    }
    let deeper = depth.saturating_add(1);
    fuel.spend(1)?;
    match value.kind() {
        Kind::Null => out.push(b'n'),
        Kind::Bool => out.push(if value.is_true() { b't' } else { b'f' }),
        Kind::Int | Kind::Float => {
            let number = value.number().unwrap_or(ExactNumber::Int(0));
            match (number.whole(), number) {
                (Some(whole), _) => {
                    out.push(b'i');
                    out.extend_from_slice(&whole.to_be_bytes());
                }
                (None, ExactNumber::Double(double)) => {
                    out.push(b'd');
                    out.extend_from_slice(&double.to_bits().to_be_bytes());
                }
                (None, ExactNumber::Int(_)) => {}
            }
        }
        Kind::Text => return value.text(|text| write_text(text, longest, fuel, out)).unwrap_or(Ok(true)),
        Kind::List => {
            out.push(b'l');
            out.extend_from_slice(&value.len().to_be_bytes());
            let mut fault = None;
            let whole = value.items(|item| match write(item, longest, deeper, fuel, out) {
                Ok(whole) => whole,
                Err(e) => {
                    fault = Some(e);
                    false
                }
            });
            return fault.map_or(Ok(whole), Err);
        }
        Kind::Object => {
            out.push(b'o');
            out.extend_from_slice(&value.len().to_be_bytes());
            let mut fields: Vec<(String, Bytes)> = Vec::new();
            let mut result = Ok(true);
            // All fields, even if one is too long: the cost must not depend on their order.
            value.fields(|name, value| {
                let mut field = Bytes::new();
                let one = fuel
                    .spend((name.len() / 64) as u64)
                    .map_err(TooCostly::from)
                    .and_then(|()| write(value, longest, deeper, fuel, &mut field));
                match one {
                    Ok(true) => fields.push((name.to_owned(), field)),
                    Ok(false) => result = Ok(false),
                    Err(e) => result = Err(e),
                }
                result.is_ok()
            });
            if !result? {
                return Ok(false);
            }
            fields.sort();
            for (name, field) in fields {
                fuel.spend((field.len() / 64) as u64)?;
                if !write_text(&name, longest, fuel, out)? {
                    return Ok(false);
                }
                out.extend_from_slice(&field);
            }
        }
    }
    Ok(out.len() <= longest)
}

fn write_text(text: &str, longest: usize, fuel: &mut Fuel, out: &mut Bytes) -> Result<bool, TooCostly> {
    if text.len() > longest {
        return Ok(false);
    }
    fuel.spend((text.len() / 64) as u64)?;
    out.push(b's');
    out.extend_from_slice(&text.len().to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(out.len() <= longest)
}

#[cfg(test)]
mod tests {
    use charter_expr::Fuel;
    use serde_json::{Value as Json, json};

    use super::bytes;

    #[test]
    fn equal_values_have_equal_bytes_and_others_do_not() {
        let bytes = |value: &Json| bytes(value, 1 << 20, &mut Fuel::new(1_000)).unwrap().unwrap();
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!(1),
            json!(-1),
            json!(1.5),
            json!(1e300),
            json!(u64::MAX),
            json!(""),
            json!("1"),
            json!([]),
            json!([1]),
            json!([[1]]),
            json!([1, 1]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 1, "b": [2]}),
            json!({"a": [1], "b": 2}),
        ];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(bytes(a) == bytes(b), i == j, "{a} {b}");
            }
        }
        assert_eq!(bytes(&json!({"a": [1.0], "b": 0})), bytes(&json!({"b": -0.0, "a": [1]})));
    }

    #[test]
    fn long_values_are_cut_and_cost_fuel() {
        let long = json!(["x".repeat(6_400)]);
        assert_eq!(bytes(&long, 100, &mut Fuel::new(1_000)), Ok(None));
        let mut fuel = Fuel::new(1_000);
        bytes(&long, 10_000, &mut fuel).unwrap().unwrap();
        assert_eq!(fuel.left(), 1_000 - 102);
        assert!(bytes(&long, 10_000, &mut Fuel::new(100)).is_err());
    }
}
