//! A connection to a holder: made, checked and greeted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use charter_actors::BoxFuture;
use charter_runtime::backend::{Update, Updates};
use charter_runtime::parse_json;
use tokio::io::{ReadHalf, WriteHalf};

use crate::lines::LineReader;
use crate::transport::{Stream, connect, foreign, own_user, peer};
use crate::wire::{Greeting, MAX_REQUEST_BYTES, PROTOCOL};

/// How long the holder may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(5);
/// Maximum size of an answer in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = 512 << 20;

/// Why there is no connection to a holder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// It has ended, is ending, or is just starting.
    #[error("process {pid} does not accept connections at `{}`: {reason}", address.display())]
    Gone {
        /// The process.
        pid: u32,
        /// Its socket.
        address: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// It does not greet.
    #[error("process {pid} holds the journal, but does not answer; if it hangs, stop it (`kill {pid}`)")]
    Silent {
        /// The process.
        pid: u32,
    },
    /// It speaks another version of the protocol.
    #[error(
        "process {pid} holds the journal and is another version of this program ({version}); use that version, or stop the process"
    )]
    Version {
        /// The process.
        pid: u32,
        /// Its version.
        version: String,
    },
    /// It refuses the connection.
    #[error("{0}")]
    Refused(String),
    /// It belongs to another user.
    #[error("process {pid} holds the journal and belongs to another user (uid {user}); only that user can use it")]
    OtherUser {
        /// The process.
        pid: u32,
        /// The id of the user.
        user: u32,
    },
}

/// Both directions of a socket.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) lines: LineReader<ReadHalf<Stream>>,
    pub(crate) to: WriteHalf<Stream>,
}

impl Updates for Connection {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(async move {
            let line = self.lines.next(MAX_ANSWER_BYTES).await.ok()??;
            parse_json(&line).ok()
        })
    }
}

/// Connects and reads the greeting.
pub(crate) async fn dial(address: &Path, pid: u32) -> Result<(Connection, Greeting), ConnectError> {
    let gone = |reason: String| ConnectError::Gone { pid, address: address.to_owned(), reason };
    let other = |user| ConnectError::OtherUser { pid, user };
    let denied = |e: std::io::Error| foreign(address, &e).map_or_else(|| gone(e.to_string()), other);
    let stream = connect(address).await.map_err(denied)?;
    // The address is in a file that anybody may have written who can write into the folder.
    match peer(&stream) {
        Ok((user, of)) if user != own_user() => {
            let pid = of.and_then(|p| u32::try_from(p).ok()).unwrap_or(pid);
            return Err(ConnectError::OtherUser { pid, user });
        }
        Ok(_) => {}
        Err(e) => return Err(gone(e.to_string())),
    }
    let (from, to) = tokio::io::split(stream);
    let mut connection = Connection { lines: LineReader::new(from), to };
    let line = match tokio::time::timeout(GREETING_TIME, connection.lines.next(MAX_REQUEST_BYTES)).await {
        Ok(Ok(Some(line))) => line,
        Ok(_) => return Err(gone("the connection was closed".into())),
        Err(_) => return Err(ConnectError::Silent { pid }),
    };
    Ok((connection, greeted(&line, pid)?))
}

/// Reads the greeting of the holder, which lets the caller in or not.
pub(crate) fn greeted(line: &str, pid: u32) -> Result<Greeting, ConnectError> {
    let greeting: Greeting =
        parse_json(line).map_err(|_| ConnectError::Version { pid, version: "not known".into() })?;
    if let Some(refused) = greeting.refused {
        return Err(ConnectError::Refused(refused));
    }
    if greeting.protocol != PROTOCOL {
        return Err(ConnectError::Version { pid: greeting.pid, version: greeting.version });
    }
    Ok(greeting)
}
