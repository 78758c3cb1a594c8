//! Events that agents send: accepted ones, and refusals, which are recorded.

use charter_journal::Verdict;
use charter_kernel::PrincipalKind;
use charter_mcp::{ToolSet, Version};
use serde_json::json;

use crate::common::{Place, alone, person, request};

#[tokio::test]
async fn an_event_is_sent_by_its_tool_and_by_send() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let done = agent.call("PROPOSE", json!({"amount": 5})).await;
    let run = &done["structuredContent"];
    assert!(done.get("isError").is_none(), "{done}");
    assert_eq!((&run["accepted"], &run["record"], &run["seq"]), (&json!(true), &json!(1), &json!(1)));
    assert_eq!(run["state"], json!(["review"]));
    assert!(
        run["message"].as_str().unwrap().contains("waits for a person with the role boss to decide `APPROVE`"),
        "{run}"
    );
    let text = done["content"][1]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), *run, "the same as text");
    let done = agent.call("send", json!({"type": "note.it", "data": {"x": 1}, "expected_seq": 1})).await;
    assert_eq!(done["structuredContent"]["record"], 2, "{done}");
    let records = place.records().await;
    assert_eq!(records[1].by.id, "agent:a");
    assert_eq!(records[1].by.kind(), PrincipalKind::Agent);
}

#[tokio::test]
async fn a_refusal_is_recorded_and_says_what_to_do() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk", "boss"]).await;
    agent.hello(Version::V2025June).await;
    let cases = [
        (json!({"type": "note.it"}), "unhandled", "Legal for you now: PROPOSE"),
        (json!({"type": "PROPOSE", "data": {"amount": 0}}), "schema", "Correct the data"),
        (json!({"type": "NOTHING"}), "unknown-event", "Legal for you now: PROPOSE"),
        (json!({"type": "APPROVE", "data": {"digest": 7}}), "schema", "Correct the data"),
    ];
    for (seq, (arguments, code, says)) in (1u64..).zip(cases) {
        let done = agent.call("send", arguments).await;
        let run = &done["structuredContent"];
        assert_eq!(done["isError"], true, "{done}");
        assert_eq!((&run["accepted"], &run["record"]), (&json!(false), &json!(seq)));
        assert_eq!(run["refusal"]["code"], code, "{done}");
        assert_eq!(run["legal"][0]["type"], "PROPOSE", "the same shape");
        assert!(done["content"][0]["text"].as_str().unwrap().contains(says), "{done}");
        let record = place.records().await.pop().unwrap();
        assert_eq!((record.seq, record.verdict), (seq, Verdict::Refused));
    }
}

#[tokio::test]
async fn what_people_decide_is_not_a_tool_and_is_refused() {
    let place = Place::new().await;
    place.person_sends("PROPOSE", json!({"amount": 5})).await;
    let mut agent = place.agent(&["boss", "clerk"]).await;
    agent.hello(Version::V2025November).await;
    let tools = agent.tools().await;
    assert!(!tools.contains(&"APPROVE".to_owned()) && tools.contains(&"TAG".to_owned()), "{tools:?}");
    let legal = agent.call("legal", json!({})).await["structuredContent"].clone();
    assert!(!legal["legal"].to_string().contains("APPROVE"), "{legal}");
    assert_eq!(legal["waiting"][0]["event"], "APPROVE");
    let digest = legal["waiting"][0]["digest"].clone();
    // By the tool that it would be, and by `send`.
    for (tool, arguments) in
        [("APPROVE", json!({"digest": digest})), ("send", json!({"type": "APPROVE", "data": {"digest": digest}}))]
    {
        let done = agent.call(tool, arguments).await;
        assert_eq!(done["structuredContent"]["refusal"]["code"], "authority", "{done}");
        assert!(done["content"][0]["text"].as_str().unwrap().contains("Only a person may decide this"), "{done}");
    }
    assert_eq!(place.records().await.iter().filter(|r| r.verdict == Verdict::Refused).count(), 2);
}

#[tokio::test]
async fn a_person_counts_as_an_agent_here() {
    let place = Place::new().await;
    let endpoint = place.endpoint(person("ana", &["clerk", "boss"]), ToolSet::Both).await;
    place.person_sends("PROPOSE", json!({"amount": 5})).await;
    let ask = request(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": alone(json!({"name": "send", "arguments": {"type": "APPROVE", "data": {"digest": "x"}}})),
    }));
    let done = endpoint.answer(Version::V2026, &ask).await.unwrap();
    assert_eq!(done["structuredContent"]["refusal"]["code"], "authority", "{done}");
    let record = place.records().await.pop().unwrap();
    assert_eq!((record.by.id.as_str(), record.by.kind()), ("ana", PrincipalKind::Agent));
}

#[tokio::test]
async fn the_same_id_is_applied_once() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let event = json!({"type": "PROPOSE", "data": {"amount": 5}, "id": "once"});
    let first = agent.call("send", event.clone()).await["structuredContent"].clone();
    let again = agent.call("send", event).await["structuredContent"].clone();
    assert_eq!((&first["repeated"], &again["repeated"]), (&json!(false), &json!(true)));
    assert_eq!(first["record"], again["record"]);
    let other = agent.call("send", json!({"type": "PROPOSE", "data": {"amount": 6}, "id": "once"})).await;
    assert_eq!(other["isError"], true);
    assert!(other["content"][0]["text"].as_str().unwrap().contains("was not recorded"), "{other}");
    assert_eq!(place.records().await.len(), 2);
}

#[tokio::test]
async fn two_agents_in_one_run_see_each_other() {
    let place = Place::new().await;
    let mut one = place.agent_with("agent:one", &["clerk"], ToolSet::Both).await;
    let mut two = place.agent_with("agent:two", &["clerk"], ToolSet::Both).await;
    one.hello(Version::V2025June).await;
    let seen =
        two.ask_alone("tools/call", json!({"name": "status"})).await["result"]["structuredContent"]["seq"].clone();
    one.call("PROPOSE", json!({"amount": 5})).await;
    let late = json!({"name": "send", "arguments": {"type": "PROPOSE", "data": {"amount": 9}, "expected_seq": seen}});
    let late = two.ask_alone("tools/call", late).await["result"].clone();
    assert_eq!(late["structuredContent"]["refusal"]["code"], "stale", "{late}");
    assert_eq!(late["structuredContent"]["state"], json!(["review"]), "it is told where the run is now");
    let ids: Vec<String> = place.records().await.iter().map(|r| r.by.id.clone()).collect();
    assert_eq!(ids, ["ana", "agent:one", "agent:two"]);
}

#[tokio::test]
async fn what_hooks_say_is_not_said_by_the_agent() {
    let place = Place::with(
        "
charter: 1
id: hooked
roles: {agent: {}}
events: {tool.call: {by: agent}, tool.result: {by: agent}, PLAN: {by: agent}}
initial: one
states: {one: {on: {tool.call: {}, tool.result: {}, PLAN: {}}}}
",
    )
    .await;
    let mut agent = place.agent(&["agent"]).await;
    agent.hello(Version::V2025November).await;
    let legal = agent.call("legal", json!({})).await;
    let events = legal["structuredContent"]["legal"].as_array().unwrap();
    assert!(events.len() == 1 && events[0]["type"] == "PLAN", "{legal}");
    let done = agent.call("send", json!({"type": "tool.result", "data": {"ok": true}})).await;
    assert_eq!((&done["isError"], &done["structuredContent"]["accepted"]), (&json!(true), &json!(false)), "{done}");
    assert!(done["structuredContent"]["message"].as_str().unwrap().contains("hook of your client"), "{done}");
    assert_eq!(place.records().await.len(), 1);
}
