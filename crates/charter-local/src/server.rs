//! The socket of the process that holds a journal. Only processes of the same user are let in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use charter_runtime::backend::{Update, Updates};
use charter_runtime::{ErrorText, parse_request};
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::lines::{LineError, LineReader, write_line};
use crate::service::Service;
use crate::transport::{Listener, Stream, own_user, peer};
use crate::wire::{Greeting, MAX_REQUEST_BYTES, PROTOCOL, Reply, Request};

/// Maximum number of connections; further ones are refused.
const MAX_CONNECTIONS: usize = 64;
/// How long a connection may stay without a request.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// How long a request may take to arrive, from its first byte.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// How long to wait if a connection cannot be accepted, for example for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// An open socket. Dropping it removes the socket.
#[derive(Debug)]
pub struct Server {
    address: PathBuf,
    accepting: JoinHandle<()>,
    stop: watch::Sender<bool>,
    connections: watch::Sender<usize>,
    used: Arc<AtomicBool>,
}

struct Shared {
    service: Arc<Service>,
    about: Json,
    stop: watch::Receiver<bool>,
    connections: watch::Sender<usize>,
    used: Arc<AtomicBool>,
}

impl Server {
    /// Opens the socket of a journal file: `FILE-socket`, or if that is not possible a file in one
    /// of the `folders`, which are created with access for their owner only. The caller must hold
    /// the lock of the journal, because a socket that is in the way is removed.
    ///
    /// `about` is what the program tells its clients ([`Client::about`](crate::Client::about)).
    /// Must be called within a tokio runtime with I/O.
    ///
    /// # Errors
    /// No socket can be created.
    pub fn open(journal: &Path, folders: &[PathBuf], service: Arc<Service>, about: Json) -> io::Result<Server> {
        let (listener, address) = crate::place::bind(journal, folders)?;
        let (stop, stopping) = watch::channel(false);
        let connections = watch::Sender::new(0);
        let used = Arc::<AtomicBool>::default();
        let shared = Shared { service, about, stop: stopping, connections: connections.clone(), used: used.clone() };
        let accepting = tokio::spawn(accept(listener, Arc::new(shared)));
        Ok(Server { address, accepting, stop, connections, used })
    }

    /// The path of the socket.
    #[must_use]
    pub fn address(&self) -> &Path {
        &self.address
    }

    /// The number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        *self.connections.borrow()
    }

    /// Whether there has been a connection.
    #[must_use]
    pub fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Stops accepting connections and requests, and waits for requests that are being answered, at
    /// most for `grace`.
    pub async fn close(self, grace: Duration) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.address);
        let _ = self.stop.send(true);
        let mut connections = self.connections.subscribe();
        let _ = tokio::time::timeout(grace, connections.wait_for(|n| *n == 0)).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.address);
    }
}

/// Counts a connection.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(connections: &watch::Sender<usize>) -> Option<Counted> {
        let room = connections.send_if_modified(|n| {
            let room = *n < MAX_CONNECTIONS;
            *n = n.saturating_add(usize::from(room));
            room
        });
        room.then(|| Counted(connections.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n = n.saturating_sub(1));
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let counted = Counted::new(&shared.connections);
        shared.used.store(true, Ordering::Relaxed);
        let refused = match peer(&stream) {
            Ok((user, _)) if user != own_user() => Some(format!(
                "process {} belongs to another user (uid {}), and serves only processes of that user",
                std::process::id(),
                own_user()
            )),
            Err(e) => Some(format!("the user of the connection is not known: {e}")),
            Ok(_) if counted.is_none() => Some(format!(
                "process {} already has {MAX_CONNECTIONS} connections; try again later",
                std::process::id()
            )),
            Ok(_) => None,
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            // Errors are those of the peer.
            let _ = connection(stream, refused, &shared).await;
            drop(counted);
        });
    }
}

async fn connection(stream: Stream, refused: Option<String>, shared: &Shared) -> Result<(), LineError> {
    let (from, mut to) = tokio::io::split(stream);
    let ends = refused.is_some();
    let about = if ends { Json::Null } else { shared.about.clone() };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let greeting = Greeting { protocol: PROTOCOL, version, pid: std::process::id(), refused, about };
    write_line(&mut to, text(&greeting)).await?;
    if ends {
        return Ok(());
    }
    let mut lines = LineReader::new(from);
    let mut stop = shared.stop.clone();
    loop {
        let line = tokio::select! {
            line = request(&mut lines) => line,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(e) => {
                // What follows cannot be told apart from the rest of the line.
                let error = ErrorText::request(format!("{e}; the connection is closed"));
                return write_line(&mut to, text(&Reply::<()>::Error(error))).await;
            }
        };
        let reply = match parse_request::<Request>(&line) {
            Ok(Request::Updates { run }) => return updates(run, lines, to, shared).await,
            Ok(request) => match shared.service.answer(request).await {
                Ok(answer) => Reply::Ok(answer),
                Err(e) => Reply::Error(ErrorText::from(&e)),
            },
            Err(e) => Reply::Error(ErrorText::request(format!("unknown request: {e}"))),
        };
        write_line(&mut to, text(&reply)).await?;
    }
}

/// Reads a request; `None` at the end of the connection, or after a long time without a request.
async fn request<R: AsyncRead + Unpin>(lines: &mut LineReader<R>) -> Result<Option<String>, LineError> {
    match tokio::time::timeout(IDLE_TIME, lines.begins()).await {
        Ok(Ok(true)) => {}
        Ok(Err(e)) => return Err(e),
        Ok(Ok(false)) | Err(_) => return Ok(None),
    }
    match tokio::time::timeout(REQUEST_TIME, lines.next(MAX_REQUEST_BYTES)).await {
        Ok(line) => line,
        Err(_) => Err(LineError::Slow),
    }
}

/// Writes events until the peer closes the connection or does not keep up.
async fn updates<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    run: Option<String>,
    mut lines: LineReader<R>,
    mut to: W,
    shared: &Shared,
) -> Result<(), LineError> {
    let mut events = shared.service.subscribe(run.as_deref());
    write_line(&mut to, text(&Reply::Ok(()))).await?;
    let mut stop = shared.stop.clone();
    loop {
        let update: Option<Update> = tokio::select! {
            update = Updates::next(&mut events) => update,
            // The peer has nothing more to say, so this is its end.
            _ = lines.begins() => return Ok(()),
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        match update {
            Some(update) => write_line(&mut to, text(&update)).await?,
            None => return Ok(()),
        }
    }
}

fn text(value: &impl serde::Serialize) -> String {
    // Plain data; an empty line is answered with an error by the peer.
    serde_json::to_string(value).unwrap_or_default()
}
