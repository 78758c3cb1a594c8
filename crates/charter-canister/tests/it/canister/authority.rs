//! Authority: every method, called by a controller, another caller and the anonymous one.

use candid::Principal;
use charter_canister::api::{NewSkill, WakeArgs};

use super::*;

fn skill() -> NewSkill {
    NewSkill { name: "sing".into(), description: "d".into(), instructions: "i".into(), enabled: None, version: None }
}

/// Methods that change something, with valid arguments.
fn changes() -> Vec<(&'static str, Vec<u8>)> {
    let none = encode_args(()).unwrap();
    vec![
        ("wake", encode_args((WakeArgs::default(),)).unwrap()),
        ("sleep", none.clone()),
        ("set_loop", encode_args((true,)).unwrap()),
        ("reset_fault", none.clone()),
        ("update_soul", encode_args(("x",)).unwrap()),
        ("config_set", encode_args(("a", "b")).unwrap()),
        ("skill_install", encode_args((skill(),)).unwrap()),
        ("skill_enable", encode_args(("greet", true)).unwrap()),
        ("complete", encode_args(("a/0/0", "{}")).unwrap()),
        ("decline", encode_args(("a/0/0", "no")).unwrap()),
        ("replay", none),
    ]
}

fn looks() -> Vec<(&'static str, Vec<u8>)> {
    let none = encode_args(()).unwrap();
    vec![
        ("runtime", none.clone()),
        ("soul", none.clone()),
        ("config", none.clone()),
        ("config_get", encode_args(("loop.interval",)).unwrap()),
        ("skills", none.clone()),
        ("tasks", none.clone()),
        ("turns", encode_args((TurnsQuery::default(),)).unwrap()),
        ("events", encode_args((Page::default(),)).unwrap()),
        ("refusals", encode_args((Page::default(),)).unwrap()),
        ("projection", none.clone()),
        ("check", none),
        ("export", encode_args((ExportArgs::default(),)).unwrap()),
    ]
}

/// Methods that only the canister may call.
fn own() -> Vec<(&'static str, Vec<u8>)> {
    vec![("work", encode_args((0u64, 0u32)).unwrap()), ("tick", encode_args(()).unwrap())]
}

#[test]
fn everybody_reads_controllers_change_and_only_the_canister_works() {
    let mut c = Canister::new(None);
    let people = [owner(), stranger(), Principal::anonymous()];
    for by in people {
        let controls = by == owner();
        for (method, arg) in looks() {
            assert!(c.host.query(c.id, by, method, &arg).is_ok(), "{method}");
            // Called as an update, a query costs cycles, so only controllers may do that.
            let asked = c.host.update(c.id, by, method, &arg);
            assert_eq!(asked.is_ok(), controls, "{method} as an update");
        }
        for (method, arg) in changes() {
            let before = c.runtime();
            let spent = c.host.spent(c.id).get(&charter_icp_host::Entry::Update).copied();
            let answer = c.host.update(c.id, by, method, &arg);
            if controls {
                answer.unwrap();
                c.host.settle();
            } else {
                // The message was rejected on ingress: only the inspection was executed.
                let reject = answer.unwrap_err();
                assert_eq!(reject.error, 406, "{method}: {reject}");
                assert_eq!(c.runtime(), before);
                let now = c.host.spent(c.id).get(&charter_icp_host::Entry::Update).copied();
                assert_eq!(now, spent);
            }
        }
        for (method, arg) in own() {
            assert!(c.host.update(c.id, by, method, &arg).is_err(), "{method}");
        }
    }
    c.sound();
}

/// A canister that calls another one, which avoids the ingress inspection.
const CALLER: &str = r#"(module
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $append (param i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "msg_reply_data_append" (func $reply_append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reject_msg_size" (func $why_size (result i32)))
    (import "ic0" "msg_reject_msg_copy" (func $why_copy (param i32 i32 i32)))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (memory 4)
    (table 2 funcref)
    (elem (i32.const 0) $replied $rejected)
    ;; Argument: 10 bytes of the callee, one of the method's length, the method, the argument.
    (func (export "canister_update forward") (local $m i32)
        (call $copy (i32.const 1024) (i32.const 0) (call $size))
        (local.set $m (i32.load8_u (i32.const 1034)))
        (call $call (i32.const 1024) (i32.const 10) (i32.const 1035) (local.get $m)
            (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
        (call $append (i32.add (i32.const 1035) (local.get $m))
            (i32.sub (call $size) (i32.add (i32.const 11) (local.get $m))))
        (drop (call $perform)))
    (func $replied (param i32)
        (call $copy (i32.const 1024) (i32.const 0) (call $size))
        (call $reply_append (i32.const 1024) (call $size))
        (call $reply))
    (func $rejected (param i32)
        (call $why_copy (i32.const 1024) (i32.const 0) (call $why_size))
        (call $reject (i32.const 1024) (call $why_size))))"#;

#[test]
fn other_canisters_are_rejected_in_candid_without_a_trace() {
    let mut c = Canister::new(None);
    let caller = c.host.create(&[owner()]).unwrap();
    let module = wat::parse_str(CALLER).unwrap();
    c.host.install(caller, owner(), &module, b"").unwrap();
    let forward = |c: &mut Local, method: &str, arg: &[u8]| {
        let mut bytes = c.id.as_slice().to_vec();
        bytes.push(method.len() as u8);
        bytes.extend(method.as_bytes());
        bytes.extend(arg);
        c.host.update(caller, stranger(), "forward", &bytes)
    };
    let end = c.runtime().end;
    for (method, arg) in changes() {
        let answer = forward(&mut c, method, &arg).unwrap();
        let unauthorized = match method {
            "wake" => candid::decode_one::<Result<TurnEnd, Error>>(&answer).unwrap().unwrap_err(),
            "replay" => candid::decode_one::<Result<Projection, Error>>(&answer).unwrap().unwrap_err(),
            _ => candid::decode_one::<Result<Receipt, Error>>(&answer).unwrap().unwrap_err(),
        };
        assert_eq!(unauthorized, Error::Unauthorized { caller }, "{method}");
    }
    for (method, arg) in own() {
        let reject = forward(&mut c, method, &arg).unwrap_err();
        assert!(reject.message.contains("is for the canister itself"), "{reject}");
    }
    assert_eq!(c.runtime().end, end);
    // Anyone may read.
    let (_, arg) = looks().remove(0);
    assert!(forward(&mut c, "runtime", &arg).is_ok());
    // A new controller may change the state.
    c.host.set_controllers(c.id, owner(), &[owner(), caller]).unwrap();
    let answer = forward(&mut c, "update_soul", &encode_args(("mine",)).unwrap()).unwrap();
    candid::decode_one::<Result<Receipt, Error>>(&answer).unwrap().unwrap();
    let last = c.events(Page { from: Some(end), limit: None }).events.remove(0);
    assert_eq!(last.by, caller.to_text());
}
