//! Each generation of the protocol, from its first message on.

use charter_mcp::Version;
use serde_json::json;

use crate::common::{Place, alone};

#[tokio::test]
async fn a_session_begins_with_initialize_in_both_older_generations() {
    let place = Place::new().await;
    for version in [Version::V2025June, Version::V2025November] {
        let mut agent = place.agent(&["clerk"]).await;
        let early = agent.ask("tools/list", json!({})).await;
        assert_eq!(early["error"]["code"], -32_600, "{early}");
        assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
        let hello = agent.hello(version).await;
        assert_eq!(hello["protocolVersion"], version.text());
        assert_eq!(hello["serverInfo"]["name"], "charter");
        assert_eq!(hello["capabilities"]["tools"]["listChanged"], true);
        assert!(hello["instructions"].as_str().unwrap().contains("payment"), "{hello}");
        assert!(hello.get("resultType").is_none(), "{hello}");
        let list = agent.ask("tools/list", json!({})).await;
        assert!(list["result"].get("ttlMs").is_none() && list["result"].get("_meta").is_none(), "{list}");
        assert_eq!(agent.ask("initialize", json!({"protocolVersion": version.text()})).await["error"]["code"], -32_600);
    }
}

#[tokio::test]
async fn a_client_of_another_generation_is_offered_one() {
    let place = Place::new().await;
    for wanted in ["2024-11-05", "2026-07-28", "2099-01-01", ""] {
        let mut agent = place.agent(&[]).await;
        let answer = agent.ask("initialize", json!({"protocolVersion": wanted})).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{wanted}");
    }
    let mut agent = place.agent(&[]).await;
    assert_eq!(agent.ask("initialize", json!({"protocolVersion": 7})).await["error"]["code"], -32_602);
}

#[tokio::test]
async fn requests_that_stand_alone_need_no_session() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    let found = agent.ask_alone("server/discover", json!({})).await["result"].clone();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "charter");
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let result = agent.ask_alone(method, json!({})).await["result"].clone();
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "private", "{method}: {result}");
    }
    let sent = agent.ask_alone("tools/call", json!({"name": "PROPOSE", "arguments": {"amount": 3}})).await;
    assert_eq!(sent["result"]["structuredContent"]["state"], json!(["review"]));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "x"] {
        assert_eq!(agent.ask_alone(method, json!({})).await["error"]["code"], -32_601, "{method}");
    }
}

#[tokio::test]
async fn a_request_alone_says_its_version_and_what_the_client_can_do() {
    let place = Place::new().await;
    let mut agent = place.agent(&[]).await;
    assert_eq!(agent.ask("server/discover", json!({})).await["error"]["code"], -32_602);
    let mut without = alone(json!({}));
    without["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(agent.ask("tools/list", without).await["error"]["code"], -32_602);
    let mut unknown = alone(json!({}));
    unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v9");
    let error = agent.ask("tools/list", unknown).await["error"].clone();
    assert_eq!(error["code"], -32_022);
    assert_eq!(error["data"]["requested"], "v9");
    assert!(error["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
    let mut quiet = alone(json!({}));
    quiet["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo");
    assert!(agent.ask("tools/list", quiet).await.get("result").is_some(), "the name of a client is optional");
}
