//! What a trap rolls back (heap, globals, stable memory, sizes, calls, timers), and what it does
//! not roll back.

use crate::common::{ana, installed, module, number, on_each, refused, state, update};
use charter_icp_host::{Host, LocalHost};
use proptest::prelude::*;

const CANISTER: &str = r#"
  (data (i32.const 100) "said first")
  (func $big (result i32) (memory.size))
  (func (export "canister_update trap")
    (call $bump)
    (call $print (i32.const 100) (i32.const 10))
    (drop (call $timer (i64.const 1)))
    (call $certify (i32.const 100) (i32.const 4))
    (call $trap (i32.const 100) (i32.const 4)))
  (func (export "canister_update unreachable") (call $bump) (unreachable))
  (func (export "canister_update divide") (call $bump) (drop (i32.div_u (i32.const 1) (i32.load (i32.const 64)))))
  (func (export "canister_update outside") (call $bump) (drop (i32.load (i32.const -4))))
  (func $deep (param i32) (result i32) (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1)))))
  (func (export "canister_update endless_depth") (call $bump) (drop (call $deep (i32.const 0))))
  (func (export "canister_update grow")
    (call $bump) (drop (memory.grow (i32.const 3))) (drop (call $stable_grow (i64.const 5)))
    (i32.store (i32.const 190000) (i32.const 1))
    (call $stable_write (i64.const 300000) (i64.const 100) (i64.const 10))
    (unreachable))
  (func (export "canister_update keep")
    (drop (memory.grow (i32.const 2))) (drop (call $stable_grow (i64.const 5))) (call $msg_reply))
  (func (export "canister_update sizes")
    (call $say (i32.add (i32.mul (memory.size) (i32.const 1000)) (i32.wrap_i64 (call $stable_size)))))
  (func (export "canister_update beyond")
    (call $stable_write (i64.const 65530) (i64.const 0) (i64.const 20)) (call $msg_reply))
  (func (export "canister_update beyond_heap")
    (call $stable_write (i64.const 0) (i64.const 65530) (i64.const 20)) (call $msg_reply))
  (func (export "canister_update endless_size")
    (call $stable_write (i64.const 1) (i64.const 0) (i64.const -1)) (call $msg_reply))
"#;

#[test]
fn every_kind_of_trap_rolls_everything_back() {
    on_each(CANISTER, |host, canister| {
        for _ in 0..3 {
            update(host, canister, "bump").unwrap();
        }
        for (method, error) in [
            ("trap", 503),
            ("unreachable", 502),
            ("divide", 502),
            ("outside", 502),
            ("endless_depth", 502),
            ("grow", 502),
        ] {
            assert_eq!(refused(host, canister, method), error, "{method} on {}", host.name());
            assert_eq!(state(host, canister), [3, 3, 3], "{method} on {}", host.name());
        }
        assert_eq!(number(host, canister, "sizes"), 1001);
        update(host, canister, "bump").unwrap();
        assert_eq!(state(host, canister), [4, 4, 4]);
    });
}

#[test]
fn committed_sizes_survive_a_later_trap() {
    on_each(CANISTER, |host, canister| {
        update(host, canister, "bump").unwrap();
        update(host, canister, "keep").unwrap();
        assert_eq!(refused(host, canister, "grow"), 502);
        assert_eq!(number(host, canister, "sizes"), 3006);
        assert_eq!(state(host, canister), [1, 1, 1]);
    });
}

#[test]
fn a_trap_keeps_output_and_counters_and_drops_settings() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module(CANISTER));
    let before = host.instructions(canister);
    let reject = update(&mut host, canister, "trap").unwrap_err();
    assert_eq!(
        reject.to_string(),
        format!("IC0503: Error from Canister {canister}: Canister called `ic0.trap` with message: 'said'.")
    );
    let printed = host.printed(canister);
    assert_eq!(printed.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["said first"]);
    assert_eq!(host.printed(canister), [], "each line is told once");
    assert!(host.instructions(canister) > before);
    assert_eq!(host.timer(canister), None);
    assert_eq!(host.certified(canister), b"");
}

#[test]
fn outside_of_a_memory_is_a_trap() {
    on_each(CANISTER, |host, canister| {
        update(host, canister, "bump").unwrap();
        for (method, error) in [("beyond", 502), ("beyond_heap", 504), ("endless_size", 504)] {
            let reject = update(host, canister, method).unwrap_err();
            assert_eq!(reject.error, error, "{method} on {}: {reject}", host.name());
        }
        assert_eq!(state(host, canister), [1, 1, 1]);
    });
}

/// A canister that writes ranges of bytes as requested, and then optionally traps.
const WRITER: &str = r#"
  (func $word (param i32) (result i32) (i32.load (i32.add (i32.const 256) (local.get 0))))
  (func $do (local $n i32)
    (call $arg_copy (i32.const 256) (i32.const 0) (i32.const 20))
    ;; target, offset, length, byte, instructions to burn; then perhaps a trap
    (if (i32.eq (call $word (i32.const 0)) (i32.const 0))
      (then (memory.fill (call $word (i32.const 4)) (call $word (i32.const 12)) (call $word (i32.const 8)))))
    (if (i32.eq (call $word (i32.const 0)) (i32.const 1))
      (then
        (memory.fill (i32.const 40000) (call $word (i32.const 12)) (call $word (i32.const 8)))
        (call $stable_write (i64.extend_i32_u (call $word (i32.const 4))) (i64.const 40000)
          (i64.extend_i32_u (call $word (i32.const 8))))
        (memory.fill (i32.const 40000) (i32.const 0) (call $word (i32.const 8)))))
    (if (i32.eq (call $word (i32.const 0)) (i32.const 2))
      (then (drop (call $stable_grow (i64.const 1)))))
    (if (i32.eq (call $word (i32.const 0)) (i32.const 3))
      (then (global.set $count (call $word (i32.const 12)))))
    (local.set $n (call $word (i32.const 16)))
    (block $done (loop $burn
      (br_if $done (i32.eqz (local.get $n)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br $burn)))
    (memory.fill (i32.const 256) (i32.const 0) (i32.const 20)))
  (func (export "canister_update do") (call $do) (call $msg_reply))
  (func (export "canister_update do_trap") (call $do) (unreachable))
  (func (export "canister_query do_query") (call $do) (call $msg_reply))
  (func (export "canister_query heap")
    (i32.store (i32.const 65000) (global.get $count))
    (call $append (i32.const 65000) (i32.const 4))
    (i32.store (i32.const 65000) (i32.const 0))
    (call $append (i32.const 4096) (i32.const 32768)) (call $msg_reply))
"#;

/// A request to the canister.
#[derive(Debug, Clone)]
struct Order {
    target: u32,
    offset: u32,
    length: u32,
    byte: u8,
    burn: u32,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Keep,
    Trap,
    Query,
    Upgrade,
}

impl Order {
    fn arg(&self) -> Vec<u8> {
        [self.target, self.offset, self.length, u32::from(self.byte), self.burn]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }
}

fn orders() -> impl Strategy<Value = Vec<Order>> {
    let how = prop_oneof![6 => Just(How::Keep), 3 => Just(How::Trap), 1 => Just(How::Query), 1 => Just(How::Upgrade)];
    // Choose lengths around the size of the undo log's pages, and sometimes enough work for a new
    // copy of the heap.
    let length = prop_oneof![0_u32..64, 4000_u32..4200, 8100_u32..12_300];
    let burn = prop_oneof![8 => Just(0_u32), 1 => Just(2_000_000)];
    let order = (0_u32..4, 0_u32..150_000, length, any::<u8>(), burn, how).prop_map(
        |(target, offset, length, byte, burn, how)| {
            let offset = if target == 0 { 4096 + offset % 20_000 } else { offset };
            Order { target, offset, length, byte, burn, how }
        },
    );
    prop::collection::vec(order, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any sequence of writes, traps, queries and upgrades, heap, global and stable memory
    /// are the same as in a model that copies everything each time.
    #[test]
    fn the_state_is_that_of_a_naive_model(orders in orders()) {
        let module = module(WRITER);
        let mut host = LocalHost::new();
        let canister = installed(&mut host, &module);
        let (mut heap, mut count, mut stable) = (vec![0_u8; 32_768], 0_u32, Vec::<u8>::new());
        for order in &orders {
            let mut fits = true;
            let (mut new_heap, mut new_count, mut new_stable) = (heap.clone(), count, stable.clone());
            let range = order.offset as usize..(order.offset + order.length) as usize;
            match order.target {
                0 => {
                    let range = range.start - 4096..range.end - 4096;
                    new_heap[range].fill(order.byte);
                }
                1 if range.end <= stable.len() => new_stable[range].fill(order.byte),
                1 => fits = false,
                2 => new_stable.resize(stable.len() + 65_536, 0),
                _ => new_count = u32::from(order.byte),
            }
            match order.how {
                How::Keep => {
                    let done = host.update(canister, ana(), "do", &order.arg());
                    prop_assert_eq!(done.is_ok(), fits);
                    if fits {
                        (heap, count, stable) = (new_heap, new_count, new_stable);
                    }
                }
                How::Trap => prop_assert!(host.update(canister, ana(), "do_trap", &order.arg()).is_err()),
                How::Query => prop_assert_eq!(host.query(canister, ana(), "do_query", &order.arg()).is_ok(), fits),
                How::Upgrade => {
                    host.upgrade(canister, ana(), &module, b"").unwrap();
                    (heap, count) = (vec![0; 32_768], 0);
                }
            }
            let seen = host.query(canister, ana(), "heap", b"").unwrap();
            prop_assert_eq!(&seen[..4], &count.to_le_bytes());
            prop_assert!(seen[4..] == heap, "another heap after {:?}", order);
            prop_assert_eq!(host.stable_pages(canister) as usize * 65_536, stable.len());
            prop_assert!(host.stable(canister, 0, stable.len()).unwrap() == stable, "another stable memory after {:?}", order);
        }
    }
}
