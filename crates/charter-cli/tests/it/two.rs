//! Two at once: processes that use one journal file, commands in one process.

use crate::support::processes::Site;
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
        assert!(said[1].1.contains("unique across runs; see `charter show "), "{said:?}");
    }
    let paid = |run: &str| {
        site.records(run).iter().filter(|r| r["verdict"] == "accepted" && r["event"]["type"] == "PAY").count()
    };
    assert_eq!(paid("a") + paid("b"), 3);
    assert!(site.run("verify").contains("verified"));
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
