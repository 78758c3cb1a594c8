//! The types of unique keys.

use crate::types::only;

#[test]
fn a_unique_key_is_a_string_an_integer_or_a_boolean() {
    let keyed = |schema: &str, key: &str| {
        let charter = "charter: 1
id: shop
events:
  PAY:
    data: {type: object, required: [order], properties: {order: {type: SCHEMA}, note: {type: string}}}
    unique: {key: \"KEY\"}
states: {open: {on: {PAY: {}}}}
";
        let charter = charter.replace("SCHEMA", schema).replace("KEY", key);
        let types = only(&charter, "type");
        (types, only(&charter, "unknown-field"))
    };
    let none = || (Vec::<String>::new(), Vec::new());
    for (schema, key) in [("string", "event.order"), ("integer", "event.order"), ("string", "by.id + event.order")] {
        assert_eq!(keyed(schema, key), none(), "{schema} {key}");
    }
    let wrong = |found| {
        vec![format!("event.order | error | expected a string, an integer or a boolean as the key, found {found}")]
    };
    assert_eq!(keyed("number", "event.order").0, wrong("double"));
    assert_eq!(keyed("'null'", "event.order").0, wrong("null"));
    let maybe = "event.order | warning | the key may be of type null; then the event is refused";
    assert_eq!(keyed("[string, 'null']", "event.order").0, [maybe]);
    assert_eq!(keyed("string", "event.ordr").1.len(), 1);
}
