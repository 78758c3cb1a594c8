//! Live streams: server-sent events of a run, and of the journal.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use charter_journal::Record;
use charter_kernel::Auth;
use charter_runtime::backend::Update;
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::app::{App, may_see};
use super::caller::{cookie, one};
use super::named::Named;
use super::problem::Problem;
use crate::feed::{Next, PageSize};
use crate::identity::{Caller, Directory, HOST_RUN};

/// Frames that wait for a slow reader; it is cut off when none is taken for [`STALLED`].
const BUFFER: usize = 1;
const STALLED: Duration = Duration::from_secs(60);
/// Pages of records that the streams of one principal hold in memory together; others wait.
const PAGES_OF_ONE: usize = 8;
/// A comment is sent after this time without a record, so that proxies keep the connection; the key
/// of the reader is looked at again then.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a client waits before it connects again, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";
/// Requests of the inbox were marked; it is not a record, and has no id to resume from.
const MARKED: &str = "event: inbox\ndata: {}\n\n";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    after: Option<u64>,
}

/// Where a stream continues: `Last-Event-ID`, or `?after=`.
fn cursor(headers: &HeaderMap, query: Result<Query<StreamQuery>, QueryRejection>) -> Result<Option<u64>, Problem> {
    let Query(query) = query.map_err(|e| Problem::request(e.body_text()))?;
    let Some(text) = one(headers, "last-event-id")?.filter(|text| !text.is_empty()) else { return Ok(query.after) };
    // `parse` would accept a sign.
    let parsed = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    parsed
        .map(Some)
        .ok_or_else(|| Problem::request("`Last-Event-ID` must be the `id` of an event of this stream: a whole number"))
}

/// The body of a stream, written by a task of its own.
struct Frames {
    frames: mpsc::Receiver<FrameText>,
    /// The page of the frame that is being sent.
    sending: Option<Arc<OwnedSemaphorePermit>>,
}

/// A frame, and the page that it is of.
struct FrameText {
    text: Bytes,
    page: Option<Arc<OwnedSemaphorePermit>>,
}

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // The frame before has been written to the connection.
        self.sending = None;
        self.frames.poll_recv(cx).map(|frame| {
            frame.map(|FrameText { text, page }| {
                self.sending = page;
                Ok(Frame::data(text))
            })
        })
    }
}

/// Counts an open stream.
struct Open {
    app: Arc<App>,
    id: String,
    pages: Arc<Semaphore>,
}

/// The open streams of a principal.
pub(crate) struct Readers {
    count: usize,
    pages: Arc<Semaphore>,
}

impl Open {
    fn new(app: &Arc<App>, caller: &Caller) -> Result<Open, Problem> {
        let limits = &app.options.limits;
        let full = |what: &str| {
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many", what);
            Problem { retry_after: Some(10), ..problem }
        };
        let mut readers = app.readers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if readers.values().map(|own| own.count).sum::<usize>() >= limits.streams {
            return Err(full("too many live streams are open"));
        }
        // Claimed names share one account.
        let id = if caller.auth != Auth::None { caller.id.clone() } else { String::new() };
        let new = || Readers { count: 0, pages: Arc::new(Semaphore::new(PAGES_OF_ONE)) };
        let own = readers.entry(id.clone()).or_insert_with(new);
        if own.count >= limits.streams_of_one {
            return Err(full("you have too many live streams open"));
        }
        own.count = own.count.saturating_add(1);
        app.metrics.streams.fetch_add(1, Ordering::Relaxed);
        Ok(Open { app: app.clone(), id, pages: own.pages.clone() })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut readers = self.app.readers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(own) = readers.get_mut(&self.id) {
            own.count = own.count.saturating_sub(1);
            if own.count == 0 {
                readers.remove(&self.id);
            }
        }
        self.app.metrics.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The writing end of a stream.
pub(super) struct Writer {
    frames: mpsc::Sender<FrameText>,
    open: Open,
    caller: Caller,
    /// The cookie, if the reader has a session.
    cookie: Option<String>,
}

/// The reader is gone, or may not read any more.
pub(super) struct Gone;

impl Writer {
    pub(super) fn app(&self) -> &Arc<App> {
        &self.open.app
    }

    /// Waits until the reader is gone.
    pub(super) async fn gone(&self) {
        self.frames.closed().await;
    }

    pub(super) async fn write(&self, text: String, page: Option<&Arc<OwnedSemaphorePermit>>) -> Result<(), Gone> {
        let frame = FrameText { text: text.into(), page: page.cloned() };
        match tokio::time::timeout(STALLED, self.frames.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    /// Waits for the turn to read a page into memory.
    async fn turn(&self) -> Result<Arc<OwnedSemaphorePermit>, Gone> {
        tokio::select! {
            turn = self.open.pages.clone().acquire_owned() => turn.map(Arc::new).map_err(|_| Gone),
            () = self.frames.closed() => Err(Gone),
        }
    }

    /// Whether the reader may still read: its key has not ended, and the server is not closing.
    pub(super) fn may_go_on(&self) -> Result<(), Gone> {
        let app = &self.open.app;
        let (directory, caller) = (app.office.directory(), &self.caller);
        let now = app.now();
        let is_open = match (&caller.key, &caller.token) {
            (Some(key), _) => directory.caller(key, caller.auth, now).is_ok_and(|now| now.grants == caller.grants),
            (None, Some(token)) => {
                let grants = directory.granted_by_token(&caller.id, caller.kind, token, now);
                now < token.until && caller.grants.as_ref() == Some(&grants)
            }
            // A server without keys has become one with keys.
            (None, None) => caller.is_owner() || !directory.has_keys(),
        };
        // An open stream uses its session.
        let has_session = self.cookie.as_ref().is_none_or(|cookie| app.sessions.find(cookie, app.now()).is_some());
        if is_open && has_session && !app.is_closing() { Ok(()) } else { Err(Gone) }
    }
}

/// Tells when somebody's rights change: a key is added or revoked, or a session is closed.
struct Rights {
    keys: watch::Receiver<Arc<Directory>>,
    sessions: watch::Receiver<()>,
}

impl Rights {
    fn new(app: &App) -> Rights {
        Rights { keys: app.office.changes(), sessions: app.sessions.closings() }
    }

    async fn changed(&mut self) -> Result<(), Gone> {
        let changed = tokio::select! {
            changed = self.keys.changed() => changed,
            changed = self.sessions.changed() => changed,
        };
        changed.map_err(|_| Gone)
    }
}

fn record_frame(id: u64, record: &Record) -> String {
    format!("id: {id}\nevent: record\ndata: {}\n\n", record.text())
}

fn news_frame(news: &Update) -> String {
    // Plain data on one line; a record is never sent this way.
    format!("event: news\ndata: {}\n\n", serde_json::to_string(news).unwrap_or_default())
}

/// Begins a stream.
pub(super) fn respond(app: &Arc<App>, caller: Caller, headers: &HeaderMap) -> Result<(Writer, Response), Problem> {
    app.writable()?;
    let (frames, receiver) = mpsc::channel(BUFFER);
    let body = Frames { frames: receiver, sending: None };
    let cookie = cookie(headers).filter(|_| caller.auth == Auth::Session).map(str::to_owned);
    let writer = Writer { frames, open: Open::new(app, &caller)?, caller, cookie };
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((writer, (headers, Body::new(body)).into_response()))
}

/// `GET /v1/runs/{run}/stream`: the records of a run from its first one, or after one.
pub(super) async fn of_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(run): Named,
    headers: HeaderMap,
    query: Result<Query<StreamQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let after = cursor(&headers, query)?;
    let seen = app.run(&caller, &run).await?;
    if let Some(after) = after.filter(|after| *after > seen.info.seq) {
        let last = seen.info.seq;
        return Err(Problem::request(format!("run `{run}` has no record {after} yet; its last one is {last}")));
    }
    let next = after.map_or(0, |after| after.saturating_add(1));
    let (writer, response) = respond(&app, caller, &headers)?;
    // Subscribed before the first read, so nothing is missed between the two.
    let watch = app.feed.run(&run);
    tokio::spawn(async move {
        let _ = write_run(&writer, next, watch).await;
    });
    Ok(response)
}

async fn write_run(writer: &Writer, mut next: u64, mut watch: crate::feed::Watch) -> Result<(), Gone> {
    let app = writer.open.app.clone();
    // A key that is revoked, or a session that is closed, ends the stream now, not with the next
    // record.
    let mut rights = Rights::new(&app);
    writer.write(RETRY.to_owned(), None).await?;
    let mut size = PageSize(1);
    loop {
        loop {
            let turn = writer.turn().await?;
            writer.may_go_on()?;
            let page = watch.page(app.backend.as_ref(), next, size.0).await.map_err(|_| Gone)?;
            let Some(last) = page.last() else { break };
            next = last.seq.saturating_add(1);
            size.after(page.len(), page.iter().map(|record| record.text().len()).sum());
            for record in page {
                writer.write(record_frame(record.seq, &record), Some(&turn)).await?;
            }
        }
        let wait = async {
            tokio::select! {
                next = watch.next() => Ok(Some(next)),
                changed = rights.changed() => changed.map(|()| None),
                () = writer.frames.closed() => Err(Gone),
            }
        };
        let woken = tokio::time::timeout(KEEP_ALIVE, wait).await;
        writer.may_go_on()?;
        match woken {
            // The keys have changed, or there are records.
            Ok(woken) => match woken? {
                Some(Next::News(news)) => writer.write(news_frame(&news), None).await?,
                Some(Next::Records) | None => {}
            },
            Err(_) => writer.write(":\n\n".to_owned(), None).await?,
        }
    }
}

/// `GET /v1/stream`: the records of all runs that the caller may see, from now on, or after a
/// position.
pub(super) async fn of_journal(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    query: Result<Query<StreamQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let after = cursor(&headers, query)?;
    let last = app.backend.last_position().await?;
    if let Some(after) = after.filter(|after| *after > last) {
        return Err(Problem::request(format!("this journal has no position {after} yet; the last one is {last}")));
    }
    let (writer, response) = respond(&app, caller, &headers)?;
    let position = after.unwrap_or(last);
    tokio::spawn(async move {
        let _ = write_journal(&writer, position).await;
    });
    Ok(response)
}

async fn write_journal(writer: &Writer, mut position: u64) -> Result<(), Gone> {
    let app = writer.open.app.clone();
    let mut rights = Rights::new(&app);
    let mut marks = app.inbox.changes();
    // The place where the stream begins has an id, too, so that a reader that has got no record yet
    // resumes there.
    writer.write(format!("{RETRY}id: {position}\nevent: begin\ndata: {{}}\n\n"), None).await?;
    let mut size = PageSize(1);
    loop {
        loop {
            let turn = writer.turn().await?;
            writer.may_go_on()?;
            let page = app.feed.page(app.backend.as_ref(), position, size.0).await.map_err(|_| Gone)?;
            let Some(last) = page.last() else { break };
            position = last.position;
            size.after(page.len(), page.iter().map(|entry| entry.record.text().len()).sum());
            for entry in page {
                if visible(&app, &writer.caller, &entry.record).await? {
                    writer.write(record_frame(entry.position, &entry.record), Some(&turn)).await?;
                }
            }
        }
        let wait = async {
            tokio::select! {
                () = app.feed.after(position) => Ok(None),
                changed = rights.changed() => changed.map(|()| None),
                _ = marks.changed() => Ok(Some(MARKED)),
                () = writer.frames.closed() => Err(Gone),
            }
        };
        let frame = match tokio::time::timeout(KEEP_ALIVE, wait).await {
            Ok(woken) => woken?,
            Err(_) => Some(":\n\n"),
        };
        if let Some(frame) = frame {
            writer.may_go_on()?;
            writer.write(frame.to_owned(), None).await?;
        }
    }
}

async fn visible(app: &App, caller: &Caller, record: &Record) -> Result<bool, Gone> {
    // Keys are looked at with `GET /v1/keys`; their records are in the stream of the run `host`.
    if &*record.run == HOST_RUN {
        return Ok(false);
    }
    let charter = app.charter(record.charter).await.map_err(|_| Gone)?;
    Ok(may_see(caller, &charter, &record.run))
}
