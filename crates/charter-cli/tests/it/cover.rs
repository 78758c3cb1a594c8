//! The skeletons that `charter test --cover` prints work when they are pasted into a file.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::support::{Scratch, charter};

const EVERYTHING: &str = "
charter: 1
id: everything
roles: {director: {}, clerk: {}, lead: {}}
input: {type: object, required: [name], properties: {name: {type: string, minLength: 4}}}
rules: {R1: Nobody deletes}
context: {name: '= input.name', plan: {budget: 12}, owner: someone, n: 0}
events:
  PLAN: {by: director, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
  SIGN: {by: [clerk, lead]}
  VOTE: {by: clerk, data: {type: object, maxProperties: 0}}
  COUNT: {by: clerk, data: {type: object, required: [n], properties: {n: {type: integer, minimum: 3}}}}
  DELETE: {by: clerk}
  NEVER: {by: clerk}
  DEEP: {}
actors:
  look: {kind: human, title: Look, by: clerk, output: {type: object, required: [verdict, score],
    properties: {verdict: {enum: [good, bad]}, score: {type: integer, minimum: 2}}}}
initial: open
states:
  open:
    invoke: {src: look, onDone: done, onError: done}
    on:
      PLAN: {target: done, approves: {value: context.plan, not_by: context.owner}}
      SIGN: {target: done, by: lead, quorum: {count: 3, of: lead}}
      VOTE: {target: done, quorum: {count: 2, of: clerk, not_by: context.owner}}
      COUNT: {actions: {assign: {n: '= event.n'}}}
      DELETE: {refuse: R1}
      NEVER: {target: done, when: context.n > 5}
      DEEP: nested
    after: {1h: done}
  nested: {initial: inner, states: {inner: {}}, on: {DEEP: done}}
  done: {type: final}
";

/// Pastes every skeleton for a charter without scenarios into a file; returns their number, and the
/// transitions whose skeletons have comments.
fn paste(folder: &Scratch, name: &str) -> (usize, BTreeSet<String>) {
    let nothing = folder.file("nothing.yaml", format!("charter: {name}\nsteps: [{{expect: {{stuck: false}}}}]\n"));
    let printed = charter(&["--json", "test", "--cover", &nothing]);
    let answer: Json = serde_json::from_str(&printed.out).unwrap();
    let (mut commented, gaps) = (BTreeSet::new(), answer["cover"][0]["uncovered"].as_array().unwrap());
    for gap in gaps {
        let skeleton = format!("charter: {name}\n{}", gap["proposal"].as_str().unwrap());
        let ran = charter(&["test", &folder.file("pasted.yaml", &skeleton)]);
        if skeleton.contains("  # ") {
            commented.insert(gap["transition"].as_str().unwrap().to_owned());
        } else {
            assert_eq!(ran.code, 0, "{}\n{skeleton}\n{}{}", gap["transition"], ran.out, ran.err);
        }
    }
    (gaps.len(), commented)
}

#[test]
fn every_skeleton_works_or_says_what_to_fill_in() {
    let scratch = Scratch::new("cover");
    scratch.file("charter.yaml", EVERYTHING);
    let (count, commented) = paste(&scratch, "charter.yaml");
    let expected = ["nested/on/DEEP/0", "open/on/NEVER/0"].map(str::to_owned);
    assert_eq!((count, commented), (11, BTreeSet::from(expected)));
    for name in ["automaton", "feijoa", "fred", "omen", "sentinel"] {
        let (count, commented) = paste(&scratch, name);
        assert!(count > commented.len(), "{name}: {count} skeletons, all with comments");
    }
}

#[test]
fn a_guard_that_no_sender_can_meet_is_no_code_to_cover() {
    let scratch = Scratch::new("cover-guard");
    let codes = |on: &str| {
        let text = format!(
            "charter: 1\nid: t\nroles: {{r: {{}}}}\nevents: {{GO: {{}}}}\ncontext: {{n: 0}}\nstates:\n  a:\n{on}\n  b: {{}}\n"
        );
        let printed = charter(&["--json", "test", "--cover", &scratch.file("charter.yaml", &text)]);
        serde_json::from_str::<Json>(&printed.out).unwrap()["cover"][0]["codes"].to_string()
    };
    assert!(codes("    on: {GO: {target: b, when: context.n > 1}}").contains("guard"));
    for never in [
        "    on: {GO: [{target: b, when: context.n > 1}, {target: a}]}",
        "    on: {GO: b}\n    after: {1h: {target: b, when: context.n > 1}}",
        "    on: {GO: b}\n    initial: c\n    states: {c: {on: {GO: {target: '#b', when: context.n > 1}}}}",
    ] {
        let codes = codes(never);
        assert!(codes.contains("unhandled") && !codes.contains("guard"), "{never}: {codes}");
    }
}

#[test]
fn an_event_without_data_fits_a_schema_of_no_data() {
    let scratch = Scratch::new("cover-no-data");
    let text = "charter: 1\nid: t\ncontext: {n: 0}\nevents: {GO: {data: {type: object, maxProperties: 0}}, \
        NIL: {data: {type: 'null'}}, ANY: {}, NEED: {data: {type: object, required: [x]}}}\n\
        states: {a: {on: {GO: {}, NIL: {}, ANY: {actions: {assign: {n: '= event.data'}}}, NEED: {}}}}\n";
    let file = scratch.file("charter.yaml", text);
    let steps = "charter: charter.yaml\nsteps:\n  - send: {type: GO}\n  - send: {type: NIL}\n  - send: {type: ANY}\n  \
        - expect: {context: {n: null}}\n  - refused: {type: NEED, code: schema}\n  \
        - refused: {type: GO, data: null, code: schema}\n";
    let ran = charter(&["test", &scratch.file("t.yaml", steps)]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let lines = "{\"type\":\"GO\"}\n{\"type\":\"NIL\"}\n{\"type\":\"GO\",\"data\":null}\n";
    let ran = charter(&["step", &file, "--events", &scratch.file("e.jsonl", lines)]);
    let verdicts = ran.out.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["verdict"].clone());
    assert_eq!(verdicts.collect::<Vec<_>>(), ["accepted", "accepted", "refused"], "{}", ran.out);
}

#[test]
fn a_taken_key_is_a_code_to_cover() {
    let scratch = Scratch::new("cover-keys");
    let shop = "charter: 1\nid: shop\nevents: {PAY: {unique: {key: event.order}}, NOTE: {}}\n\
        states: {open: {on: {PAY: {}, NOTE: {}}}}\n";
    scratch.file("charter.yaml", shop);
    let test = |more: &str| {
        let steps = format!("charter: charter.yaml\nsteps:\n  - send: {{type: PAY, data: {{order: o1}}}}\n{more}");
        charter(&["--json", "test", "--cover", &scratch.file("t.yaml", &steps)])
    };
    let codes = |more: &str| serde_json::from_str::<Json>(&test(more).out).unwrap()["cover"][0]["codes"].to_string();
    assert_eq!(codes(""), r#"["taken","unhandled"]"#);
    for (order, by) in [("o1", ""), ("o2", ", taken_by: another-run")] {
        let refused = format!("  - refused: {{type: PAY, data: {{order: {order}}}, code: taken{by}}}\n");
        assert_eq!(codes(&refused), r#"["unhandled"]"#);
    }
    // Nobody has the key of an event that has none.
    let ran = test("  - refused: {type: NOTE, code: taken, taken_by: another-run}\n");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("the host names a unique key, and events of the type `NOTE` have none"), "{}", ran.out);
}
