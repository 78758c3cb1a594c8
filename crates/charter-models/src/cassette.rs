//! Cassettes: recorded responses of models, with which a run can be tested or repeated without a
//! model. One line of JSON per request: `{"request": {"url", "body", "asker"}, "response":
//! {...}, "mark"}`. `asker` is who asked, which tells equal requests apart.
//! Request headers are not recorded, so keys are not either. A key that a body quotes is replaced
//! by `[secret]`, which on replay is any word, because the key may not be known then.
//!
//! `mark` is the SHA-256 of the line and of the mark before it, so that a line that was changed,
//! removed or moved is noticed. It is no signature: who changes a cassette on purpose can make new
//! marks, or remove all of them.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use charter_actors::Secrets;
use charter_expr::strict_json;
use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::model::{Model, Provider};
use crate::redact::redact;
use crate::sse;
use crate::transport::{Request, Response, Transport, TransportError};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    request: RecordedRequest,
    response: Response,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}

impl Entry {
    /// Returns the mark of the line after a line with another mark; the first one is after `""`.
    fn mark(&self, before: &str) -> String {
        Digest::of_json(&json!([before, self.request, self.response])).hex()
    }
}

#[derive(Serialize, Deserialize)]
struct RecordedRequest {
    url: String,
    body: Json,
    /// [`Request::asker`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    asker: String,
}

/// A recorded response.
#[derive(Debug)]
struct Recorded {
    asker: String,
    response: Response,
    used: bool,
}

/// Error for a line of a cassette that is not a recorded request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the cassette is not a recorded request: {message}")]
pub struct CassetteError {
    /// The line number, counted from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub message: String,
}

/// Answers from a cassette instead of a server. Requests are matched by their body, not by the
/// server's address. A repeated request gets its next recorded response, or the last one if there
/// are no more. Of equal requests, each gets the responses that were recorded for its asker, in
/// whatever order they arrive.
#[derive(Debug)]
pub struct Cassette {
    answers: Mutex<BTreeMap<String, Vec<Recorded>>>,
    /// The bodies that had secrets, with their keys in `answers`.
    redacted: Vec<(Json, String)>,
    model: Option<Model>,
    /// The mark of the last line; `None`: the lines have no marks.
    mark: Option<String>,
    complete: usize,
    /// Whether each response answers once.
    once: bool,
}

impl Cassette {
    /// Parses a cassette. A last line that is incomplete is not read: the recording was killed
    /// while it wrote the line, and a replay that needs it has no answer.
    ///
    /// # Errors
    /// A line is not a recorded request.
    pub fn parse(text: &str) -> Result<Cassette, CassetteError> {
        let mut answers: BTreeMap<String, Vec<Recorded>> = BTreeMap::new();
        let (mut model, mut mark, mut redacted) = (None, None, Vec::new());
        let complete = text.rsplit_once('\n').map_or(text.len(), |(complete, _)| complete.len());
        let complete_lines = text.get(..complete).unwrap_or_default().lines().count();
        for (line, number) in text.lines().zip(1usize..).filter(|(l, _)| !l.trim().is_empty()) {
            let entry: Entry = match strict_json::typed(line) {
                Ok(entry) => entry,
                Err(_) if number > complete_lines => break,
                Err(e) => return Err(CassetteError { line: number, message: e.to_string() }),
            };
            check_mark(&entry, number, &mut mark)?;
            model = model.or_else(|| model_of(&entry.request));
            let key = key(&entry.request.body);
            if line.contains(Secrets::REDACTED) && !answers.contains_key(&key) {
                redacted.push((entry.request.body, key.clone()));
            }
            let (asker, response) = (entry.request.asker, entry.response);
            answers.entry(key).or_default().push(Recorded { asker, response, used: false });
        }
        let mark = mark.unwrap_or_else(|| Some(String::new()));
        let complete = text.rfind('\n').map_or(0, |end| end.saturating_add(1));
        Ok(Cassette { answers: Mutex::new(answers), redacted, model, mark, complete, once: false })
    }

    /// The size of the complete lines, in bytes: a recording is continued there.
    #[must_use]
    pub fn complete(&self) -> usize {
        self.complete
    }

    /// Returns the model of the recorded requests, with its address and without a key.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        self.model.clone()
    }
}

/// Checks the mark of a line. `last` is the mark before it; `None`: this is the first line.
fn check_mark(entry: &Entry, line: usize, last: &mut Option<Option<String>>) -> Result<(), CassetteError> {
    let wrong = |message: &str| Err(CassetteError { line, message: message.to_owned() });
    let before = last.get_or_insert_with(|| entry.mark.as_ref().map(|_| String::new()));
    match (before.as_deref(), &entry.mark) {
        (None, None) => Ok(()),
        (None, Some(_)) => wrong("it has a `mark`, and the lines before it have none"),
        (Some(_), None) => wrong("it has no `mark`, and the lines before it have one"),
        (Some(before), Some(mark)) if *mark == entry.mark(before) => {
            *last = Some(Some(mark.clone()));
            Ok(())
        }
        (Some(_), Some(_)) => wrong(
            "its `mark` does not fit: this line was changed, or one before it was removed or moved; to use a cassette that was changed on purpose, remove the marks of all lines",
        ),
    }
}

/// Takes the next response to a request of this asker, or to any if none was recorded for it. If
/// there are no more, the last one answers again, unless each answers `once`.
fn next(all: &mut [Recorded], asker: &str, once: bool) -> Option<Response> {
    let is_known = all.iter().any(|one| one.asker == asker);
    let fits = |one: &Recorded| one.asker == asker || !is_known;
    if let Some(one) = all.iter_mut().find(|one| !one.used && fits(one)) {
        one.used = true;
        return Some(one.response.clone());
    }
    let last = all.iter().rev().find(|one| fits(one));
    last.filter(|_| !once).map(|one| one.response.clone())
}

/// Derives the model of a request from its address and body.
fn model_of(request: &RecordedRequest) -> Option<Model> {
    let named = |name: &str, base: &str| Model::parse(name).and_then(|m| m.at_insecure(base)).ok();
    let body = || request.body.get("model").and_then(Json::as_str);
    if let Some(base) = request.url.strip_suffix("/chat/completions") {
        let mut model = named(&format!("openai:{}", body()?), base)?;
        // The limit has this name at OpenAI's own address and at Azure's only.
        if base != Provider::OpenAi.base_url() && request.body.get("max_completion_tokens").is_some() {
            model.provider = Provider::Azure;
        }
        return Some(model);
    }
    if let Some(base) = request.url.strip_suffix("/messages") {
        return named(&format!("anthropic:{}", body()?), base);
    }
    let path = request.url.strip_suffix(":streamGenerateContent?alt=sse")?;
    let (base, name) = path.split_once("/models/")?;
    named(&format!("gemini:{name}"), base)
}

impl Transport for Cassette {
    fn send(
        &self,
        request: &Request,
        _: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        let body = body(request)?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = key(&body);
        if !answers.contains_key(&found)
            && let Some((_, key)) = self.redacted.iter().find(|(recorded, _)| is_recorded_as(recorded, &body))
        {
            found.clone_from(key);
        }
        let response = answers.get_mut(&found).and_then(|all| next(all, &request.asker, self.once));
        drop(answers);
        let mut response = response.ok_or_else(|| {
            TransportError::NotRecorded(
                "the cassette has no answer to this request: the prompt, the input or the model has changed since it was recorded; record it again".into(),
            )
        })?;
        for l in sse::lines(&response.body) {
            if !line(l) {
                return Err(TransportError::Cancelled);
            }
        }
        response.replayed = true;
        Ok(response)
    }
}

/// Sends requests through another transport and records the responses.
pub struct Recorder<T, W> {
    through: T,
    /// Where to, and the last mark, if there are marks.
    to: Mutex<(W, Option<String>)>,
}

impl<T: Transport, W: Write + Send> Recorder<T, W> {
    /// Creates a recorder of the requests and responses of a transport.
    pub fn new(through: T, to: W) -> Recorder<T, W> {
        Recorder { through, to: Mutex::new((to, Some(String::new()))) }
    }

    /// Creates a recorder that continues a cassette: `to` writes after its complete lines.
    pub fn continuing(cassette: &Cassette, through: T, to: W) -> Recorder<T, W> {
        Recorder { through, to: Mutex::new((to, cassette.mark.clone())) }
    }
}

impl<T: Transport, W: Write + Send> Transport for Recorder<T, W> {
    fn send(
        &self,
        request: &Request,
        within: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        let mut response = self.through.send(request, within, line)?;
        redact(&request.secrets(), &mut response);
        let request = RecordedRequest { url: request.url.clone(), body: body(request)?, asker: request.asker.clone() };
        let mut entry = Entry { request, response, mark: None };
        let cannot = |e: &dyn std::fmt::Display| TransportError::NotRecorded(format!("cannot write the cassette: {e}"));
        let mut guard = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        let (to, mark) = &mut *guard;
        entry.mark = mark.as_deref().map(|before| entry.mark(before));
        let mut text = serde_json::to_string(&entry).map_err(|e| cannot(&e))?;
        text.push('\n');
        mark.clone_from(&entry.mark);
        to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(|e| cannot(&e))?;
        Ok(entry.response)
    }
}

/// Answers from a cassette, each line once, and sends and records what it does not have.
#[derive(Debug)]
pub struct Missing<T, W> {
    cassette: Cassette,
    recorder: Recorder<T, W>,
}

impl<T: Transport, W: Write + Send> Missing<T, W> {
    /// Creates a transport that completes a cassette; `to` writes after its complete lines.
    pub fn new(cassette: Cassette, through: T, to: W) -> Missing<T, W> {
        let recorder = Recorder::continuing(&cassette, through, to);
        Missing { cassette: Cassette { once: true, ..cassette }, recorder }
    }
}

impl<T: Transport, W: Write + Send> Transport for Missing<T, W> {
    fn send(
        &self,
        request: &Request,
        within: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        match self.cassette.send(request, within, line) {
            Err(TransportError::NotRecorded(_)) => self.recorder.send(request, within, line),
            found => found,
        }
    }
}

impl<T, W> std::fmt::Debug for Recorder<T, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

/// The body of a request as it is recorded.
fn body(request: &Request) -> Result<Json, TransportError> {
    serde_json::from_str(&request.kept_body())
        .map_err(|e| TransportError::NotRecorded(format!("the request is not JSON: {e}")))
}

fn key(body: &Json) -> String {
    Digest::of_json(body).hex()
}

/// Whether a body was recorded as another one, in which any word may stand for `[secret]`.
fn is_recorded_as(recorded: &Json, body: &Json) -> bool {
    match (recorded, body) {
        (Json::String(recorded), Json::String(text)) => is_text(recorded, text),
        (Json::String(recorded), Json::Number(number)) => is_text(recorded, &number.to_string()),
        (Json::Array(recorded), Json::Array(items)) => {
            recorded.len() == items.len() && recorded.iter().zip(items).all(|(one, item)| is_recorded_as(one, item))
        }
        (Json::Object(recorded), Json::Object(map)) => {
            let is_same = |(key, one)| map.get(key).is_some_and(|item| is_recorded_as(one, item));
            recorded.len() == map.len() && recorded.iter().all(is_same)
        }
        _ => recorded == body,
    }
}

/// Whether a text is a recorded one, with words for `[secret]`.
fn is_text(recorded: &str, text: &str) -> bool {
    let Some((before, mut recorded)) = recorded.split_once(Secrets::REDACTED) else {
        return recorded == text;
    };
    let Some(mut text) = text.strip_prefix(before) else {
        return false;
    };
    // Each word is as short as what follows it allows; the last one reaches to the end.
    loop {
        let Some((next, rest)) = recorded.split_once(Secrets::REDACTED) else {
            return text.strip_suffix(recorded).is_some_and(is_word);
        };
        let ends = text.match_indices(next).map(|(at, _)| at);
        let Some(end) = ends.into_iter().find(|at| text.get(..*at).is_some_and(is_word)) else {
            return false;
        };
        text = text.get(end.saturating_add(next.len())..).unwrap_or_default();
        recorded = rest;
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}
