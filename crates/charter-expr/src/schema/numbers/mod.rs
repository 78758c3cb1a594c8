//! The types of numbers by their place: JSON writes `2` and `2.0` alike, so the definition decides
//! which numbers are ints and which are doubles.

mod places;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use places::Says;

/// The type of a number in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberType {
    /// `type: integer`, or a first value such as `0`.
    Int,
    /// `type: number`, or a first value such as `0.0`.
    Double,
}

/// The types of the numbers in a JSON value, by their place in it. A place that is not mentioned
/// has no type: a number there is an int or a double by its value.
///
/// ```
/// use charter_expr::{Numbers, Value};
/// use serde_json::json;
///
/// let schema = json!({"properties": {"price": {"type": "number"}, "count": {"type": "integer"}}});
/// let numbers = Numbers::from_schema(&schema).unwrap();
/// let data = json!({"price": 2, "count": 2});
/// let Value::Map(fields) = Value::typed(&data, Some(&numbers)) else { panic!() };
/// assert_eq!(fields.get_str("price").unwrap().type_name(), "double");
/// assert_eq!(fields.get_str("count").unwrap().type_name(), "int");
/// ```
// Recursive schemas make this a graph with shared parts, which must not be walked like a tree.
#[derive(Clone, Default)]
pub struct Numbers {
    number: Option<NumberType>,
    list: Option<Arc<Items>>,
    object: Option<Arc<Fields>>,
}

struct Items {
    first: Vec<Option<Numbers>>,
    rest: Option<Numbers>,
}

struct Fields {
    named: BTreeMap<Box<str>, Option<Numbers>>,
    others: Option<Numbers>,
}

/// The types of a single number.
const INT: Numbers = Numbers { number: Some(NumberType::Int), list: None, object: None };
const DOUBLE: Numbers = Numbers { number: Some(NumberType::Double), list: None, object: None };

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Numbers").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Numbers {
    /// The types that a JSON Schema (2020-12) declares; `None` if it declares none.
    ///
    /// `integer` is an int, `number` a double. Alternatives (`anyOf`, `oneOf`, lists of types)
    /// count only if all that declare a place agree. A `const` or `enum` without a `type` has the
    /// type of its numbers as written. Conditions (`if`, `then`, `else`) declare nothing.
    #[must_use]
    pub fn from_schema(schema: &Value) -> Option<Numbers> {
        read::schema(schema).finish()
    }

    /// The types of an example as it is written: `0` is an int, `0.0` a double; null declares
    /// nothing.
    #[must_use]
    pub fn of_example(example: &Value) -> Option<Numbers> {
        read::example(example).finish()
    }

    /// The types of the fields `names` of an object: those its schema declares, and for the others
    /// those of their example.
    #[must_use]
    pub fn of_fields<'n>(
        schema: Option<&Value>,
        examples: impl IntoIterator<Item = (&'n str, Value)>,
    ) -> Vec<Option<Numbers>> {
        let whole = schema.map(read::schema);
        let declared = |name: &str| match whole.as_ref().map(|place| &place.object) {
            Some(Says::Is(fields)) => Some(fields.field(name)).filter(|place| !place.is_silent()),
            _ => None,
        };
        let types = examples.into_iter().map(|(name, example)| match declared(name) {
            Some(place) => place.finish(),
            None => Numbers::of_example(&example),
        });
        types.collect()
    }

    /// The types of an object of which one field has types.
    #[must_use]
    pub fn of_field(field: &str, numbers: Numbers) -> Numbers {
        let named = BTreeMap::from([(field.into(), Some(numbers))]);
        Numbers { object: Some(Arc::new(Fields { named, others: None })), ..Numbers::default() }
    }

    /// The type of a number in this place.
    #[inline]
    #[must_use]
    pub fn number(&self) -> Option<NumberType> {
        self.number
    }

    /// The types inside the item of a list, counted from 0.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<&Numbers> {
        let items = self.list.as_deref()?;
        items.first.get(index).unwrap_or(&items.rest).as_ref()
    }

    /// The number of items at the front of a list that have types of their own.
    pub(crate) fn tuple(&self) -> usize {
        self.list.as_ref().map_or(0, |items| items.first.len())
    }

    /// The types inside a field of an object.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Numbers> {
        let fields = self.object.as_deref()?;
        fields.named.get(name).unwrap_or(&fields.others).as_ref()
    }

    /// The types of a single number.
    #[must_use]
    pub fn of(number: NumberType) -> &'static Numbers {
        match number {
            NumberType::Int => &INT,
            NumberType::Double => &DOUBLE,
        }
    }

    /// The first number with a fraction in the place of an int, as a JSON pointer and the number.
    #[must_use]
    pub fn fraction<'v>(&self, value: &'v Value) -> Option<(String, &'v serde_json::Number)> {
        match value {
            Value::Number(n) => {
                let fits = self.number != Some(NumberType::Int)
                    || matches!(crate::value::number::of_json(n), crate::value::number::Number::Int(_));
                (!fits).then(|| (String::new(), n))
            }
            Value::Array(items) if self.list.is_some() => items.iter().enumerate().find_map(|(i, item)| {
                let (at, n) = self.item(i)?.fraction(item)?;
                Some((format!("/{i}{at}"), n))
            }),
            Value::Object(fields) if self.object.is_some() => fields.iter().find_map(|(name, item)| {
                let (at, n) = self.field(name)?.fraction(item)?;
                Some((format!("/{}{at}", crate::pointer::escape(name)), n))
            }),
            _ => None,
        }
    }
}
