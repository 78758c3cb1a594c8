//! Hand-written canisters, each for one test.

use charter_icp_host::{Host, Principal, Reject, each_host};

/// Builds a module with every import that the tests use, one page of memory, and helpers, followed
/// by `body`.
///
/// `$say N` replies with a number, `$bump` counts in the heap (at 0), in a global and in stable
/// memory, `$state` replies with the three counts, `$to_self NAME LENGTH REPLY REJECT` begins a
/// call to the canister itself.
pub(crate) fn module(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
  (import "ic0" "msg_reply" (func $msg_reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reject" (func $msg_reject (param i32 i32)))
  (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
  (import "ic0" "msg_caller_size" (func $caller_size (result i32)))
  (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
  (import "ic0" "msg_reject_code" (func $reject_code (result i32)))
  (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
  (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
  (import "ic0" "msg_method_name_size" (func $name_size (result i32)))
  (import "ic0" "accept_message" (func $accept))
  (import "ic0" "canister_self_size" (func $self_size (result i32)))
  (import "ic0" "canister_self_copy" (func $self_copy (param i32 i32 i32)))
  (import "ic0" "canister_status" (func $status (result i32)))
  (import "ic0" "canister_version" (func $version (result i64)))
  (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
  (import "ic0" "call_data_append" (func $call_append (param i32 i32)))
  (import "ic0" "call_with_best_effort_response" (func $best_effort (param i32)))
  (import "ic0" "call_perform" (func $perform (result i32)))
  (import "ic0" "stable64_size" (func $stable_size (result i64)))
  (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
  (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
  (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
  (import "ic0" "time" (func $time (result i64)))
  (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "is_controller" (func $is_controller (param i32 i32) (result i32)))
  (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
  (import "ic0" "debug_print" (func $print (param i32 i32)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (memory 1)
  (global $count (mut i32) (i32.const 0))
  (type $callback (func (param i32)))

  (func $say (param i32)
    (i32.store (i32.const 65000) (local.get 0))
    (call $append (i32.const 65000) (i32.const 4))
    (call $msg_reply))
  (func $room (if (i64.eqz (call $stable_size)) (then (drop (call $stable_grow (i64.const 1))))))
  (func $bump
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (global.set $count (i32.add (global.get $count) (i32.const 1)))
    (call $room)
    (call $stable_read (i64.const 65000) (i64.const 0) (i64.const 4))
    (i32.store (i32.const 65000) (i32.add (i32.load (i32.const 65000)) (i32.const 1)))
    (call $stable_write (i64.const 0) (i64.const 65000) (i64.const 4)))
  (func $state
    (call $room)
    (i32.store (i32.const 65000) (i32.load (i32.const 0)))
    (i32.store (i32.const 65004) (global.get $count))
    (call $stable_read (i64.const 65008) (i64.const 0) (i64.const 4))
    (call $append (i32.const 65000) (i32.const 12))
    (call $msg_reply))
  (func $to_self (param $name i32) (param $length i32) (param $reply i32) (param $reject i32)
    (call $self_copy (i32.const 64000) (i32.const 0) (call $self_size))
    (call $call_new (i32.const 64000) (call $self_size) (local.get $name) (local.get $length)
      (local.get $reply) (i32.const 7) (local.get $reject) (i32.const 7)))
  (func (export "canister_query state") (call $state))
  (func (export "canister_update bump") (call $bump) (call $msg_reply))
{body}
)"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn ana() -> Principal {
    Principal::from_slice(b"ana")
}

pub(crate) fn ben() -> Principal {
    Principal::from_slice(b"ben")
}

/// Creates a canister that Ana controls, with this module.
pub(crate) fn installed(host: &mut (impl Host + ?Sized), module: &[u8]) -> Principal {
    let canister = host.create(&[ana()]).unwrap();
    host.install(canister, ana(), module, b"").unwrap();
    canister
}

/// Runs a test with an installed module on every host.
pub(crate) fn on_each(body: &str, mut test: impl FnMut(&mut dyn Host, Principal)) {
    let module = module(body);
    each_host(|host| {
        let canister = installed(host, &module);
        test(host, canister);
    })
    .unwrap();
}

pub(crate) fn numbers(reply: &[u8]) -> Vec<u32> {
    reply.chunks(4).map(|number| u32::from_le_bytes(number.try_into().unwrap())).collect()
}

/// Returns the counts in heap, global and stable memory.
pub(crate) fn state(host: &mut (impl Host + ?Sized), canister: Principal) -> Vec<u32> {
    numbers(&host.query(canister, ana(), "state", b"").unwrap())
}

pub(crate) fn update(host: &mut (impl Host + ?Sized), canister: Principal, method: &str) -> Result<Vec<u8>, Reject> {
    host.update(canister, ana(), method, b"")
}

/// Calls an update method that replies with a number.
pub(crate) fn number(host: &mut (impl Host + ?Sized), canister: Principal, method: &str) -> u32 {
    numbers(&update(host, canister, method).unwrap())[0]
}

/// Calls an update method that is rejected, and returns the error number.
pub(crate) fn refused(host: &mut (impl Host + ?Sized), canister: Principal, method: &str) -> u16 {
    update(host, canister, method).unwrap_err().error
}
