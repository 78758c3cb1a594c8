//! The streams of agents: the news of a session, and of a subscription without one.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use charter_mcp::{Endpoint, Listen};

use super::super::app::App;
use super::super::problem::Problem;
use super::super::stream::{Gone, KEEP_ALIVE, Writer, respond};
use super::Called;
use super::sessions::Session;
use crate::feed::{Next, Watch};

/// News is told at most this often: several records at once are one piece of news.
const QUIET: Duration = Duration::from_millis(50);

fn frame(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Waits for records of the run, a change of the keys, or the time to keep the connection alive;
/// then whether there may be news.
async fn wait(writer: &Writer, watch: &mut Watch) -> Result<bool, Gone> {
    let mut keys = writer.app().office.changes();
    let woken = async {
        loop {
            tokio::select! {
                next = watch.next() => if let Next::Records = next { return Ok(true) },
                changed = keys.changed() => return changed.map(|()| false).map_err(|_| Gone),
                () = writer.gone() => return Err(Gone),
            }
        }
    };
    let woken = tokio::time::timeout(KEEP_ALIVE, woken).await;
    writer.may_go_on()?;
    match woken {
        Ok(woken) => {
            tokio::time::sleep(QUIET).await;
            woken
        }
        Err(_) => writer.write(":\n\n".to_owned(), None).await.map(|()| false),
    }
}

/// The news of a session. What has changed since the client was told last, also by an earlier
/// stream, is told first.
pub(super) fn of_session(
    app: &Arc<App>,
    called: Called,
    headers: &HeaderMap,
    session: Arc<Session>,
) -> Result<Response, Problem> {
    let Called { caller, endpoint } = called;
    let (writer, response) = respond(app, caller, headers)?;
    let watch = app.feed.run(endpoint.run());
    tokio::spawn(async move {
        let mut end = session.end();
        tokio::select! {
            _ = write_session(&writer, &endpoint, &session, watch) => {}
            _ = end.wait_for(|ended| *ended) => {}
        }
    });
    Ok(response)
}

async fn write_session(writer: &Writer, endpoint: &Endpoint, session: &Session, mut watch: Watch) -> Result<(), Gone> {
    writer.write(":\n\n".to_owned(), None).await?;
    loop {
        let news = session.connection().await.news(endpoint).await.map_err(|_| Gone)?;
        for message in news {
            writer.write(frame(&message), None).await?;
        }
        while !wait(writer, &mut watch).await? {
            session.touch(writer.app().now());
        }
    }
}

/// A subscription: its acknowledgement, the news, and its answer when the server ends.
pub(super) fn of_listen(
    app: &Arc<App>,
    called: Called,
    headers: &HeaderMap,
    listen: Listen,
) -> Result<Response, Problem> {
    let Called { caller, endpoint } = called;
    let (writer, response) = respond(app, caller, headers)?;
    let watch = app.feed.run(endpoint.run());
    tokio::spawn(async move {
        let last = frame(&listen.ended());
        let _ = write_listen(&writer, &endpoint, listen, watch).await;
        // The client may be gone, which nobody has to know.
        let _ = writer.write(last, None).await;
    });
    Ok(response)
}

async fn write_listen(writer: &Writer, endpoint: &Endpoint, mut listen: Listen, mut watch: Watch) -> Result<(), Gone> {
    writer.write(frame(&listen.acknowledged()), None).await?;
    loop {
        for message in listen.news(endpoint).await.map_err(|_| Gone)? {
            writer.write(frame(&message), None).await?;
        }
        while !wait(writer, &mut watch).await? {}
    }
}
