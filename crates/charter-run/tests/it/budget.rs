//! Timers and answers that exceed the budget of an event.

use std::convert::Infallible;

use charter_kernel::{Code, Timestamp};
use charter_run::{Input, Kept, Reply, Run, Trouble};
use serde_json::json;

use crate::host::{Host, WORK};

const CHARTER: &str = "
charter: 1
id: costly
roles: {boss: {}}
events: {NOTE: {}}
limits: {fuel: 1000, bytes: 200000}
context: {list: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], n: 0}
actors:
  worker: {kind: scripted}
actions:
  costly: {each: {in: '= context.list', as: i, do: {each: {in: '= context.list', as: j, do: {log: '= i + j'}}}}}
states:
  s:
    invoke: {src: worker, id: work, onDone: {actions: costly}, onError: failed}
    on: {NOTE: {actions: {assign: {n: '= context.n + 1'}}}}
    after:
      1h: {actions: costly}
      3h: {actions: {assign: {n: 100}}}
  failed: {type: final}
";

#[test]
fn a_costly_timer_is_refused_once_and_never_fires_again() {
    let machine = charter_test_support::machine(CHARTER);
    let mut host = Host::started(&machine);
    host.now = Timestamp(3_600_000);
    let handled = host.give(Input::Due);
    assert!(matches!(&handled.troubles[..], [Trouble::TimerRefused { code, .. }] if code == "too-costly"));
    assert_eq!(host.run.next_due(), Some(Timestamp(3 * 3_600_000)));
    // Nor after a change of the run, nor after a restart of the host.
    host.send("NOTE", json!({}), None);
    host.send("NOTE", json!({}), None);
    assert_eq!(host.story(1), ["after.1h.s refused", "NOTE accepted", "NOTE accepted"]);
    let kept = Kept { refused: Default::default(), ..host.run.kept(&machine, host.records.last().cloned()) };
    let mut restarted = Run::restore(&machine, "r", 1, kept).unwrap();
    assert_eq!(restarted.next_due(), Some(Timestamp(3_600_000)));
    let read = |from: u64, limit: usize| -> Result<Vec<_>, Infallible> {
        Ok(host.records.iter().skip(usize::try_from(from).unwrap()).take(limit).cloned().collect())
    };
    restarted.note_refused(read).unwrap();
    assert_eq!(restarted.next_due(), Some(Timestamp(3 * 3_600_000)));
    host.run = restarted;
    host.give(Input::Due);
    host.send("NOTE", json!({}), None);
    host.now = Timestamp(3 * 3_600_000);
    host.give(Input::Due);
    assert_eq!(host.story(4), ["NOTE accepted", "after.3h.s accepted"]);
    assert_eq!(host.run.next_due(), None);
}

#[test]
fn of_many_timers_that_were_refused_at_once_none_fires_again() {
    let regions: String = (0..300).map(|n| format!("\n    r{n}: {{after: {{1h: {{actions: costly}}}}}}")).collect();
    let text = format!(
        "charter: 1\nid: many\nroles: {{boss: {{}}}}\nevents: {{NOTE: {{}}}}\nlimits: {{fuel: 30000}}\n\
         context: {{list: {:?}}}\nactions: {{costly: {{each: {{in: '= context.list', as: i, do: {{each: {{in: '= context.list', as: j, \
         do: {{log: '= i + j'}}}}}}}}}}}}\ntype: parallel\non: {{NOTE: {{actions: {{log: 1}}}}}}\nstates: {regions}\n",
        [1; 200]
    )
    .replace("states: \n", "states:\n");
    let machine = charter_test_support::machine(&text);
    let mut host = Host::started(&machine);
    host.now = Timestamp(3_600_000);
    while host.run.next_due().is_some() {
        host.give(Input::Due);
    }
    assert_eq!(host.records.len(), 301);
    assert!(host.records[1..].iter().all(|r| r.refusal.as_deref().is_some_and(|r| r.code == Code::TooCostly)));
    // The refusals are no longer those of the last snapshot.
    host.send("NOTE", json!({}), None);
    assert!(host.records[301].refusal.is_none());
    let kept = Kept { refused: Default::default(), ..host.run.kept(&machine, host.records.last().cloned()) };
    let mut restarted = Run::restore(&machine, "r", 1, kept).unwrap();
    let read = |from: u64, limit: usize| -> Result<Vec<_>, Infallible> {
        Ok(host.records.iter().skip(usize::try_from(from).unwrap()).take(limit).cloned().collect())
    };
    restarted.note_refused(read).unwrap();
    assert_eq!(restarted.next_due(), None);
}

#[test]
fn a_refused_timer_is_forgotten_when_it_is_no_longer_pending() {
    let again = "NOTE: {target: s, reenter: true}";
    let machine =
        charter_test_support::machine(&CHARTER.replace("NOTE: {actions: {assign: {n: '= context.n + 1'}}}", again));
    let mut host = Host::started(&machine);
    for hour in 1..=3 {
        host.now = Timestamp(hour * 3_600_000);
        host.give(Input::Due);
        host.send("NOTE", json!({}), None);
    }
    host.now = Timestamp(4 * 3_600_000);
    host.give(Input::Due);
    assert_eq!(host.story(7), ["after.1h.s refused"]);
    let kept = format!("{:?}", host.run.kept(&machine, host.records.last().cloned()).refused);
    let (_, for_good) = kept.split_once("for_good").unwrap();
    assert_eq!(for_good.matches("s/after/1h").count(), 1, "{kept}");
}

#[test]
fn an_answer_that_is_too_costly_or_too_large_becomes_its_failure() {
    for (output, code, n) in [(json!(1), Code::TooCostly, 2), (json!("x".repeat(300_000)), Code::TooLarge, 2)] {
        let machine = charter_test_support::machine(CHARTER);
        let mut host = Host::started(&machine);
        let handled = host.give(Input::Outcome { effect: WORK, attempt: 1, outcome: Ok(output), again_at: None });
        assert_eq!(handled.reply, Reply::Made(n - 1));
        assert_eq!(host.story(1), ["done.invoke.work refused", "error.invoke.work accepted"]);
        assert_eq!(host.records[1].refusal.as_deref().unwrap().code, code);
    }
}

#[test]
fn an_event_that_builds_too_much_is_recorded_with_its_data() {
    let text = "charter: 1
id: big
roles: {boss: {}}
events: {NOTE: {}}
limits: {bytes: 5000}
states: {s: {on: {NOTE: {actions: {each: {in: '= event.list', as: i, do: {log: '= i'}}}}}}}
";
    let machine = charter_test_support::machine(text);
    let mut host = Host::started(&machine);
    let data = json!({"list": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]});
    host.send("NOTE", data.clone(), None);
    let record = host.records.last().unwrap();
    assert_eq!(record.refusal.as_deref().unwrap().code, Code::TooLarge);
    assert!(record.event.redacted.is_none());
    assert_eq!(*record.event.data, data);
}
