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

/// Charters with a scenario that reaches a state, the number of skeletons for them, and the
/// transitions whose skeletons say what to fill in.
const FURTHER: [(&str, &str, &str, usize, &[&str]); 10] = [
    (
        "guards on output",
        "actors: {ask: {kind: scripted, output: {type: object, required: [sure], properties: {sure: {type: number}}}}}\n\
        events: {GO: {}}\nstates:\n  a: {on: {GO: b}}\n  b:\n    invoke:\n      src: ask\n      \
        onDone: [{when: event.output.sure >= 0.85, target: c}, {target: d}]\n      onError: d\n  c: {}\n  d: {}",
        "send: {type: GO}",
        3,
        &["b/invoke/ask/onDone/0"],
    ),
    (
        "a quorum",
        "roles: {boss: {}}\nevents: {GO: {by: boss}, OK: {by: boss}}\n\
        states: {a: {on: {GO: b}}, b: {on: {OK: {target: c, quorum: {count: 2, of: boss}}}}, c: {type: final}}",
        "send: {type: GO, as: ana, roles: [boss]}",
        1,
        &[],
    ),
    (
        "unique",
        "events: {GO: {}, PAY: {data: {type: object, required: [order], properties: {order: {type: string}}}, unique: {key: event.order}}}\n\
        states: {a: {on: {GO: b, PAY: {}}}, b: {on: {PAY: c}}, c: {}}",
        "send: {type: GO}",
        2,
        &[],
    ),
    (
        "a task",
        "roles: {clerk: {}}\nevents: {GO: {}}\nactors: {look: {kind: human, title: Look, by: clerk, output: {type: object, \
        required: [verdict], properties: {verdict: {enum: [good, bad]}}}}}\n\
        states:\n  a: {on: {GO: b}}\n  b: {invoke: {src: look, onDone: [{when: event.output.verdict == 'bad', target: d}, {target: c}], onError: d}}\n  \
        c: {}\n  d: {}",
        "send: {type: GO}",
        3,
        &["b/invoke/look/onDone/0"],
    ),
    (
        "delays",
        "events: {GO: {}}\ndelays: {soon: 10m}\nstates: {a: {on: {GO: b}}, b: {after: {soon: c, 5m: {actions: []}}}, c: {}}",
        "send: {type: GO}",
        2,
        &[],
    ),
    (
        "a timer that comes too late",
        "events: {GO: {}}\nstates: {a: {on: {GO: b}}, b: {after: {5m: c, 10m: d}}, c: {}, d: {}}",
        "send: {type: GO}",
        2,
        &["b/after/10m/0"],
    ),
    (
        "regions",
        "events: {GO: {}, X: {}, Y: {}}\nstates:\n  a: {on: {GO: p}}\n  p:\n    type: parallel\n    states:\n      \
        l: {initial: l1, states: {l1: {on: {X: l2}}, l2: {type: final}}}\n      \
        r: {initial: r1, states: {r1: {on: {Y: r2}}, r2: {type: final}}}\n    onDone: z\n  z: {}",
        "send: {type: GO}",
        3,
        &["p/onDone/0"],
    ),
    (
        "permits",
        "ledger: {pass: {}}\nevents: {GRANT: {}, GO: {}, ENTER: {}}\nstates:\n  a: {on: {GRANT: {actions: {grant: {kind: pass, key: p, uses: 1}}}, GO: b}}\n  \
        b: {on: {ENTER: {target: c, requires: {use: {kind: pass, key: p}}}, GO: {target: c, requires: {use: {kind: pass, key: q}}}}}\n  c: {}",
        "send: {type: GRANT}\n  - send: {type: GO}",
        2,
        &["b/on/GO/0"],
    ),
    (
        "an approval",
        "roles: {boss: {}}\ncontext: {plan: {n: 1}}\nevents: {GO: {}, OK: {by: boss}}\n\
        states: {a: {on: {GO: b}}, b: {on: {OK: {target: c, approves: context.plan}}}, c: {}}",
        "send: {type: GO}",
        1,
        &[],
    ),
    (
        "a machine",
        "events: {GO: {}, PING: {}}\nmachines: {child: {initial: x, states: {x: {on: {PING: y}}, y: {type: final}}}}\n\
        states: {a: {on: {GO: b}}, b: {invoke: {src: child, id: c, onDone: d}}, d: {}}",
        "send: {type: GO}",
        2,
        &["b/invoke/c/onDone/0"],
    ),
];

#[test]
fn skeletons_that_go_on_from_a_scenario_are_tried_out() {
    let mut wrong = Vec::new();
    for (what, body, steps, expected, commented) in FURTHER {
        let scratch = Scratch::new("cover-further");
        scratch.file("charter.yaml", format!("charter: 1\nid: t\nversion: 1.0.0\n{body}\n"));
        let scenario = format!("charter: charter.yaml\nname: before\nsteps:\n  - {steps}\n");
        let printed = charter(&["--json", "test", "--cover", &scratch.file("t.yaml", &scenario)]);
        let Ok(answer) = serde_json::from_str::<Json>(&printed.out) else {
            panic!("{what}: {}{}", printed.out, printed.err);
        };
        let gaps = answer["cover"][0]["uncovered"].as_array().unwrap();
        let mut says = Vec::new();
        for gap in gaps {
            let proposal = gap["proposal"].as_str().unwrap();
            if proposal.contains("Fill in") || proposal.contains("Add the steps") {
                says.push(gap["transition"].as_str().unwrap());
                continue;
            }
            // What the comment asks for.
            let begin = if proposal.contains("# Begin with the steps of \"before\"") {
                steps
            } else {
                "expect: {stuck: false}"
            };
            let text =
                format!("charter: charter.yaml\n{}", proposal.replace("steps:\n", &format!("steps:\n  - {begin}\n")));
            let ran = charter(&["test", &scratch.file("pasted.yaml", &text)]);
            if ran.code != 0 {
                wrong.push(format!("{what}, {}\n{text}\n{}{}", gap["transition"], ran.out, ran.err));
            }
        }
        if (gaps.len(), says.as_slice()) != (expected, commented) {
            wrong.push(format!("{what}: {} skeletons, {says:?}", gaps.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
        - expect: {context: {n: {}}}\n  - refused: {type: NEED, code: schema}\n  \
        - refused: {type: GO, data: null, code: schema}\n";
    let ran = charter(&["test", &scratch.file("t.yaml", steps)]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let lines = "{\"type\":\"GO\"}\n{\"type\":\"NIL\"}\n{\"type\":\"GO\",\"data\":null}\n";
    let ran = charter(&["step", &file, "--events", &scratch.file("e.jsonl", lines)]);
    let verdicts = ran.out.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["verdict"].clone());
    assert_eq!(verdicts.collect::<Vec<_>>(), ["accepted", "accepted", "refused"], "{}", ran.out);
}

#[test]
fn a_skeleton_has_a_key_that_the_steps_before_it_have_not_used() {
    let scratch = Scratch::new("cover-free");
    let shop = "charter: 1\nid: shop\nevents:\n  PAY: {data: {type: object, required: [order], properties: {order: {type: string}}}, unique: {key: event.order}}\n\
        initial: a\nstates: {a: {on: {PAY: b}}, b: {on: {PAY: c}}, c: {type: final}}\n";
    scratch.file("charter.yaml", shop);
    let steps = "charter: charter.yaml\nsteps:\n  - send: {type: PAY, data: {order: '...'}}\n";
    let ran = charter(&["test", "--cover", &scratch.file("t.yaml", steps)]);
    assert!(ran.out.contains(r#"{type: PAY, data: {"order":"example"}}"#), "{}", ran.out);
    assert!(!ran.out.contains("Fill in"), "{}", ran.out);
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
