//! Keys that are unique across runs: `unique` of an event.

use charter_kernel::{Code, Envelope, Event, MAX_KEY_BYTES, Machine, Principal, TakenKeys, Unique};
use serde_json::{Value as Json, json};

use crate::common::*;

const SHOP: &str = "
charter: 1
id: shop
events:
  PAY: {unique: {key: event.order}}
  BACK: {unique: {key: \"by.id + '/' + event.order\"}}
  NOTE: {}
context: {paid: 0}
states:
  open:
    on:
      PAY: {when: 'event.order != \"closed\"', actions: {assign: {paid: '= context.paid + 1'}}}
      NOTE: {}
  done: {type: final}
";

fn pay(data: Json, unique: Option<(Json, Option<&str>)>) -> Envelope {
    let mut envelope = Envelope::event(1, "PAY", data, Principal::new("ana", &[]), 0);
    envelope.unique = unique.map(|(key, run)| Unique { key, taken_by: run.map(Into::into) });
    envelope
}

fn refused(run: &mut Run, envelope: &Envelope) -> (Code, String) {
    let explanation = run.apply(envelope).map(drop).unwrap_err();
    (explanation.code, explanation.message)
}

#[test]
fn a_taken_key_is_refused_and_names_its_run() {
    let mut run = Run::start(SHOP);
    let order = || json!({"order": "o1"});
    run.apply(&pay(order(), Some((json!("o1"), None)))).unwrap();
    let message = "run `r1` has accepted `PAY` with the key \"o1\", which is unique across runs";
    assert_eq!(refused(&mut run, &pay(order(), Some((json!("o1"), Some("r1"))))), (Code::Taken, message.into()));
}

#[test]
fn without_the_answer_of_the_host_to_its_own_key_no_event_passes() {
    let mut run = Run::start(SHOP);
    let order = || json!({"order": "o1"});
    for unique in [None, Some((json!("o2"), None)), Some((json!("o2"), Some("r1"))), Some((json!(1), None))] {
        assert_eq!(refused(&mut run, &pay(order(), unique)).0, Code::Unreserved);
    }
    // A key that the event does not have would be reserved with its record.
    let mut note = Envelope::event(1, "NOTE", json!({}), Principal::default(), 0);
    run.apply(&note.clone()).unwrap();
    for taken_by in [None, Some("r1".to_owned())] {
        note.unique = Some(Unique { key: json!("o1"), taken_by });
        let message = "the host names a unique key, and events of the type `NOTE` have none";
        assert_eq!(refused(&mut run, &note), (Code::Unreserved, message.into()));
    }
}

#[test]
fn only_events_of_senders_have_keys() {
    let machine = machine(&SHOP.replace("  open:\n", "  open:\n    after: {1h: done}\n"));
    let keyed = |mut envelope: Envelope| {
        envelope.unique = Some(Unique { key: json!("o1"), taken_by: None });
        envelope
    };
    let start = Envelope::host(0, Event::Start { input: json!({}) }, 0);
    assert_eq!(machine.start("r", &keyed(start.clone())).map(drop).map_err(|r| r.code), Err(Code::Unreserved));
    let snapshot = machine.start("r", &start).unwrap().snapshot;
    let timer = snapshot.next_timer().unwrap();
    let fires = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
    let cancel = Envelope::event(1, "charter.cancel", json!(null), Principal::new("op", &["operator"]), 0);
    for envelope in [cancel, Envelope::host(1, fires, 3_600_000)] {
        machine.step(&snapshot, &envelope).unwrap();
        let refused = machine.step(&snapshot, &keyed(envelope)).map(drop).map_err(|r| r.code);
        assert_eq!(refused, Err(Code::Unreserved));
    }
}

#[test]
fn a_key_is_a_string_an_integer_or_a_boolean() {
    let machine = machine(SHOP);
    let key = |order: Json| machine.unique_key("PAY", &json!({"order": order}), &Principal::default());
    for good in
        [json!("o1"), json!(7), json!(-7), json!((1i64 << 53) - 1), json!(true), json!("x".repeat(MAX_KEY_BYTES))]
    {
        assert_eq!(key(good.clone()), Some(good));
    }
    // The string "7" is another key than the number.
    assert_ne!(key(json!("7")), key(json!(7)));
    let mut run = Run::start(SHOP);
    for (bad, why) in [
        (json!(null), "is of type null"),
        (json!(1.5), "is of type double"),
        (json!([1]), "is of type list"),
        (json!(""), "is a string of 0 bytes"),
        (json!("x".repeat(MAX_KEY_BYTES + 1)), "is a string of 257 bytes"),
    ] {
        assert_eq!(key(bad.clone()), None);
        let (code, message) = refused(&mut run, &pay(json!({"order": bad}), None));
        assert_eq!(code, Code::Schema);
        let all = format!(
            "the unique key of `PAY`, `event.order`, {why}; it must be a string of 1 to 256 bytes, an integer or a boolean"
        );
        assert_eq!(message, all);
    }
    let (code, message) = refused(&mut run, &pay(json!({}), Some((json!("o1"), None))));
    assert_eq!(code, Code::Schema);
    assert!(message.starts_with("the unique key of `PAY`, `event.order`, could not be evaluated: "), "{message}");
}

#[test]
fn a_key_reads_the_event_and_its_sender_only() {
    let machine = machine(SHOP);
    let key = machine.unique_key("BACK", &json!({"order": "o1"}), &Principal::new("ana", &[]));
    assert_eq!(key, Some(json!("ana/o1")));
    assert_eq!(machine.unique_event(), Some("PAY"));
    assert_eq!(machine.unique_key("NOTE", &json!({"order": "o1"}), &Principal::default()), None);
    let wrong = problems(&SHOP.replace("event.order}", "context.paid}"));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0].0, "bad-expression");
    assert!(wrong[0].1.starts_with("/events/PAY/unique/key: "), "{wrong:?}");
}

#[test]
fn only_an_accepted_event_takes_its_key() {
    let machine: Machine = machine(SHOP);
    let mut keys = TakenKeys::default();
    let start = machine.start("r1", &Envelope::host(0, Event::Start { input: json!({}) }, 0)).unwrap().snapshot;
    let mut send = |run: &str, order: &str| {
        let mut envelope = pay(json!({"order": order}), None);
        envelope.unique = keys.look_up(&machine, &envelope.event, &envelope.by);
        let outcome = machine.step(&start, &envelope);
        keys.note(run, &envelope, &outcome);
        outcome.map(drop).map_err(|refusal| refusal.code)
    };
    assert_eq!(send("r1", "o1"), Ok(()));
    assert_eq!(send("r2", "o1"), Err(Code::Taken));
    assert_eq!(send("r1", "o1"), Err(Code::Taken));
    assert_eq!(send("r2", "closed"), Err(Code::Guard));
    assert_eq!(keys.run("PAY", &json!("closed")), None);
    assert_eq!(keys.run("PAY", &json!("o1")), Some("r1"));
}

#[test]
fn an_event_with_a_key_is_legal_whatever_keys_are_taken() {
    let run = Run::start(SHOP);
    let legal = run.machine.legal(&run.snapshot, &Principal::new("ana", &[]), 0);
    let pay = legal.iter().find(|l| l.r#type == "PAY").unwrap();
    assert!(pay.depends_on_data);
}
