//! A fork does not repeat effects: an order is not paid twice.

use crate::support::processes::Site;

const CHARTER: &str = "
charter: 1
id: order
events: {PAY: {data: {type: object, required: [order], properties: {order: {type: string}}}}, SHIP: {}}
context: {receipt: null}
actors:
  pay: {kind: exec, command: [sh, pay.sh], idempotent: true}
  ship: {kind: exec, command: [sh, -c, 'echo shipped >> shipped; echo 1'], idempotent: true}
initial: open
states:
  open: {on: {PAY: paying}}
  paying:
    invoke:
      src: pay
      input: {order: '= event.order'}
      onDone: {target: open, actions: {assign: {receipt: '= event.output'}}}
      onError: failed
    on: {SHIP: shipping}
  shipping: {invoke: {src: ship, onDone: done}}
  done: {type: final}
  failed: {type: final}
";

/// Pays: leaves a line in `paid`, and answers with the number of lines.
const PAY: &str = "echo paid >> paid; [ -e slow ] && sleep 2; grep -c . paid";

/// Two orders were paid: record 1 requests the first payment, record 3 the second.
fn paid_twice(name: &str) -> Site {
    let site = Site::new(name, &[("order.yaml", CHARTER.to_owned()), ("pay.sh", PAY.to_owned())]);
    site.run("run order.yaml --run r");
    site.run("send r PAY {\"order\":\"a\"}");
    site.run("send r PAY {\"order\":\"b\"}");
    assert_eq!(site.lines("paid"), 2);
    site
}

#[test]
fn a_fork_with_an_open_payment_does_not_pay_again() {
    let site = paid_twice("fork-open");
    site.run("fork r --at 1 --run f");
    let (code, out, err) = site.any("run --resume f");
    assert_eq!(code, 0, "{out}{err}");
    // The answer comes from the past.
    assert!(out.contains("f: active in open, 3 records"), "{out}{err}");
    let last = site.records("f").pop().unwrap();
    assert_eq!((&last["event"]["type"], &last["event"]["data"]["output"]), (&"done.invoke.pay".into(), &1.into()));
    assert_eq!(site.records("f")[0]["forked_from"]["dry"], true);
    assert_eq!(site.records("r")[0].get("forked_from"), None);
    assert_eq!(site.lines("paid"), 2);
    assert!(site.run("verify").contains("verified"));
}

#[test]
fn later_steps_of_a_dry_fork_start_nothing() {
    let site = paid_twice("fork-later");
    site.run("fork r --at 2 --run f");
    // The same payment was made by the other run, too.
    let (_, out, err) = site.any("send f PAY {\"order\":\"b\"}");
    assert!(out.contains("accepted") && site.records("f").len() == 5, "{out}{err}");
    assert_eq!(site.records("f")[4]["event"]["data"]["output"], 2);
    // It was made once.
    let (_, out, err) = site.any("send f PAY {\"order\":\"b\"}");
    assert!(err.contains("pay is not started: dry"), "{out}{err}");
    let (_, shown, _) = site.any("show f");
    assert!(shown.contains("dry fork of r after record 2") && shown.contains("charter answer f/5/0 '{}'"), "{shown}");
    let (_, legal, _) = site.any("legal f");
    assert!(legal.contains("dry: pay: not started; answer with `charter answer f/5/0 '{}'"), "{legal}");
    assert!(site.run("runs").contains("active, dry"));
    assert!(site.run("runs").contains("6 (3 shared)"));
    let (_, _, log) = site.any("log f");
    assert!(log.contains("dry fork of r after record 2"), "{log}");
    for command in ["show f --json", "runs --json"] {
        assert!(site.run(command).contains("\"dry\":true"), "{command}");
    }
    // Whatever happens next: another process resumes it, an event enters another state.
    let (_, out, err) = site.any("run --resume f");
    assert!(out.contains("dry: pay not started; answer with  charter answer f/5/0 '{}'"), "{out}{err}");
    for flag in ["--yes", "--no"] {
        site.any(&format!("run --resume f {flag}"));
        assert_eq!(site.records("f").len(), 6, "{flag} does not say what an actor would have answered");
    }
    let (code, ..) = site.any("answer f/5/0");
    assert_eq!(code, 2, "an answer is given on purpose");
    site.run("answer f/5/0 7");
    let last = site.records("f").pop().unwrap();
    assert_eq!((&last["event"]["data"]["output"], &last["by"]["id"]), (&7.into(), &"me".into()));
    site.run("send f PAY {\"order\":\"c\"}");
    site.run("send f SHIP");
    assert!(site.run("show f").contains("dry      ship since record 8: not started"));
    site.run("answer f/8/1 1");
    assert!(site.run("show f").contains("done"));
    assert_eq!(site.lines("paid"), 2);
    assert!(!site.path("shipped").exists());
    assert!(site.run("verify").contains("verified"));
}

#[test]
fn an_import_stays_dry_and_cannot_be_made_live() {
    let site = paid_twice("fork-import");
    site.run("fork r --at 1 --run f");
    let exported = site.run("export f");
    assert!(exported.contains("{\"dry\":true,"), "{exported}");
    let other = Site::new("fork-importer", &[("order.yaml", CHARTER.to_owned()), ("pay.sh", PAY.to_owned())]);
    std::fs::write(other.path("live.jsonl"), exported.replace("{\"dry\":true,", "{")).unwrap();
    let (code, _, err) = other.any("import live.jsonl");
    assert_eq!((code, err.contains("not verified")), (1, true), "{err}");
    std::fs::write(other.path("dry.jsonl"), exported).unwrap();
    other.run("import dry.jsonl");
    // Allowing its manifest does not make it live.
    let (_, out, err) = other.any("trust f --charter order.yaml --yes");
    assert!(out.contains("dry"), "{out}{err}");
    other.any("run --resume f");
    assert!(!other.path("paid").exists());
    other.run("answer f/1/0 1");
    assert_eq!(other.records("f").last().unwrap()["event"]["type"], "done.invoke.pay");
}

#[test]
fn a_holder_keeps_a_fork_dry_too() {
    let site = paid_twice("fork-held");
    std::fs::write(site.path("slow"), "").unwrap();
    let holding = site.start("send r PAY {\"order\":\"c\"}");
    site.wait_for_lines("paid", 3);
    let holder = site.holder();
    site.run("fork r --at 2 --run f");
    site.run("send f PAY {\"order\":\"x\"}");
    let (_, shown, _) = site.any("show f");
    assert!(shown.contains("dry      pay since record 3: not started"), "{shown}");
    site.run("answer f/3/0 5");
    assert_eq!(site.holder(), holder);
    assert_eq!(site.records("f")[4]["event"]["data"]["output"], 5);
    holding.end();
    assert_eq!(site.lines("paid"), 3);
}

/// The exit codes of docs/cli.md: 1 is the answer no, 2 is what could not run.
#[test]
fn a_live_fork_that_would_do_something_twice_is_refused() {
    let charter = "charter: 1
id: c
events: {PAY: {data: {type: object, required: [n], properties: {n: {type: string}}}, unique: {key: event.n}}}
states: {a: {on: {PAY: {}}}}
";
    let site = Site::new("fork-refused", &[("c.yaml", charter.to_owned())]);
    site.run("run c.yaml --run r");
    site.run("fork r --at 0 --run dry");
    site.run("run c.yaml --run s");
    site.run("send dry PAY {\"n\":\"x\"}");
    site.run("send s PAY {\"n\":\"x\"}");
    let (code, out, err) = site.any("fork dry --at 1 --live --run f");
    assert!(code == 1 && err.contains("refused (taken): run `f`, record 1: run `s` has accepted `PAY`"), "{out}{err}");
    let (code, _, err) = site.any("fork dry --at 1 --live --run f --json");
    assert!(code == 1 && err.contains("\"code\":\"taken\""), "{err}");
    for (args, why) in [
        ("fork nobody --at 0", "run `nobody` not found"),
        ("fork r --at 7", "run `r` has no record 7; its last record is 0"),
        ("fork r --at 0 --run s", "run `s` already exists"),
    ] {
        let (code, _, err) = site.any(args);
        assert!(code == 2 && err.contains(why), "{args}: {err}");
    }
    site.run("send r charter.cancel --role operator");
    site.run("fork r --at 1 --live");
}

#[test]
fn a_live_fork_works_on_purpose() {
    let site = paid_twice("fork-live");
    site.run("fork r --at 1 --run f --live");
    let (_, out, err) = site.any("run --resume f");
    assert!(out.contains("f: active in open, 3 records"), "{out}{err}");
    assert_eq!(site.lines("paid"), 3);
    assert_eq!(site.records("f")[0]["forked_from"].get("dry"), None);
    assert!(!site.run("runs").contains("dry"));
    // A fork of a dry fork is dry as well, and its past is that of the dry fork.
    site.run("fork r --at 0 --run g");
    site.run("send g PAY {\"order\":\"d\"}");
    site.run("answer g/1/0 9");
    site.run("fork g --at 1 --run h");
    site.run("run --resume h");
    assert_eq!(site.records("h")[2]["event"]["data"]["output"], 9);
    assert_eq!(site.lines("paid"), 3);
    assert!(site.run("verify").contains("verified"));
}
