//! Event ids, attempts and tasks of the core, also across upgrades.

use charter_canister::{Bounds, CanisterError, EventInput, Input};
use charter_kernel::{EffectId, Millis, Principal, PrincipalKind, Timestamp};
use charter_run::{Denied, Fault};
use serde_json::{Value as Json, json};

use crate::support::{BEGIN, Host, ana};

fn soul(id: &str, text: &str) -> Input {
    let event = EventInput::new("UpdateSoul", json!({"text": text}), ana());
    Input::Event(EventInput { id: Some(id.into()), ..event })
}

fn denied(host: &mut Host, input: Input) -> Denied {
    match host.automaton.handle(host.now, input) {
        Err(CanisterError::Denied(denied)) => denied,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeated_id_returns_the_first_record_also_after_an_upgrade() {
    let mut host = Host::start(Bounds::default(), json!({}));
    let first = host.handle(soul("k1", "Be brief."));
    assert!(!first.repeated);
    // A refusal has a record, and its id.
    let refused = host.handle(soul("k2", " ")).result.unwrap();
    assert_eq!((&*refused.id, refused.refusal.is_some()), ("k2", true));
    for upgraded in [false, true] {
        if upgraded {
            host.restart();
        }
        let end = host.automaton.stable.log.end();
        for (input, record) in [(soul("k1", "Be brief."), first.result.as_ref()), (soul("k2", " "), Some(&refused))] {
            let again = host.handle(input);
            assert_eq!((again.repeated, again.records.len()), (true, 0));
            assert_eq!(again.result.map(|r| r.hash), record.map(|r| r.hash));
        }
        let other = denied(&mut host, soul("k1", "Be long."));
        assert_eq!(other, Denied::IdTaken { id: "k1".into(), seq: first.result.as_ref().unwrap().seq });
        assert_eq!(denied(&mut host, soul("a/1", "x")), Denied::IdReserved { prefix: "a/".into() });
        assert_eq!(host.automaton.stable.log.end(), end);
    }
}

#[test]
fn a_repeated_start_returns_the_first_record() {
    let mut host = Host::start(Bounds::default(), json!({}));
    let again = host.handle(Input::start(json!({}), ana()));
    assert_eq!((again.repeated, again.result.unwrap().seq), (true, 0));
    let other = denied(&mut host, Input::start(json!({"loop": false}), ana()));
    assert_eq!(other, Denied::RunExists);
}

#[test]
fn ids_are_forgotten_with_their_records() {
    let bounds = Bounds { records: 50, bytes: 1 << 20 };
    let mut host = Host::start(bounds, json!({}));
    let id = |n: u64| format!("id {n}");
    for n in 0..600 {
        let made = host.handle(soul(&id(n), "x"));
        assert!(!made.repeated);
        let stable = &host.automaton.stable;
        // Each record forgets only some of those that a segment contained.
        let kept = stable.log.end() - stable.log.first();
        assert!(stable.ids.entries() <= 2 * (kept + 50), "{n}: {}", stable.ids.entries());
        let stale = stable.ids.find(&id(n.saturating_sub(400)));
        assert!(n < 400 || stale.is_none(), "{n}: {stale:?}");
    }
    host.restart();
    let log = &host.automaton.stable.log;
    let (first, end) = (log.first(), log.end());
    assert!(first > 300, "{first}");
    for record in host.records.clone().into_iter().filter(|r| r.id.starts_with("id ")) {
        let input = soul(&record.id, "x");
        if record.seq >= first {
            let again = host.handle(input);
            assert_eq!((again.repeated, again.result.unwrap().seq), (true, record.seq));
        }
    }
    assert_eq!(host.automaton.stable.log.end(), end);
    // An event whose record is gone is a new one.
    assert!(!host.handle(soul(&id(0), "x")).repeated);
    // Events without an id leave no trace in the index.
    let entries = host.automaton.stable.ids.entries();
    host.only_send("UpdateSoul", json!({"text": "y"}));
    assert!(host.automaton.stable.ids.entries() <= entries);
}

const JOB: &str = "
charter: 1
id: job
roles: {boss: {}}
actors:
  worker: {kind: work, retry: {attempts: 3, backoff: 100ms, jitter: 0}}
  judge: {kind: human, by: boss, title: Is it good?, output: {type: object, required: [good]}}
initial: working
states:
  working: {invoke: {src: worker, id: work, onDone: reviewing, onError: failed}}
  reviewing: {invoke: {src: judge, id: review, input: {text: hello}, onDone: done, onError: failed}}
  failed: {type: final}
  done: {type: final}
";

fn busy() -> Result<Json, Fault> {
    Err(Fault::new("busy", "try later").retryable())
}

#[test]
fn a_failed_attempt_is_retried_after_its_pause_also_after_an_upgrade() {
    let mut host = Host::of_charter(JOB);
    let first = host.automaton.take_request(host.now).unwrap();
    assert_eq!(first.attempt, 1);
    let made = host.automaton.attempted(host.now, &first, busy()).unwrap();
    assert_eq!(&*made.result.unwrap().event.r#type, "charter.attempt");
    for upgraded in [false, true] {
        if upgraded {
            host.only_restart();
        }
        assert!(!host.automaton.has_request(host.now));
        assert_eq!(host.automaton.next_due(), Some(BEGIN + 100));
    }
    host.now += 100;
    let second = host.automaton.take_request(host.now).unwrap();
    assert_eq!((second.effect, second.attempt), (first.effect, 2));
    assert_eq!(second.not_before, Timestamp(BEGIN).saturating_add(Millis(100)));
    host.automaton.attempted(host.now, &second, busy()).unwrap();
    host.now += 200;
    let third = host.automaton.take_request(host.now).unwrap();
    let answer = host.automaton.attempted(host.now, &third, busy()).unwrap().result.unwrap();
    assert_eq!(answer.event.data.pointer("/error/attempts"), Some(&json!(3)));
    assert_eq!(host.state(), "failed");
    assert!(host.automaton.next_due().is_none());
}

#[test]
fn an_attempt_that_an_upgrade_interrupts_is_unknown() {
    let mut host = Host::of_charter(JOB);
    let first = host.automaton.take_request(host.now).unwrap();
    host.automaton.attempted(host.now, &first, busy()).unwrap();
    host.now += 100;
    let second = host.automaton.take_request(host.now).unwrap();
    host.only_restart();
    assert_eq!(host.state(), "failed");
    let last = host.records.last().unwrap();
    assert_eq!(last.event.data.pointer("/error/code"), Some(&json!("unknown")));
    // Its answer comes too late and has no record.
    let late = host.automaton.attempted(host.now, &second, Ok(json!(1))).unwrap();
    assert!(late.result.is_none() && late.records.is_empty());
}

#[test]
fn an_output_that_does_not_fit_is_a_failed_attempt() {
    let charter = JOB.replace("kind: work,", "kind: work, output: {type: integer},");
    let mut host = Host::of_charter(&charter);
    let first = host.automaton.take_request(host.now).unwrap();
    let made = host.automaton.attempted(host.now, &first, Ok(json!("no"))).unwrap().result.unwrap();
    assert_eq!(&*made.event.r#type, "charter.attempt");
    assert_eq!(host.automaton.next_due(), Some(BEGIN + 100));
}

#[test]
fn people_answer_tasks_by_role_and_kind() {
    let mut host = Host::of_charter(JOB);
    let work = host.automaton.take_request(host.now).unwrap();
    host.automaton.attempted(host.now, &work, Ok(json!(1))).unwrap();
    // A task is not an invocation that the canister answers, and it survives an upgrade.
    host.only_restart();
    assert!(!host.automaton.has_request(host.now) && host.automaton.next_due().is_none());
    let task = host.automaton.tasks().remove(0);
    assert_eq!((task.title.as_deref(), &task.input), (Some("Is it good?"), &json!({"text": "hello"})));
    let effect = EffectId::parse(&task.effect).unwrap();
    let settle = |outcome: Result<Json, Json>, by: Principal| Input::Settled { effect, outcome, by };
    let boss = Principal::new("bo", &["boss"]);
    let good = || Ok(json!({"good": true}));
    assert!(matches!(denied(&mut host, settle(good(), ana())), Denied::NotYours { .. }));
    let agent = boss.clone().of_kind(PrincipalKind::Agent);
    assert!(matches!(denied(&mut host, settle(good(), agent)), Denied::PersonsOnly { .. }));
    // An answer that does not match the schema is refused, and the task remains open.
    let refused = host.handle(settle(Ok(json!(1)), boss.clone())).result.unwrap();
    assert_eq!(refused.refusal.as_deref().map(|r| r.code.word()), Some("schema"));
    assert_eq!(host.automaton.tasks().len(), 1);
    host.handle(settle(good(), boss.clone()));
    assert_eq!(host.state(), "done");
    assert!(host.automaton.tasks().is_empty());
    assert!(matches!(denied(&mut host, settle(good(), boss)), Denied::NoTask { .. }));
}
