//! Instructions: counted deterministically, limited, and cut off by injected faults.

use crate::common::{ana, installed, module, numbers, refused, state, update};
use charter_icp_host::{Entry, Host, InjectedFault, LocalHost};

const WORK: &str = r#"
  (table 2 funcref) (elem (i32.const 0) $got)
  (data (i32.const 100) "bump")
  (func $work (param $n i32)
    (block $done (loop $again
      (br_if $done (i32.eqz (local.get $n)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $again))))
  (func $counters
    (i64.store (i32.const 65000) (call $counter (i32.const 0)))
    (i64.store (i32.const 65008) (call $counter (i32.const 1)))
    (call $append (i32.const 65000) (i32.const 16)) (call $msg_reply))
  (func $got (param i32) (call $bump) (call $work (i32.const 1000)) (call $counters))
  (func (export "canister_update spin") (call $bump) (loop $for_ever (br $for_ever)))
  (func (export "canister_query spin_query") (loop $for_ever (br $for_ever)))
  (func (export "canister_update work") (call $bump) (call $work (i32.const 10000)) (call $counters))
  (func (export "canister_query work_query") (call $work (i32.const 10000)) (call $counters))
  (func (export "canister_update ask")
    (call $bump) (call $work (i32.const 5000))
    (call $to_self (i32.const 100) (i32.const 4) (i32.const 0) (i32.const 0)) (drop (call $perform)))
  (func (export "canister_update copy") (memory.fill (i32.const 1000) (i32.const 1) (i32.const 50000)) (call $counters))
  (func (export "canister_update wrong") (drop (call $counter (i32.const 2))))
"#;

fn pair(reply: &[u8]) -> (u64, u64) {
    (u64::from_le_bytes(reply[..8].try_into().unwrap()), u64::from_le_bytes(reply[8..].try_into().unwrap()))
}

#[test]
fn the_limits_hold_and_their_traps_are_traps() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(WORK));
    host.limits_mut().update = 1_000_000;
    host.limits_mut().query = 500_000;
    let reject = update(&mut host, canister, "spin").unwrap_err();
    assert_eq!(
        reject.to_string(),
        format!(
            "IC0522: Error from Canister {canister}: Canister exceeded the limit of 1000000 instructions for single message execution."
        )
    );
    assert_eq!(host.spent(canister)[&Entry::Update].most, 1_000_000);
    assert_eq!(host.query(canister, ana(), "spin_query", b"").unwrap_err().error, 522);
    assert_eq!(host.spent(canister)[&Entry::Query].most, 500_000);
    // The same query called as an update has an update's limit.
    assert_eq!(refused(&mut host, canister, "spin_query"), 522);
    assert_eq!(host.spent(canister)[&Entry::ReplicatedQuery].most, 1_000_000);
    assert_eq!(state(&mut host, canister), [0, 0, 0]);
}

#[test]
fn the_counters_count_one_execution_and_the_whole_call() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(WORK));
    let (execution, call) = pair(&update(&mut host, canister, "work").unwrap());
    assert!((60_000..100_000).contains(&execution), "{execution}");
    assert!(call - execution < 100, "{call} {execution}");
    let (execution, call) = pair(&update(&mut host, canister, "ask").unwrap());
    assert!((6_000..10_000).contains(&execution), "{execution}");
    assert!(call > execution + 30_000, "the part before the await counts in the call: {call} {execution}");
    let (execution, _) = pair(&update(&mut host, canister, "copy").unwrap());
    assert!((50_000..52_000).contains(&execution), "each byte copied counts: {execution}");
    assert_eq!(refused(&mut host, canister, "wrong"), 504);
}

#[test]
fn the_same_messages_take_the_same_instructions_also_after_traps() {
    let run = |trap: bool| {
        let mut host = LocalHost::new();
        let canister = installed(&mut host, &module(WORK));
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(pair(&update(&mut host, canister, "work").unwrap()));
            seen.push(pair(&update(&mut host, canister, "ask").unwrap()));
            if trap {
                host.inject(canister, InjectedFault::new(Entry::Update, 30_000));
                assert_eq!(refused(&mut host, canister, "work"), 522);
            }
        }
        (seen, state(&mut host, canister))
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn an_injected_fault_hits_the_selected_execution() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(WORK));
    // Interrupt the second update named `bump` in the middle, and nothing else.
    host.inject(canister, InjectedFault::new(Entry::Update, 100).method("bump").after(1));
    update(&mut host, canister, "work").unwrap();
    update(&mut host, canister, "bump").unwrap();
    assert_eq!(refused(&mut host, canister, "bump"), 522);
    update(&mut host, canister, "bump").unwrap();
    assert_eq!(state(&mut host, canister), [3, 3, 3]);
    // Interrupt the answer to the canister's own call: changes before the await are kept.
    host.inject(canister, InjectedFault::new(Entry::Reply, 500));
    assert_eq!(refused(&mut host, canister, "ask"), 522);
    assert_eq!(state(&mut host, canister), [5, 5, 5]);
    // A removed fault does not occur.
    host.inject(canister, InjectedFault::new(Entry::Update, 0));
    host.clear_faults();
    update(&mut host, canister, "bump").unwrap();
    // With 0, not even the first instruction is executed; a shorter execution is not affected.
    host.inject(canister, InjectedFault::new(Entry::Query, 0));
    assert_eq!(host.query(canister, ana(), "state", b"").unwrap_err().error, 522);
    host.inject(canister, InjectedFault::new(Entry::Update, 10_000_000));
    update(&mut host, canister, "bump").unwrap();
    assert_eq!(numbers(&host.query(canister, ana(), "state", b"").unwrap()), [7, 7, 7]);
}

#[test]
fn after_many_instructions_a_trap_rolls_back_exactly_one_message() {
    // Execute enough instructions for several new copies of the heap.
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(WORK.replace("i32.const 10000", "i32.const 1500000").as_str()));
    for turn in 1..=12 {
        update(&mut host, canister, "work").unwrap();
        host.inject(canister, InjectedFault::new(Entry::Update, 4_000_000));
        assert_eq!(refused(&mut host, canister, "work"), 522);
        assert_eq!(state(&mut host, canister), [turn, turn, turn]);
    }
    for turn in 13..=24 {
        update(&mut host, canister, "work").unwrap();
        assert_eq!(state(&mut host, canister), [turn, turn, turn]);
    }
    host.inject(canister, InjectedFault::new(Entry::Update, 1_000_000));
    assert_eq!(refused(&mut host, canister, "work"), 522);
    assert_eq!(state(&mut host, canister), [24, 24, 24]);
}
