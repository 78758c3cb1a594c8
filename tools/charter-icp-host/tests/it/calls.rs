//! Calls and their answers: commits before an await, callbacks, cleanup, timeouts, the management
//! canister.

use std::time::Duration;

use crate::common::{ana, installed, module, numbers, on_each, refused, state, update};
use charter_icp_host::{Entry, Host, LocalHost, RejectCode};

/// A canister that calls itself in several ways. Callbacks: 0 replies with its argument, 1 replies
/// with the reject code, 2 increments and traps, 3 is the cleanup, 4 does nothing.
const CALLER: &str = r#"
  (table 8 funcref)
  (elem (i32.const 0) $got $rejected $fails $cleans $silent $twice)
  (data (i32.const 100) "bump")
  (data (i32.const 110) "fail")
  (data (i32.const 120) "nope")
  (data (i32.const 130) "raw_rand")
  (data (i32.const 140) "http_request")
  (data (i32.const 160) "DIDL\00\00")
  (data (i32.const 170) "no!")
  (data (i32.const 180) "state")
  (func $go (if (call $perform) (then (unreachable))))
  (func $got (param i32)
    (if (i32.ne (local.get 0) (i32.const 7)) (then (unreachable)))
    (call $arg_copy (i32.const 200) (i32.const 0) (call $arg_size))
    (call $append (i32.const 200) (call $arg_size)) (call $msg_reply))
  (func $rejected (param i32)
    (i32.store (i32.const 200) (call $reject_code))
    (call $reject_copy (i32.const 204) (i32.const 0) (call $reject_size))
    (call $append (i32.const 200) (i32.add (i32.const 4) (call $reject_size))) (call $msg_reply))
  (func $fails (param i32) (call $bump) (call $bump) (unreachable))
  (func $cleans (param i32)
    (i32.store (i32.const 40) (i32.add (i32.load (i32.const 40)) (local.get 0)))
    (call $bump))
  (func $silent (param i32))
  (func $twice (param i32) (call $msg_reply) (call $msg_reply))
  (func (export "canister_update fail") (call $bump) (call $msg_reject (i32.const 170) (i32.const 3)))
  (func (export "canister_update call") (call $bump) (call $to_self (i32.const 100) (i32.const 4) (i32.const 0) (i32.const 1)) (call $go))
  (func (export "canister_update call_query") (call $bump) (call $to_self (i32.const 180) (i32.const 5) (i32.const 0) (i32.const 1)) (call $go))
  (func (export "canister_update call_fail") (call $to_self (i32.const 110) (i32.const 4) (i32.const 0) (i32.const 1)) (call $go))
  (func (export "canister_update call_nope") (call $to_self (i32.const 120) (i32.const 4) (i32.const 0) (i32.const 1)) (call $go))
  (func (export "canister_update trap_after")
    (call $bump)
    (call $to_self (i32.const 100) (i32.const 4) (i32.const 2) (i32.const 2))
    (call $on_cleanup (i32.const 3) (i32.const 9)) (call $go))
  (func (export "canister_update trap_with_call") (call $bump) (call $to_self (i32.const 100) (i32.const 4) (i32.const 0) (i32.const 1)) (call $go) (unreachable))
  (func (export "canister_update unperformed") (call $to_self (i32.const 100) (i32.const 4) (i32.const 0) (i32.const 1)) (call $msg_reply))
  (func (export "canister_update silent") (call $to_self (i32.const 100) (i32.const 4) (i32.const 4) (i32.const 4)) (call $go))
  (func (export "canister_update early")
    (call $to_self (i32.const 100) (i32.const 4) (i32.const 4) (i32.const 4)) (call $go) (call $say (i32.const 5)))
  (func (export "canister_update twice") (call $to_self (i32.const 100) (i32.const 4) (i32.const 5) (i32.const 5)) (call $go))
  (func (export "canister_update no_function") (call $to_self (i32.const 100) (i32.const 4) (i32.const 6) (i32.const 6)) (call $go))
  (func (export "canister_update two")
    (call $to_self (i32.const 100) (i32.const 4) (i32.const 2) (i32.const 2)) (call $go)
    (call $to_self (i32.const 100) (i32.const 4) (i32.const 0) (i32.const 1)) (call $go))
  (func $manage (param i32 i32)
    (call $call_new (i32.const 0) (i32.const 0) (local.get 0) (local.get 1) (i32.const 0) (i32.const 7) (i32.const 1) (i32.const 7))
    (call $call_append (i32.const 160) (i32.const 6)) (call $go))
  (func (export "canister_update rand") (call $bump) (call $manage (i32.const 130) (i32.const 8)))
  (func (export "canister_update http") (call $manage (i32.const 140) (i32.const 12)))
  (func (export "canister_update elsewhere")
    (call $arg_copy (i32.const 300) (i32.const 0) (call $arg_size))
    (call $call_new (i32.const 300) (call $arg_size) (i32.const 100) (i32.const 4) (i32.const 0) (i32.const 7) (i32.const 1) (i32.const 7)) (call $go))
  (func (export "canister_update wait")
    (call $arg_copy (i32.const 300) (i32.const 0) (call $arg_size))
    (call $call_new (i32.const 300) (call $arg_size) (i32.const 120) (i32.const 4) (i32.const 0) (i32.const 7) (i32.const 1) (i32.const 7))
    (call $best_effort (i32.const 10)) (call $go))
"#;

#[test]
fn a_reply_reaches_its_callback() {
    on_each(CALLER, |host, canister| {
        assert_eq!(update(host, canister, "call").unwrap(), b"");
        assert_eq!(state(host, canister), [2, 2, 2]);
        // A query method called by a canister: its changes are discarded.
        assert_eq!(numbers(&update(host, canister, "call_query").unwrap()), [3, 3, 3]);
    });
}

#[test]
fn a_rejection_reaches_its_callback_with_code_and_text() {
    on_each(CALLER, |host, canister| {
        let reply = update(host, canister, "call_fail").unwrap();
        assert_eq!((numbers(&reply[..4]), &reply[4..]), (vec![RejectCode::CanisterReject as u32], b"no!".as_slice()));
        assert_eq!(state(host, canister), [1, 1, 1], "a rejection is no trap: what was done stays");
        let reply = update(host, canister, "call_nope").unwrap();
        assert_eq!(numbers(&reply[..4]), [RejectCode::CanisterError as u32]);
        let reply = host.update(canister, ana(), "elsewhere", &[1, 2, 3, 4, 5, 6, 7, 8, 1, 1]).unwrap();
        assert_eq!(numbers(&reply[..4]), [RejectCode::DestinationInvalid as u32]);
    });
}

#[test]
fn a_trap_after_an_await_rolls_back_only_later_changes_and_cleans_up() {
    on_each(CALLER, |host, canister| {
        assert_eq!(refused(host, canister, "trap_after"), 502);
        // One count is from before the await, one from the call, and one from the cleanup; the two
        // in the callback are rolled back.
        assert_eq!(state(host, canister), [3, 3, 3]);
    });
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(CALLER));
    update(&mut host, canister, "trap_after").unwrap_err();
    assert_eq!(host.spent(canister)[&Entry::Cleanup].messages, 1);
    assert_eq!(host.open_calls(canister), 0);
}

#[test]
fn a_trapped_execution_sends_no_calls() {
    on_each(CALLER, |host, canister| {
        assert_eq!(refused(host, canister, "trap_with_call"), 502);
        update(host, canister, "unperformed").unwrap();
        host.settle();
        assert_eq!(state(host, canister), [0, 0, 0]);
    });
}

#[test]
fn a_missing_reply_is_an_error_and_an_early_reply_continues() {
    on_each(CALLER, |host, canister| {
        assert_eq!(refused(host, canister, "silent"), 506);
        assert_eq!(numbers(&update(host, canister, "early").unwrap()), [5]);
        host.settle();
        assert_eq!(state(host, canister), [2, 2, 2], "the call went on after the answer");
        assert_eq!(refused(host, canister, "twice"), 504);
        assert_eq!(refused(host, canister, "no_function"), 513);
    });
}

#[test]
fn one_of_two_callbacks_traps_and_the_other_answers() {
    on_each(CALLER, |host, canister| {
        assert_eq!(update(host, canister, "two").unwrap(), b"");
        assert_eq!(state(host, canister), [2, 2, 2]);
    });
}

#[test]
fn steps_are_seen_one_by_one() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(CALLER));
    let call = host.submit(canister, ana(), "rand", b"").unwrap();
    let mut steps = Vec::new();
    while let Some(step) = host.step() {
        steps.push(format!(
            "{} {}{}",
            step.entry,
            step.method,
            if host.answer(&call).is_some() { ", answered" } else { "" }
        ));
    }
    assert_eq!(steps, ["update rand", "update raw_rand", "reply callback rand, answered"]);
    assert_eq!(host.open_calls(canister), 0);
    assert_eq!(host.waiting(), 0);
}

#[test]
fn random_numbers_come_from_the_seed() {
    let draw = |seed| {
        let mut host = LocalHost::with_seed(seed);
        let canister = installed(&mut host, &module(CALLER));
        let first: Vec<u8> = candid::decode_one(&update(&mut host, canister, "rand").unwrap()).unwrap();
        let second: Vec<u8> = candid::decode_one(&update(&mut host, canister, "rand").unwrap()).unwrap();
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
        (first, second)
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn unknown_methods_of_the_management_canister_are_named() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(CALLER));
    let reply = update(&mut host, canister, "http").unwrap();
    let told = String::from_utf8_lossy(&reply[4..]).into_owned();
    assert_eq!(numbers(&reply[..4]), [RejectCode::CanisterReject as u32]);
    assert_eq!(told, "The management canister of this test host has no method 'http_request', only `raw_rand`.");
}

#[test]
fn canisters_call_each_other() {
    on_each(CALLER, |host, canister| {
        let other = installed(host, &module(CALLER));
        assert_eq!(host.update(canister, ana(), "elsewhere", other.as_slice()).unwrap(), b"");
        assert_eq!(state(host, other), [1, 1, 1]);
        assert_eq!(state(host, canister), [0, 0, 0]);
        host.stop(other, ana()).unwrap();
        let reply = host.update(canister, ana(), "elsewhere", other.as_slice()).unwrap();
        assert_eq!(numbers(&reply[..4]), [RejectCode::CanisterError as u32]);
    });
}

/// The method `nope` never answers: it calls a canister that does the same.
#[test]
fn a_best_effort_call_times_out() {
    let slow = module(
        r#"(table 2 funcref) (elem (i32.const 0) $again)
           (data (i32.const 100) "raw_rand") (data (i32.const 110) "DIDL\00\00")
           (func $again (param i32)
             (call $call_new (i32.const 0) (i32.const 0) (i32.const 100) (i32.const 8) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
             (call $call_append (i32.const 110) (i32.const 6))
             (drop (call $perform)))
           (func (export "canister_update nope") (call $bump) (call $again (i32.const 0)))"#,
    );
    let mut host = LocalHost::new();
    let (canister, slow) = (installed(&mut host, &module(CALLER)), installed(&mut host, &slow));
    let call = host.submit(canister, ana(), "wait", slow.as_slice()).unwrap();
    for _ in 0..50 {
        host.tick();
    }
    assert_eq!(host.answer(&call), None);
    host.advance(Duration::from_secs(11));
    for _ in 0..4 {
        host.tick();
    }
    let reply = host.answer(&call).unwrap().unwrap();
    assert_eq!(
        (numbers(&reply[..4]), &reply[4..]),
        (vec![RejectCode::SysUnknown as u32], b"Call has timed out.".as_slice())
    );
    assert_eq!(state(&mut host, slow), [1, 1, 1], "it was done nevertheless");
}

#[test]
fn waiting_for_an_impossible_answer_ends() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(CALLER));
    let call = host.submit(canister, ana(), "call", b"").unwrap();
    let mut other = LocalHost::new();
    let reject = other.await_call(&call).unwrap_err();
    assert_eq!(reject.code, RejectCode::SysUnknown);
    assert!(reject.message.contains("Nothing is left to do"), "{reject}");
}
