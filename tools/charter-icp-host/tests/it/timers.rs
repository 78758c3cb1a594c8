//! The global timer, on a clock that only the test moves.

use std::time::Duration;

use crate::common::{ana, installed, module, numbers, on_each, state, update};
use charter_icp_host::{Entry, Host, InjectedFault, LocalHost};

/// Fires every ten seconds while the word at 32 in the heap is zero; traps if the word at 36 is
/// set.
const TIMER: &str = r#"
  (func $later (drop (call $timer (i64.add (call $time) (i64.const 10_000_000_000)))))
  (func (export "canister_init") (call $later))
  (func (export "canister_update end") (call $say (i32.ne (i32.const 0) (i32.wrap_i64 (i64.shr_u (call $timer (i64.const 0)) (i64.const 32))))))
  (func (export "canister_update break") (i32.store (i32.const 36) (i32.const 1)) (call $msg_reply))
  (func (export "canister_global_timer") (call $bump) (call $later) (if (i32.load (i32.const 36)) (then (unreachable))))
  (func (export "canister_query now") (i64.store (i32.const 65000) (call $time)) (call $append (i32.const 65000) (i32.const 8)) (call $msg_reply))"#;

#[test]
fn a_timer_fires_when_it_is_due_and_not_before() {
    on_each(TIMER, |host, canister| {
        host.settle();
        assert_eq!(state(host, canister), [0, 0, 0]);
        host.advance(Duration::from_secs(9));
        host.settle();
        assert_eq!(state(host, canister), [0, 0, 0]);
        for turn in 1..=3 {
            host.advance(Duration::from_secs(10));
            host.settle();
            assert_eq!(state(host, canister), [turn, turn, turn], "{}", host.name());
        }
        // The timer is set once, so it fires once however much time passes.
        host.advance(Duration::from_secs(100));
        host.settle();
        assert_eq!(state(host, canister), [4, 4, 4]);
    });
}

#[test]
fn setting_zero_disables_the_timer_and_returns_the_previous_value() {
    on_each(TIMER, |host, canister| {
        assert_eq!(numbers(&update(host, canister, "end").unwrap()), [1]);
        assert_eq!(numbers(&update(host, canister, "end").unwrap()), [0]);
        host.advance(Duration::from_secs(100));
        host.settle();
        assert_eq!(state(host, canister), [0, 0, 0]);
    });
}

#[test]
fn a_trap_rolls_back_the_next_setting() {
    on_each(TIMER, |host, canister| {
        update(host, canister, "break").unwrap();
        for _ in 0..3 {
            host.advance(Duration::from_secs(10));
            host.settle();
        }
        assert_eq!(state(host, canister), [0, 0, 0]);
    });
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(TIMER));
    host.inject(canister, InjectedFault::new(Entry::Timer, 10));
    host.advance(Duration::from_secs(10));
    let step = host.step().unwrap();
    assert_eq!((step.entry, step.failed.unwrap().error), (Entry::Timer, 522));
    assert_eq!(host.timer(canister), None, "it was due once, and that was it");
}

#[test]
fn a_stopped_canister_has_no_timer_until_it_is_started() {
    on_each(TIMER, |host, canister| {
        host.stop(canister, ana()).unwrap();
        host.advance(Duration::from_secs(30));
        host.settle();
        host.start(canister, ana()).unwrap();
        host.settle();
        assert_eq!(state(host, canister), [1, 1, 1]);
    });
}

#[test]
fn timers_and_messages_take_turns() {
    // A timer that is always due does not starve messages, and messages do not starve the timer.
    let always = r#"
  (func (export "canister_init") (drop (call $timer (i64.const 1))))
  (func (export "canister_global_timer") (i32.store (i32.const 32) (i32.add (i32.load (i32.const 32)) (i32.const 1))) (drop (call $timer (i64.const 1))))
  (func (export "canister_query fired") (call $say (i32.load (i32.const 32))))"#;
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(always));
    for _ in 0..10 {
        host.submit(canister, ana(), "bump", b"").unwrap();
    }
    let steps: Vec<Entry> = (0..20).map(|_| host.step().unwrap().entry).collect();
    assert_eq!(steps, [Entry::Timer, Entry::Update].repeat(10));
    assert_eq!(numbers(&host.query(canister, ana(), "fired", b"").unwrap()), [10]);
}

#[test]
fn only_steps_advance_the_clock() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(TIMER));
    let start = host.now();
    let now =
        |host: &mut LocalHost| u64::from_le_bytes(host.query(canister, ana(), "now", b"").unwrap().try_into().unwrap());
    assert_eq!(Duration::from_nanos(now(&mut host)), start);
    host.tick();
    assert_eq!(host.now(), start + Duration::from_nanos(1));
    host.advance(Duration::from_millis(5));
    assert_eq!(Duration::from_nanos(now(&mut host)), start + Duration::from_nanos(5_000_001));
}
