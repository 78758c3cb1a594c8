//! The journal as a whole, over HTTP: its head, and queries in SQL.
#![cfg(all(unix, feature = "serve"))]

use serde_json::{Value as Json, json};

use crate::agents_served::http;
use crate::serve::Served;
use crate::support::{Scratch, charter};

struct Site {
    folder: Scratch,
    served: Served,
    admin: String,
    reader: String,
}

impl Site {
    fn new(name: &str) -> Site {
        let folder = Scratch::new(name);
        let db = folder.0.join("charter.db").display().to_string();
        let key = |args: &[&str]| {
            let all: Vec<&str> = ["key", "add"].iter().chain(args).copied().chain(["--db", &db]).collect();
            charter(&all).out.trim().to_owned()
        };
        let (admin, reader) = (key(&["ana", "--role", "admin"]), key(&["rea", "--role", "reader"]));
        let served = Served::start(folder.0.as_ref());
        Site { folder, served, admin, reader }
    }

    fn sql(&self, key: &str, query: &str) -> (u16, Json) {
        http(&self.served, "POST", "/v1/sql", Some(key), Some(&json!({"query": query})))
    }
}

#[test]
fn administrators_query_the_journal_and_nobody_else() {
    let site = Site::new("sql-served");
    let (status, rows) = site.sql(&site.admin, "SELECT run, seq AS n, 1.5 AS half, NULL AS n FROM runs");
    assert_eq!(status, 200, "{rows}");
    assert_eq!(rows["columns"], json!(["run", "n", "half", "n"]), "in order, and twice");
    assert_eq!((&rows["rows"][0][0], &rows["rows"][0][2], &rows["more"]), (&json!("host"), &json!(1.5), &json!(false)));
    assert_eq!(
        site.sql(&site.admin, "SELECT run FROM runs WHERE 0").1,
        json!({"columns": ["run"], "rows": [], "more": false})
    );
    for (query, says) in [
        ("DELETE FROM runs", "read-only"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT what FROM runs", "no such column: what"),
        ("", "empty"),
        // The secrets of webhooks are there.
        ("SELECT * FROM host_state", "the host keeps for itself"),
        ("SELECT count(*) FROM main.HOST_STATE", "the host keeps for itself"),
        ("WITH x AS (SELECT value FROM host_state) SELECT * FROM x", "the host keeps for itself"),
        ("SELECT (SELECT max(value) FROM host_state)", "the host keeps for itself"),
        ("SELECT data FROM sqlite_dbpage", "no such table"),
        ("--help", "empty"),
        ("ATTACH '/tmp/x' AS x", "read-only"),
    ] {
        let (status, problem) = site.sql(&site.admin, query);
        assert_eq!((status, &problem["code"]), (422, &json!("query")), "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{query}: {problem}");
    }
    let (status, problem) = site.sql(&site.reader, "SELECT 1");
    assert_eq!(status, 403, "{problem}");
    let long = format!("SELECT '{}'", "x".repeat(70_000));
    assert_eq!(site.sql(&site.admin, &long).0, 413);
}

#[test]
fn an_answer_has_a_limited_size_and_a_query_limited_time() {
    let site = Site::new("sql-large");
    let count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x";
    let (status, many) = site.sql(&site.admin, &format!("{count} FROM c"));
    assert_eq!((status, many["rows"].as_array().unwrap().len(), &many["more"]), (200, 1_000, &json!(true)));
    let (status, wide) = site.sql(&site.admin, &format!("{count}, printf('%.*c', 300000, 'x') FROM c"));
    assert_eq!((status, wide["rows"].as_array().unwrap().len(), &wide["more"]), (200, 6, &json!(true)));
    let (status, none) = site.sql(&site.admin, "SELECT printf('%.*c', 3000000, 'x') AS wide");
    assert_eq!((status, none), (200, json!({"columns": ["wide"], "rows": [], "more": true})));
    // The process of the query is not the server: an ordinary answer follows.
    let (status, problem) = site.sql(&site.admin, &format!("{count} FROM c WHERE x < 0"));
    assert!(status == 422 && problem["detail"].as_str().unwrap().contains("after 10s"), "{problem}");
    assert_eq!(site.sql(&site.admin, "SELECT 1 AS one").1["rows"], json!([[1]]));
}

#[test]
fn a_query_that_does_not_leave_a_function_is_stopped_and_others_are_refused_meanwhile() {
    let site = Site::new("sql-stuck-served");
    let stuck = "SELECT instr(zeroblob(50000000), zeroblob(25000000) || x'01')";
    // The short queries take turns, too.
    let ask = || (0..1_000).map(|_| site.sql(&site.admin, stuck)).find(|(status, _)| *status != 429).unwrap();
    std::thread::scope(|threads| {
        let both: Vec<_> = (0..2).map(|_| threads.spawn(ask)).collect();
        let busy = (0..1_000).map(|_| site.sql(&site.admin, "SELECT 1 AS one")).find(|(status, _)| *status != 200);
        assert!(matches!(&busy, Some((429, problem)) if problem["code"] == "too-many"), "{busy:?}");
        for one in both {
            let (status, problem) = one.join().unwrap();
            assert_eq!((status, &problem["code"]), (422, &json!("query")), "{problem}");
            assert_eq!(problem["detail"], json!("the query was stopped after 10s"));
        }
    });
    assert_eq!(site.sql(&site.admin, "SELECT 1 AS one").1["rows"], json!([[1]]));
}

#[test]
fn the_head_is_that_of_the_file() {
    let site = Site::new("head-served");
    let (status, journal) = http(&site.served, "GET", "/v1/journal", Some(&site.reader), None);
    assert_eq!((status, &journal["sql"]), (200, &json!(false)), "{journal}");
    assert_eq!(http(&site.served, "GET", "/v1/journal", Some(&site.admin), None).1["sql"], json!(true));
    assert!(journal["bytes"].as_u64().unwrap() > 4_096);
    let db = site.folder.0.join("charter.db").display().to_string();
    let verified: Json = serde_json::from_str(&charter(&["--json", "verify", &db]).out).unwrap();
    assert_eq!((&verified["verified"], &verified["journal"]), (&json!(true), &journal["head"]));
    let role = charter(&["key", "add", "cy", "--role", "fred/reviewer", "--db", &db]);
    let (status, problem) = http(&site.served, "GET", "/v1/journal", Some(role.out.trim()), None);
    assert_eq!(status, 403, "{problem}");
}
