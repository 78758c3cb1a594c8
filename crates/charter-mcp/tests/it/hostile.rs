//! Messages that are not what they should be.

use charter_mcp::{MAX_MESSAGE_BYTES, Version};
use serde_json::{Value as Json, json};

use crate::common::Place;

#[tokio::test]
async fn what_is_not_a_message_is_an_error_and_the_next_one_is_answered() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let cases: [(&str, i64); 14] = [
        ("", -32_700),
        ("nonsense", -32_700),
        ("{\"jsonrpc\":", -32_700),
        ("\u{0}", -32_700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32_700),
        (&deep, -32_700),
        ("[]", -32_600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32_600),
        ("7", -32_600),
        (r#"{"id":1,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, -32_600),
    ];
    for (text, code) in cases {
        let answers = agent.connection.receive(&agent.endpoint, text.as_bytes()).await;
        let answer: Json = serde_json::from_str(&answers[0]).unwrap();
        assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
    }
    let invalid =
        agent.connection.receive(&agent.endpoint, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}").await;
    assert!(invalid[0].contains("-32700"), "{invalid:?}");
    let large = vec![b' '; MAX_MESSAGE_BYTES + 1];
    assert!(agent.connection.receive(&agent.endpoint, &large).await[0].contains("-32600"));
    assert_eq!(agent.ask("no/such\u{1b}[31m", json!({})).await["error"]["code"], -32_601);
    assert_eq!(agent.ask("completion/complete", json!({})).await["error"]["code"], -32_601);
    let long = "m".repeat(300);
    let long = json!({"jsonrpc": "2.0", "id": 1, "method": long}).to_string();
    assert!(agent.connection.receive(&agent.endpoint, long.as_bytes()).await[0].len() < 300);
    for quiet in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}"#,
    ] {
        assert!(agent.connection.receive(&agent.endpoint, quiet.as_bytes()).await.is_empty(), "{quiet}");
    }
    assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(place.records().await.len(), 1);
}

#[tokio::test]
async fn events_that_agents_may_not_send_stay_refused() {
    let place = Place::new().await;
    let mut agent = place.agent(&["clerk"]).await;
    agent.hello(Version::V2025November).await;
    for kind in ["charter.cancel", "charter.pause", "charter.trust", "charter.start", "done.invoke.x", ""] {
        let done = agent.call("send", json!({"type": kind})).await;
        assert_eq!(done["isError"], true, "{kind}: {done}");
    }
    let large = agent.call("send", json!({"type": "PROPOSE", "data": {"amount": 1, "x": "y".repeat(3 << 20)}})).await;
    assert_eq!(large["isError"], true);
    assert!(large.to_string().len() < 20_000, "what was sent is not repeated");
    assert_eq!(agent.call("status", json!({})).await["structuredContent"]["state"], json!(["draft"]));
}
