//! Damaged modules: `bind` rejects them or returns a valid module, and never panics.

use charter_canister_build::{bind, with_candid};
use proptest::prelude::*;

const MODULE: &str = r#"(module
  (import "ic0" "msg_reply" (func $reply))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1)
  (table 2 funcref) (elem (i32.const 0) $yield $run)
  (global $count (mut i32) (i32.const 0))
  (func $run (export "canister_update run") (global.set $count (call $yield)) (call $reply))
  (func (export "_initialize") (call $run))
  (func (export "__ic_custom_sched_yield") (result i32) (i32.const 0))
  (data (i32.const 16) "data"))"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_damaged_module_is_rejected_or_becomes_a_valid_one(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut damaged = wat::parse_str(MODULE).unwrap();
        for (place, byte) in &changes {
            let place = place.index(damaged.len());
            damaged[place] = *byte;
        }
        if let Some(cut) = cut {
            damaged.truncate(cut.index(damaged.len()));
        }
        if let Ok(bound) = bind(&damaged) {
            prop_assert!(wasmparser::Validator::new().validate_all(&bound).is_ok());
            prop_assert!(!bound.windows(5).any(|bytes| bytes == b"wasi_"));
            with_candid(&bound, "service : {}").unwrap();
        }
    }
}
