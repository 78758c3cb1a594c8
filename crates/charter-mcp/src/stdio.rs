//! A client over lines: one message a line, in both directions.

use std::time::Duration;

use charter_runtime::backend::{Update, Updates};
use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::message::too_long;

/// How long to wait before the news of a run is asked for again after the connection was lost.
const PAUSE: Duration = Duration::from_millis(500);
/// News is told at most this often.
const QUIET: Duration = Duration::from_millis(50);

/// A line of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Its text, without the end.
    Text(Vec<u8>),
    /// It has more than [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES), and was skipped.
    TooLong,
}

/// Answers the lines of a client, and tells it the news of the run, until there are no more lines
/// or nobody takes the answers.
pub async fn serve(endpoint: &Endpoint, mut lines: mpsc::Receiver<Line>, answers: mpsc::Sender<String>) {
    let mut connection = Connection::default();
    let mut updates: Option<Box<dyn Updates>> = None;
    loop {
        if updates.is_none() {
            updates = endpoint.backend.updates(Some(endpoint.run().to_owned())).await.ok();
        }
        let changed = async {
            let Some(updates) = &mut updates else {
                tokio::time::sleep(PAUSE).await;
                return true;
            };
            loop {
                match updates.next().await {
                    Some(Update::Recorded(_) | Update::Missed(_)) => return true,
                    Some(_) => {}
                    None => return false,
                }
            }
        };
        let all = tokio::select! {
            biased;
            line = lines.recv() => match line {
                None => break,
                Some(Line::TooLong) => vec![too_long().answer(None)],
                Some(Line::Text(text)) if text.iter().all(u8::is_ascii_whitespace) => Vec::new(),
                Some(Line::Text(text)) => connection.receive(endpoint, &text).await,
            },
            alive = changed => {
                if !alive {
                    updates = None;
                    tokio::time::sleep(PAUSE).await;
                }
                // Several records at once are one piece of news.
                tokio::time::sleep(QUIET).await;
                connection.news(endpoint).await.unwrap_or_default()
            }
            () = answers.closed() => break,
        };
        for answer in all {
            if answers.send(answer).await.is_err() {
                return;
            }
        }
    }
    for last in connection.end() {
        let _ = answers.send(last).await;
    }
}
