//! Queries have no effect.

use crate::common::{ana, ben, installed, module, numbers, on_each, state, update};
use charter_icp_host::{Host, LocalHost};

const QUERIES: &str = r#"
  (data (i32.const 100) "from the query") (data (i32.const 130) "no")
  (func (export "canister_query write")
    (call $bump) (drop (memory.grow (i32.const 4))) (drop (call $stable_grow (i64.const 4))) (call $state))
  (func (export "canister_query trap") (call $bump) (call $trap (i32.const 100) (i32.const 14)))
  (func (export "canister_query reject") (call $msg_reject (i32.const 130) (i32.const 2)))
  (func (export "canister_query silent"))
  (func (export "canister_query twice") (call $msg_reply) (call $msg_reply))
  (func (export "canister_composite_query composite") (call $say (i32.const 8)))
  (func (export "canister_query who")
    (call $caller_copy (i32.const 200) (i32.const 0) (call $caller_size))
    (call $append (i32.const 200) (call $caller_size)) (call $msg_reply))
  (func (export "canister_query large") (call $append (i32.const 0) (i32.const 65536)) (call $append (i32.const 0) (i32.const 65536)) (call $msg_reply))
  (func (export "canister_query too_large") (local $n i32)
    (loop $more
      (call $append (i32.const 0) (i32.const 65536))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $n) (i32.const 49))))
    (call $msg_reply))"#;

#[test]
fn changes_of_a_query_are_dropped() {
    on_each(QUERIES, |host, canister| {
        update(host, canister, "bump").unwrap();
        for _ in 0..3 {
            assert_eq!(numbers(&host.query(canister, ana(), "write", b"").unwrap()), [2, 2, 2]);
            assert_eq!(host.query(canister, ana(), "trap", b"").unwrap_err().error, 503);
            assert_eq!(state(host, canister), [1, 1, 1]);
        }
        // Call the same method as an update.
        assert_eq!(numbers(&update(host, canister, "write").unwrap()), [2, 2, 2]);
        assert_eq!(state(host, canister), [1, 1, 1]);
    });
}

#[test]
fn answers_and_refusals() {
    on_each(QUERIES, |host, canister| {
        let mut error = |method: &str| host.query(canister, ana(), method, b"").unwrap_err().error;
        assert_eq!(error("reject"), 406);
        assert_eq!(error("silent"), 506);
        assert_eq!(error("twice"), 504);
        assert_eq!(error("too_large"), 504);
        assert_eq!(error("bump"), 536);
        assert_eq!(error("nothing"), 536);
        assert_eq!(host.query(canister, ben(), "who", b"").unwrap(), ben().as_slice());
        assert_eq!(host.query(canister, ana(), "large", b"").unwrap().len(), 2 * 65_536);
        assert_eq!(numbers(&host.query(canister, ana(), "composite", b"").unwrap()), [8]);
    });
}

#[test]
fn environment_variables_and_certified_data() {
    let text = r#"(module
  (import "ic0" "env_var_count" (func $count (result i32)))
  (import "ic0" "env_var_name_size" (func $name_size (param i32) (result i32)))
  (import "ic0" "env_var_name_copy" (func $name_copy (param i32 i32 i32 i32)))
  (import "ic0" "env_var_value_size" (func $value_size (param i32 i32) (result i32)))
  (import "ic0" "env_var_value_copy" (func $value_copy (param i32 i32 i32 i32 i32)))
  (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (memory 1) (data (i32.const 0) "MODE and thirty-two bytes or more of data")
  (func (export "canister_query value")
    (call $value_copy (i32.const 0) (i32.const 4) (i32.const 100) (i32.const 0) (call $value_size (i32.const 0) (i32.const 4)))
    (call $append (i32.const 100) (call $value_size (i32.const 0) (i32.const 4))) (call $reply))
  (func (export "canister_query second")
    (call $name_copy (i32.const 1) (i32.const 100) (i32.const 0) (call $name_size (i32.const 1)))
    (call $append (i32.const 100) (call $name_size (i32.const 1))) (call $reply))
  (func (export "canister_update certify") (call $certify (i32.const 0) (i32.const 4)) (call $reply))
  (func (export "canister_update certify_much") (call $certify (i32.const 0) (i32.const 33)) (call $reply)))"#;
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &wat::parse_str(text).unwrap());
    assert_eq!(host.query(canister, ana(), "value", b"").unwrap_err().error, 504);
    host.set_variable(canister, "MODE", "test");
    host.set_variable(canister, "NAME", "x");
    assert_eq!(host.query(canister, ana(), "value", b"").unwrap(), b"test");
    assert_eq!(host.query(canister, ana(), "second", b"").unwrap(), b"NAME");
    update(&mut host, canister, "certify").unwrap();
    assert_eq!(update(&mut host, canister, "certify_much").unwrap_err().error, 504);
    assert_eq!(host.certified(canister), b"MODE");
    let other = installed(&mut host, &module(""));
    assert_eq!(host.certified(other), b"");
}
