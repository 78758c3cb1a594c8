//! Two at once: processes that use one journal file, commands in one process.

use std::io::Write as _;

use crate::support::processes::{Site, on_terminal};
use crate::support::{Scratch, charter};

const SHOP: &str = "
charter: 1
id: shop
events: {PAY: {data: {type: object, required: [order]}, unique: {key: event.order}}}
states: {open: {on: {PAY: {}}}}
";

#[test]
fn two_processes_do_not_pay_one_order() {
    let site = Site::new("two-processes", &[("shop.yaml", SHOP.into())]);
    for run in ["a", "b"] {
        site.run(&format!("run shop.yaml --run {run}"));
    }
    for order in 1..4 {
        let data = format!(r#"{{"order":{order}}}"#);
        let senders = ["a", "b"].map(|run| site.start(&format!("send {run} PAY {data}")));
        let mut said: Vec<(i32, String)> =
            senders.map(|sender| sender.end()).into_iter().map(|(code, out, err)| (code, out + &err)).collect();
        said.sort();
        assert_eq!((said[0].0, said[1].0), (0, 1), "{said:?}");
        assert!(said[1].1.contains("unique across runs\nhelp: `charter show "), "{said:?}");
    }
    let paid = |run: &str| {
        site.records(run).iter().filter(|r| r["verdict"] == "accepted" && r["event"]["type"] == "PAY").count()
    };
    assert_eq!(paid("a") + paid("b"), 3);
    assert!(site.run("verify").contains("verified"));
}

#[test]
fn a_refusal_does_not_point_to_a_deleted_run_and_is_told_once() {
    let shop = SHOP.replace("[order]}", "[order], properties: {order: {type: integer}}}");
    let shop = shop
        .replace("{PAY: {}}}", "{PAY: {}, END: over}}, over: {type: final}")
        .replace("events: {", "events: {END: {}, ");
    let site = Site::new("deleted-holder", &[("shop.yaml", shop)]);
    for run in ["a", "b"] {
        site.run(&format!("run shop.yaml --run {run}"));
    }
    site.run("send a PAY {\"order\":1}");
    site.run("send a END");
    site.run("delete a --yes");
    let (code, _, err) = site.any("send b PAY {\"order\":1}");
    assert!(code == 1 && err.contains("help: run `a` was deleted on ") && err.contains("keys stay taken"), "{err}");
    assert!(!err.contains("charter show a"), "{err}");
    let told = site.run("explain b 1");
    assert!(told.contains("run `a` was deleted on ") && !told.contains("charter show a"), "{told}");
    let mut prompt = on_terminal(&site, "run --resume b");
    let mut typed = prompt.0.as_mut().unwrap().stdin.take().unwrap();
    typed.write_all(b"PAY\n1\nq\n").unwrap();
    let (_, out, _) = prompt.end();
    assert_eq!(out.matches("refused (taken)").count(), 1, "{out}");
}

/// A command that ends stops what it has started, and nothing else in the process.
#[cfg(target_os = "linux")]
#[test]
fn a_command_does_not_stop_what_others_in_its_process_have_started() {
    let mut other = std::process::Command::new("sleep");
    other.arg("60");
    let tree = charter_process::Tree::new();
    tree.prepare(&mut other);
    let mut other = tree.start(|| other.spawn(), |child| Some(child.id())).unwrap();
    let scratch = Scratch::new("beside");
    scratch.file("shop.yaml", SHOP);
    let (shop, db) = (scratch.0.join("shop.yaml"), scratch.0.join("j.db"));
    let ran = charter(&["run", shop.to_str().unwrap(), "--run", "a", "--db", db.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(other.try_wait().unwrap().is_none(), "it was stopped");
    tree.kill();
    assert!(!other.wait().unwrap().success());
}
