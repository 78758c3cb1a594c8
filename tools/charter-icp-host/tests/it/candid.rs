//! Candid: the interface of a module, and calls in Candid.

use crate::common::{ana, installed, module};
use charter_icp_host::{CallError, LocalHost, ask, call, candid_of};

fn interface(text: &str) -> Result<String, String> {
    candid_of(&wat::parse_str(text).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn the_interface_is_read_from_the_module() {
    let told = interface(
        r#"(module
  (import "ic0" "stable64_size" (func $size (result i64)))
  (import "ic0" "msg_reply" (func $reply))
  (memory (export "memory") 1)
  (data (i32.const 16) "service : {}\00 and more")
  (func $start (drop (call $size)) (call $reply))
  (start $start)
  (func (export "get_candid_pointer") (result i32) (i32.const 16)))"#,
    );
    assert_eq!(told.as_deref(), Ok("service : {}\n"));
}

#[test]
fn a_missing_interface_is_reported_with_the_reason() {
    let pointer = |body: &str| {
        interface(&format!(
            r#"(module (import "ic0" "trap" (func $trap (param i32 i32))) (memory (export "memory") 1)
               (data (i32.const 8) "not today") (data (i32.const 65530) "no end")
               (func (export "get_candid_pointer") (result i32) {body}))"#
        ))
        .unwrap_err()
    };
    assert_eq!(pointer("(i32.const -1)"), "`get_candid_pointer` points outside the memory");
    assert_eq!(pointer("(i32.const 65530)"), "the text at `get_candid_pointer` has no end");
    assert_eq!(
        pointer("(call $trap (i32.const 8) (i32.const 9)) (i32.const 0)"),
        "the canister called `ic0.trap`: not today"
    );
    assert!(pointer("(unreachable)").contains("unreachable"));
    let told = pointer("(loop $for_ever (br $for_ever)) (i32.const 0)");
    assert!(told.contains("fuel"), "{told}");
    let told = interface("(module)").unwrap_err();
    assert_eq!(told, "no export `get_candid_pointer`: is `ic_cdk::export_candid!()` at the end of the crate?");
    assert!(candid_of(b"nothing").is_err());
}

#[test]
fn calls_in_candid() {
    let mut host = LocalHost::new();
    // A nat32 in Candid: `DIDL`, no types, one value of type nat32 (0x79), the value.
    let canister = installed(
        &mut host,
        &module(
            r#"(data (i32.const 100) "DIDL\00\01\79\2a\00\00\00") (data (i32.const 120) "DIDL\00\01\71\02hi") (data (i32.const 140) "no")
  (func $answer (call $append (i32.const 100) (i32.const 11)) (call $msg_reply))
  (func (export "canister_query answer") (call $answer))
  (func (export "canister_update set")
    (call $arg_copy (i32.const 200) (i32.const 0) (call $arg_size))
    (if (i32.ne (call $arg_size) (i32.const 10)) (then (unreachable)))
    (if (i64.ne (i64.load (i32.const 200)) (i64.load (i32.const 120))) (then (unreachable)))
    (call $answer))
  (func (export "canister_update refuse") (call $msg_reject (i32.const 140) (i32.const 2)))"#,
        ),
    );
    assert_eq!(ask::<_, u32>(&mut host, canister, ana(), "answer", ()), Ok(42));
    assert_eq!(call::<_, u32>(&mut host, canister, ana(), "set", ("hi",)), Ok(42));
    assert!(matches!(ask::<_, String>(&mut host, canister, ana(), "answer", ()), Err(CallError::Candid(_))));
    let error = call::<_, u32>(&mut host, canister, ana(), "refuse", ()).unwrap_err();
    assert_eq!(error.to_string(), "IC0406: no");
    assert_eq!(error.rejected().map(|reject| reject.error), Some(406));
}
