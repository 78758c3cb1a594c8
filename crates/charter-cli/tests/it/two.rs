//! Unique keys in two processes that use one journal file.

use crate::support::processes::Site;

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
