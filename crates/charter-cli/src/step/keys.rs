//! Idempotency keys: the same id with the same content gets the first answer again; with other content it is refused as `stale`.

use charter_kernel::{Digest, Event};
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::session::Given;

/// The ids of a run, each with what it was used for and what the answer was.
#[derive(Default)]
pub(crate) struct Keys(FxHashMap<Box<str>, First>);

/// The first use of an id.
struct First {
    content: Digest,
    seq: u64,
    line: Box<[u8]>,
}

/// What an id means.
pub(crate) enum Known<'k> {
    /// It was not used before.
    New(Digest),
    /// It came with the same content: the line that was the answer.
    Same(&'k [u8]),
    /// It came with other content, in the record of that number.
    Other(u64),
}

impl Keys {
    /// Looks an id up.
    pub(crate) fn look_up(&self, id: &str, given: &Given) -> Known<'_> {
        let content = content(given);
        match self.0.get(id) {
            None => Known::New(content),
            Some(first) if first.content == content => Known::Same(&first.line),
            Some(first) => Known::Other(first.seq),
        }
    }

    /// Keeps an answer.
    pub(crate) fn keep(&mut self, id: String, content: Digest, seq: u64, line: &[u8]) {
        let line = line.into();
        self.0.insert(id.into(), First { content, seq, line });
    }
}

/// What has to be the same. Not the time: a sender tries again later.
fn content(given: &Given) -> Digest {
    let event = match &given.event {
        Event::External { r#type, data } => json!({"type": r#type, "data": data}),
        Event::Done { invocation, output, .. } => json!({"done": invocation, "output": output}),
        Event::Failed { invocation, error, .. } => json!({"failed": invocation, "error": error}),
        Event::Start { .. } | Event::Attempt { .. } | Event::Timer { .. } => json!(null),
    };
    Digest::of_json(&json!({"event": event, "to": given.to, "by": given.by.id}))
}
