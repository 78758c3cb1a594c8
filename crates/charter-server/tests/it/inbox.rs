//! What waits for people.

use charter_scenario::timestamp;
use serde_json::{Value as Json, json};

use crate::site::{Client, Site};

fn requests(client: &Client<'_>, query: &str) -> Vec<Json> {
    let answer = client.get(&format!("/v1/inbox{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["requests"].as_array().unwrap().clone()
}

fn decision<'r>(request: &'r Json, event: &str) -> &'r Json {
    request["decisions"].as_array().unwrap().iter().find(|d| d["type"] == event).unwrap()
}

#[test]
fn an_approval_waits_with_its_content_and_leaves_when_it_is_decided() {
    let site = Site::new();
    let (ana, bob) = (site.person("ana", &["clerk", "boss"]), site.person("bob", &["boss"]));
    ana.start("payment", "p1");
    assert!(requests(&bob, "").is_empty(), "a draft waits for nobody");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 250}}));
    let waiting = requests(&bob, "");
    let [request] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!(
        (&request["kind"], &request["run"], &request["state"]),
        (&json!("approval"), &json!("p1"), &json!(["review"]))
    );
    assert_eq!((&request["since"]["by"]["id"], &request["since"]["type"]), (&json!("ana"), &json!("PROPOSE")));
    let approve = decision(request, "APPROVE");
    assert_eq!((&approve["value"], &approve["withheld"]), (&json!(250), &Json::Null));
    let digest = approve["demands"]["approves"]["digest"].clone();
    // Programs see it, too: nobody approves a digest unseen.
    let legal = bob.get("/v1/runs/p1/legal").json();
    let offer = |kind: &str| legal["events"].as_array().unwrap().iter().find(|e| e["type"] == kind).unwrap().clone();
    assert_eq!((&offer("APPROVE")["value"], offer("NOTE").get("value")), (&json!(250), None));
    assert_eq!(offer("APPROVE")["demands"]["approves"]["digest"], digest);

    // Four eyes: the proposer, who has the role too, is told why not.
    let own = requests(&ana, "?run=p1");
    assert_eq!(own[0]["id"], request["id"]);
    assert_eq!(decision(&own[0], "APPROVE")["withheld"], "not-by");
    assert_eq!(decision(&own[0], "NOTE")["withheld"], Json::Null);

    // A refused attempt and a note change nothing about the request.
    assert_eq!(ana.post("/v1/runs/p1/events", &json!({"type": "APPROVE", "data": {"digest": digest}})).status, 403);
    bob.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {}}));
    assert_eq!((&requests(&bob, "")[0]["id"], &requests(&bob, "")[0]["since"]["seq"]), (&request["id"], &json!(1)));

    assert_eq!(bob.post("/v1/runs/p1/events", &json!({"type": "APPROVE", "data": {"digest": digest}})).status, 200);
    assert!(requests(&bob, "").is_empty() && requests(&ana, "?run=p1").is_empty());
}

#[test]
fn another_amount_is_another_request() {
    let site = Site::new();
    let (ana, bob) = (site.person("ana", &["clerk"]), site.person("bob", &["boss"]));
    for (run, amount) in [("p1", 1), ("p2", 2)] {
        ana.start("payment", run);
        ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "PROPOSE", "data": {"amount": amount}}));
    }
    let all = requests(&bob, "");
    assert_eq!(all.len(), 2, "{all:?}");
    assert_ne!(
        decision(&all[0], "APPROVE")["demands"]["approves"],
        decision(&all[1], "APPROVE")["demands"]["approves"]
    );
    assert_eq!(requests(&bob, "?run=p2").len(), 1);
}

#[test]
fn a_request_says_what_its_run_is_about() {
    const QUESTION: &str = "
charter: 1
id: question
roles: {boss: {}}
events: {ANSWER: {by: boss}}
input: {type: object, properties: {text: {type: string}}}
context: {text: '= input.text'}
initial: open
states:
  open: {tags: [waiting], on: {ANSWER: closed}}
  closed: {type: final}
meta:
  page:
    - {label: Never, when: in('closed'), value: this is not so}
    - {label: Question, value: '= context.text'}
";
    let site = Site::new();
    let bob = site.person("bob", &["admin", "question/boss"]);
    assert_eq!(bob.post("/v1/charters", &json!({"source": QUESTION})).status, 201);
    let about = |run: &str, text: &str| {
        let start = json!({"charter": "question", "run": run, "input": {"text": text}});
        assert_eq!(bob.post("/v1/runs", &start).status, 201);
        requests(&bob, &format!("?run={run}"))[0]["about"].clone()
    };
    assert_eq!(about("q1", "Blue or green?"), json!({"label": "Question", "value": "Blue or green?"}));
    let long = about("q2", &"ä".repeat(5_000));
    assert_eq!(long["value"], format!("{}…", "ä".repeat(500)), "a long one is cut");
}

#[test]
fn a_dry_fork_waits_for_nobody() {
    let site = Site::new();
    let (ana, bob) = (site.person("ana", &["clerk"]), site.person("bob", &["boss", "operator"]));
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    assert_eq!(bob.post("/v1/runs/p1/fork", &json!({"at": 1, "run": "dry"})).status, 201);
    assert_eq!(bob.post("/v1/runs/p1/fork", &json!({"at": 1, "run": "live", "live": true})).status, 201);
    let waiting = requests(&bob, "");
    let runs: Vec<_> = waiting.iter().map(|request| &request["run"]).collect();
    assert_eq!(runs, [&json!("live"), &json!("p1")]);
    assert!(requests(&bob, "?run=dry").is_empty());
}

#[test]
fn who_has_no_part_in_a_run_has_nothing_in_the_inbox() {
    let site = Site::new();
    let (ana, bot) = (site.person("ana", &["clerk"]), site.agent("bot", &["boss"]));
    let (reader, other) = (site.person("rita", &["reader"]), site.person("olga", &["other/boss"]));
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    assert!(requests(&reader, "").is_empty() && requests(&other, "").is_empty());
    assert_eq!(other.get("/v1/inbox?run=p1").status, 404, "it does not exist for her");
    assert_eq!(other.get("/v1/inbox?runs=p1").status, 400);
    let of_bot = requests(&bot, "");
    assert_eq!(decision(&of_bot[0], "APPROVE")["withheld"], "persons-only");
    assert_eq!(site.get("/v1/inbox", &[]).status, 401);
}

#[test]
fn the_list_of_runs_tells_their_states_if_they_are_wanted() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let row = |query: &str| ana.get(&format!("/v1/runs{query}")).json()["runs"][0].clone();
    assert_eq!((&row("?state=true")["state"], &row("?state=true")["stuck"]), (&json!(["draft"]), &json!(false)));
    assert_eq!((row("?state=true").get("next_due"), row("").get("next_due")), (Some(&Json::Null), None));
    assert_eq!(row("")["state"], Json::Null);
}

#[test]
fn a_charter_is_tried_without_a_run() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    let by = json!({"id": "eve", "roles": ["clerk", "boss"]});
    let propose = json!({"type": "PROPOSE", "data": {"amount": 7}, "by": by, "at": "2026-01-01T00:00:00Z"});
    let step =
        |events: Json| ana.post("/v1/step", &json!({"source": crate::site::PAYMENT, "events": events, "now": "eve"}));
    let types = |now: &Json| now["events"].as_array().unwrap().iter().map(|e| e["type"].clone()).collect::<Vec<_>>();
    let first = step(json!([])).json()["now"].clone();
    assert_eq!((&first["state"], types(&first)), (&json!(["draft"]), vec![json!("PROPOSE")]));
    assert!(first["chart"].as_str().unwrap().starts_with("<svg"));
    let second = step(json!([propose])).json()["now"].clone();
    assert_eq!((&second["state"], types(&second)), (&json!(["review"]), vec![json!("NOTE")]), "eve proposed it");
    let drawn = ana.get("/v1/charters/payment/graph.svg");
    assert_eq!((drawn.status, drawn.header("content-type")), (200, Some("image/svg+xml")), "{drawn:?}");
    assert_eq!(ana.get("/v1/charters/none/graph.svg").status, 404);
}

#[test]
fn marks_are_seen_by_all_with_the_request_and_decide_nothing() {
    let store = std::sync::Arc::new(charter_journal::MemoryStore::new());
    let site = Site::with(store.clone(), |_| {});
    let (ana, bob) = (site.person("ana", &["clerk"]), site.person("bob", &["boss"]));
    let (carol, eve) = (site.person("carol", &["boss"]), site.person("eve", &[]));
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 250}}));
    let id = requests(&bob, "")[0]["id"].clone();
    let mark = |who: &Client<'_>, mut rest: Json| {
        (rest["run"], rest["request"]) = (json!("p1"), id.clone());
        who.post("/v1/inbox", &rest)
    };
    assert_eq!(requests(&bob, "")[0]["marks"], json!({"seen": [], "later": null, "assigned": null}));
    assert_eq!(mark(&carol, json!({"mark": "seen"})).status, 200);
    let first = requests(&bob, "")[0]["marks"]["seen"].clone();
    assert_eq!(first[0]["id"], "carol");
    mark(&carol, json!({"mark": "seen"}));
    assert_eq!(requests(&bob, "")[0]["marks"]["seen"], first, "the first time counts");

    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let until = timestamp::text(charter_kernel::Timestamp(i64::try_from(now).unwrap() + 60_000));
    let put_off = mark(&bob, json!({"mark": "later", "until": until}));
    assert_eq!((put_off.status, &put_off.json()["marks"]["later"]), (200, &json!(until)), "{put_off:?}");
    assert_eq!(requests(&bob, "")[0]["marks"]["later"], until);
    assert_eq!(requests(&carol, "")[0]["marks"]["later"], Json::Null, "another person's");
    let assigned = mark(&bob, json!({"mark": "assign", "to": "carol"}));
    assert_eq!(assigned.json()["marks"]["assigned"]["by"], "bob");
    assert_eq!(requests(&carol, "")[0]["marks"]["assigned"]["to"], "carol");

    for wrong in [
        json!({"mark": "later"}),
        json!({"mark": "later", "until": "yesterday"}),
        json!({"mark": "later", "until": "2020-01-01T00:00:00Z"}),
        json!({"mark": "later", "until": "2099-01-01T00:00:00Z"}),
        json!({"mark": "assign"}),
        json!({"mark": "seen", "to": "carol"}),
    ] {
        assert_eq!(mark(&bob, wrong.clone()).status, 400, "{wrong}");
    }
    assert_eq!(mark(&bob, json!({"mark": "assign", "to": "nobody"})).code(), "unknown-person");
    // Who does not get the request cannot mark it, and learns nothing about the run.
    assert_eq!(mark(&eve, json!({"mark": "seen"})).status, 404);
    assert_eq!(
        bob.post("/v1/inbox", &json!({"run": "p1", "request": "p1/x", "mark": "seen"})).code(),
        "unknown-request"
    );

    // A restart keeps them; the run has no record of them.
    assert_eq!(bob.get("/v1/runs/p1").json()["seq"], 1);
    let bearer = bob.bearer.clone();
    site.close();
    let site = Site::with(store, |_| {});
    let again = site.get("/v1/inbox", &[("Authorization", &bearer)]).json();
    assert_eq!(again["requests"][0]["marks"]["assigned"]["to"], "carol");
    assert_eq!(again["requests"][0]["marks"]["seen"], first);
}

#[test]
fn what_expired_while_nobody_looked_is_told_to_those_who_could_have_decided() {
    const SHORT: &str = "
charter: 1
id: short
roles: {clerk: {}, boss: {}}
events:
  ASK: {by: clerk}
  APPROVE: {by: boss, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
context: {amount: 7, asker: null}
initial: draft
states:
  draft: {on: {ASK: {target: review, actions: {assign: {asker: '= by.id'}}}}}
  review:
    on: {APPROVE: {target: paid, approves: {value: context.amount, not_by: context.asker}}}
    after: {100ms: expired}
  paid: {type: final}
  expired: {type: final}
";
    let site = Site::offering(&[SHORT], std::sync::Arc::new(charter_journal::MemoryStore::default()), |_| {});
    let (ana, bob, eve) =
        (site.person("ana", &["short/clerk"]), site.person("bob", &["short/boss"]), site.person("eve", &["omen/boss"]));
    for run in ["s1", "s2"] {
        ana.start("short", run);
        ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "ASK"}));
        if run == "s1" {
            let [request] = requests(&bob, "?run=s1").try_into().unwrap();
            let seen = json!({"run": "s1", "request": request["id"], "mark": "seen"});
            assert_eq!(bob.post("/v1/inbox", &seen).status, 200);
        }
        while bob.get(&format!("/v1/runs/{run}")).json()["status"] == "active" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let missed = requests(&bob, "?expired_since=2020-01-01T00:00:00Z");
    let told: Vec<_> = missed
        .iter()
        .map(|r| {
            (r["run"].as_str().unwrap(), r["expired"]["seq"].as_u64(), r["marks"]["seen"].as_array().unwrap().len())
        })
        .collect();
    assert_eq!(told, [("s2", Some(2), 0), ("s1", Some(2), 1)], "the last first; seen by one, by none");
    assert_eq!(decision(&missed[0], "APPROVE")["value"], 7);
    assert_eq!(missed[0]["since"]["by"]["id"], "ana");
    let after = missed[0]["expired"]["at"].as_str().unwrap().to_owned();
    let since = requests(&bob, &format!("?expired_since={after}"));
    assert_eq!(since.iter().map(|r| &r["run"]).collect::<Vec<_>>(), ["s2"]);
    assert!(requests(&eve, "?expired_since=2020-01-01T00:00:00Z").is_empty(), "runs of others");
    assert!(requests(&bob, "").is_empty(), "what expired does not wait");
    for wrong in ["?expired_since=yesterday", "?expired_since=2020-01-01T00:00:00Z&run=s1"] {
        assert_eq!(bob.get(&format!("/v1/inbox{wrong}")).status, 400, "{wrong}");
    }
}
