//! The list of tools, and those that change nothing.

use charter_mcp::{ToolSet, Version};
use serde_json::{Value as Json, json};

use crate::common::Place;

#[tokio::test]
async fn the_list_follows_what_is_legal() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    assert_eq!(agent.tools().await, ["send", "legal", "status", "why_not", "PROPOSE"]);
    agent.call("PROPOSE", json!({"amount": 1})).await;
    assert_eq!(agent.tools().await, ["send", "legal", "status", "why_not", "note_it", "TAG"]);
    let list = agent.ask("tools/list", json!({})).await["result"]["tools"].clone();
    for tool in list.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
    }
    let tag = list.as_array().unwrap().iter().find(|tool| tool["name"] == "TAG").unwrap();
    assert_eq!(tag["inputSchema"]["properties"]["data"]["maxLength"], 5);
    assert_eq!(agent.call("TAG", json!({"data": "abc"})).await["structuredContent"]["accepted"], true);
    let wrong = agent.call("TAG", json!({"text": "abc"})).await;
    assert!(wrong["isError"] == true && wrong["structuredContent"].get("record").is_none(), "{wrong}");
}

#[tokio::test]
async fn an_agent_chooses_its_tools() {
    let place = Place::new().await;
    let mut few = place.agent_with("agent:a", &["clerk"], ToolSet::Static).await;
    let hello = few.hello(Version::V2025November).await;
    assert_eq!(hello["capabilities"]["tools"]["listChanged"], false);
    assert_eq!(few.tools().await, ["send", "legal", "status", "why_not"]);
    let unknown = few.ask("tools/call", json!({"name": "PROPOSE", "arguments": {"amount": 1}})).await;
    assert_eq!(unknown["error"]["code"], -32_602, "{unknown}");
    let mut events = place.agent_with("agent:b", &["clerk"], ToolSet::Events).await;
    events.hello(Version::V2025November).await;
    assert_eq!(events.tools().await, ["PROPOSE"]);
    assert_eq!(events.ask("tools/call", json!({"name": "send"})).await["error"]["code"], -32_602);
    assert_eq!(place.records().await.len(), 1, "nothing was sent");
}

#[tokio::test]
async fn many_events_come_in_pages() {
    let mut text = "charter: 1\nid: many\ninitial: a\nevents:\n".to_owned();
    let mut on = String::new();
    for n in 0..250 {
        text.push_str(&format!("  E{n}: {{description: {}}}\n", "long ".repeat(100)));
        on.push_str(&format!("E{n}: {{}}, "));
    }
    text.push_str(&format!("states: {{a: {{on: {{{on}}}}}}}\n"));
    let place = Place::with(&text).await;
    let mut agent = place.agent(&[]).await;
    agent.hello(Version::V2025November).await;
    let (mut all, mut cursor, mut pages): (Vec<String>, Json, u32) = (Vec::new(), Json::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = agent.ask("tools/list", params).await["result"].clone();
        all.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        assert!(page.to_string().len() < 1 << 20);
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!((all.len(), all[4].as_str(), all[253].as_str()), (254, "E0", "E249"));
    assert!(pages >= 3, "{pages}");
    for wrong in [json!("x"), json!(7), json!("-1"), json!(null)] {
        assert_eq!(agent.ask("tools/list", json!({"cursor": wrong})).await["error"]["code"], -32_602, "{wrong}");
    }
    let status = agent.call("status", json!({})).await;
    assert_eq!(status["structuredContent"]["legal"].as_array().unwrap().len(), 200);
    assert_eq!(status["structuredContent"]["more_legal"], 50);
    assert!(status["content"][0]["text"].as_str().unwrap().len() < 1_000, "a sentence stays one");
}

#[tokio::test]
async fn reading_tools_record_nothing() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let legal = agent.call("legal", json!({})).await["structuredContent"].clone();
    assert_eq!(legal["legal"][0]["data"]["required"], json!(["amount"]), "with the schema");
    let status = agent.call("status", json!({})).await["structuredContent"].clone();
    assert_eq!(status["details"]["actors"][0]["context"]["amount"], 0, "{status}");
    let no = agent.call("why_not", json!({"type": "TAG"})).await["structuredContent"].clone();
    assert_eq!((&no["would_be_accepted"], &no["refusal"]["code"]), (&json!(false), &json!("unhandled")), "{no}");
    let no = agent.call("why_not", json!({"type": "APPROVE"})).await["structuredContent"].clone();
    assert_eq!(no["refusal"]["code"], "authority", "{no}");
    let no = agent.call("why_not", json!({"type": "NOPE"})).await["structuredContent"].clone();
    assert_eq!(no["refusal"]["code"], "unknown-event", "{no}");
    let no =
        agent.call("why_not", json!({"type": "PROPOSE", "data": {"amount": 0}})).await["structuredContent"].clone();
    assert_eq!(no["refusal"]["code"], "schema", "{no}");
    let yes =
        agent.call("why_not", json!({"type": "PROPOSE", "data": {"amount": 1}})).await["structuredContent"].clone();
    assert_eq!(yes["would_be_accepted"], true, "{yes}");
    assert_eq!(place.records().await.len(), 1);
}

#[tokio::test]
async fn wrong_arguments_are_results_that_a_model_can_read() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let cases = [
        ("send", json!({}), "`type` is missing"),
        ("send", json!({"type": 7}), "`type` must be text"),
        ("send", json!({"type": "PROPOSE", "expected_seq": -1}), "whole number"),
        ("send", json!({"type": "PROPOSE", "by": "boss"}), "has no argument `by`"),
        ("status", json!({"run": "other"}), "has no argument `run`"),
        ("why_not", json!({"type": null}), "`type` is missing"),
    ];
    for (tool, arguments, says) in cases {
        let done = agent.call(tool, arguments).await;
        assert_eq!(done["isError"], true, "{done}");
        assert!(done["content"][0]["text"].as_str().unwrap().contains(says), "{done}");
        assert_eq!(done["structuredContent"]["run"], "r", "the same shape");
    }
    let wrong = agent.ask("tools/call", json!({"name": "send", "arguments": [1]})).await;
    assert_eq!(wrong["error"]["code"], -32_602);
    assert_eq!(place.records().await.len(), 1);
}
