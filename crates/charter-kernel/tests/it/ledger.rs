//! Permits and obligations.

use crate::common::Run;
use serde_json::json;

const LEDGER: &str = "
ledger: {token: {}, directive: {}}
events: {GRANT: {}, USE: {}, REVOKE: {}, OPEN: {}, CLOSE: {}, LEAVE: {}, NEED: {}, REVOKE_ALL: {}}
context: {overdue: []}
states:
  s:
    on:
      GRANT: {actions: {grant: {kind: token, key: '= event.key', uses: '= has(event.uses) ? event.uses : null', expires: '= has(event.expires) ? event.expires : null', data: {scope: [a]}}}}
      USE: {requires: [{use: {kind: token, key: '= event.key', when: 'event.what in entry.data.scope'}}]}
      REVOKE: {actions: {revoke: {kind: token, key: '= event.key'}}}
      REVOKE_ALL: {actions: {revoke: {kind: token, all: true}}}
      OPEN: {actions: {open: {kind: directive, key: '= event.key', due: 10s}}}
      CLOSE: {actions: {close: {kind: directive, key: '= event.key', as: done}}}
      NEED: {requires: {open: {kind: directive, key: '= event.key'}}}
      LEAVE: {target: t, requires: {none: {kind: directive}}}
      charter.overdue: {actions: {assign: {overdue: '= context.overdue + [event.key]'}}}
  t: {}
";

#[test]
fn permits_are_counted_and_expire() {
    let mut run = Run::start(LEDGER);
    let with = |key: &str| json!({"key": key, "what": "a"});
    assert_eq!(run.refused("USE", with("k")), "permit.missing");
    run.send_data("GRANT", json!({"key": "k", "uses": 2}));
    assert_eq!(run.refused("GRANT", json!({"key": "k"})), "execution", "a key is granted once");
    assert_eq!(run.refused("USE", json!({"key": "k", "what": "b"})), "permit.scope");
    run.send_data("USE", with("k")).send_data("USE", with("k"));
    assert_eq!(run.refused("USE", with("k")), "permit.exhausted");
    run.send_data("GRANT", json!({"key": "e", "expires": "1970-01-01T00:00:05Z"}));
    run.at = 4_999;
    run.send_data("USE", with("e"));
    run.at = 5_000;
    assert_eq!(run.refused("USE", with("e")), "permit.expired", "valid while time < expiry");
    run.send_data("GRANT", json!({"key": "r"})).send_data("REVOKE", json!({"key": "r"}));
    assert_eq!(run.refused("USE", with("r")), "permit.revoked");
    run.send_data("GRANT", json!({"key": "x"})).send("REVOKE_ALL");
    assert_eq!(run.refused("USE", with("x")), "permit.revoked");
}

#[test]
fn an_open_obligation_blocks_and_is_reported_when_overdue() {
    let mut run = Run::start(LEDGER);
    assert_eq!(run.refused("CLOSE", json!({"key": "d"})), "execution");
    assert_eq!(run.refused("NEED", json!({"key": "d"})), "obligation.missing");
    run.send_data("OPEN", json!({"key": "d"})).send_data("NEED", json!({"key": "d"}));
    let story = run.try_send("LEAVE", json!({})).map(|_| ()).unwrap_err();
    assert_eq!((story.code.word(), story.message.as_str()), ("obligation.open", "`directive` still open: `d`"));
    run.wait(10_000);
    assert_eq!(run.var("overdue"), json!(["d"]));
    assert_eq!(run.refused("LEAVE", json!({})), "obligation.open", "overdue is not fulfilled");
    run.send_data("CLOSE", json!({"key": "d"})).send("LEAVE");
    assert_eq!(run.state(), "t");
    let mut run = Run::start(LEDGER);
    run.send_data("OPEN", json!({"key": "d"})).send_data("CLOSE", json!({"key": "d"})).wait(20_000);
    assert_eq!(run.var("overdue"), json!([]), "closing cancels the timer");
}

#[test]
fn a_pause_moves_what_is_due_but_not_when_a_permit_expires() {
    let text = LEDGER.replace("OPEN: {},", "OPEN: {whilePaused: true},");
    let due = |run: &Run, key: &str| run.snapshot.ledger().unwrap().entry("directive", key).unwrap().due.unwrap().0;
    let mut run = Run::start(&text);
    run.by("op", &["operator"]);
    run.send_data("OPEN", json!({"key": "before"}));
    for (key, expires) in [("short", "00:00:05"), ("long", "00:01:00")] {
        run.send_data("GRANT", json!({"key": key, "expires": format!("1970-01-01T{expires}Z")}));
    }
    run.wait(4_000).send("charter.pause");
    run.wait(20_000).send_data("OPEN", json!({"key": "within"}));
    assert_eq!((due(&run, "before"), due(&run, "within")), (10_000, 34_000), "as opened, until it is resumed");
    run.wait(6_000).send("charter.resume");
    assert_eq!((due(&run, "before"), due(&run, "within")), (36_000, 40_000), "both have left what they had");
    let timers: Vec<i64> = run.snapshot.timers().iter().map(|timer| timer.due.0).collect();
    assert_eq!(timers, [36_000, 40_000], "and are reported then");
    assert_eq!(run.refused("USE", json!({"key": "short", "what": "a"})), "permit.expired", "a pause extends no right");
    run.send_data("USE", json!({"key": "long", "what": "a"}));
    run.wait(6_000);
    assert_eq!(run.var("overdue"), json!(["before"]));
    run.wait(4_000);
    assert_eq!(run.var("overdue"), json!(["before", "within"]));
}

#[test]
fn the_ledger_is_a_map_of_kinds_with_their_entries() {
    let mut run = Run::start(&LEDGER.replace(
        "REVOKE_ALL: {}}",
        "REVOKE_ALL: {}, READ: {}}",
    ).replace(
        "overdue: []}",
        "overdue: [], sizes: [], kinds: []}",
    ).replace(
        "    on:\n",
        "    on:\n      READ: {actions: {assign: {sizes: '= [size(ledger), size(ledger.token)]', kinds: '= ledger.map(k, k)'}}}\n",
    ));
    run.send("READ");
    assert_eq!((run.var("sizes"), run.var("kinds")), (json!([2, 0]), json!(["directive", "token"])));
    run.send_data("GRANT", json!({"key": "k"})).send_data("GRANT", json!({"key": "l"})).send("READ");
    assert_eq!(run.var("sizes"), json!([2, 2]));
}
