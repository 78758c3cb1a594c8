//! Findings of the exploration. Replaying a counterexample leads to the reported state.

use crate::support::{all, machine, report_with};
use charter_check::{Finding, Options, Report, explore};
use charter_kernel::{Envelope, Event, Machine, Principal, Refusal, Snapshot};
use serde_json::{Value as Json, json};

fn report(source: &str) -> Report {
    report_with(source, &Options::default())
}

#[track_caller]
fn one(source: &str, code: &str) -> Finding {
    let report = report(source);
    let found: Vec<&Finding> = report.findings.iter().filter(|f| f.code == code).collect();
    assert_eq!(found.len(), 1, "{:#?}", all(&report));
    found[0].clone()
}

#[track_caller]
fn none(source: &str, code: &str) {
    let report = report(source);
    assert!(report.findings.iter().all(|f| f.code != code), "{:#?}", all(&report));
}

fn millis(line: &Json, key: &str) -> i64 {
    charter_expr::ExprTimestamp::parse(line[key].as_str().unwrap()).unwrap().millis()
}

/// Replays a counterexample as `charter step` does, one event per line. Returns the snapshot before
/// the last line, and the result of the last line.
fn replay(machine: &Machine, input: Option<&Json>, lines: &[Json]) -> (Snapshot, Result<Snapshot, Refusal>) {
    let begin = Envelope::host(0, Event::Start { input: input.cloned().unwrap_or(Json::Null) }, 1_767_225_600_000);
    let mut before = machine.start("r", &begin).unwrap().snapshot;
    let mut now = Ok(before.clone());
    for line in lines {
        before = now.unwrap();
        let seq = before.seq() + 1;
        let to = line["to"].as_str().map(str::to_string);
        now = if line.get("tick").is_some() {
            let at = millis(line, "tick");
            let mut s = before.clone();
            while let Some(timer) = s.next_timer().filter(|t| t.due.0 <= at) {
                let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
                s = machine.step(&s, &Envelope::host(s.seq() + 1, event, at)).unwrap().snapshot;
            }
            Ok(s)
        } else {
            let at = millis(line, "at");
            let event = if let Some(id) = line["done"].as_str() {
                Event::Done { invocation: id.into(), effect: None, output: line["output"].clone() }
            } else if let Some(id) = line["failed"].as_str() {
                Event::Failed { invocation: id.into(), effect: None, error: line["error"].clone() }
            } else {
                Event::External { r#type: line["type"].as_str().unwrap().into(), data: line["data"].clone() }
            };
            let by = if line["by"].is_object() {
                serde_json::from_value(line["by"].clone()).unwrap()
            } else {
                Principal::system()
            };
            machine
                .step(&before, &Envelope { seq, to, event, by, at: at.into(), expected_seq: None, unique: None })
                .map(|s| s.snapshot)
        };
    }
    (before, now)
}

/// Replays a counterexample and returns the active states of the root at its end.
fn led_to(source: &str, finding: &Finding) -> Vec<String> {
    let (_, end) = replay(&machine(source), finding.input.as_ref(), finding.events());
    end.unwrap().actors().next().unwrap().state().map(str::to_string).collect()
}

const DOOR: &str = "
events: {GO: {data: {type: object, required: [n], properties: {n: {type: integer}}}}, BACK: {}}
context: {n: 0}
states:
  a: {on: {GO: {target: b, when: event.n > 41, actions: {assign: {n: '= event.n'}}}}}
  b: {on: {BACK: a, GO: {target: c, when: 'event.n == context.n'}}}
  c: {on: {BACK: {target: a, when: context.n < 0}}}
";

#[test]
fn dead_ends_have_a_shortest_witness() {
    let stuck = one(DOOR, "stuck");
    assert!(stuck.message.starts_with("no event that was tried is accepted in `c`; "), "{}", stuck.message);
    assert_eq!(stuck.events().len(), 2);
    assert_eq!(led_to(DOOR, &stuck), ["c"]);
    assert!(
        report(DOOR).findings.iter().any(|f| f.code == "transition-not-taken" && f.message.contains("c/on/BACK/0"))
    );
    let deadlock = "events: {GO: {}}\nstates: {p: {type: parallel, states: {q: {states: {x: {on: {GO: y}}, y: {}}}, r: {states: {z: {}}}}}}";
    let found = one(deadlock, "deadlock");
    assert_eq!(
        (found.message.as_str(), found.events().len()),
        ("deadlock: nothing more can happen in `p.q.y` and `p.r.z`, but the run has not ended", 1)
    );
    assert_eq!(led_to(deadlock, &found), ["p.q.y", "p.r.z"]);
}

#[test]
fn everything_is_reached_in_a_correct_charter() {
    let source = "
roles: {person: {}}
input: {type: object, required: [limit], properties: {limit: {type: integer, minimum: 0}}}
context: {limit: '= input.limit', n: 0, answer: null}
events: {ASK: {by: person, data: {type: object, required: [text], properties: {text: {type: string}}}}, RETRY: {by: person, data: {type: object}}}
actors:
  think: {kind: model, timeout: 1m, output: {type: object, required: [confidence], properties: {confidence: {type: number, minimum: 0, maximum: 1}, more: {type: array, items: {type: string}}}}}
states:
  idle: {on: {ASK: think}, after: {1h: gone}}
  think:
    invoke:
      src: think
      onDone: {target: judge, actions: {assign: {answer: '= event.output'}}}
      onError: {target: broken, actions: {log: '= event.error.message'}}
  judge:
    always:
      - {target: done, when: 'context.answer.confidence >= 0.85'}
      - {target: think, when: 'context.n < context.limit', actions: {assign: {n: '= context.n + 1'}}}
      - {target: broken, when: 'has(context.answer.more) && size(context.answer.more) > 2'}
      - gone
  broken: {on: {RETRY: idle}}
  gone: {type: final, tags: [failed]}
  done: {type: final}
";
    let found = report(source);
    let open: Vec<String> = all(&found)
        .into_iter()
        .filter(|f| {
            f.contains("not-reached") || f.contains("not-taken") || f.contains("execution") || f.contains("stuck")
        })
        .collect();
    assert_eq!(open, Vec::<String>::new());
    assert!(found.explored.cut[0].contains("were tried") || found.explored.cut[0].contains("was tried"));
}

#[test]
fn traces_to_states_and_transitions() {
    let machine = machine(DOOR);
    let exploration = explore(&machine, &Options::default());
    let path = exploration.trace_to_state("root", "c").unwrap();
    assert_eq!(path.events.len(), 2);
    let path = exploration.trace_to_transition("root", "b/on/BACK/0").unwrap();
    assert_eq!(path.events.last().unwrap()["type"], "BACK");
    let (before, after) = replay(&machine, None, &path.events);
    assert_eq!(before.actors().next().unwrap().state().collect::<Vec<_>>(), ["b"]);
    assert_eq!(after.unwrap().actors().next().unwrap().state().collect::<Vec<_>>(), ["a"]);
    assert_eq!(exploration.not_taken().map(|(_, name, _)| name).collect::<Vec<_>>(), ["c/on/BACK/0"]);
    assert_eq!(exploration.trace_to_transition("root", "c/on/BACK/0"), None);
}

#[test]
fn refusals_inside_a_step() {
    let source = "
actors: {w: {kind: tool, output: {type: object}}}
context: {list: []}
states:
  a: {invoke: {src: w, onDone: {target: b, actions: {assign: {list: '= context.list[5]'}}}, onError: b}}
  b: {type: final}
";
    let found = one(source, "execution");
    assert_eq!(found.severity, charter_check::Severity::Warning);
    assert!(found.message.contains("the answer of `w` in `a` can be refused as `execution`"), "{}", found.message);
    let (_, end) = replay(&machine(source), None, found.events());
    assert_eq!(end.unwrap_err().code, charter_kernel::Code::Execution);
    let source = "events: {GO: {}}\nstates: {a: {on: {GO: b}}, b: {always: {target: b, reenter: true}}}";
    let found = one(source, "runaway");
    assert_eq!(found.events().len(), 1);
}

const PLANS: &str = "
roles: {judge: {}}
events:
  SUBMIT: {data: {type: object, required: [plan], properties: {plan: {type: string}}}}
  ADVANCE: {}
  SELECT: {by: judge}
machines: {plan: {states: {PENDING: {on: {SELECT: SELECTED}}, SELECTED: {type: final}}}}
interlocks:
  - {id: phases, given: root, machine: plan, allow: {PLANNING: [PENDING], DECISION: [SELECTED]}}
  - {id: few, assert: size(actors) <= 3}
states:
  PLANNING: {on: {SUBMIT: {actions: {spawn: {machine: plan, id: '= event.plan'}}}, ADVANCE: DECISION}}
  DECISION: {type: final}
";

#[test]
fn several_machines_and_interlocks() {
    let found = report(PLANS);
    let lock: Vec<&Finding> = found.findings.iter().filter(|f| f.code == "interlock").collect();
    assert_eq!(lock.len(), 1, "{:#?}", all(&found));
    assert!(lock[0].path.starts_with("interlocks"), "{}", lock[0].path);
    let (_, end) = replay(&machine(PLANS), None, lock[0].events());
    assert_eq!(end.unwrap_err().code, charter_kernel::Code::Interlock);
    // The interlock table does not allow a selected plan in this state.
    assert!(
        all(&found).iter().any(|f| f.contains("state-not-reached") && f.contains("`SELECTED` of machine `plan`")),
        "{:#?}",
        all(&found)
    );
    assert_eq!(found.explored.states, 5, "no plan, a, b, both, and the end without any");
}

#[test]
fn approvals_use_the_current_digest() {
    let source = "
roles: {person: {}}
events: {YES: {by: person, data: {type: object, required: [digest], properties: {digest: {type: string}}}}}
context: {change: {files: [a]}, by: ben}
states:
  ask: {on: {YES: {target: done, approves: context.change, when: 'by.id != context.by'}}, after: {1h: late}}
  late: {type: final}
  done: {type: final}
";
    none(source, "transition-not-taken");
    let exploration = explore(&machine(source), &Options::default());
    let path = exploration.trace_to_state("root", "done").unwrap();
    assert_eq!(path.events[0]["by"]["id"], "ana");
}

#[test]
fn a_cut_is_reported() {
    let source = "events: {UP: {}, OUT: {}}\ncontext: {n: 0}\nstates: {a: {on: {UP: {actions: {assign: {n: '= context.n + 1'}}}, OUT: {target: b, when: 'context.n > 1000000'}}}, b: {type: final}}";
    let found = report_with(source, &Options { max_states: 100, ..Options::default() });
    assert_eq!((found.explored.states, found.explored.complete), (100, false));
    assert_eq!(found.explored.cut, ["more than 100 states"]);
    let missed = found.findings.iter().find(|f| f.code == "state-not-reached").unwrap();
    assert_eq!(missed.severity, charter_check::Severity::Info);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["explored"]["complete"], false);
    assert_eq!(json["explored"]["states"], 100);
    assert!(json["findings"][0]["severity"].is_string() && json["findings"][0]["line"].is_number());
}

#[test]
fn a_charter_that_cannot_start_is_reported() {
    for source in [
        "context: {m: '= input.a', n: '= 1 / 0'}\nevents: {X: {}}\nstates: {a: {on: {X: a}}}",
        "context: {m: 0}\nstates: {a: {entry: {assign: {m: '= 1 / context.m'}}}}",
        "input: {const: {a: 0}}\ncontext: {n: '= 1 / input.a'}\nstates: {a: {}}",
    ] {
        let found = one(source, "cannot-start");
        assert_eq!(found.severity, charter_check::Severity::Error);
        assert!(found.message.starts_with("no run of this charter can be started: "), "{}", found.message);
    }
}

#[test]
fn a_charter_that_starts_with_none_of_the_inputs_that_were_tried_gets_a_remark() {
    for (source, input) in [
        (
            "context: {n: '= string(timestamp(input.until))'}\ninput: {type: object, required: [until], properties: {until: {type: string}}}\nstates: {a: {}}",
            "`{\"until\":\"a\"}`: ",
        ),
        ("context: {n: '= {\"zoe\": 1}[by.id]'}\nstates: {a: {}}", "`{}` and with 1 other input: "),
    ] {
        let found = one(source, "cannot-start");
        assert_eq!(found.severity, charter_check::Severity::Info, "{}", found.message);
        let expected = format!("nothing was explored: no run starts with the input {input}");
        assert!(found.message.starts_with(&expected), "{}", found.message);
    }
}

#[test]
fn the_plainest_input_is_tried_if_no_other_starts_a_run() {
    let source = "input: {type: object, properties: {k: {type: string}}}\ncontext: {d: \"= has(input.k) ? input.k : '1h'\"}\nstates: {a: {after: {'= context.d': b}}, b: {type: final}}\nproperties: [{id: ev, eventually: \"in('b')\"}]";
    let found = report_with(source, &Options::default());
    assert!(found.findings.iter().all(|f| f.code != "cannot-start"), "{:?}", found.findings);
    assert!(found.explored.states > 0);
}

/// The ids and kinds of the senders of an event, in the traces to a state.
fn sender_of(source: &str, state: &str) -> Json {
    let exploration = explore(&machine(source), &Options::default());
    let path = exploration.trace_to_state("root", state).unwrap_or_else(|| panic!("`{state}` was not reached"));
    path.events.last().unwrap()["by"].clone()
}

#[test]
fn approvals_are_explored_with_an_agent_the_excluded_person_and_another_person() {
    // Each sender that the transition refuses has a fallback, so that the trace shows who it was.
    let source = "
roles: {r: {}}
events: {PUT: {by: r}, YES: {by: r}}
context: {change: {files: [a]}, author: null}
states:
  new: {on: {PUT: {target: ask, actions: {assign: {author: '= by.id'}}}}}
  ask:
    on:
      YES:
        - {target: approved, approves: {value: context.change, not_by: context.author}}
        - {target: machine, when: by.kind != 'person'}
        - {target: nobody, when: by.auth == 'none'}
        - {target: author, when: by.id == context.author}
    after: {1h: late}
  approved: {type: final}
  machine: {type: final}
  nobody: {type: final}
  author: {type: final}
  late: {type: final}
";
    none(source, "transition-not-taken");
    none(source, "state-not-reached");
    assert_eq!(sender_of(source, "approved"), json!({"id": "ben", "roles": ["r"]}));
    assert_eq!(sender_of(source, "machine")["kind"], "agent");
    assert_eq!(sender_of(source, "nobody")["auth"], "none");
    assert_eq!(sender_of(source, "author")["id"], "ana");
}

#[test]
fn as_many_persons_are_tried_as_not_by_leaves_to_a_quorum() {
    let source = |who: &str| {
        format!(
            "
roles: {{r: {{}}}}
events: {{YES: {{by: r}}}}
states:
  ask: {{on: {{YES: {{target: done, quorum: {{count: 3, of: r, not_by: \"{who}\"}}}}}}, after: {{1h: late}}}}
  done: {{type: final}}
  late: {{type: final}}
"
        )
    };
    // The names that would be tried are excluded, and one that would not.
    for who in ["['ana', 'ben', 'cleo', 'dan', 'eva', 'fay', 'zoe']", "'ana'", "null"] {
        none(&source(who), "transition-not-taken");
        let found = report_with(&source(who), &Options::default());
        assert_eq!(found.explored.cut.len(), 1, "{who}: {:?}", found.explored.cut);
        assert!(found.explored.cut[0].contains("only some groups of principals were tried"), "{who}");
    }
    let large = source("null").replace("count: 3", "count: 40");
    let found = report_with(&large, &Options { max_states: 50, ..Options::default() });
    assert!(found.explored.cut.iter().any(|c| c == "`YES`: a quorum of 40 was tried with only 32 persons"));
    let of_event = source("null").replace("null", "event.x");
    let found = report_with(&of_event, &Options::default());
    assert!(!found.explored.complete);
}

#[test]
fn an_approval_that_only_agents_could_give_is_never_taken() {
    let source = |agents: &str| {
        format!(
            "
roles: {{r: {{}}}}
events: {{YES: {{by: r}}}}
context: {{x: 1}}
states:
  ask: {{on: {{YES: {{target: done, approves: context.x, when: by.kind == 'agent'{agents}}}}}, after: {{1h: late}}}}
  done: {{type: final}}
  late: {{type: final}}
"
        )
    };
    // No person is an agent.
    assert_eq!(one(&source(""), "transition-not-taken").path, "states.ask.on.YES");
    none(&source(", agents: true"), "transition-not-taken");
}

/// As an SCXML document has them: a transition for `go` also takes `go.now`.
#[test]
fn the_events_that_transitions_name_are_tried_in_a_charter_that_declares_none() {
    let charter = "strict: false
initial: a
states:
  a: {on: {'go.*': b}}
  b: {on: {'stop.*': c, 'error.*': a, 'done.state.x.*': a, '*': {}}}
  c: {type: final}
";
    let report = report(charter);
    assert_eq!(report.explored.states, 3, "{:#?}", all(&report));
    none(charter, "state-not-reached");
    none(charter, "stuck");
}

#[test]
fn a_chart_without_states_is_called_that() {
    let finding = one("description: nothing", "deadlock");
    let message = "deadlock: nothing more can happen in the chart without `states`, but the run has not ended";
    assert_eq!(
        (finding.message.as_str(), finding.help.as_deref()),
        (message, Some("declare its `states`, or make it final"))
    );
}
