//! Unique keys: their types, and what is proved about charters that have some.

use charter_check::{Finding, Options, Verdict};
use serde_json::{Value as Json, json};

use crate::support::{all, report_with};
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

/// Returns the verdict about the only property, its message, and the events of the counterexample.
fn decided(states: &str, key: &str, property: &str) -> (Verdict, String, Vec<Json>) {
    let charter = format!(
        "events:
  PAY: {{data: {{type: object, required: [order], properties: {{order: {{enum: [o1, o2]}}}}}}, unique: {{key: \"{key}\"}}}}
  BACK: {{data: {{type: object, maxProperties: 0}}}}
properties: [{{id: p, {property}}}]
states: {{{states}}}
"
    );
    let report = report_with(&charter, &Options::default());
    let found: Vec<&Finding> = report.findings.iter().filter(|f| f.code.starts_with("property-")).collect();
    assert_eq!(found.len(), 1, "{:#?}", all(&report));
    (found[0].verdict.unwrap(), found[0].message.clone(), found[0].events().to_vec())
}

const TWICE: &str = "a: {on: {PAY: b}}, b: {on: {PAY: c}}, c: {type: final}";

#[test]
fn a_counterexample_uses_each_key_once() {
    let (verdict, _, witness) = decided(TWICE, "event.order", "never: \"in('c')\"");
    assert_eq!(verdict, Verdict::Violated);
    let orders: Vec<&Json> = witness.iter().map(|line| &line["data"]["order"]).collect();
    assert_eq!(orders, [&json!("o1"), &json!("o2")]);
    let (verdict, message, _) = decided(TWICE, "'one'", "never: \"in('c')\"");
    assert_eq!(verdict, Verdict::Undecided);
    let why = "a violation was seen only with two events that have the same unique key, of which the second is refused";
    assert_eq!(message, format!("property `p` (never) is not decided: {why}"));
    // The fast exploration, without data.
    let plain = format!(
        "events: {{PAY: {{data: {{type: object, maxProperties: 0}}, unique: {{key: \"'one'\"}}}}}}
properties: [{{id: p, never: \"in('c')\"}}]
states: {{{TWICE}}}
"
    );
    let report = report_with(&plain, &Options::default());
    assert!(
        report.findings.iter().any(|f| f.code == "property-undecided" && f.message.contains(why)),
        "{:#?}",
        all(&report)
    );
}

/// With a free key, the second event has other data, and does not violate the property.
#[test]
fn a_property_that_needs_one_key_twice_is_not_decided() {
    let charter = "
context: {first: '', second: ''}
events:
  PAY: {data: {type: object, required: [order], properties: {order: {enum: [o1, o2]}}}, unique: {key: event.order}}
properties: [{id: p, never: \"in('c') && context.first == context.second\"}]
states:
  a: {on: {PAY: {target: b, actions: {assign: {first: '= event.order'}}}}}
  b: {on: {PAY: {target: c, actions: {assign: {second: '= event.order'}}}}}
  c: {type: final}
";
    let report = report_with(charter, &Options::default());
    let why = "a violation was seen only with two events that have the same unique key, of which the second is refused";
    let found: Vec<&Finding> = report.findings.iter().filter(|f| f.code.starts_with("property-")).collect();
    assert_eq!(found.len(), 1, "{:#?}", all(&report));
    assert_eq!(found[0].message, format!("property `p` (never) is not decided: {why}"));
}

#[test]
fn a_cycle_does_not_use_a_key_again() {
    // Each payment restarts the timer; with one key, there is only one.
    let states = "a: {on: {PAY: a}, after: {1h: c}}, c: {type: final}";
    let (verdict, message, _) = decided(states, "'one'", "eventually: \"in('c')\"");
    assert_eq!(verdict, Verdict::Undecided, "{message}");
    let (verdict, message, _) = decided(&states.replace("PAY", "BACK"), "'one'", "eventually: \"in('c')\"");
    assert_eq!(verdict, Verdict::Violated, "{message}");
}

#[test]
fn nothing_is_proved_that_a_taken_key_makes_false() {
    let states = "open: {on: {PAY: paid}, after: {1h: lost}}, paid: {type: final}, lost: {type: final}";
    for property in ["eventually: \"in('paid')\"", "never: \"in('lost')\"", "never: \"in('lost')\", unless-before: PAY"]
    {
        let (verdict, message, witness) = decided(states, "event.order", property);
        assert_eq!(verdict, Verdict::Violated, "{message}");
        assert!(witness.iter().all(|line| line["type"] != "PAY"), "{witness:?}");
    }
    // What holds with free keys holds with taken ones: a refused event changes nothing.
    let (verdict, message, _) = decided(states, "event.order", "never: \"in('paid') && in('lost')\"");
    assert_eq!(verdict, Verdict::Proved, "{message}");
}

#[test]
fn a_counterexample_with_many_events_has_a_key_for_each() {
    let charter = "
events:
  PAY: {data: {type: object, required: [order], properties: {order: {type: string}}}, unique: {key: event.order}}
  NUM: {data: {type: object, required: [order], properties: {order: {type: integer}}}, unique: {key: event.order}}
properties: [{id: p, never: \"in('g')\"}]
states: {a: {on: {PAY: b}}, b: {on: {PAY: c}}, c: {on: {PAY: d}}, d: {on: {NUM: e}}, e: {on: {NUM: f}}, f: {on: {NUM: g}}, g: {type: final}}
";
    let report = report_with(charter, &Options::default());
    let found =
        report.findings.iter().find(|f| f.code == "property-violated").unwrap_or_else(|| panic!("{:#?}", all(&report)));
    let keys: std::collections::BTreeSet<String> =
        found.events().iter().map(|line| format!("{} {}", line["type"], line["data"]["order"])).collect();
    assert_eq!(keys.len(), 6, "{:?}", found.witness);
}

/// What leads to a state in which nothing is accepted is a run, too.
#[test]
fn the_way_to_a_dead_end_uses_each_key_once() {
    let source = "
events:
  E: {data: {type: object, required: [n], properties: {n: {type: integer, minimum: 1, maximum: 2}}}, unique: {key: event.n}}
  F: {data: {type: object, maxProperties: 0}}
context: {x: 0}
initial: a
states:
  a: {on: {E: b}}
  b: {on: {E: c}}
  c: {on: {F: {target: d, when: context.x == 1}}}
  d: {type: final}
";
    let report = report_with(source, &Options::default());
    let found = report.findings.iter().find(|f| f.code == "stuck").unwrap();
    let keys: Vec<&Json> = found.events().iter().map(|line| &line["data"]["n"]).collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
}
