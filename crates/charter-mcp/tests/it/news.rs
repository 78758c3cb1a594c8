//! News: the list of tools, and resources that were subscribed to.

use charter_mcp::{ToolSet, Version};
use serde_json::{Value as Json, json};

use crate::common::Place;

const RUN: &str = "charter://runs/r";

fn methods(news: &[Json]) -> Vec<&str> {
    news.iter().map(|one| one["method"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_session_is_told_once_of_each_change() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    assert!(agent.news().await.is_empty(), "nobody listens yet");
    agent.hello(Version::V2025November).await;
    assert_eq!(agent.ask("resources/subscribe", json!({"uri": RUN})).await["result"], json!({}));
    assert!(agent.news().await.is_empty());
    place.person_sends("PROPOSE", json!({"amount": 1})).await;
    let news = agent.news().await;
    assert_eq!(methods(&news), ["notifications/tools/list_changed", "notifications/resources/updated"]);
    assert_eq!(news[1]["params"]["uri"], RUN);
    assert!(agent.news().await.is_empty());
    place.person_sends("note.it", json!({})).await;
    assert_eq!(methods(&agent.news().await), ["notifications/resources/updated"], "the same is legal");
    agent.ask("resources/unsubscribe", json!({"uri": RUN})).await;
    place.person_sends("note.it", json!({})).await;
    assert!(agent.news().await.is_empty());
    let wrong = agent.ask("resources/subscribe", json!({"uri": "charter://runs/r/charter"})).await;
    assert_eq!(wrong["error"]["code"], -32_602, "{wrong}");
}

#[tokio::test]
async fn a_subscription_alone_gets_what_it_asked_for() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": [RUN, "charter://runs/other"],
    }});
    let first = agent.ask_alone("subscriptions/listen", wanted).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true, "resourceSubscriptions": [RUN]}));
    let id = first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    assert_eq!(id, 1);
    let only = agent.ask_alone("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}})).await;
    assert_eq!(only["params"]["notifications"], json!({}));
    place.person_sends("PROPOSE", json!({"amount": 1})).await;
    let news = agent.news().await;
    assert_eq!(methods(&news), ["notifications/tools/list_changed", "notifications/resources/updated"]);
    assert!(news.iter().all(|one| one["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id), "{news:?}");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert!(agent.connection.receive(&agent.endpoint, cancel.to_string().as_bytes()).await.is_empty());
    place.person_sends("note.it", json!({})).await;
    assert!(agent.news().await.is_empty());
    let last: Vec<Json> = agent.connection.end().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(last.len(), 1, "the other one ends with an answer");
    assert_eq!((&last[0]["id"], &last[0]["result"]["resultType"]), (&json!(2), &json!("complete")));
}

#[tokio::test]
async fn subscriptions_are_limited() {
    let place = Place::new().await;
    let mut agent = place.agent_with("agent:a", &["clerk"], ToolSet::Static).await;
    for wrong in [
        json!({}),
        json!({"notifications": []}),
        json!({"notifications": {"toolsListChanged": "yes"}}),
        json!({"notifications": {"resourceSubscriptions": [1]}}),
        json!({"notifications": {"resourceSubscriptions": vec![RUN; 17]}}),
    ] {
        assert_eq!(agent.ask_alone("subscriptions/listen", wrong).await["error"]["code"], -32_602);
    }
    for _ in 0..8 {
        let opened =
            agent.ask_alone("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).await;
        assert_eq!(opened["params"]["notifications"], json!({}), "these tools never change");
    }
    let full = agent.ask_alone("subscriptions/listen", json!({"notifications": {}})).await;
    assert_eq!(full["error"]["code"], -32_600, "{full}");
}
