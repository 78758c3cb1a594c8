//! Which fields a schema declares, for expressions that read them.

use crate::types::only;

#[test]
fn a_field_that_only_a_pattern_or_a_condition_names_exists() {
    let charter = "
events:
  A: {data: {type: object, properties: {a: {type: string}}, patternProperties: {'^x-': {type: string}}, additionalProperties: false}}
  B: {data: {type: object, properties: {a: {type: string}}, additionalProperties: {type: integer}}}
  C: {data: {$ref: '#/types/base', properties: {c: {type: string}}}}
  D: {data: {type: object, properties: {a: {}}, anyOf: [{properties: {c: {type: string}}}, {required: [a]}], unevaluatedProperties: false}}
  E: {data: {type: object, properties: {a: {}}, if: {required: [a]}, then: {properties: {c: {}}}, unevaluatedProperties: false}}
  F: {data: {type: object, properties: {a: {}}, dependentSchemas: {a: {properties: {c: {}}}}, unevaluatedProperties: false}}
  G: {data: {type: object, properties: {a: {}}, if: {required: [a]}, then: {properties: {c: {}}}, additionalProperties: false}}
types: {base: {type: object, properties: {a: {type: string}}}}
states:
  s:
    on:
      A: {when: 'event[\"x-b\"] == \"b\"', actions: []}
      B: {when: event.c == 1, actions: []}
      C: {when: event.c == 'c', actions: []}
      D: {when: event.c == 'c', actions: []}
      E: {when: event.c == 'c', actions: []}
      F: {when: event.c == 'c', actions: []}
      G: {when: event.c == 'c', actions: []}
";
    let found = only(charter, "unknown-field");
    let (errors, warnings): (Vec<_>, Vec<_>) = found.iter().partition(|f| f.contains("error"));
    assert_eq!(errors, [".c | error | there is no field `c` in `event`"], "only G is closed");
    // B: any name is allowed, and this one is not listed.
    assert_eq!(warnings, [".c | warning | `c` is not a declared field of `event`"]);
    assert!(only(charter, "type").iter().all(|f| f.contains("may be missing")));
}
