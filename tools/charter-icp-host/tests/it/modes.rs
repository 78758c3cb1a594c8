//! Which system function may be used from which entry point: the table of the interface
//! specification.

use std::time::Duration;

use crate::common::{ana, installed};
use charter_icp_host::{Host, LocalHost};

/// Name, type, call, and allowed entry points, as in the specification ("Overview of imports"),
/// without the unsupported modes (TQ, CQ, CRy, CRt, CC). `*` is everywhere but in the start
/// function.
const TABLE: &str = "
msg_arg_data_size            | (result i32)                 | drop(call)                 | I U RQ NRQ Ry F
msg_arg_data_copy            | (param i32 i32 i32)          | 0 0 0                      | I U RQ NRQ Ry F
msg_caller_size              | (result i32)                 | drop(call)                 | *
msg_caller_copy              | (param i32 i32 i32)          | 0 0 0                      | *
msg_caller_info_data_size    | (result i32)                 | drop(call)                 | U RQ NRQ Ry Rt C F
msg_caller_info_data_copy    | (param i32 i32 i32)          | 0 0 0                      | U RQ NRQ Ry Rt C F
msg_caller_info_signer_size  | (result i32)                 | drop(call)                 | U RQ NRQ Ry Rt C F
msg_caller_info_signer_copy  | (param i32 i32 i32)          | 0 0 0                      | U RQ NRQ Ry Rt C F
msg_reject_code              | (result i32)                 | drop(call)                 | Ry Rt C
msg_reject_msg_size          | (result i32)                 | drop(call)                 | Rt
msg_reject_msg_copy          | (param i32 i32 i32)          | 0 0 0                      | Rt
msg_deadline                 | (result i64)                 | drop(call)                 | U RQ NRQ Ry Rt
msg_reply_data_append        | (param i32 i32)              | 0 0                        | U RQ NRQ Ry Rt
msg_reply                    |                              |                            | U RQ NRQ Ry Rt
msg_reject                   | (param i32 i32)              | 0 0                        | U RQ NRQ Ry Rt
msg_cycles_available         | (result i64)                 | drop(call)                 | U RQ Rt Ry
msg_cycles_available128      | (param i32)                  | 0                          | U RQ Rt Ry
msg_cycles_refunded          | (result i64)                 | drop(call)                 | Rt Ry
msg_cycles_refunded128       | (param i32)                  | 0                          | Rt Ry
msg_cycles_accept            | (param i64) (result i64)     | drop(call) 0L              | U RQ Rt Ry
msg_cycles_accept128         | (param i64 i64 i32)          | 0L 0L 0                    | U RQ Rt Ry
cycles_burn128               | (param i64 i64 i32)          | 0L 0L 0                    | I G U RQ Ry Rt C T
canister_self_size           | (result i32)                 | drop(call)                 | *
canister_self_copy           | (param i32 i32 i32)          | 0 0 0                      | *
canister_cycle_balance       | (result i64)                 | drop(call)                 | *
canister_cycle_balance128    | (param i32)                  | 0                          | *
canister_liquid_cycle_balance128 | (param i32)              | 0                          | *
canister_status              | (result i32)                 | drop(call)                 | *
canister_version             | (result i64)                 | drop(call)                 | *
subnet_self_size             | (result i32)                 | drop(call)                 | *
subnet_self_copy             | (param i32 i32 i32)          | 0 0 0                      | *
msg_method_name_size         | (result i32)                 | drop(call)                 | F
msg_method_name_copy         | (param i32 i32 i32)          | 0 0 0                      | F
call_new                     | (param i32 i32 i32 i32 i32 i32 i32 i32) | 0 0 0 0 0 0 0 0 | U Ry Rt T
call_on_cleanup              | (param i32 i32)              | 0 0                        | U Ry Rt T
call_data_append             | (param i32 i32)              | 0 0                        | U Ry Rt T
call_with_best_effort_response | (param i32)                | 1                          | U Ry Rt T
call_cycles_add              | (param i64)                  | 0L                         | U Ry Rt T
call_cycles_add128           | (param i64 i64)              | 0L 0L                      | U Ry Rt T
call_perform                 | (result i32)                 | drop(call)                 | U Ry Rt T
stable64_size                | (result i64)                 | drop(call)                 | * s
stable64_grow                | (param i64) (result i64)     | drop(call) 0L              | * s
stable64_write               | (param i64 i64 i64)          | 0L 0L 0L                   | * s
stable64_read                | (param i64 i64 i64)          | 0L 0L 0L                   | * s
stable_size                  | (result i32)                 | drop(call)                 | * s
stable_grow                  | (param i32) (result i32)     | drop(call) 0               | * s
stable_write                 | (param i32 i32 i32)          | 0 0 0                      | * s
stable_read                  | (param i32 i32 i32)          | 0 0 0                      | * s
root_key_size                | (result i32)                 | drop(call)                 | I G U RQ Ry Rt C T
root_key_copy                | (param i32 i32 i32)          | 0 0 0                      | I G U RQ Ry Rt C T
certified_data_set           | (param i32 i32)              | 0 0                        | I G U Ry Rt T
data_certificate_present     | (result i32)                 | drop(call)                 | *
data_certificate_size        | (result i32)                 | drop(call)                 | NRQ
data_certificate_copy        | (param i32 i32 i32)          | 0 0 0                      | NRQ
time                         | (result i64)                 | drop(call)                 | *
global_timer_set             | (param i64) (result i64)     | drop(call) 0L              | I G U Ry Rt C T
performance_counter          | (param i32) (result i64)     | drop(call) 0               | * s
is_controller                | (param i32 i32) (result i32) | drop(call) 0 0             | * s
in_replicated_execution      | (result i32)                 | drop(call)                 | * s
cost_call                    | (param i64 i64 i32)          | 0L 0L 0                    | * s
cost_create_canister         | (param i32)                  | 0                          | * s
cost_http_request            | (param i64 i64 i32)          | 0L 0L 0                    | * s
cost_http_request_v2         | (param i32 i32 i32)          | 0 0 0                      | * s
cost_sign_with_ecdsa         | (param i32 i32 i32 i32) (result i32) | drop(call) 0 0 0 0 | * s
cost_sign_with_schnorr       | (param i32 i32 i32 i32) (result i32) | drop(call) 0 0 0 0 | * s
cost_vetkd_derive_key        | (param i32 i32 i32 i32) (result i32) | drop(call) 0 0 0 0 | * s
env_var_count                | (result i32)                 | drop(call)                 | *
env_var_name_exists          | (param i32 i32) (result i32) | drop(call) 0 0             | *
debug_print                  | (param i32 i32)              | 0 0                        | * s
";

const ENTRIES: [&str; 11] = ["I", "G", "U", "RQ", "NRQ", "Ry", "Rt", "C", "s", "F", "T"];

/// Renders the call of a function in the text of a module: `drop(call)` if there is a result, and
/// its arguments.
fn call(name: &str, how: &str) -> String {
    let (dropped, arguments) = match how.strip_prefix("drop(call)") {
        Some(arguments) => (true, arguments),
        None => (false, how),
    };
    let arguments: Vec<String> = arguments
        .split_whitespace()
        .map(|argument| match argument.strip_suffix('L') {
            Some(wide) => format!("(i64.const {wide})"),
            None => format!("(i32.const {argument})"),
        })
        .collect();
    let call = format!("(call $probe_{name} {})", arguments.join(" "));
    if dropped { format!("(drop {call})") } else { call }
}

/// Builds a canister that calls the function in one entry point; the others only lead to it.
fn canister(name: &str, ty: &str, how: &str, entry: &str) -> Vec<u8> {
    let mut probe = call(name, how);
    // These functions need a call under construction. Where a canister may not start one,
    // `call_new` also traps.
    if name.starts_with("call_") && name != "call_new" {
        probe = format!(
            "(call $call_new (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) {probe}"
        );
    }
    let at = |here: &str| {
        if here == entry { probe.clone() } else { String::new() }
    };
    // If an answer is due, the canister answers, unless the function already did.
    let answer = if ["msg_reply", "msg_reject"].contains(&name) { "" } else { "(call $reply)" };
    let answer_at = |here: &str| {
        if here == entry { answer } else { "(call $reply)" }
    };
    let start = if entry == "s" { "(start $start)" } else { "" };
    let text = format!(
        r#"(module
  (import "ic0" "{name}" (func $probe_{name} {ty}))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "accept_message" (func $accept))
  (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
  (import "ic0" "canister_self_size" (func $self_size (result i32)))
  (import "ic0" "canister_self_copy" (func $self_copy (param i32 i32 i32)))
  (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
  (import "ic0" "call_perform" (func $perform (result i32)))
  (memory 1)
  (data (i32.const 100) "yes") (data (i32.const 110) "no")
  (table 4 funcref) (elem (i32.const 0) $replied $rejected $fails $cleans)
  (global $done (mut i32) (i32.const 0))
  (func $to (param i32 i32 i32)
    (call $self_copy (i32.const 200) (i32.const 0) (call $self_size))
    (call $call_new (i32.const 200) (call $self_size) (local.get 0) (local.get 1) (local.get 2) (i32.const 0) (local.get 2) (i32.const 0)))
  (func $start {s})
  (func $replied (param i32) {ry} {answer_ry})
  (func $rejected (param i32) {rt} {answer_rt})
  (func $fails (param i32) (unreachable))
  (func $cleans (param i32) {c} (global.set $done (i32.const 1)))
  {start}
  (func (export "canister_init") {i})
  (func (export "canister_pre_upgrade") {g})
  (func (export "canister_inspect_message") {f} (call $accept))
  (func (export "canister_update yes") (call $reply))
  (func (export "canister_update no") (call $reject (i32.const 100) (i32.const 0)))
  (func (export "canister_update U") {u} {answer_u})
  (func (export "canister_query RQ") {rq} {answer_rq})
  (func (export "canister_query NRQ") {nrq} {answer_nrq})
  (func (export "canister_update Ry") (call $to (i32.const 100) (i32.const 3) (i32.const 0)) (drop (call $perform)))
  (func (export "canister_update Rt") (call $to (i32.const 110) (i32.const 2) (i32.const 1)) (drop (call $perform)))
  (func (export "canister_update C") (call $to (i32.const 100) (i32.const 3) (i32.const 2))
    (call $on_cleanup (i32.const 3) (i32.const 0)) (drop (call $perform)))
  (func (export "canister_update arm") (drop (call $timer (i64.const 1))) (call $reply))
  (func (export "canister_global_timer") {t} (global.set $done (i32.const 1)))
  (func (export "canister_query done") (if (i32.eqz (global.get $done)) (then (unreachable))) (call $reply)))"#,
        s = at("s"),
        i = at("I"),
        g = at("G"),
        f = at("F"),
        u = at("U"),
        rq = at("RQ"),
        nrq = at("NRQ"),
        ry = at("Ry"),
        rt = at("Rt"),
        c = at("C"),
        t = at("T"),
        answer_u = answer_at("U"),
        answer_rq = answer_at("RQ"),
        answer_nrq = answer_at("NRQ"),
        answer_ry = answer_at("Ry"),
        answer_rt = answer_at("Rt"),
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{name} in {entry}: {error}"))
}

/// Whether the function can be used in the entry point.
fn works(name: &str, ty: &str, how: &str, entry: &str) -> bool {
    let module = canister(name, ty, how, entry);
    let mut host = LocalHost::new();
    if ["I", "s"].contains(&entry) {
        let canister = host.create(&[ana()]).unwrap();
        return host.install(canister, ana(), &module, b"").is_ok();
    }
    let canister = installed(&mut host, &module);
    match entry {
        "G" => host.upgrade(canister, ana(), &module, b"").is_ok(),
        "F" => host.update(canister, ana(), "yes", b"").is_ok(),
        "NRQ" => host.query(canister, ana(), "NRQ", b"").map_or_else(|reject| reject.error == 406, |_| true),
        "T" => {
            host.update(canister, ana(), "arm", b"").unwrap();
            host.advance(Duration::from_secs(1));
            host.settle();
            host.query(canister, ana(), "done", b"").is_ok()
        }
        "C" => {
            assert!(host.update(canister, ana(), "C", b"").is_err());
            host.query(canister, ana(), "done", b"").is_ok()
        }
        method => match host.update(canister, ana(), method, b"") {
            Ok(_) => true,
            // The canister's own rejection is the answer of the tested function.
            Err(reject) => reject.error == 406,
        },
    }
}

#[test]
fn each_function_is_allowed_exactly_where_the_specification_says() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for line in TABLE.lines().filter(|line| !line.trim().is_empty()) {
        let [name, ty, how, modes] = line.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let modes: Vec<&str> = modes.split(' ').collect();
        for entry in ENTRIES {
            let allowed = modes.contains(&entry) || (modes.contains(&"*") && entry != "s");
            tried += 1;
            if works(name, ty, how, entry) != allowed {
                wrong.push(format!("{name} in {entry}: {}", if allowed { "should work" } else { "should trap" }));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(tried, 69 * 11, "functions times entry points");
}

#[test]
fn the_message_says_which_function_and_where() {
    let module = canister("call_perform", "(result i32)", "drop(call)", "NRQ");
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &module);
    let reject = host.query(canister, ana(), "NRQ", b"").unwrap_err();
    assert_eq!(
        reject.to_string(),
        format!(
            "IC0504: Error from Canister {canister}: Canister violated contract: \"ic0_call_new\" cannot be executed in non replicated query mode."
        )
    );
}
