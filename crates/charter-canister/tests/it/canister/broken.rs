//! Interrupted turns: a trap at any point, an upgrade between any two messages. The run records the
//! interruption and continues.

use charter_canister::api::Outcome;
use charter_icp_host::{Entry, InjectedFault};

use super::*;

/// Asserts that the canister is consistent and, after a reset if it is faulted, completes another
/// turn.
fn goes_on(c: &mut Local) {
    c.sound();
    if c.state() == "Faulted" {
        c.change("reset_fault", ()).unwrap();
    }
    assert_eq!(c.wake("And on").unwrap().outcome, Outcome::Completed);
    c.sound();
}

#[test]
fn a_trap_in_an_invocation_rolls_it_back_and_fails_the_turn() {
    let mut c = Canister::new(None);
    for (skip, actor) in [(0, "loadContext"), (1, "infer"), (2, "act"), (3, "persist")] {
        let turns = c.projection().turns;
        let fault = InjectedFault::new(Entry::Update, 20_000).method("work").after(skip);
        c.host.inject(c.id, fault);
        let end = c.wake("Sign this").unwrap();
        assert_eq!(end.outcome, Outcome::Failed, "{actor}");
        let failure = end.failure.unwrap();
        let expected = format!("panic: the adapter of `{actor}` failed: ");
        assert!(failure.starts_with(&expected), "{failure}");
        let runtime = c.runtime();
        assert_eq!(runtime.state, ["Faulted"]);
        assert_eq!(runtime.last_error.unwrap().reason, failure);
        // The record that requests the invocation was committed before the call began, so it
        // remains.
        assert_eq!(c.projection().turns, turns + 1);
        goes_on(&mut c);
    }
}

#[test]
fn a_trap_in_wake_leaves_nothing() {
    let mut c = Canister::new(None);
    for instructions in [1_000, 100_000, 700_000] {
        let before = c.runtime();
        let fault = InjectedFault::new(Entry::Update, instructions).method("wake");
        c.host.inject(c.id, fault);
        let answer: Result<Result<TurnEnd, Error>, CallError> = c.call_as(owner(), "wake", (wake("x"),));
        assert_eq!(answer.unwrap_err().rejected().unwrap().error, 522);
        assert_eq!(c.runtime(), before);
        c.host.clear_faults();
        goes_on(&mut c);
    }
}

#[test]
fn a_turn_whose_chain_breaks_is_ended_by_its_timers() {
    let mut c = Canister::new(None);
    for (skip, state) in [(0, "LoadingContext"), (1, "Inferring"), (2, "ExecutingActions"), (3, "Persisting")] {
        // The callback of the answer is cut off, so nothing continues the turn.
        let fault = InjectedFault::new(Entry::Reply, 50_000).method("wake").after(skip);
        c.host.inject(c.id, fault);
        let answer: Result<Result<TurnEnd, Error>, CallError> = c.call_as(owner(), "wake", (wake("x"),));
        assert!(answer.unwrap_err().rejected().is_some());
        assert_eq!(c.state(), state);
        assert!(c.runtime().turn.is_some());
        let second = c.wake("two");
        assert!(matches!(second, Err(Error::Refused(_))), "{second:?}");
        c.advance(60_000);
        assert_eq!(c.state(), "Faulted", "{state}");
        let reason = c.runtime().last_error.unwrap().reason;
        assert!(reason.starts_with("timeout"), "{reason}");
        goes_on(&mut c);
    }
}

#[test]
fn an_upgrade_in_the_middle_of_a_turn_fails_it() {
    let mut c = Canister::new(None);
    let mut failed = 0;
    for ticks in 1..=11 {
        let call = c.submit("wake", (wake("x"),));
        for _ in 0..ticks {
            c.host.tick();
        }
        let before = c.runtime();
        c.upgrade().unwrap();
        let after = c.runtime();
        assert!(after.turn.is_none(), "after {ticks} messages: {after:?}");
        if before.turn.is_some() {
            assert_eq!(after.state, ["Faulted"]);
            let reason = after.last_error.unwrap().reason;
            assert!(reason.starts_with("unknown: the host stopped during"), "{reason}");
            failed += 1;
        }
        // The pending answer reaches a canister that does not expect it.
        c.host.settle();
        drop(c.host.await_call(&call));
        goes_on(&mut c);
    }
    assert!(failed >= 7, "{failed}");
}

#[test]
fn a_canister_that_is_stopped_in_the_middle_of_a_turn_ends_it_first() {
    let mut c = Canister::new(None);
    let call = c.submit("wake", (wake("x"),));
    c.host.tick();
    c.host.stop(c.id, owner()).unwrap();
    // A stopping canister cannot call itself: the invocation does not start, the turn fails, and
    // the caller gets an answer.
    let answer = c.host.await_call(&call).unwrap();
    let answer: Result<TurnEnd, Error> = candid::decode_one(&answer).unwrap();
    let end = answer.unwrap();
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.failure.unwrap().contains("the adapter of `loadContext`"));
    c.upgrade().unwrap();
    c.host.start(c.id, owner()).unwrap();
    goes_on(&mut c);
}

#[test]
fn a_timer_that_traps_is_retried() {
    let mut c = Canister::new(None);
    c.host.inject(c.id, InjectedFault::new(Entry::Update, 10_000).method("tick"));
    c.advance(300_000);
    assert_eq!(c.runtime().turns, 0);
    c.sound();
    c.advance(60_000);
    assert_eq!((c.runtime().turns, c.state().as_str()), (1, "Sleeping"));
    c.sound();
}

#[test]
fn an_upgrade_that_traps_changes_nothing() {
    let mut c = Canister::new(None);
    c.wake("x").unwrap();
    let (before, rows) = (c.runtime(), c.projection());
    c.host.inject(c.id, InjectedFault::new(Entry::PostUpgrade, 5_000_000));
    c.upgrade().unwrap_err();
    assert_eq!(c.runtime(), before);
    assert_eq!(c.projection(), rows);
    c.upgrade().unwrap();
    goes_on(&mut c);
}

#[test]
fn an_interrupted_install_reads_its_skills_again() {
    let mut c = Canister::installed(Box::new(LocalHost::new()), None);
    assert_eq!(c.state(), "Bootstrapping");
    c.upgrade().unwrap();
    c.host.settle();
    assert_eq!(c.state(), "Idle");
    goes_on(&mut c);
}
