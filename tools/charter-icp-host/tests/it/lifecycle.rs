//! Install, upgrade, stop, start, controllers, inspection, invalid modules.

use crate::common::{ana, ben, installed, module, number, numbers, on_each, refused, state, update};
use charter_icp_host::{Entry, Host, InjectedFault, LocalHost, Principal, Status};

/// A canister whose hooks count in stable memory at 8 (init), 12 (pre), 16 (post) and trap if the
/// argument or `armed` requests it.
fn hooks(version: u32) -> Vec<u8> {
    module(&format!(
        r#"
  (table 4 funcref) (elem (i32.const 0) $answered $shifted)
  (data (i32.const 100) "bump") (data (i32.const 110) "raw_rand") (data (i32.const 120) "DIDL\00\00")
  (func $count (param $at i64)
    (call $room)
    (call $stable_read (i64.const 65000) (local.get $at) (i64.const 4))
    (i32.store (i32.const 65000) (i32.add (i32.load (i32.const 65000)) (i32.const 1)))
    (call $stable_write (local.get $at) (i64.const 65000) (i64.const 4)))
  (func $obey (if (call $arg_size) (then (call $trap (i32.const 100) (i32.const 4)))))
  (func $start (i32.store (i32.const 32) (i32.const 77)))
  (start $start)
  (func (export "canister_init") (call $count (i64.const 8)) (drop (call $timer (i64.const 5))) (call $obey))
  (func (export "canister_pre_upgrade")
    (call $count (i64.const 12)) (drop (call $timer (i64.const 6)))
    (i32.store (i32.const 36) (i32.const 1))
    (if (i32.load (i32.const 40)) (then (unreachable))))
  (func (export "canister_post_upgrade") (call $count (i64.const 16)) (call $obey))
  (func (export "canister_update arm") (i32.store (i32.const 40) (i32.const 1)) (call $msg_reply))
  (func (export "canister_query version") (call $say (i32.const {version})))
  (func (export "canister_query started") (call $say (i32.load (i32.const 32))))
  (func (export "canister_query status") (call $say (call $status)))
  (func (export "canister_query counter") (call $say (i32.wrap_i64 (call $version))))
  (func (export "canister_query counts")
    (call $stable_read (i64.const 65000) (i64.const 8) (i64.const 12))
    (call $append (i32.const 65000) (i32.const 12)) (call $msg_reply))
  (func (export "canister_query pre_flag") (call $say (i32.load (i32.const 36))))
  (func $answered (param i32) (call $say (local.get 0)))
  (func $shifted (param i32) (call $say (i32.const {version})))
  (func (export "canister_update wait")
    (call $bump)
    (call $call_new (i32.const 0) (i32.const 0) (i32.const 110) (i32.const 8) (i32.const 1) (i32.const 7) (i32.const 1) (i32.const 7))
    (call $call_append (i32.const 120) (i32.const 6))
    (drop (call $perform)))
  (func (export "canister_query can_ana")
    (call $caller_copy (i32.const 200) (i32.const 0) (call $caller_size))
    (call $say (call $is_controller (i32.const 200) (call $caller_size))))
"#
    ))
}

fn ask(host: &mut (impl Host + ?Sized), canister: Principal, method: &str) -> u32 {
    numbers(&host.query(canister, ana(), method, b"").unwrap())[0]
}

fn counts(host: &mut (impl Host + ?Sized), canister: Principal) -> Vec<u32> {
    numbers(&host.query(canister, ana(), "counts", b"").unwrap())
}

#[test]
fn hooks_run_once_each_and_the_start_function_before_them() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &hooks(1));
    assert_eq!(counts(&mut host, canister), [1, 0, 0]);
    assert_eq!(ask(&mut host, canister, "started"), 77);
    assert_eq!(host.timer(canister), Some(5));
    update(&mut host, canister, "bump").unwrap();
    let before = ask(&mut host, canister, "counter");
    host.upgrade(canister, ana(), &hooks(2), b"").unwrap();
    assert_eq!(counts(&mut host, canister), [1, 1, 1]);
    assert_eq!((ask(&mut host, canister, "version"), ask(&mut host, canister, "started")), (2, 77));
    assert_eq!(state(&mut host, canister), [0, 0, 1], "heap and globals are new, stable memory stays");
    assert_eq!(host.timer(canister), None, "an upgrade ends the timer, also one that the old module has set last");
    assert_eq!(ask(&mut host, canister, "counter"), before + 1);
}

#[test]
fn an_upgrade_is_one_transaction() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &hooks(1));
    update(&mut host, canister, "bump").unwrap();
    let all = |host: &mut LocalHost| {
        (
            counts(host, canister),
            state(host, canister),
            ask(host, canister, "version"),
            host.timer(canister),
            ask(host, canister, "pre_flag"),
        )
    };
    let before = all(&mut host);
    // The hook of the new module traps after the hook of the old one has run.
    assert_eq!(host.upgrade(canister, ana(), &hooks(2), b"trap").unwrap_err().error, 503);
    assert_eq!(all(&mut host), before);
    // Each hook is interrupted.
    for entry in [Entry::PreUpgrade, Entry::Start, Entry::PostUpgrade] {
        host.inject(canister, InjectedFault::new(entry, 2));
        assert_eq!(host.upgrade(canister, ana(), &hooks(2), b"").unwrap_err().error, 522, "{entry}");
        assert_eq!(all(&mut host), before, "{entry}");
    }
    // The hook of the old module traps.
    update(&mut host, canister, "arm").unwrap();
    assert_eq!(host.upgrade(canister, ana(), &hooks(2), b"").unwrap_err().error, 502);
    assert_eq!(all(&mut host), before);
    update(&mut host, canister, "bump").unwrap();
    assert_eq!(state(&mut host, canister), [2, 2, 2]);
}

#[test]
fn an_install_that_traps_leaves_the_canister_as_it_was() {
    on_each("", |host, _| {
        let canister = host.create(&[ana()]).unwrap();
        assert_eq!(host.install(canister, ana(), &hooks(1), b"trap").unwrap_err().error, 503);
        assert_eq!(refused(host, canister, "bump"), 537);
        assert_eq!(host.upgrade(canister, ana(), &hooks(1), b"").unwrap_err().error, 537);
        host.install(canister, ana(), &hooks(1), b"").unwrap();
        assert_eq!(host.install(canister, ana(), &hooks(1), b"").unwrap_err().error, 514);
        update(host, canister, "bump").unwrap();
        assert_eq!(host.reinstall(canister, ana(), &hooks(2), b"trap").unwrap_err().error, 503);
        assert_eq!(state(host, canister), [1, 1, 1]);
        host.reinstall(canister, ana(), &hooks(2), b"").unwrap();
        assert_eq!(state(host, canister), [0, 0, 0]);
        assert_eq!(counts(host, canister), [1, 0, 0]);
    });
}

#[test]
fn an_answer_after_an_upgrade_reaches_the_new_module() {
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &hooks(1));
    let call = host.submit(canister, ana(), "wait", b"").unwrap();
    host.tick();
    assert_eq!((host.answer(&call), host.open_calls(canister)), (None, 1));
    host.upgrade(canister, ana(), &hooks(2), b"").unwrap();
    assert_eq!(state(&mut host, canister), [0, 0, 1], "what it did before the await stayed");
    // The answer calls the function at the same place in the table of the new module, as on the
    // Internet Computer.
    assert_eq!(numbers(&host.await_call(&call).unwrap()), [2]);

    // If the new module has no such function, the call is rejected.
    let call = host.submit(canister, ana(), "wait", b"").unwrap();
    host.tick();
    host.upgrade(canister, ana(), &module(""), b"").unwrap();
    assert_eq!(host.await_call(&call).unwrap_err().error, 513);
    assert_eq!(host.open_calls(canister), 0);
    assert_eq!(state(&mut host, canister), [0, 0, 2]);
}

#[test]
fn a_stopped_canister_accepts_nothing_and_a_stopping_one_receives_answers() {
    on_each("", |host, _| {
        let canister = installed(host, &hooks(1));
        let call = host.submit(canister, ana(), "wait", b"").unwrap();
        host.tick();
        host.stop(canister, ana()).unwrap();
        assert!(host.answer(&call).unwrap().is_ok());
        assert_eq!(refused(host, canister, "bump"), 508);
        assert_eq!(host.query(canister, ana(), "state", b"").unwrap_err().error, 508);
        host.upgrade(canister, ana(), &hooks(2), b"").unwrap();
        host.start(canister, ana()).unwrap();
        assert_eq!((ask(host, canister, "version"), ask(host, canister, "status")), (2, Status::Running as u32));
        assert_eq!(state(host, canister), [0, 0, 1]);
    });
}

#[test]
fn a_canister_that_waits_forever_cannot_be_stopped() {
    let mut host = LocalHost::new();
    let again = r#"(table 1 funcref) (elem (i32.const 0) $again)
        (data (i32.const 100) "raw_rand") (data (i32.const 110) "DIDL\00\00")
        (func $again (param i32)
          (call $call_new (i32.const 0) (i32.const 0) (i32.const 100) (i32.const 8) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
          (call $call_append (i32.const 110) (i32.const 6)) (drop (call $perform)))
        (func (export "canister_update again") (call $again (i32.const 0)))"#;
    let canister = installed(&mut host, &module(again));
    host.submit(canister, ana(), "again", b"").unwrap();
    host.tick();
    let reject = host.stop(canister, ana()).unwrap_err();
    assert_eq!(reject.error, 206);
    assert!(reject.message.contains("1 of its calls wait for answers that do not arrive"), "{reject}");
    assert_eq!(host.status(canister), Some(Status::Stopping));
    assert_eq!(refused(&mut host, canister, "bump"), 509);
    host.start(canister, ana()).unwrap();
    host.update(canister, ana(), "bump", b"").unwrap();
}

#[test]
fn only_controllers_control() {
    on_each("", |host, _| {
        let canister = installed(host, &hooks(1));
        assert_eq!(host.upgrade(canister, ben(), &hooks(2), b"").unwrap_err().error, 512);
        assert_eq!(host.stop(canister, ben()).unwrap_err().error, 512);
        assert_eq!(host.set_controllers(canister, ben(), &[ben()]).unwrap_err().error, 512);
        assert_eq!(numbers(&host.query(canister, ben(), "can_ana", b"").unwrap()), [0]);
        host.set_controllers(canister, ana(), &[ben()]).unwrap();
        assert_eq!(host.controllers(canister).unwrap(), [ben()]);
        assert_eq!(numbers(&host.query(canister, ben(), "can_ana", b"").unwrap()), [1]);
        assert_eq!(host.start(canister, ana()).unwrap_err().error, 512);
        host.upgrade(canister, ben(), &hooks(2), b"").unwrap();
    });
}

#[test]
fn inspection_decides_which_messages_are_accepted() {
    let picky = r#"
  (func (export "canister_inspect_message")
    (call $bump)
    (if (i32.eq (call $name_size) (i32.const 5)) (then (unreachable)))
    (if (i32.eq (call $arg_size) (i32.const 3)) (then (call $accept))))
  (func (export "canister_update trapx") (call $msg_reply))"#;
    on_each(picky, |host, canister| {
        assert_eq!(host.update(canister, ana(), "bump", b"ok").unwrap_err().error, 406);
        assert_eq!(host.update(canister, ana(), "trapx", b"yes").unwrap_err().error, 502);
        host.update(canister, ana(), "bump", b"yes").unwrap();
        assert_eq!(state(host, canister), [1, 1, 1], "inspection leaves no trace");
    });
}

#[test]
fn modules_may_be_gzipped() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&hooks(3)).unwrap();
    let mut host = LocalHost::new();
    let canister = installed(&mut host, &gzip.finish().unwrap());
    assert_eq!(ask(&mut host, canister, "version"), 3);
    update(&mut host, canister, "bump").unwrap();
    assert_eq!(number(&mut host, canister, "version"), 3, "a query method called as an update");
}

#[test]
fn invalid_modules_are_rejected_with_the_reason() {
    let mut host = LocalHost::new();
    let canister = host.create(&[ana()]).unwrap();
    let mut refusal = |text: &[u8]| {
        let reject = host.install(canister, ana(), text, b"").unwrap_err();
        assert_eq!(reject.error, 505);
        reject.message.replace(&format!("Error from Canister {canister}: Canister's Wasm module is not valid: "), "")
    };
    let wat = |text: &str| wat::parse_str(text).unwrap();
    assert!(refusal(b"").contains("unexpected end"));
    assert!(refusal(&[0x1f, 0x8b, 0x08, 1]).contains("cannot be gunzipped"));
    let told =
        refusal(&wat(r#"(module (import "wasi_snapshot_preview1" "fd_close" (func (param i32) (result i32))))"#));
    assert_eq!(told, "it imports `wasi_snapshot_preview1.fd_close`: a canister cannot.");
    let told = refusal(&wat(r#"(module (import "ic0" "make_coffee" (func)))"#));
    assert!(told.contains("make_coffee") && told.contains("does not have"), "{told}");
    let told = refusal(&wat(r#"(module (func (export "canister_updat x")))"#));
    assert_eq!(told, "it exports `canister_updat x`, which is not an entry point of a canister.");
    let told = refusal(&wat(
        r#"(module (func $f) (export "canister_update x" (func $f)) (export "canister_query x" (func $f)))"#,
    ));
    assert_eq!(told, "it exports the method `x` more than once.");
    let told = refusal(&wat(r#"(module (memory 1) (export "canister_init" (memory 0)))"#));
    assert_eq!(told, "its export `canister_init` is not a function.");
}
