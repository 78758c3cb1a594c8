//! Charters in which a property is false for a reason that is easily overlooked, each beside one in
//! which it is true: a run of the kernel shows the first, and `check` must not call it proved.

use charter_check::{Options, Verdict};
use charter_kernel::{Auth, Digest, Envelope, Event, Machine, Principal, PrincipalKind, Snapshot, Status, TakenKeys};
use serde_json::{Value as Json, json};

use crate::support::{all, document, report_with};

/// The verdict about the only property, and whether a proof of anything else is contradicted by
/// the states in `active`.
#[track_caller]
fn verdict(source: &str, active: &[String]) -> Option<Verdict> {
    let report = report_with(source, &Options { max_states: 300, effort: 3_000, ..Options::default() });
    for state in active {
        let wrong = report.findings.iter().find(|f| {
            f.code == "state-not-reached" && f.verdict == Some(Verdict::Proved) && f.at.ends_with(&format!("/{state}"))
        });
        assert!(wrong.is_none(), "`{state}` is reached: {:#?}\n{source}", all(&report));
    }
    let of = report.findings.iter().find(|f| f.code.starts_with("property-"));
    of.unwrap_or_else(|| panic!("{:#?}\n{source}", all(&report))).verdict
}

/// One step of a run: `EVENT`, `EVENT JSON`, with `EVENT@somebody` for another sender than `p`
/// (`@!agent`: an agent, `@!nobody`: nobody known) and `EVENT>actor` for another receiver; `timer`,
/// `wait MILLISECONDS`; `done JSON` and `failed CODE` of the first actor that works, `last` of the
/// last one.
fn step(machine: &Machine, at: &Snapshot, step: &str, now: &mut i64) -> Snapshot {
    let (word, rest) = step.split_once(' ').unwrap_or((step, "{}"));
    let seq = at.seq() + 1;
    let invocation = || at.invocations().next().unwrap().1.id.to_string();
    let envelope = match word {
        "timer" => {
            let timer = at.next_timer().unwrap();
            *now = timer.due.0.max(*now);
            Envelope::host(seq, Event::Timer { timer: timer.id.to_string(), generation: timer.generation }, *now)
        }
        "wait" => {
            *now += rest.parse::<i64>().unwrap();
            return at.clone();
        }
        "last" => {
            let (invocation, output) = (at.invocations().last().unwrap().1.id.to_string(), json!(null));
            Envelope::host(seq, Event::Done { invocation, effect: None, output }, *now)
        }
        "done" => {
            let output = serde_json::from_str(rest).unwrap();
            Envelope::host(seq, Event::Done { invocation: invocation(), effect: None, output }, *now)
        }
        "failed" => {
            let error = json!({"code": rest, "message": "no"});
            Envelope::host(seq, Event::Failed { invocation: invocation(), effect: None, error }, *now)
        }
        word => {
            let (word, to) = word.split_once('>').unwrap_or((word, "root"));
            let (event, by) = word.split_once('@').unwrap_or((word, "p"));
            let rest = rest.replace("LONG", &"x".repeat(900_000));
            let mut data: Json = serde_json::from_str(&rest).unwrap();
            if data["digest"] == "PLAN" {
                let plan = at.actor("root").unwrap().variable("plan").unwrap();
                data["digest"] = json!(Digest::of_json(plan).hex());
            }
            let roles: &[&str] = if event.starts_with("charter.") { &["operator"] } else { &["r"] };
            let by = match by {
                "!agent" => Principal::new("bot", roles).of_kind(PrincipalKind::Agent),
                "!nobody" => Principal::new("p", roles).authenticated(Auth::None),
                id => Principal::new(id, roles),
            };
            let mut envelope = Envelope::event(seq, event, data, by, *now).to(to);
            // No run has the key.
            envelope.unique = TakenKeys::default().look_up(machine, &envelope.event, &envelope.by);
            envelope
        }
    };
    match machine.step(at, &envelope) {
        Ok(step) => step.snapshot,
        Err(refusal) => panic!("`{step}`: {refusal:?}"),
    }
}

/// Whether a run ends in a state in which the property of the charter does not hold; and which
/// states were active.
fn violates(source: &str, steps: &[&str]) -> (bool, Vec<String>) {
    let machine = Machine::compile(document(source).definition).unwrap();
    let mut now = 1_767_225_600_000;
    let (mut input, mut steps) = (json!(null), steps);
    if let [first, rest @ ..] = steps
        && let Some(json) = first.strip_prefix("start ")
    {
        (input, steps) = (serde_json::from_str(json).unwrap(), rest);
    }
    let mut at = machine.start("r", &Envelope::host(0, Event::Start { input }, now)).unwrap().snapshot;
    let mut active = Vec::new();
    let mut note = |at: &Snapshot| {
        if at.status() == Status::Active {
            active.extend(at.actor("root").unwrap().state().map(str::to_string));
        }
    };
    note(&at);
    for one in steps {
        at = step(&machine, &at, one, &mut now);
        note(&at);
    }
    let property = &machine.definition().properties[0];
    let (cel, bad) = match &property.rule {
        charter_kernel::definition::PropertyRule::Never { when, .. } => (when, true),
        charter_kernel::definition::PropertyRule::Always(cel) => (cel, false),
        charter_kernel::definition::PropertyRule::Eventually(_) => unreachable!("not asked here"),
    };
    let answer = machine.ask(&at, "root", &machine.query(cel).unwrap(), now);
    (answer == Ok(json!(bad)) || answer.is_err(), active)
}

/// A charter in which `is` makes the property false, as `steps` show, and `not` makes it true.
#[track_caller]
pub(crate) fn hostile(source: &str, (is, not): (&str, &str), steps: &[&str]) {
    let of = |text: &str| source.replace("???", text);
    let (violated, active) = violates(&of(is), steps);
    assert!(violated, "the run does not violate the property:\n{}", of(is));
    let said = verdict(&of(is), &active);
    assert_ne!(said, Some(Verdict::Proved), "it is false:\n{}", of(is));
    let twin = verdict(&of(not), &[]);
    assert_ne!(twin, Some(Verdict::Violated), "it is true:\n{}", of(not));
    println!("{is}: {said:?} / {twin:?}");
}

/// An event GO with the fields in the first place; its transitions from `a` in the second one.
/// There are states `ok` and `bad`, and an error leads to `bad`.
fn go(data: &str, context: &str, transitions: &str) -> String {
    format!(
        "
roles: {{r: {{}}}}
events: {{GO: {{data: {{type: object, required: [], properties: {{{data}}}}}}}}}
context: {{{context}}}
states:
  a: {{on: {{GO: [{transitions}], error.execution: bad}}}}
  ok: {{type: final}}
  bad: {{type: final}}
properties: [{{id: p, never: \"in('bad')\"}}]
"
    )
}

const LARGE: &str = r#"GO {"x": 9007199254740991}"#;

/// Conditions of which one seems to hold for all data; where it fails, the second transition is
/// taken.
#[test]
fn conditions_that_hold_for_nearly_all_data() {
    let all = |data: &str, context: &str| {
        go(data, context, "{target: ok, when: \"???\"}, {target: bad}").replace("required: []", "required: [x]")
    };
    let int = all("x: {type: integer}", "n: 0");
    hostile(&int, ("event.x * 4096 < 0 || event.x * 4096 >= 0", "event.x >= 0 || event.x < 0"), &[LARGE]);
    hostile(&int, ("event.x + 9223372036854775000 > event.x", "event.x == event.x"), &[LARGE]);
    hostile(&int, ("10 / event.x < 11", "10 / 5 < 11 || event.x == 0"), &[r#"GO {"x": 0}"#]);
    hostile(&int, ("event.x % 2 == 0 || event.x % 2 == 1", "event.x != 0 || event.x == 0"), &[r#"GO {"x": -1}"#]);
    hostile(&int, ("event.x / 2 * 2 == event.x", "event.x * 2 / 2 == event.x || true"), &[r#"GO {"x": 3}"#]);
    hostile(&int, ("event.x * 3 != 2997", "event.x * 3 != 2998 || true"), &[r#"GO {"x": 999}"#]);
    let number = all("x: {type: number}", "n: 0");
    hostile(&number, ("event.x + 0.1 - 0.1 == event.x", "event.x <= 0.0 || event.x > 0.0"), &[r#"GO {"x": 0.3}"#]);
    hostile(&number, ("event.x + 1.0 > event.x", "event.x == event.x"), &[r#"GO {"x": 1e300}"#]);
    hostile(
        &number,
        ("event.x * 1e10 - event.x * 1e10 == 0.0", "event.x - event.x == 0.0 || true"),
        &[r#"GO {"x": 1e305}"#],
    );
    let text = all("x: {type: string}", "n: 0");
    hostile(&text, ("event.x < 'b' || event.x > 'b'", "event.x == 'b' || event.x != 'b'"), &[r#"GO {"x": "b"}"#]);
    hostile(&text, ("event.x < 'a' || event.x >= 'b'", "event.x != 'a' || event.x == 'a'"), &[r#"GO {"x": "a"}"#]);
    hostile(&text, ("timestamp(event.x) <= now || timestamp(event.x) > now", "has(event.x)"), &[r#"GO {"x": "soon"}"#]);
    hostile(&text, ("event.x.matches('^a*$')", "has(event.x) || event.x.matches('^a*$')"), &[r#"GO {"x": "b"}"#]);
    hostile(&text, ("event.x.size() < 4", "has(event.x) || event.x.size() < 4"), &[r#"GO {"x": "aaaa"}"#]);
    let nullable = all("x: {type: [string, 'null']}", "n: 0");
    hostile(&nullable, ("event.x.size() >= 0", "event.x == null || event.x != null"), &[r#"GO {"x": null}"#]);
    hostile(&nullable, ("has(event.x) && event.x != null", "has(event.x)"), &[r#"GO {"x": null}"#]);
    let free = all("x: {}", "n: 0");
    hostile(&free, ("type(event.x) != list", "has(event.x)"), &[r#"GO {"x": []}"#]);
    hostile(&free, ("event.x != {'a': 1}", "event.x == event.x || true"), &[r#"GO {"x": {"a": 1}}"#]);
    hostile(&free, ("event.x / 2 * 2 == event.x", "event.x == 1 || event.x != 1"), &[r#"GO {"x": 3}"#]);
    let list = all("x: {type: array, items: {type: integer}, maxItems: 3}", "n: 0");
    hostile(&list, ("event.x.all(i, i > 0) || event.x.exists(i, i < 0)", "has(event.x)"), &[r#"GO {"x": [0]}"#]);
    hostile(&list, ("event.x[0] >= event.x[0]", "size(event.x) < 4"), &[r#"GO {"x": []}"#]);
}

#[test]
fn missing_is_neither_null_nor_another_value() {
    let missing = |list: &str| go("t: {type: [string, 'null']}", "n: 0", list);
    let rest = "{target: bad}";
    let ok = |when: &str| format!("{{target: ok, when: \"{when}\"}}");
    let either = format!("{}, ???, {rest}", ok("event.t == null"));
    let source = missing(&either);
    hostile(&source, (&ok("event.t != null"), &ok("!has(event.t) || event.t != null")), &["GO {}"]);
    let named =
        missing("{guard: {not: isK}, target: ok}, {guard: isK, target: ok}, ???") + "guards: {isK: event.t == 'k'}\n";
    hostile(&named, ("{target: bad}", "{target: ok}"), &["GO {}"]);
}

/// The cost of an expression is limited: a condition over a long text fails, which is not false.
#[test]
fn conditions_over_long_texts_fail() {
    let source = go("t: {type: string???}", "s: null", "{target: ok, when: \"CONDITION\"}, {target: bad}")
        .replace("required: []", "required: [t]");
    let long = [r#"GO {"t": "LONG"}"#];
    for condition in ["event.t == event.t", "size(event.t) >= 0", "event.t + 'y' == 'x' || true"] {
        hostile(&source.replace("CONDITION", condition), ("", ", maxLength: 1000"), &long);
    }
    let list = source.replace("CONDITION", "event.t in [event.t] || true").replace("maxLength", "maxItems");
    hostile(&list, ("", ", maxLength: 1000"), &long);
    // What is stored may be long, too.
    let stored = "
events: {KEEP: {data: {type: object, required: [t], properties: {t: {type: string???}}}}, GO: {}}
context: {t: ''}
states:
  a: {on: {KEEP: {target: b, actions: [{assign: {t: '= event.t'}}]}}}
  b: {on: {GO: [{target: ok, when: context.t != context.t || true}, {target: bad}]}}
  ok: {}
  bad: {}
properties: [{id: p, never: \"in('bad')\"}]
";
    hostile(stored, ("", ", maxLength: 200"), &[r#"KEEP {"t": "LONG"}"#, "GO"]);
}

#[test]
fn not_every_number_can_be_stored() {
    let source = go("x: {type: integer???}", "k: 0", "{actions: [{assign: {k: '= event.x * 3'}}]}")
        .replace("required: []", "required: [x]");
    hostile(&source, ("", ", minimum: 0, maximum: 9"), &[LARGE]);
}

#[test]
fn actions_that_fail_halfway() {
    let source = go("x: {type: integer}, l: {type: array}", "paid: false, n: 0, rate: 0", "{actions: ???}")
        .replace("never: \"in('bad')\"", "never: \"in('bad') && (context.paid || context.n == 1)\"");
    let (paid, rate) = ("{assign: {paid: true}}", "{assign: {rate: '= 6 / event.x'}}");
    hostile(&source, (&format!("[{paid}, {rate}]"), &format!("[{rate}, {paid}]")), &[r#"GO {"x": 0}"#]);
    let both = "[{assign: {paid: true, rate: '= 6 / event.x'}}]";
    hostile(&source, (&format!("[{paid}, {{log: '= event.x'}}]"), both), &["GO {}"]);
    let branch = "[{assign: {paid: true}}, {if: [{when: event.x == 1, do: [{log: yes}]}, {do: [{log: no}]}]}]";
    hostile(
        &source,
        (branch, "[{assign: {paid: false}}, {if: [{when: event.x == 1, do: [{assign: {paid: true}}]}]}]"),
        &["GO {}"],
    );
    // Of a list, the items before the one that fails were counted.
    let each = "[{each: {in: '[1, 0, 2]', as: i, do: [{emit: {type: e, data: '= 6 / i'}}, {assign: {n: '= context.n + 1'}}]}}]";
    let never = "[{each: {in: '[0, 1, 2]', as: i, do: [{emit: {type: e, data: '= 6 / i'}}, {assign: {n: '= context.n + 1'}}]}}]";
    hostile(&source, (each, never), &["GO"]);
    let open = "[{each: {in: event.l, as: i, do: [{log: '= 6 / i'}]}}, {assign: {n: 1}}, {log: '= 1 / event.x'}]";
    let first = "[{assign: {n: 0}}, {log: '= 1 / event.x'}, {each: {in: event.l, as: i, do: [{log: '= 6 / i'}]}}, {assign: {n: 1}}]";
    hostile(&source, (open, first), &[r#"GO {"x": 0, "l": []}"#]);
}

#[test]
fn what_is_raised_runs_in_order() {
    let source = "
events: {GO: {data: {type: object, required: [x], properties: {x: {type: integer}}}}, I: {}, J: {}}
states:
  a: {on: {GO: {target: b, actions: ???}}}
  b: {on: {I: {target: c, when: event.data.x > 2}, J: ok}}
  c: {on: {J: bad}}
  ok: {}
  bad: {}
properties: [{id: p, never: \"in('bad')\"}]
";
    let (i, j) = ("{raise: {type: I, data: {x: '= event.x'}}}", "{raise: {type: J}}");
    hostile(source, (&format!("[{i}, {j}]"), &format!("[{j}, {i}]")), &[r#"GO {"x": 3}"#]);
    // An event that is sent with a delay carries data of another time.
    let later = "
events: {GO: {data: {type: object, required: [x], properties: {x: {type: integer}}}}, STOP: {}, I: {by: system}}
states:
  a: {on: {GO: {target: b, actions: [{send: {type: I, id: later, delay: 1s, data: {x: '= event.x'}}}]}}}
  b: {on: {STOP: {target: c ???}}}
  c: {on: {I: {target: bad, when: event.data.x == 77}}}
  bad: {}
properties: [{id: p, never: \"in('bad')\"}]
";
    hostile(later, ("", ", actions: [{cancel: later}]"), &[r#"GO {"x": 77}"#, "STOP", "timer"]);
}

#[test]
fn ways_back_and_ways_around() {
    let history = "
events: {MENU: {}, LOCK: {}, BACK: {}, NEXT: {}}
context: {locked: false}
states:
  work:
    initial: read
    states: {read: {on: {NEXT: edit}}, edit: {}, before: {type: history, target: read}}
    on: {MENU: menu}
  menu: {on: {LOCK: {actions: [{assign: {locked: true}}]}, BACK: ???}}
properties: [{id: p, never: \"in('work.edit') && context.locked && !in('menu')\"}]
";
    let run = ["NEXT", "MENU", "LOCK", "BACK"];
    hostile(history, ("work.before", "{target: work.read, when: '!context.locked'}"), &run);
    let zero = "
events: {GO: {}}
states:
  a: {on: {GO: b}}
  b: {???, on: {GO: bad}}
  safe: {}
  bad: {}
properties: [{id: p, never: \"in('bad')\"}]
";
    hostile(zero, ("after: {0s: safe}", "always: safe"), &["GO", "GO"]);
    let parallel = "
events: {A: {}, B: {}}
context: {b: false}
states:
  p:
    type: parallel
    states:
      one: {states: {x: {on: {A: end}}, end: {type: final}}}
      two: {states: {x: {on: {B: {target: end, actions: [{assign: {b: true}}]}}}, end: {type: final}}}
    on: {done.state.???: paid}
  paid: {}
properties: [{id: p, never: in('paid') && !context.b}]
";
    hostile(parallel, ("p.one", "p"), &["A"]);
}
