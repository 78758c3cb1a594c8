//! Requests that are open: what they took is written when nobody waits for their call any more,
//! because its time is over, its run has ended, or the host ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use charter_actors::{Call, UsageRow};
use charter_kernel::Timestamp;

use crate::codes;
use crate::exchange::Usage;
use crate::model::{Model, Provider};
use crate::wire::Received;

/// How much of an answer is kept until it is complete, in bytes: more than a transport takes.
const MAX_RECEIVED: usize = 9 << 20;

/// A request that was sent, and what has arrived of its answer.
#[derive(Debug)]
pub struct OpenRequest {
    provider: Provider,
    /// The estimated tokens of the request.
    question: u64,
    /// `None`: the server has not accepted it.
    received: Mutex<Option<String>>,
}

impl OpenRequest {
    pub(crate) fn new(provider: Provider, question: u64) -> OpenRequest {
        OpenRequest { provider, question, received: Mutex::default() }
    }

    pub(crate) fn arrived(&self, line: &str) {
        let mut received = self.lock();
        let Some(text) = received.as_mut() else {
            *received = Some(line.to_owned());
            return;
        };
        if text.len() < MAX_RECEIVED {
            text.push('\n');
            text.push_str(line);
        }
    }

    /// The tokens of what has arrived; `None`: nothing has.
    pub(crate) fn taken(&self) -> Option<Usage> {
        let received = self.lock();
        received.as_deref().map(|text| Received::read(self.provider, text).taken(self.question))
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The open requests of one attempt, by the index among its parallel calls.
#[derive(Default)]
pub(crate) struct OpenRequests(Mutex<Requests>);

#[derive(Default)]
pub(crate) struct Requests {
    /// When the time of the attempt is over.
    until: Option<Timestamp>,
    open: BTreeMap<usize, Sent>,
}

struct Sent {
    model: Model,
    request: Arc<OpenRequest>,
    at: Instant,
    /// What was written when nobody waited any more.
    written: Option<Usage>,
}

impl OpenRequests {
    /// Locked while a row is written, so that each request is written once.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, until: Timestamp) {
        self.lock().until = Some(until);
    }

    pub(crate) fn add(&self, call: usize, model: &Model, request: &Arc<OpenRequest>) {
        let sent = Sent { model: model.clone(), request: request.clone(), at: Instant::now(), written: None };
        self.lock().open.insert(call, sent);
    }

    /// Writes what the open requests of a call have taken so far. A request whose answer has not
    /// begun counts as well, because the model may work on it.
    fn write(&self, call: &Call) {
        let mut requests = self.lock();
        let now = call.clock().now();
        let is_over = requests.until.is_some_and(|until| now >= until);
        let mut rows = Vec::new();
        for (index, sent) in &mut requests.open {
            let (model, request) = (&sent.model, &sent.request);
            let begun = Usage { input: request.question, estimated: true, ..Usage::default() };
            let taken = request.taken().unwrap_or(begun);
            sent.written = Some(taken);
            rows.push(UsageRow {
                requests: 1,
                millis: u64::try_from(sent.at.elapsed().as_millis()).unwrap_or(u64::MAX),
                outcome: if is_over { codes::TIMEOUT } else { codes::CANCELLED }.to_owned(),
                ..row(call, *index, model, taken)
            });
        }
        if !rows.is_empty()
            && let Err(error) = call.host().put_usage(rows)
        {
            tracing::warn!(%error, "what a model was asked could not be written");
        }
    }
}

impl Requests {
    /// Removes the request of a call, and returns what was written of it.
    pub(crate) fn end(&mut self, call: usize) -> Option<Usage> {
        self.open.remove(&call).and_then(|sent| sent.written)
    }
}

/// A row of these tokens.
pub(crate) fn row(call: &Call, index: usize, model: &Model, taken: Usage) -> UsageRow {
    UsageRow {
        run: call.run.to_string(),
        effect: call.effect.to_string(),
        actor: call.name().to_owned(),
        attempt: call.attempt,
        call: u32::try_from(index).unwrap_or(u32::MAX),
        at: call.clock().now(),
        model: model.title(),
        address: model.base_url.clone(),
        answered_as: None,
        requests: 0,
        input: taken.input,
        output: taken.output,
        cached: taken.cached,
        cache_written: taken.cache_written,
        estimated: taken.estimated,
        millis: 0,
        cost: model.price.map(|price| price.cost(taken)),
        outcome: String::new(),
        exchange: None,
    }
}

/// Writes what is open when it is dropped: a host that ends waits for that.
pub(crate) struct WriteOnDrop {
    pub(crate) call: Call,
    pub(crate) open: Arc<OpenRequests>,
}

impl Drop for WriteOnDrop {
    fn drop(&mut self) {
        self.open.write(&self.call);
    }
}
