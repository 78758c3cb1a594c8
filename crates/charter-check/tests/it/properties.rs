//! A property holds or has a shortest counterexample.

use crate::support::{all, report_with};
use charter_check::{Finding, Options, Report};

fn report(charter: &str, property: &str) -> Report {
    report_with(&format!("{charter}properties:\n  - {{id: p, {property}}}\n"), &Options::default())
}

#[track_caller]
fn holds(charter: &str, property: &str) {
    let report = report(charter, property);
    assert!(report.findings.iter().any(|f| f.code == "property-holds"), "{property}: {:#?}", all(&report));
    assert!(report.findings.iter().all(|f| f.code != "property-violated"), "{property}: {:#?}", all(&report));
}

#[track_caller]
fn undecided(charter: &str, property: &str) {
    let report = report(charter, property);
    assert!(report.findings.iter().any(|f| f.code == "property-undecided"), "{property}: {:#?}", all(&report));
}

#[track_caller]
fn violated(charter: &str, property: &str) -> Finding {
    let report = report(charter, property);
    let found: Vec<&Finding> = report.findings.iter().filter(|f| f.code == "property-violated").collect();
    assert_eq!(found.len(), 1, "{property}: {:#?}", all(&report));
    found[0].clone()
}

/// Returns the names of the events in a counterexample.
fn words(finding: &Finding) -> Vec<String> {
    let word = |key: &str, line: &serde_json::Value| line[key].as_str().map(|id| format!("{key} {id}"));
    finding
        .events()
        .iter()
        .map(|l| {
            l["type"].as_str().map(str::to_string).or(word("done", l)).or(word("failed", l)).unwrap_or("tick".into())
        })
        .collect()
}

const REVIEW: &str = "
events: {PROPOSE: {}, APPROVE: {}, FORCE: {}, REJECT: {}}
states:
  idle: {on: {PROPOSE: review}}
  review: {on: {APPROVE: applying, REJECT: idle}}
  applying: {on: {REJECT: idle}}
";

#[test]
fn safety() {
    holds(REVIEW, "never: \"in('applying')\", unless-before: APPROVE");
    let forced = REVIEW.replace("on: {PROPOSE: review}", "on: {PROPOSE: review, FORCE: applying}");
    let found = violated(&forced, "never: \"in('applying')\", unless-before: APPROVE");
    assert_eq!(words(&found), ["FORCE"]);
    assert_eq!(
        found.message,
        "property `p` is violated: `in('applying')` holds in `applying`, before `APPROVE` was accepted"
    );
    assert_eq!(
        words(&violated(REVIEW, "never: \"in('applying')\"")),
        ["PROPOSE", "APPROVE"],
        "a shortest counterexample"
    );
    holds(REVIEW, "always: size(actors) <= 1");
    assert_eq!(words(&violated(REVIEW, "always: \"!in('review')\"")), ["PROPOSE"]);
}

#[test]
fn a_property_that_cannot_be_evaluated_is_reported() {
    let report = report(REVIEW, "always: actors.nobody.status == 'active'");
    assert!(report.findings.iter().any(|f| f.code == "property-fails"), "{:#?}", all(&report));
}

fn work(rest: &str) -> String {
    format!(
        "
actors: {{w: {{kind: tool, output: {{type: object}}{rest}
"
    )
}

#[test]
fn answers_come_eventually() {
    let done = "eventually: \"in('done') || in('failed')\"";
    let plain = work(
        "}}\nstates: {a: {invoke: {src: w, onDone: done, onError: failed}}, done: {type: final}, failed: {type: final}}",
    );
    holds(&plain, done);
    // If a failure is not handled, the run stays in its state.
    let lost = work("}}\nstates: {a: {invoke: {src: w, onDone: done}}, done: {type: final}, failed: {type: final}}");
    assert_eq!(words(&violated(&lost, done)), ["failed w"]);
    // A person may send events in between, but the answer still arrives.
    let talk = work(
        "}}\nevents: {HELLO: {}}\nstates: {a: {on: {HELLO: {actions: {log: hello}}}, invoke: {src: w, onDone: done, onError: failed}}, done: {type: final}, failed: {type: final}}",
    );
    holds(&talk, done);
    // If each event restarts the invocation, it may never complete.
    let restart = work(
        "}}\nevents: {AGAIN: {}}\nstates: {a: {on: {AGAIN: {target: a, reenter: true}}, invoke: {src: w, onDone: done, onError: failed}}, done: {type: final}, failed: {type: final}}",
    );
    let found = violated(&restart, done);
    assert_eq!(words(&found), ["AGAIN"]);
    assert!(found.message.contains("the last event repeats forever"), "{}", found.message);
    // Unbounded and bounded retries.
    let retry = |when: &str, assign: &str| {
        work(&format!(
            "}}}}\ncontext: {{n: 0}}\nstates: {{a: {{invoke: {{src: w, onDone: done, onError: [{{target: a, reenter: true, when: '{when}', actions: {{assign: {{{assign}}}}}}}, failed]}}}}, done: {{type: final}}, failed: {{type: final}}}}"
        ))
    };
    assert_eq!(words(&violated(&retry("context.n < 3", "n: 0"), done)), ["failed w"]);
    holds(&retry("context.n < 3", "n: '= context.n + 1'"), done);
}

#[test]
fn people_need_not_answer_but_deadlines_pass() {
    let wait = |after: &str| {
        format!(
            "events: {{YES: {{}}}}\nstates: {{ask: {{on: {{YES: done}}{after}}}, done: {{type: final}}, failed: {{type: final}}}}\n"
        )
    };
    let done = "eventually: \"in('done') || in('failed')\"";
    let found = violated(&wait(""), done);
    assert_eq!(words(&found), Vec::<String>::new());
    assert!(found.message.contains("then the run ends or waits for events from outside only"), "{}", found.message);
    holds(&wait(", after: {72h: failed}"), done);
    // A deadline that can always be restarted never passes.
    let put_off = wait(", after: {72h: failed}").replace("YES: done", "YES: {target: ask, reenter: true}");
    let found = violated(&put_off, done);
    assert_eq!(words(&found), ["YES"]);
    // A fair cycle must end both waits. In this cycle the outer deadline stays pending, so it
    // passes eventually.
    let outer = "
events: {FLIP: {}}
states:
  o:
    after: {1h: done}
    states: {a: {on: {FLIP: b}, after: {1m: b}}, b: {on: {FLIP: a}}}
  done: {type: final}
";
    // Two timers are pending at once, and only one order of them was tried.
    undecided(outer, "eventually: \"in('done')\"");
    let flip = outer.replace("    after: {1h: done}\n", "");
    let found = violated(
        &flip.replace("b: {on: {FLIP: a}}", "b: {on: {FLIP: a}, after: {1m: a}}"),
        "eventually: \"in('done')\"",
    );
    assert_eq!(found.events().len(), 2, "{:?}", words(&found));
}

#[test]
fn a_cut_exploration_does_not_claim_more_than_it_explored() {
    let source = "events: {UP: {}}\ncontext: {n: 0}\nstates: {a: {on: {UP: {actions: {assign: {n: '= context.n + 1'}}}}}}\nproperties: [{id: p, never: context.n > 1000}]\n";
    let report = report_with(source, &Options { max_states: 50, ..Options::default() });
    let held = report.findings.iter().find(|f| f.code == "property-undecided").unwrap();
    assert_eq!(
        held.message,
        "property `p` (never) is not decided: no violation was seen, in 50 states with up to 1 principal and 1 value of the data per event; not proved for all data: `context.n > 1000` (properties[0], line 6): it could be neither solved nor refuted"
    );
}

#[test]
fn what_one_property_reads_does_not_stand_in_the_way_of_another() {
    let source = "
events: {GO: {data: {type: object, required: [x], properties: {x: {type: integer}}}}}
states:
  a: {on: {GO: {target: b, when: event.x * 7 == 4922}}}
  b: {}
properties:
  - {id: status, always: \"actors.root.status == 'active'\"}
  - {id: never, never: \"in('b')\"}
";
    let report = report_with(source, &Options::default());
    let of = |at: &str| report.findings.iter().find(|f| f.at == at && f.code.starts_with("property-")).unwrap();
    assert_ne!(of("/properties/0").verdict, Some(charter_check::Verdict::Proved));
    assert!(of("/properties/0").message.contains("the run was not paused or cancelled"));
    assert_eq!(of("/properties/1").verdict, Some(charter_check::Verdict::Proved), "{}", of("/properties/1").message);
}
