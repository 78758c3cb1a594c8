//! `diff`: each kind of change, its effect and its example.

use charter_check::{ChangeEffect, Diff, Options, Verdict, Version, diff};

use crate::support::{document, machine};

const OLD: &str = "
roles: {clerk: {}, controller: {}, guest: {}}
events:
  REQUEST: {by: clerk, data: {type: object, required: [amount], properties: {amount: {type: integer}}}}
  APPROVE: {by: [controller, guest], data: {type: object, maxProperties: 0}}
context: {amount: 0}
initial: open
states:
  open: {on: {REQUEST: {target: review, when: event.amount < 100, actions: {assign: {amount: '= event.amount'}}}}}
  review: {on: {APPROVE: {target: paid, by: controller}}, after: {1h: open}}
  paid: {type: final}
properties:
  - {id: small, always: context.amount < 100}
";

fn compare(new: &str) -> Diff {
    let (a, b) = (document(OLD), document(new));
    let (x, y) = (machine(OLD), machine(new));
    diff(Version { document: &a, machine: &x }, Version { document: &b, machine: &y }, &Options::default())
}

/// Formats the changes: `effect part name key | what the versions do`.
fn lines(diff: &Diff) -> Vec<String> {
    let one = |c: &charter_check::Change| {
        let shown = c.example.as_ref().map_or_else(
            || "no example".to_owned(),
            |e| format!("{} events; {}; {}", e.events.len() - 1, e.old, e.new),
        );
        format!("{:?} {} {} {} | {shown}", c.effect, c.part, c.name, c.key.unwrap_or("-"))
    };
    diff.changes.iter().map(one).collect()
}

fn with(from: &str, to: &str) -> Diff {
    assert!(OLD.contains(from), "{from}");
    compare(&OLD.replace(from, to))
}

#[test]
fn words_comments_and_the_order_of_keys_are_no_change_of_behavior() {
    let new = OLD
        .replace(
            "roles: {clerk: {}, controller: {}, guest: {}}",
            "title: Payments\nroles: {guest: {}, controller: {description: pays}, clerk: {}}   # who",
        )
        .replace("paid: {type: final}", "paid: {description: done, type: final, meta: {color: green}}");
    let same = compare(&new);
    assert!(same.same && same.changes.is_empty() && same.properties.is_empty(), "{same:#?}");
    assert!(compare(OLD).same);
}

#[test]
fn a_condition_that_was_loosened_has_an_event_that_shows_it() {
    let found = with("event.amount < 100, actions", "event.amount < 200, actions");
    assert!(!found.same);
    assert_eq!(lines(&found), ["Alters transition open, on REQUEST when | 1 events; refused: guard; accepted: review"]);
    let property = &found.properties[0];
    assert_eq!(property.id, "small");
    assert_eq!(property.new.as_ref().unwrap().1, Some(Verdict::Violated));
    assert_ne!(property.old.as_ref().unwrap().1, Some(Verdict::Violated));
}

#[test]
fn who_may_send_is_shown_with_that_role_alone() {
    let found = with("by: controller}}, after", "by: [controller, guest]}}, after");
    assert_eq!(
        lines(&found),
        ["Allows transition review, on APPROVE by | 2 events; refused: authority; accepted: paid"]
    );
    let by = &found.changes[0].example.as_ref().unwrap().events[2]["by"];
    assert_eq!(by["roles"], serde_json::json!(["guest"]));
    let other = with("{target: paid, by: controller}", "paid");
    assert_eq!(other.changes[0].effect, ChangeEffect::Allows);
    let stricter = with("{target: paid, by: controller}", "{target: paid, by: controller, when: context.amount < 10}");
    assert_eq!(lines(&stricter)[0].split(" | ").next(), Some("Forbids transition review, on APPROVE when"));
}

#[test]
fn transitions_and_timers_that_come_and_go() {
    let found = with("paid: {type: final}", "paid: {on: {REQUEST: open}}");
    let list = lines(&found);
    assert!(
        list.contains(&"Allows transition paid, on REQUEST - | 3 events; refused: finished; accepted: open".to_owned()),
        "{list:#?}"
    );
    assert_eq!(found.ways_added, ["paid -> open"]);
    let gone = with(", after: {1h: open}", "");
    assert!(lines(&gone)[0].starts_with("Forbids timer review, after 3600000 ms - | "), "{:#?}", lines(&gone));
    assert_eq!(gone.ways_removed, ["review -> open"]);
    let later = with("1h: open", "2h: open");
    assert_eq!(later.changes.len(), 2, "{:#?}", lines(&later));
}

#[test]
fn an_example_shows_its_own_change_and_no_other() {
    // Without the timer, every way to `paid` leads through a state that differs.
    let new = OLD.replace(", after: {1h: open}", "").replace("by: controller}}", "by: [controller, guest]}}");
    let list = lines(&compare(&new));
    assert!(list[0].ends_with("by | 2 events; refused: authority; accepted: paid"), "{list:#?}");
    assert!(list[1].contains("| 2 events; accepted: open; ignored: review"), "{list:#?}");
    let stored = with("'= event.amount'}", "'= event.amount + 1'}");
    assert_eq!(
        lines(&stored),
        [
            "Alters transition open, on REQUEST actions | 1 events; accepted: review; accepted: review, with other values of variables"
        ]
    );
}

#[test]
fn every_other_part_is_compared() {
    for (from, to, expected) in [
        ("guest: {}}", "guest: {}, boss: {}}", "Allows role boss -"),
        ("by: clerk, data", "by: [clerk, guest], data", "Allows event REQUEST by"),
        ("{type: integer}", "{type: integer, minimum: 1}", "Alters event REQUEST data"),
        ("context: {amount: 0}", "context: {amount: 1}", "Alters variable amount -"),
        ("initial: open", "initial: review", "Alters state  initial"),
        ("initial: open", "limits: {actors: 2}\ninitial: open", "Forbids limit actors -"),
        ("initial: open", "actors: {a: {kind: tool}}\ninitial: open", "Alters actor a -"),
        ("initial: open", "ledger: {token: {}}\ninitial: open", "Alters ledger kind token -"),
        ("initial: open", "interlocks: [{id: i, assert: 'true'}]\ninitial: open", "Forbids interlock i -"),
        ("initial: open", "machines: {m: {states: {x: {}}}}\ninitial: open", "Allows machine m -"),
        ("initial: open", "strict: false\ninitial: open", "Alters charter strict -"),
    ] {
        let found = with(from, to);
        let list = lines(&found);
        assert!(!found.same && list.iter().any(|l| l.starts_with(expected)), "{to}: {expected}: {list:#?}");
    }
}

/// Two versions, the second one without `part`; the only change.
fn without(source: &str, part: &str) -> charter_check::Change {
    let new = source.replace(part, "");
    let (a, b) = (document(source), document(&new));
    let (x, y) = (machine(source), machine(&new));
    let old = Version { document: &a, machine: &x };
    let mut found = diff(old, Version { document: &b, machine: &y }, &Options::default());
    assert_eq!(found.changes.len(), 1, "{:#?}", lines(&found));
    found.changes.remove(0)
}

#[test]
fn who_may_not_vote_any_more_is_shown_by_that_person() {
    let source = "
roles: {r: {}}
events: {ASK: {by: r, data: {type: object, maxProperties: 0}}, YES: {by: r, data: {type: object, maxProperties: 0}}}
context: {who: null}
states:
  open: {on: {ASK: {target: asked, actions: [{assign: {who: '= by.id'}}]}}}
  asked: {on: {YES: {target: done, quorum: {count: 2, of: r, not_by: context.who}}}}
  done: {type: final}
";
    let change = without(source, ", not_by: context.who");
    let example = change.example.unwrap_or_else(|| panic!("no example of {:?}", change.key));
    assert_eq!(example.old, "refused: authority");
    assert_eq!(example.events[1]["by"]["id"], example.events.last().unwrap()["by"]["id"]);
}

#[test]
fn an_approval_in_an_example_has_the_digest_of_the_value() {
    let source = "
roles: {r: {}}
events:
  ASK: {by: r, data: {type: object, required: [sum], properties: {sum: {type: integer}}}}
  YES: {by: r, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
context: {who: null, sum: 0}
states:
  open: {on: {ASK: {target: asked, actions: [{assign: {who: '= by.id', sum: '= event.sum'}}]}}}
  asked: {on: {YES: {target: done, approves: {value: context.sum, not_by: context.who}}}}
  done: {type: final}
";
    let change = without(source, ", not_by: context.who");
    let example = change.example.unwrap_or_else(|| panic!("no example of {:?}", change.key));
    let digest = example.events[2]["data"]["digest"].as_str().unwrap();
    assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{:#?}", example.events);
    assert_eq!((example.old.as_str(), example.new.as_str()), ("refused: authority", "accepted: done"));
}

#[test]
fn unique_keys_and_the_ids_of_states_are_parts() {
    let found = with("REQUEST: {by: clerk,", "REQUEST: {by: clerk, unique: {key: event.amount},");
    assert!(lines(&found)[0].starts_with("Forbids event REQUEST unique |"), "{:?}", lines(&found));
    let found = with("paid: {type: final}", "paid: {id: end, type: final}");
    assert!(lines(&found)[0].starts_with("Alters state paid id |"), "{:?}", lines(&found));
}

#[test]
fn words_in_schemas_and_the_order_of_roles_are_no_change_of_behavior() {
    for (from, to) in [
        ("amount: {type: integer}", "amount: {type: integer, title: Cents, description: no euros, examples: [5]}"),
        ("by: [controller, guest], data", "by: [guest, controller], data"),
    ] {
        assert!(with(from, to).same, "{to}");
    }
    // A field may have such a name.
    let found =
        with("properties: {amount: {type: integer}}", "properties: {amount: {type: integer}, title: {type: string}}");
    assert!(lines(&found)[0].contains("event REQUEST data"), "{:?}", lines(&found));
}
