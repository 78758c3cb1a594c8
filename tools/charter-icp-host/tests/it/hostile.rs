//! Damaged modules are rejected or executed without a panic, and the host continues.

use crate::common::{ana, module, state, update};
use charter_icp_host::{Host, LocalHost, candid_of};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_damaged_module_is_rejected_or_runs(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let whole = module(r#"(table 2 funcref) (elem (i32.const 0) $bump) (func $start (call $bump)) (start $start)
            (data (i32.const 50) "data") (export "memory" (memory 0))
            (func (export "get_candid_pointer") (result i32) (i32.const 50))
            (func (export "canister_init") (call $bump))"#);
        let mut damaged = whole.clone();
        for (place, byte) in &changes {
            let place = place.index(damaged.len());
            damaged[place] = *byte;
        }
        if let Some(cut) = cut {
            damaged.truncate(cut.index(damaged.len()));
        }
        let mut host = LocalHost::new();
        host.limits_mut().update = 1_000_000;
        host.limits_mut().query = 1_000_000;
        host.limits_mut().install = 1_000_000;
        let canister = host.create(&[ana()]).unwrap();
        if host.install(canister, ana(), &damaged, b"").is_ok() {
            let _ = update(&mut host, canister, "bump");
            let _ = host.query(canister, ana(), "state", b"");
            let _ = host.upgrade(canister, ana(), &whole, b"");
            host.settle();
        }
        let _ = candid_of(&damaged);
        // Other canisters are not affected.
        let other = host.create(&[ana()]).unwrap();
        host.install(other, ana(), &whole, b"").unwrap();
        prop_assert_eq!(state(&mut host, other), [2, 2, 2]);
    }
}
