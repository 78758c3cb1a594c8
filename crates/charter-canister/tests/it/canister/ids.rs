//! Event ids: a repeated call changes nothing and has the first answer. Tasks of people.

use charter_canister::api::{Outcome, Task};

use super::*;

fn denied<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Denied { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeated_call_has_the_first_receipt_and_no_record() {
    let mut c = Canister::new(None);
    let first = c.change("update_soul", ("You are brief.", Some("soul 1"))).unwrap();
    assert!(!first.repeated);
    for upgraded in [false, true] {
        if upgraded {
            c.upgrade().unwrap();
        }
        let before = c.runtime();
        let again = c.change("update_soul", ("You are brief.", Some("soul 1"))).unwrap();
        assert_eq!(again, Receipt { repeated: true, ..first.clone() });
        let other = denied(c.change("update_soul", ("You are long.", Some("soul 1"))));
        assert_eq!(other, format!("the event id `soul 1` belongs to another event (record {})", first.seq));
        denied(c.change("set_loop", (true, Some("soul 1"))));
        let reserved = denied(c.change("sleep", (Some(format!("{}/1", c.id)),)));
        assert!(reserved.contains("are reserved for the host"), "{reserved}");
        assert!(denied(c.change("sleep", (Some(""),))).contains("the event id is empty"));
        let large = c.change("sleep", (Some("x".repeat(257)),));
        assert!(matches!(large, Err(Error::TooLarge { bytes: 257, most: 256, .. })), "{large:?}");
        assert_eq!(c.runtime(), before);
    }
    // A refused call is not repeated either.
    let refused = |result: Result<Receipt, Error>| match result {
        Err(Error::Refused(refusal)) => refusal.seq,
        other => panic!("{other:?}"),
    };
    let seq = refused(c.change("update_soul", (" ", Some("soul 2"))));
    assert_eq!(refused(c.change("update_soul", (" ", Some("soul 2")))), seq);
    // The log shows who sent what.
    let page = Page { from: Some(first.seq), limit: Some(1) };
    let record = c.events(page).events.remove(0);
    assert_eq!(record.id, "soul 1");
    assert_eq!((record.by, record.by_kind.as_str(), record.by_auth.as_str()), (owner().to_text(), "person", "key"));
    c.sound();
}

#[test]
fn a_repeated_wake_has_the_end_of_the_first_turn() {
    let mut c = Canister::new(None);
    let wake_with = |c: &mut Local, id: &str, input: &str| -> Result<TurnEnd, Error> {
        let args = WakeArgs { id: Some(id.into()), ..wake(input) };
        c.call("wake", (args,))
    };
    let first = wake_with(&mut c, "turn 1", "Hello").unwrap();
    assert_eq!((first.number, first.outcome), (1, Outcome::Completed));
    assert_eq!(wake_with(&mut c, "turn 1", "Hello").unwrap(), first);
    let second = c.wake("Again").unwrap();
    assert_eq!(second.number, 2);
    c.upgrade().unwrap();
    // It is no longer the last turn.
    assert_eq!(wake_with(&mut c, "turn 1", "Hello").unwrap(), first);
    assert_eq!(c.runtime().turns, 2);
    denied(wake_with(&mut c, "turn 1", "Something else"));
    // During the turn, the answer says so; nothing else begins.
    let args = WakeArgs { id: Some("turn 3".into()), ..wake("Slowly") };
    let call = c.submit("wake", (args.clone(),));
    c.host.tick();
    let again = c.submit("wake", (args,));
    let answer = c.host.await_call(&again).unwrap();
    let answer: Result<TurnEnd, Error> = candid::decode_one(&answer).unwrap();
    let Err(Error::Failed { message }) = answer else { panic!("{answer:?}") };
    assert_eq!(message, "the turn has not ended; call `turns` later");
    let answer = c.host.await_call(&call).unwrap();
    let answer: Result<TurnEnd, Error> = candid::decode_one(&answer).unwrap();
    let third = answer.unwrap();
    assert_eq!((third.number, third.outcome), (3, Outcome::Completed));
    assert_eq!(wake_with(&mut c, "turn 3", "Slowly").unwrap(), third);
    assert_eq!(c.runtime().turns, 3);
    c.sound();
}

#[test]
fn a_task_that_is_not_open_cannot_be_answered() {
    let mut c = Canister::new(None);
    assert_eq!(c.ask::<Vec<Task>>("tasks", ()), []);
    let before = c.runtime();
    for task in [format!("{}/0/0", c.id), "0/0".into(), "other/0/0".into(), "x".repeat(10_000)] {
        let answer = c.change("complete", (task.as_str(), "{}"));
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
        let answer = c.change("decline", (task.as_str(), "no"));
        let Err(Error::NotFound { message }) = answer else { panic!("{answer:?}") };
        assert!(message.len() < 200, "{message}");
    }
    let broken = c.change("complete", (format!("{}/0/0", c.id), "{"));
    assert!(matches!(broken, Err(Error::Failed { .. })), "{broken:?}");
    assert_eq!(c.runtime(), before);
}
