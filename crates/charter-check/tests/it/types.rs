//! Expressions are checked with the types at their place, and findings have their position in the
//! file.

use crate::support::{all, lint};

/// Returns the findings with one code: the underlined text, the severity and the message. Checks
/// that line and column point to the text.
pub(crate) fn only(source: &str, code: &str) -> Vec<String> {
    let document = crate::support::document(source);
    let show = |f: &charter_check::Finding| {
        let text = &document.source[f.span.0..f.span.1];
        let line = document.source.lines().nth(f.line - 1).unwrap();
        let there: String = line.chars().skip(f.column - 1).collect();
        assert!(there.starts_with(text.lines().next().unwrap()), "{}:{} is `{there}`, not `{text}`", f.line, f.column);
        format!("{text} | {} | {}", f.severity.word(), f.message)
    };
    lint(source).findings.iter().filter(|f| f.code == code).map(show).collect()
}

const FRED: &str = "charter: 1
id: fred
input: {type: object, required: [userId], properties: {userId: {type: string}}}
context: {userId: '= input.userId', retryCount: 0, decision: null}
events:
  START: {data: {type: object, required: [input], properties: {input: {type: object}, note: {type: string}}}}
actors:
  decide:
    kind: model
    timeout: 60s
    input: {type: object, required: [question], properties: {question: {type: string}}}
    output: {type: object, required: [confidence], properties: {confidence: {type: number}}, additionalProperties: false}
states:
  idle:
    on: {START: {target: decide, when: 'WHEN'}}
  decide:
    invoke:
      src: decide
      input: {question: '= QUESTION'}
      onDone: {target: idle, when: 'DONE', actions: {assign: {decision: '= event.output'}}}
      onError: {target: idle, actions: {log: '= FAILED'}}
";

fn fred(when: &str, done: &str, question: &str, failed: &str) -> String {
    FRED.replace("WHEN", when).replace("DONE", done).replace("QUESTION", question).replace("FAILED", failed)
}

#[test]
fn a_misspelt_field_has_its_place() {
    let good = fred(
        "size(context.userId) > 0 && context.retryCount < 3",
        "event.output.confidence > 0.8",
        "context.userId",
        "event.error.code",
    );
    assert_eq!(only(&good, "unknown-field"), Vec::<String>::new());
    assert_eq!(only(&good, "type"), Vec::<String>::new());
    assert_eq!(
        only(&fred("true", "event.output.confidnce > 0.8", "context.userId", "1"), "unknown-field"),
        [".confidnce | error | there is no field `confidnce` in `event.output`"]
    );
    assert_eq!(
        only(&fred("context.retrycount < 3", "true", "context.userId", "1"), "unknown-field"),
        [".retrycount | error | there is no field `retrycount` in `context`"]
    );
    assert_eq!(
        only(&fred("event.note == \"x\"", "true", "input.userid", "1"), "unknown-field"),
        [".userid | warning | `userid` is not a declared field of `input`"]
    );
    assert_eq!(
        only(&fred("event.note == \"x\"", "true", "input.userId", "1"), "type"),
        [".note | warning | the field `note` of `event` may be missing"]
    );
    assert_eq!(
        only(&fred("true", "true", "context.userId", "event.output"), "unknown-field"),
        [".output | error | there is no field `output` in `event`"]
    );
}

#[test]
fn conditions_are_bools_and_states_exist() {
    assert_eq!(
        only(&fred("context.retryCount", "true", "context.userId", "1"), "type"),
        ["context.retryCount | error | expected a bool, found int"]
    );
    assert_eq!(
        only(&fred("in(\"idel\")", "true", "context.userId", "1"), "unknown-state"),
        ["in(\"idel\") | error | there is no state `idel`"]
    );
    assert_eq!(only(&fred("in(\"idle\")", "true", "context.userId", "1"), "unknown-state"), Vec::<String>::new());
}

#[test]
fn values_fit_what_is_declared() {
    let source = fred("true", "true", "context.retryCount", "1");
    assert_eq!(
        only(&source, "data-mismatch"),
        [
            "input | warning | the input does not fit the input schema of `decide`: at `/question`: declared as string, but the value is int"
        ]
    );
    let charter = "
types: {context: {type: object, properties: {n: {type: integer, maximum: 5}}}}
context: {n: 9}
events: {X: {data: {type: object, required: [k], properties: {k: {type: string}}}}}
states:
  a: {on: {X: {actions: [{assign: {n: text}}, {raise: {type: X, data: {k: '= 1 + 1'}}}, {raise: X}]}}}
";
    let list: Vec<String> = all(&lint(charter)).into_iter().filter(|f| f.contains("data-mismatch")).collect();
    assert_eq!(list.len(), 4, "{list:#?}");
    assert!(list[0].contains("9 is greater than the maximum of 5"), "{list:#?}");
}

#[test]
fn guards_are_checked_where_they_are_used() {
    let charter = "
events:
  A: {data: {type: object, required: [x], properties: {x: {type: integer}}, additionalProperties: false}}
  B: {data: {type: object, required: [y], properties: {y: {type: integer}}, additionalProperties: false}}
guards: {small: event.x < 3}
states:
  s: {on: {A: {guard: small}, B: {guard: small}}}
";
    assert_eq!(only(charter, "unknown-field"), [".x | error | there is no field `x` in `event`"]);
}

#[test]
fn wildcards_answers_and_locals() {
    let charter = "
events:
  A: {data: {type: object, required: [list], properties: {list: {type: array, items: {type: object, required: [id], properties: {id: {type: string}}, additionalProperties: false}}}, additionalProperties: false}}
context: {ids: [], total: 0}
states:
  s:
    on:
      A:
        actions:
          each: {in: event.list, as: item, index: i, do: [{assign: {ids: '= context.ids + [item.id]', total: '= context.total + i'}}, {log: '= item.name'}]}
      '*': {actions: {log: '= event.type + event.lost'}}
";
    assert_eq!(
        only(charter, "unknown-field"),
        [".name | error | there is no field `name` in `item`", ".lost | error | there is no field `lost` in `event`"]
    );
    assert_eq!(only(charter, "type"), Vec::<String>::new());
}

#[test]
fn ledger_interlocks_and_properties() {
    let charter = "
ledger: {token: {}}
context: {spent: 0}
interlocks: [{id: a, assert: actors.root.context.spnt <= 3}]
properties:
  - {id: p, never: \"in('nowhere')\"}
  - {id: q, always: event.x == 1}
states:
  s:
    on:
      X: {requires: {use: {kind: token, key: k, when: entry.uses > 1 && entry.ues > 1}}, actions: {grant: {kind: token, key: k}}, when: \"ledger.tokn['k'].status == 'granted'\"}
";
    let unknown = only(charter, "unknown-field");
    assert_eq!(unknown.len(), 3, "{unknown:#?}");
    assert!(
        unknown.iter().any(|f| f.contains("`spnt`"))
            && unknown.iter().any(|f| f.contains("`ues`"))
            && unknown.iter().any(|f| f.contains("`tokn`")),
        "{unknown:#?}"
    );
    assert_eq!(only(charter, "unknown-state"), ["in('nowhere') | error | there is no state `nowhere`"]);
    assert!(only(charter, "type").iter().any(|f| f.contains("unknown name `event`")));
}

#[test]
fn context_is_inferred_from_initial_values_and_assignments() {
    let charter = |read: &str| {
        format!("
context: {{nothing: null, list: [], map: {{}}, n: 1, fixed: {{a: 1}}}}
events: {{A: {{data: {{type: object, required: [v], properties: {{v: {{type: string}}}}}}}}}}
states:
  s: {{on: {{A: {{when: '{read}', actions: {{assign: {{nothing: '= event.v', 'map[event.v]': 1, list: '= context.list + [event.v]'}}}}}}}}}}
")
    };
    for good in [
        "context.nothing == 1",
        "context.map.x == 1",
        "size(context.list) > 0 && context.list[0] == \"a\"",
        "context.fixed.a == 1",
    ] {
        assert_eq!(
            only(&charter(good), "unknown-field").len() + only(&charter(good), "type").len(),
            0,
            "{good}: {:#?}",
            all(&lint(&charter(good)))
        );
    }
    for bad in ["context.fixed.b == 1", "context.nothin == 1"] {
        assert_eq!(only(&charter(bad), "unknown-field").len(), 1, "{bad}");
    }
}

const NOTES: &str = "charter: 1
id: notes
context: {note: '', n: null}
events:
  GO: {data: {type: object, properties: {note: {type: string}, n: {type: integer}}}}
guards:
  noted: has(event.note)
  numbered: has(event.n)
  sure: {and: [noted, {not: vague}]}
  vague: {or: [{not: noted}, blank]}
  blank: event.note == ''
  bare: '!has(event.note)'
states:
  a:
    on:
      GO: TRANSITION
  b: {type: final}
";

/// Returns the type findings of a transition.
fn noted(transition: &str) -> Vec<String> {
    only(&NOTES.replace("TRANSITION", transition), "type")
}

#[test]
fn conditions_narrow_the_types_after_them() {
    let clean: [&str; 0] = [];
    for good in [
        "{when: has(event.note), actions: {assign: {note: '= event.note'}}}",
        "{guard: noted, actions: {assign: {note: '= event.note'}}}",
        "{guard: {and: [noted, {not: blank}]}, when: has(event.n), actions: {assign: {note: '= event.note', n: '= event.n'}}}",
        "{guard: sure, actions: {log: '= event.note'}}",
        "{guard: {not: bare}, approves: event.note, actions: {log: '= event.note'}}",
        "{actions: {if: [{when: has(event.note), do: {assign: {note: '= event.note'}}}]}}",
        "{actions: {if: [{when: '!has(event.note)', do: {log: none}}, {when: 'event.note == \"\"', do: {log: empty}}, {do: {log: '= event.note'}}]}}",
        "{when: context.n != null && context.n > 1, actions: [{log: '= context.n + 1'}]}",
    ] {
        assert_eq!(noted(good), clean, "{good}");
    }
    let missing = [".note | warning | the field `note` of `event` may be missing"];
    for bad in [
        "{actions: {assign: {note: '= event.note'}}}",
        "{when: '!has(event.note)', actions: {assign: {note: '= event.note'}}}",
        "{guard: {or: [noted, numbered]}, actions: {assign: {note: '= event.note'}}}",
        "{actions: [{if: [{when: has(event.note), do: {log: some}}]}, {log: '= event.note'}]}",
        "{actions: {if: [{when: has(event.note), do: {log: some}}, {do: {log: '= event.note'}}]}}",
    ] {
        assert_eq!(noted(bad), missing, "{bad}");
    }
}

#[test]
fn an_assignment_drops_the_facts_about_a_variable() {
    let sum = |actions: &str| {
        let source = format!(
            "charter: 1
id: sum
input: {{type: object, properties: {{n: {{type: integer}}}}}}
types: {{context: {{type: object, properties: {{n: {{type: [integer, 'null']}}}}}}}}
context: {{n: null, m: 0}}
events: {{GO: {{}}}}
states:
  a: {{on: {{GO: {{when: context.n != null, actions: [{actions}]}}}}}}
"
        );
        only(&source, "type")
    };
    let clean: [&str; 0] = [];
    assert_eq!(sum("{assign: {m: '= context.n + 1'}}"), clean);
    assert_eq!(sum("{assign: {m: 1}}, {assign: {m: '= context.n + 1'}}"), clean);
    let null = ["context.n + 1 | warning | for some values: no such overload: `+` with (null, int)"];
    for bad in [
        "{assign: {n: null}}, {assign: {m: '= context.n + 1'}}",
        "{assign: {n: null, m: '= context.n + 1'}}",
        "{if: [{when: context.m > 0, do: {assign: {n: null}}}]}, {assign: {m: '= context.n + 1'}}",
        "{each: {in: '= [1, 2]', as: i, do: [{log: '= context.n + 1'}, {assign: {n: null}}]}}",
    ] {
        assert_eq!(sum(bad), null, "{bad}");
    }
}

#[test]
fn a_not_by_is_an_id_a_list_of_ids_or_null() {
    let charter = |not_by: &str| {
        format!(
            "charter: 1
id: t
events: {{PUT: {{}}, YES: {{}}}}
types: {{context: {{type: object, properties: {{n: {{type: integer}}, id: {{type: string}}, ids: {{type: array, items: {{type: string}}}}, maybe: {{type: [string, 'null']}}, numbers: {{type: array, items: {{type: integer}}}}}}}}}}
context: {{n: 1, id: x, ids: [], maybe: null, numbers: []}}
states: {{a: {{on: {{YES: {{target: b, approves: {{value: context.n, not_by: \"{not_by}\"}}}}}}}}, b: {{type: final}}}}
"
        )
    };
    for good in ["context.id", "context.ids", "context.maybe", "[context.id, context.maybe]", "null", "[]"] {
        assert_eq!(only(&charter(good), "type"), Vec::<String>::new(), "{good}");
    }
    let expected = "expected the id of a principal, a list of ids, or null";
    assert_eq!(only(&charter("context.n"), "type"), [format!("context.n | error | {expected}, found int")]);
    assert_eq!(
        only(&charter("context.numbers"), "type"),
        [format!("context.numbers | error | {expected}, found list")]
    );
    assert_eq!(only(&charter("context.idd"), "unknown-field").len(), 1);
}

#[test]
fn kind_and_auth_of_the_sender_are_strings() {
    let charter = |when: &str| {
        format!(
            "charter: 1\nid: t\nevents: {{X: {{}}}}\nstates: {{a: {{on: {{X: {{target: b, when: \"{when}\"}}}}}}, b: {{}}}}\n"
        )
    };
    assert_eq!(only(&charter("by.kind == 'person' && by.auth != 'none'"), "type"), Vec::<String>::new());
    assert_eq!(only(&charter("by.kind == 1"), "type").len(), 1);
    assert_eq!(only(&charter("by.kin == 'x'"), "unknown-field").len(), 1);
}

#[test]
fn arithmetic_needs_numbers_with_a_declared_type() {
    let charter = |context: &str, types: &str, cel: &str| {
        format!(
            "
events: {{X: {{data: {{type: object, properties: {{d: {{type: number}}, i: {{type: integer}}}}}}}}, Y: {{}}}}
{types}
context: {context}
states: {{a: {{on: {{X: {{actions: {{assign: {{out: '= event'}}}}}}, Y: {{when: '{cel} > 1'}}}}}}}}
"
        )
    };
    let number = |declared: &str| format!("types: {{context: {{type: object, properties: {declared}}}}}");
    let warned = |context: &str, types: &str, cel: &str| only(&charter(context, types, cel), "untyped-number");
    let by_value = "has no declared type: it is an int or a double by its value";
    assert_eq!(
        warned("{n: null, out: null}", "", "context.n + 1"),
        [format!("context.n | warning | `context.n` {by_value}")]
    );
    for (context, types, cel) in [
        ("{n: 0, out: null}", String::new(), "context.n / 2"),
        ("{n: 0.0, out: null}", String::new(), "context.n / 2"),
        ("{n: {a: [0.5]}, out: null}", String::new(), "context.n.a[0] / 2"),
        ("{n: null, out: null}", number("{n: {type: number}}"), "context.n / 2"),
        ("{n: 0, out: null}", number("{out: {}}"), "context.n / 2"),
        ("{n: null, out: null}", String::new(), "double(context.n) / 2"),
        ("{n: null, out: null}", String::new(), "size(context.n)"),
    ] {
        assert_eq!(warned(context, &types, cel), Vec::<String>::new(), "{context} {types} {cel}");
    }
    for (context, types, cel) in [
        ("{n: null, out: null}", String::new(), "context.n % 2"),
        ("{n: 0, out: null}", number("{n: {}}"), "context.n / 2"),
        ("{n: {a: [0, 0.5]}, out: null}", String::new(), "context.n.a[0] / 2"),
        ("{n: 0, out: null}", number("{n: {type: [integer, number]}}"), "context.n / 2"),
        ("{n: 0, out: null}", String::new(), "event.any / 2"),
        ("{n: 0, out: null}", String::new(), "input.any / 2"),
    ] {
        assert_eq!(warned(context, &types, cel).len(), 1, "{context} {types} {cel}");
    }
    let report = lint(&charter("{n: null, out: null}", "", "context.n % 2"));
    let help = report.findings.iter().find(|f| f.code == "untyped-number").and_then(|f| f.help.clone());
    assert_eq!(help.as_deref(), Some("declare it: `types: {context: {properties: {n: {type: [integer, 'null']}}}}`"));
    let report = lint(&charter("{n: null, out: null}", "", "context.n[\"a b\"][0].c / 2"));
    let help = report.findings.iter().find(|f| f.code == "untyped-number").and_then(|f| f.help.clone());
    assert_eq!(
        help.as_deref(),
        Some(
            "declare it: `types: {context: {properties: {n: {properties: {a b: {items: {properties: {c: {type: number}}}}}}}}}`"
        )
    );
}

#[test]
fn a_double_may_not_fit_the_place_of_an_int() {
    let charter = |context: &str, value: &str| {
        format!(
            "
events: {{X: {{data: {{type: object, required: [d, i], properties: {{d: {{type: number}}, i: {{type: integer}}}}}}}}}}
context: {context}
states: {{a: {{on: {{X: {{actions: {{assign: {{n: '= {value}'}}}}}}}}}}}}
"
        )
    };
    let mismatch = |context: &str, value: &str| only(&charter(context, value), "data-mismatch").len();
    assert_eq!(mismatch("{n: 0}", "event.d"), 1);
    assert_eq!(mismatch("{n: 0}", "context.n + 0.5"), 1);
    assert_eq!(mismatch("{n: 0}", "event.any * 0.5"), 1, "a double, whatever the other operand is");
    assert_eq!(mismatch("{n: 0}", "event.any + 1"), 0);
    for (context, value) in
        [("{n: 0}", "event.i"), ("{n: 0}", "int(event.d)"), ("{n: 0.0}", "event.d"), ("{n: null}", "event.d")]
    {
        assert_eq!(mismatch(context, value), 0, "{context} {value}");
    }
}
