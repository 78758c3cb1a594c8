//! A client over lines.

use charter_mcp::{Line, serve};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;

use crate::common::Place;

struct Pipe {
    lines: mpsc::Sender<Line>,
    answers: mpsc::Receiver<String>,
}

impl Pipe {
    async fn say(&self, message: Json) {
        self.lines.send(Line::Text(message.to_string().into_bytes())).await.unwrap();
    }

    async fn next(&mut self) -> Json {
        let answer = tokio::time::timeout(std::time::Duration::from_secs(60), self.answers.recv()).await.unwrap();
        serde_json::from_str(&answer.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn lines_are_answered_and_news_is_told() {
    let place = Place::new().await;
    let endpoint = place.agent(&["clerk"]).await.endpoint;
    let ((lines, reader), (writer, answers)) = (mpsc::channel(4), mpsc::channel(4));
    let serving = tokio::spawn(async move { serve(&endpoint, reader, writer).await });
    let mut pipe = Pipe { lines, answers };
    pipe.lines.send(Line::TooLong).await.unwrap();
    assert_eq!(pipe.next().await["error"]["code"], -32_600);
    pipe.lines.send(Line::Text(b"  \r\n".to_vec())).await.unwrap();
    pipe.say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}))
        .await;
    assert_eq!(pipe.next().await["id"], 1);
    pipe.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    place.person_sends("PROPOSE", json!({"amount": 1})).await;
    assert_eq!(pipe.next().await["method"], "notifications/tools/list_changed");
    drop(pipe.lines);
    assert!(pipe.answers.recv().await.is_none());
    serving.await.unwrap();
}

#[tokio::test]
async fn a_client_that_takes_no_answers_ends_the_service() {
    let place = Place::new().await;
    let endpoint = place.agent(&[]).await.endpoint;
    let ((_lines, reader), (writer, answers)) = (mpsc::channel(4), mpsc::channel(4));
    drop(answers);
    tokio::time::timeout(std::time::Duration::from_secs(60), serve(&endpoint, reader, writer)).await.unwrap();
}
