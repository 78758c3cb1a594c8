//! Resources and prompts.

use charter_mcp::Version;
use serde_json::{Value as Json, json};

use crate::common::{Agent, Place};

async fn read(agent: &mut Agent, uri: &str) -> Json {
    let answer = agent.ask("resources/read", json!({"uri": uri})).await;
    let contents = &answer["result"]["contents"];
    assert_eq!(contents[0]["uri"], uri, "{answer}");
    serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn the_charter_the_run_and_its_records_are_resources() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let list = agent.ask("resources/list", json!({})).await["result"]["resources"].clone();
    let uris: Vec<&str> = list.as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["charter://runs/r/charter", "charter://runs/r", "charter://runs/r/records"]);
    assert_eq!(read(&mut agent, uris[0]).await["id"], "payment");
    agent.call("PROPOSE", json!({"amount": 7})).await;
    agent.call("send", json!({"type": "PROPOSE", "data": {"amount": 8}})).await;
    assert_eq!(read(&mut agent, uris[1]).await["details"]["actors"][0]["context"]["amount"], 7);
    let records = read(&mut agent, uris[2]).await;
    assert_eq!(records.as_array().unwrap().len(), 3);
    assert_eq!(records[2]["verdict"], "refused");
    assert_eq!(read(&mut agent, "charter://runs/r/records/1").await["event"]["data"]["amount"], 7);
    let templates = agent.ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "charter://runs/r/records/{seq}");
}

#[tokio::test]
async fn other_addresses_are_unknown() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    for uri in [
        "charter://runs/host",
        "charter://runs/rr",
        "charter://runs/r/",
        "charter://runs/r/records/3",
        "charter://runs/r/records/+1",
        "charter://runs/r/records/-1",
        "charter://runs/r/records/1/2",
        "file:///etc/passwd",
        "",
    ] {
        let error = agent.ask("resources/read", json!({"uri": uri})).await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32_002), &json!(uri)));
        let error = agent.ask_alone("resources/read", json!({"uri": uri})).await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32_602), &json!(uri)));
    }
}

#[tokio::test]
async fn the_last_records_fit_into_an_answer() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    agent.call("PROPOSE", json!({"amount": 7})).await;
    for n in 0..30 {
        agent.call("note_it", json!({"n": n, "text": "x".repeat(60_000)})).await;
    }
    let records = read(&mut agent, "charter://runs/r/records").await;
    let seqs: Vec<u64> = records.as_array().unwrap().iter().map(|r| r["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs.last(), Some(&31));
    assert!(seqs.len() < 20 && seqs.len() > 2, "{seqs:?}");
}

#[tokio::test]
async fn the_prompt_says_how_to_work_here() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let list = agent.ask("prompts/list", json!({})).await["result"]["prompts"].clone();
    let name = list[0]["name"].clone();
    let got = agent.ask("prompts/get", json!({"name": name, "arguments": {"goal": "Pay 7"}})).await;
    let text = got["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    for part in ["payment", "draft", "PROPOSE", "Pay 7", "tell the user"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(agent.ask("prompts/get", json!({"name": "other"})).await["error"]["code"], -32_602);
    let long = json!({"name": name, "arguments": {"goal": "x".repeat(10_001)}});
    assert_eq!(agent.ask("prompts/get", long).await["error"]["code"], -32_602);
}
