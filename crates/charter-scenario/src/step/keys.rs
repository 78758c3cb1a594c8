//! Event ids: an id that is repeated with the same content receives the first answer again. If the
//! content is different, the event is refused as `stale`.

use charter_kernel::{Digest, Event};
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::session::SessionEvent;

/// The event ids of a run, each with the content and the answer of its first use.
#[derive(Default)]
pub(crate) struct IdempotencyKeys(FxHashMap<Box<str>, FirstUse>);

struct FirstUse {
    content: Digest,
    seq: u64,
    line: Box<[u8]>,
}

/// How an event id relates to earlier ids.
pub(crate) enum KeyUse<'k> {
    /// The id is new. Contains the digest of its content.
    New(Digest),
    /// The id was used before with the same content. Contains the output line of the first use.
    Repeated(&'k [u8]),
    /// The id was used before with different content, in the record with this sequence number.
    Conflict(u64),
}

impl IdempotencyKeys {
    /// Compares an id with the earlier ids.
    pub(crate) fn look_up(&self, id: &str, event: &SessionEvent) -> KeyUse<'_> {
        let content = content(event);
        match self.0.get(id) {
            None => KeyUse::New(content),
            Some(first) if first.content == content => KeyUse::Repeated(&first.line),
            Some(first) => KeyUse::Conflict(first.seq),
        }
    }

    /// Stores the answer to the first use of an id.
    pub(crate) fn insert(&mut self, id: String, content: Digest, seq: u64, line: &[u8]) {
        let line = line.into();
        self.0.insert(id.into(), FirstUse { content, seq, line });
    }
}

/// Computes the digest of the content that a repetition must have in common. The time is excluded,
/// because a sender retries later.
fn content(given: &SessionEvent) -> Digest {
    let event = match &given.event {
        Event::External { r#type, data } => json!({"type": r#type, "data": data}),
        Event::Done { invocation, output, .. } => json!({"done": invocation, "output": output}),
        Event::Failed { invocation, error, .. } => json!({"failed": invocation, "error": error}),
        Event::Start { .. } | Event::Attempt { .. } | Event::Timer { .. } => json!(null),
    };
    Digest::of_json(&json!({"event": event, "to": given.to, "by": given.by.id}))
}
