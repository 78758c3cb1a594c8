//! What reports and printed commands say is what the kernel decides, for the sender that they name.

use std::time::Duration;

use crate::support::charter_typed;
use crate::support::processes::Site;

/// Each role has its own transition; `not_by` and the quorum are those of reviewers.
const TWO: &str = "
charter: 1
id: two
roles: {lead: {}, reviewer: {}}
events: {OK: {by: [lead, reviewer], data: {type: object, maxProperties: 0}}}
context: {author: ann}
states:
  open:
    on:
      OK:
        - {by: lead, target: closed, quorum: 2}
        - {by: reviewer, target: closed, quorum: {count: 3, of: reviewer, not_by: context.author}}
    after: {72h: closed}
  closed: {type: final}
";

#[test]
fn what_an_event_needs_is_told_for_each_role() {
    let site = Site::new("observed-roles", &[("two.yaml", TWO.to_owned())]);
    site.run("run two.yaml --run t");
    let (code, out, err) = site.any("send t OK --as r1 --role reviewer");
    assert_eq!(code, 0, "{err}");
    let lead = "for OK by lead (needs 2 votes)  charter send t OK --as r1 --role lead\n";
    let reviewer = "for OK by reviewer (1 of 3 votes (r1); needs 2 more of the role reviewer; not by ann)  \
        charter send t OK --as somebody-else --role reviewer\n";
    assert!(out.contains(lead) && out.contains(reviewer), "{out}");
    assert!(site.run("show t").contains("OK by reviewer (1 of 3 votes (r1)"));
    let (_, _, err) = site.any("send t OK --as r1 --role reviewer");
    assert!(err.contains("`r1` has voted already; the quorum needs 3"), "{err}");
    let barred = |who: &str| site.any(&format!("legal t --as {who} --role reviewer")).1;
    assert!(barred("ann").contains("not OK: not by ann"), "{}", barred("ann"));
    assert!(barred("r1").contains("not OK: r1 has voted"), "{}", barred("r1"));
    assert!(site.any("legal t --as x --role clerk").1.contains("not OK: needs the role lead or reviewer"));
    assert!(site.run("legal t --as r2 --role reviewer").starts_with("OK (1 of 3 votes (r1)"));
}

#[test]
fn of_two_approvals_in_regions_each_role_is_told_its_own_digest() {
    const REGIONS: &str = "
charter: 1
id: regions
roles: {lead: {}, reviewer: {}}
context: {a: 1, b: 2}
events: {OK: {by: [lead, reviewer]}}
states:
  both:
    type: parallel
    states:
      x: {initial: o, states: {o: {on: {OK: {by: lead, approves: context.a, target: c}}}, c: {}}}
      y: {initial: o, states: {o: {on: {OK: {by: reviewer, approves: context.b, target: c}}}, c: {}}}
    after: {1h: end}
  end: {type: final}
";
    let site = Site::new("observed-regions", &[("r.yaml", REGIONS.to_owned())]);
    site.run("run r.yaml --run r");
    let legal = site.run("legal r");
    let digest = |role: &str, value: &str| {
        let (_, rest) = legal.split_once(&format!("OK by {role}")).unwrap_or_else(|| panic!("{legal}"));
        assert!(rest.lines().nth(1).unwrap().contains(&format!("approves context.{value}: ")), "{legal}");
    };
    digest("lead", "a");
    digest("reviewer", "b");
    let shown = site.run("show r");
    assert!(shown.contains("OK by lead, digest") && shown.contains("OK by reviewer, digest"), "{shown}");
}

#[test]
fn somebody_who_has_voted_may_vote_for_other_data() {
    const VOTES: &str = "
charter: 1
id: votes
roles: {reviewer: {}}
events: {VOTE: {by: reviewer, data: {type: object, required: [grade], properties: {grade: {enum: [a, b]}}}}}
states:
  open: {on: {VOTE: {target: closed, quorum: {count: 3, of: reviewer}}}, after: {72h: closed}}
  closed: {type: final}
";
    let site = Site::new("observed-votes", &[("v.yaml", VOTES.to_owned())]);
    site.run("run v.yaml --run v");
    site.run(r#"send v VOTE {"grade":"a"} --as r4 --role reviewer"#);
    let (code, out, _) = site.any("legal v --as r4 --role reviewer");
    assert!(code == 0 && out.starts_with("VOTE (1 of 3 votes (r4)"), "{out}");
    assert!(out.contains("; you have voted; other data is another vote)"), "{out}");
    assert!(site.run(r#"send v VOTE {"grade":"b"} --as r4 --role reviewer"#).starts_with("2  vote"));
}

const DATA: &str = "
charter: 1
id: data
roles: {a: {}}
rules: {r: too much}
context: {code: secret7}
ledger: {duty: {}}
events:
  V: {by: a, data: {type: object, required: [v], properties: {v: {enum: ['no', 'yes']}}}}
  N: {by: a, data: {type: object, required: [n], properties: {n: {type: integer}}}}
  X: {by: a}
  C: {by: a, data: {type: object, required: [code], properties: {code: {type: string}}}}
  K: {by: a, data: {type: object, required: [k], properties: {k: {type: string}}}}
  H: {by: a, data: {type: object, required: [h], properties: {h: {type: string}}}}
states:
  w:
    entry: {open: {kind: duty, key: d-1}}
    on:
      V: {when: event.v == 'yes', target: z}
      N: [{when: event.n > 100, refuse: r}, {when: event.n > 10, target: z}]
      X: {when: has(event.opt), target: z}
      C: {when: event.code == context.code, target: z}
      K: {requires: {open: {kind: duty, key: '= event.k'}}, target: z}
      H: {when: \"event.h.matches('^a+b[0-9]{3}$') && event.h.size() > 9\", target: z}
    after: {1h: z}
  z: {type: final}
";

#[test]
fn printed_data_meets_the_conditions_or_is_not_printed() {
    let site = Site::new("observed-data", &[("data.yaml", DATA.to_owned())]);
    let report = site.run("run data.yaml --run first");
    assert!(
        report.contains("(no data was found that the run accepts: send `H` with other JSON, if `event.h."),
        "{report}"
    );
    for kind in ["V", "N", "X", "C", "K"] {
        let started = site.run(&format!("run data.yaml --run {kind}"));
        let printed =
            started.lines().find_map(|line| line.split_once(&format!("for {kind} by a"))?.1.split_once("  charter "));
        let (_, command) = printed.unwrap_or_else(|| panic!("{kind}: {started}"));
        // The data has no blanks.
        let (code, out, err) = site.any(&command.replace('\'', ""));
        assert!(code == 0 && out.contains("w → z"), "{command}\n{out}{err}");
    }
    let legal = site.run("legal first");
    assert!(legal.contains("if `event.n > 10 && !(event.n > 100)`"), "{legal}");
}

#[test]
fn show_says_what_the_ledger_is_now_and_what_is_left_in_a_pause() {
    const LED: &str = "
charter: 1
id: led
ledger: {duty: {}, pass: {}}
events: {START: {}, USE: {}}
states:
  w:
    on:
      START: {actions: [{open: {kind: duty, key: y, due: 1h}}, {grant: {kind: pass, key: p, expires: 1s}}]}
      USE: {requires: {use: {kind: pass, key: p}}}
      charter.overdue: {actions: {log: '= event.key'}}
    after: {9h: z}
  z: {type: final}
";
    let site = Site::new("observed-ledger", &[("led.yaml", LED.to_owned())]);
    site.run("run led.yaml --run l");
    site.run("send l START");
    std::thread::sleep(Duration::from_millis(1_100));
    let shown = site.run("show l");
    assert!(shown.contains("pass p: expired\n") && shown.contains("duty y: open, due 20"), "{shown}");
    site.run("send l charter.pause --role operator");
    let shown = site.run("show l");
    assert!(shown.contains("duty y: open, 59 min 5") && shown.contains(" left\n"), "{shown}");
}

#[test]
fn an_event_for_another_actor_names_it() {
    const SPAWNED: &str = "
charter: 1
id: sp
events: {SP: {}, HIT: {}, UP: {}}
context: {n: 0}
interlocks: [{id: few, assert: 'context.n < 1'}]
machines: {k: {states: {s: {on: {HIT: {actions: []}}}}}}
states:
  s: {on: {SP: {actions: {spawn: {machine: k, id: k1}}}, UP: {actions: {assign: {n: 2}}}}, after: {1h: z}}
  z: {type: final}
";
    let site = Site::new("observed-actor", &[("sp.yaml", SPAWNED.to_owned())]);
    site.run("run sp.yaml --run r");
    site.run("send r SP");
    let (_, _, err) = site.any("send r HIT");
    assert!(err.contains("; another actor takes it\nhelp: add `--to k1`\n"), "{err}");
    assert!(site.run("send r HIT --to k1").starts_with("3  accepted"));
    site.any("send r UP");
    assert!(site.run("explain r 4").contains("context.n would be 2"));
}

#[test]
fn a_prompt_checks_a_list_whose_items_refer_to_a_definition() {
    const LIST: &str = "
charter: 1
id: list
events:
  ORDER:
    data:
      type: object
      $defs: {item: {type: object, required: [qty, sku], properties: {sku: {type: string}, qty: {type: integer}}}}
      required: [items]
      properties: {items: {type: array, minItems: 1, items: {$ref: '#/$defs/item'}}}
states: {w: {on: {ORDER: z}, after: {1h: z}}, z: {type: final}}
";
    let site = Site::new("observed-list", &[("list.yaml", LIST.to_owned())]);
    let path = |name: &str| site.path(name).display().to_string();
    let (charter, db) = (path("list.yaml"), path("charter.db"));
    let args = ["run", &charter, "--run", "l", "--db", &db];
    let ran = charter_typed(&args, "1\n[]\n[{\"sku\":\"x\",\"qty\":1}]\n", None);
    assert!(ran.err.contains("items (a list as JSON, such as [{\"qty\":0,\"sku\":\"...\"}])"), "{}", ran.err);
    assert!(ran.err.contains("the list has fewer than 1 item"), "{}", ran.err);
    assert!(ran.out.contains("l: done in z, 2 records"), "{}{}", ran.out, ran.err);
}

#[test]
fn graph_and_export_write_json_on_request() {
    let site = Site::new("observed-json", &[("two.yaml", TWO.to_owned())]);
    site.run("run two.yaml --run t");
    assert!(site.run("graph two.yaml --json").starts_with("{\"format\":\"mermaid\",\"text\":\"stateDiagram"));
    assert_eq!(site.run("graph two.yaml --json --format dot -o x.dot"), "{\"file\":\"x.dot\",\"format\":\"dot\"}\n");
    assert_eq!(site.run("export t --json -o t.jsonl"), "{\"file\":\"t.jsonl\",\"records\":1,\"run\":\"t\"}\n");
}
