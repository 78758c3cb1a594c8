//! A connection without an async runtime, for programs that ask one question and end: a hook must
//! answer within milliseconds.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use charter_guard::client::Decision;
use charter_guard::gate::{Question, input_of};
use charter_journal::{Holder, Record};
use charter_runtime::{RuntimeError, parse_json};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::connection::{ConnectError, greeted};
use crate::transport::{foreign, own_user};
use crate::wire::{MAX_REQUEST_BYTES, Reply, Request};

/// Maximum size of an answer in bytes: record 0 of a run is the largest.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Bytes to read at a time.
const CHUNK: usize = 16 << 10;

/// A connection to the process that holds a journal, for questions of hooks.
#[derive(Debug)]
pub struct Asker {
    stream: UnixStream,
    pid: u32,
    /// What was read after the last line.
    rest: Vec<u8>,
    deadline: Instant,
}

impl Asker {
    /// Connects to a holder that has an address. Nothing takes longer than until `deadline`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(holder: &Holder, deadline: Instant) -> Result<Asker, ConnectError> {
        let (pid, address) = (holder.pid, holder.address.clone().unwrap_or_default());
        let gone = |reason: String| ConnectError::Gone { pid, address: address.clone(), reason };
        let stream = UnixStream::connect(&address).map_err(|e| match foreign(&address, &e) {
            Some(user) => ConnectError::OtherUser { pid, user },
            None => gone(e.to_string()),
        })?;
        // The address is in a file that anybody may have written who can write into the folder.
        let user = user_of(&stream, &address).map_err(|e| gone(e.to_string()))?;
        if user != own_user() {
            return Err(ConnectError::OtherUser { pid, user });
        }
        let mut asker = Asker { stream, pid, rest: Vec::new(), deadline };
        let line = match asker.line(MAX_REQUEST_BYTES) {
            Ok(line) => line,
            Err(e) if is_slow(&e) => return Err(ConnectError::Silent { pid }),
            Err(e) => return Err(gone(e.to_string())),
        };
        asker.pid = greeted(&line, pid)?.pid;
        Ok(asker)
    }

    /// The input of a run.
    ///
    /// # Errors
    /// There is no such run, or the connection is lost.
    pub fn input(&mut self, run: &str) -> Result<Json, RuntimeError> {
        let texts: Vec<String> = self.exchange(&Request::Records { run: run.to_owned(), from: 0, limit: 1 })?;
        let text = texts.first().ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
        let record = Record::read(text).map_err(|e| RuntimeError::Remote(format!("process {}: {e}", self.pid)))?;
        Ok(input_of(&record))
    }

    /// Asks a run.
    ///
    /// # Errors
    /// There is no such run, or the connection is lost: then the question may have been recorded,
    /// and can be asked again.
    pub fn ask(&mut self, question: Question) -> Result<Decision, RuntimeError> {
        self.exchange(&Request::Ask(question))
    }

    fn exchange<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, RuntimeError> {
        let remote = |why: String| RuntimeError::Remote(why);
        let mut text = serde_json::to_string(request).map_err(|e| remote(e.to_string()))?;
        if text.len() > MAX_REQUEST_BYTES {
            return Err(remote(format!(
                "the call has {} bytes, and at most {MAX_REQUEST_BYTES} are accepted",
                text.len()
            )));
        }
        text.push('\n');
        let lost = RuntimeError::Lost { pid: self.pid };
        if self.limit().and_then(|()| self.stream.write_all(text.as_bytes())).is_err() {
            return Err(lost);
        }
        let answer = match self.line(MAX_ANSWER_BYTES) {
            Ok(line) => line,
            Err(e) if is_slow(&e) => {
                return Err(remote(format!("process {} holds the journal and does not answer in time", self.pid)));
            }
            Err(_) => return Err(lost),
        };
        match parse_json(&answer) {
            Ok(Reply::Ok(value)) => Ok(value),
            Ok(Reply::Error(error)) => Err(error.into_error(lost)),
            Err(e) => Err(remote(format!("process {} answers with something else: {e}", self.pid))),
        }
    }

    /// Limits the next read and write to the time that is left.
    fn limit(&self) -> std::io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        self.stream.set_write_timeout(Some(left.max(Duration::from_millis(1))))
    }

    fn line(&mut self, max: usize) -> std::io::Result<String> {
        let mut scanned = 0usize;
        loop {
            if let Some(at) = self.rest.iter().skip(scanned).position(|b| *b == b'\n') {
                let end = scanned.saturating_add(at);
                let mut line: Vec<u8> = self.rest.drain(..=end).collect();
                line.pop();
                return String::from_utf8(line).map_err(|_| std::io::ErrorKind::InvalidData.into());
            }
            scanned = self.rest.len();
            if scanned > max {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            self.limit()?;
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => self.rest.extend_from_slice(chunk.get(..read).unwrap_or_default()),
            }
        }
    }
}

fn is_slow(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock)
}

/// The user of the process at the other end.
#[cfg(target_os = "linux")]
fn user_of(stream: &UnixStream, _: &Path) -> std::io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// The user of the socket; only they and root can have made it.
#[cfg(not(target_os = "linux"))]
fn user_of(_: &UnixStream, address: &Path) -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(std::fs::symlink_metadata(address)?.uid())
}
