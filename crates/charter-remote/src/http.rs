//! Requests, on threads that may block.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_actors::{ClientOptions, http_client, unreachable_server};
use charter_runtime::{ErrorText, RuntimeError, parse_json};
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::mpsc;
use ureq::http::Response;

/// How long a server may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(60);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Bytes of an answer, and of an event of a stream.
const MAX_ANSWER_BYTES: u64 = 512 << 20;
const MAX_LINE_BYTES: u64 = 64 << 20;
/// How long a run may take to appear whose stream is wanted before it starts.
const APPEARS: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// Events of a stream that wait to be taken.
const BUFFER: usize = 64;

/// Why an address cannot be that of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a server: write `https://HOST` or `http://HOST:PORT`")]
pub struct BadUrl(String);

/// A server and a key.
#[derive(Clone)]
pub(crate) struct Http {
    url: Arc<str>,
    key: Option<Arc<str>>,
    agent: ureq::Agent,
    streams: ureq::Agent,
}

/// An answer that is not an error: status and text.
pub(crate) struct Answer {
    pub(crate) repeated: bool,
    pub(crate) text: String,
}

/// An event of a stream.
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) data: String,
}

impl Http {
    pub(crate) fn new(url: &str, key: Option<&str>) -> Result<Http, BadUrl> {
        let bad = || BadUrl(url.to_owned());
        let trimmed = url.trim_end_matches('/');
        let uri: ureq::http::Uri = trimmed.parse().map_err(|_| bad())?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        if !known || uri.host().is_none() || uri.path().len() > 1 || uri.query().is_some() || trimmed.contains('@') {
            return Err(bad());
        }
        Ok(Http {
            url: trimmed.into(),
            key: key.map(Into::into),
            agent: http_client(ClientOptions {
                connect: Some(CONNECT_TIME),
                request: Some(ANSWER_TIME),
                ..Default::default()
            }),
            streams: http_client(ClientOptions { connect: Some(CONNECT_TIME), ..Default::default() }),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn unreachable(&self, error: &ureq::Error) -> RuntimeError {
        RuntimeError::Remote(format!("no answer from the server {}", unreachable_server(&self.url, error)))
    }

    fn get_with(&self, agent: &ureq::Agent, path: &str) -> Result<Response<ureq::Body>, RuntimeError> {
        let mut request = agent.get(format!("{}{path}", self.url));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.call().map_err(|e| self.unreachable(&e))
    }

    fn read(&self, response: Response<ureq::Body>) -> Result<Answer, RuntimeError> {
        let status = response.status().as_u16();
        let repeated = response.headers().contains_key("charter-repeated");
        let mut text = String::new();
        let mut body = response.into_body().into_reader().take(MAX_ANSWER_BYTES);
        body.read_to_string(&mut text)
            .map_err(|e| RuntimeError::Remote(format!("the answer of {} cannot be read: {e}", self.url)))?;
        match status {
            200..=299 => Ok(Answer { repeated, text }),
            _ => self.problem(status, &text),
        }
    }

    /// The answer to an event that was refused is its record; other problems are errors.
    fn problem(&self, status: u16, text: &str) -> Result<Answer, RuntimeError> {
        #[derive(Deserialize)]
        struct Problem {
            detail: String,
            #[serde(default)]
            repeated: bool,
            record: Option<Json>,
            error: Option<ErrorText>,
        }
        let Ok(problem) = parse_json::<Problem>(text) else {
            return Err(RuntimeError::Remote(format!("{} answers {status}; is it a Charter server?", self.url)));
        };
        match (problem.record, problem.error) {
            (Some(record), _) => {
                Ok(Answer { repeated: problem.repeated, text: charter_kernel::digest::canonical(&record) })
            }
            (None, Some(error)) => Err(error.into_error(RuntimeError::Closing)),
            (None, None) if status == 401 && self.key.is_none() => Err(RuntimeError::Remote(format!(
                "{}: the server needs a key: pass it with `--key KEY`, or in the variable CHARTER_KEY",
                self.url
            ))),
            (None, None) => Err(RuntimeError::Remote(format!("{}: {}", self.url, problem.detail))),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Answer, RuntimeError> {
        let response = self.get_with(&self.agent, path)?;
        self.read(response)
    }

    pub(crate) fn post(&self, path: &str, body: &Json) -> Result<Answer, RuntimeError> {
        self.post_if(path, body, None)
    }

    /// Sends an event; `seq` is the last record that the sender has seen.
    pub(crate) fn post_if(&self, path: &str, body: &Json, seq: Option<u64>) -> Result<Answer, RuntimeError> {
        let mut request = self.agent.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if let Some(seq) = seq {
            request = request.header("if-match", format!("\"{seq}\""));
        }
        let response = request.send(body.to_string()).map_err(|e| self.unreachable(&e))?;
        self.read(response)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Answer, RuntimeError> {
        let mut request = self.agent.delete(format!("{}{path}", self.url));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = request.call().map_err(|e| self.unreachable(&e))?;
        self.read(response)
    }

    /// Follows a stream on a thread of its own, until the receiver is dropped or the stream ends.
    pub(crate) fn follow(&self, path: &str) -> Result<mpsc::Receiver<Event>, RuntimeError> {
        let response = self.get_with(&self.streams, path)?;
        if !response.status().is_success() {
            self.read(response)?;
            return Err(RuntimeError::Remote(format!("{} does not stream", self.url)));
        }
        let (sender, receiver) = mpsc::channel(BUFFER);
        std::thread::spawn(move || events(response, &sender));
        Ok(receiver)
    }

    /// Follows the stream of a run that does not exist yet, from its first record.
    pub(crate) fn follow_later(&self, path: String) -> mpsc::Receiver<Event> {
        let (sender, receiver) = mpsc::channel(BUFFER);
        let http = self.clone();
        std::thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < APPEARS && !sender.is_closed() {
                match http.get_with(&http.streams, &path) {
                    Ok(response) if response.status().is_success() => return events(response, &sender),
                    _ => std::thread::sleep(LOOK),
                }
            }
        });
        receiver
    }
}

/// Reads a stream to its end, or until nobody takes its events any more.
fn events(response: Response<ureq::Body>, sender: &mpsc::Sender<Event>) {
    let mut lines = BufReader::new(response.into_body().into_reader());
    let (mut kind, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        match lines.by_ref().take(MAX_LINE_BYTES).read_line(&mut line) {
            Ok(read) if read > 0 && line.ends_with('\n') => {}
            _ => return,
        }
        if let Some(text) = line.strip_prefix("event: ") {
            kind = text.trim_end().to_owned();
        } else if let Some(text) = line.strip_prefix("data: ") {
            let event = Event { kind: std::mem::take(&mut kind), data: text.trim_end().to_owned() };
            if sender.blocking_send(event).is_err() {
                return;
            }
        } else if sender.is_closed() {
            return;
        }
    }
}

/// A part of a path.
pub(crate) fn part(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_a_server_is_accepted() {
        for url in ["http://localhost:7117", "https://charter.example", "https://charter.example/", "http://[::1]:80"] {
            assert!(Http::new(url, None).is_ok(), "{url}");
        }
        for url in
            ["", "localhost:7117", "ftp://a", "http://", "https://a/b", "https://a?b", "https://u:p@a", "http://a b"]
        {
            assert!(Http::new(url, None).is_err(), "{url}");
        }
    }

    #[test]
    fn a_part_of_a_path_stays_one() {
        assert_eq!(part("a/../b?c#d%2f e\u{e9}"), "a%2F..%2Fb%3Fc%23d%252f%20e%C3%A9");
    }
}
