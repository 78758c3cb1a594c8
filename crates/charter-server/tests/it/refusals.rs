//! Refused events are records, too; and forks, which begin at a record.

use serde_json::json;

use crate::site::Site;

#[test]
fn a_run_is_described_with_its_last_record_also_if_that_was_refused() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let refused = ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": "much"}}));
    assert_eq!(refused.status, 422, "{refused:?}");
    let (run, listed) = (ana.get("/v1/runs/p1"), ana.get("/v1/runs").json());
    let records = ana.get("/v1/runs/p1/records").json();
    let hash = |n: usize| records["records"][n]["hash"].clone();
    assert_eq!((&run.json()["seq"], &run.json()["hash"]), (&json!(1), &hash(1)));
    assert_eq!((&listed["runs"][0]["seq"], &listed["runs"][0]["hash"]), (&json!(1), &hash(1)));
    assert_eq!(run.header("etag"), Some("\"1\""));
    let at = |n: usize| ana.get(&format!("/v1/runs/p1/at/{n}")).json();
    for n in [0, 1] {
        assert_eq!((&at(n)["seq"], &at(n)["hash"]), (&json!(n), &hash(n)));
    }
    // What was refused has changed nothing, so who has seen record 0 is not behind.
    let propose = json!({"type": "PROPOSE", "data": {"amount": 1}});
    let seen = ana.post_with("/v1/runs/p1/events", &propose, &[("If-Match", "\"0\"")]);
    assert_eq!(seen.status, 200, "{seen:?}");
    let behind = ana.post_with("/v1/runs/p1/events", &json!({"type": "NOTE"}), &[("If-Match", "\"1\"")]);
    assert_eq!((behind.status, behind.code().as_str()), (409, "stale"), "{behind:?}");
}

#[test]
fn a_fork_is_a_start_and_tells_nothing_about_other_runs() {
    let site = Site::new();
    let (ana, one) = (site.person("ana", &["clerk"]), site.person("one", &["payment/p1/clerk"]));
    for run in ["p1", "p2"] {
        assert_eq!(ana.start("payment", run).status, 201);
    }
    assert_eq!(one.get("/v1/runs/p2").status, 404);
    let fork = |by: &crate::site::Client<'_>, new: &str| by.post("/v1/runs/p1/fork", &json!({"at": 0, "run": new}));
    for new in ["p2", "host", "px"] {
        let refused = fork(&one, new);
        assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{refused:?}");
    }
    for new in ["p1", "p2", "host"] {
        let taken = fork(&ana, new);
        assert_eq!((taken.status, taken.code().as_str()), (409, "run-exists"), "{taken:?}");
        assert!(taken.json()["detail"].as_str().unwrap().contains("choose another id"), "{taken:?}");
    }
    assert_eq!(fork(&ana, "px").status, 201);
}
