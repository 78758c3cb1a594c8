//! Shows the progress of an actor: how much has arrived for each of its calls, the end of the text,
//! and what delays it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::call::Call;
use crate::progress::{ArrivingText, CallProgress};

/// Progress is published at most once in this time for each call.
const EVERY: Duration = Duration::from_millis(100);

/// What has arrived for the calls of an actor, by the index of the call.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<Mutex<BTreeMap<usize, Arriving>>>);

#[derive(Debug, Default)]
struct Arriving {
    bytes: u64,
    text: ArrivingText,
    /// Whether it is published soon, with what arrives until then.
    is_due: bool,
}

impl Shown {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<usize, Arriving>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is sent: what has arrived for the one before is forgotten.
    pub fn begin(&self, call: usize) {
        self.calls().remove(&call);
    }

    /// Adds what has arrived, and publishes it soon, on one of `threads`.
    pub fn arrived(&self, of: &Call, call: usize, bytes: usize, piece: &str, threads: &Handle) {
        self.change(of, call, threads, |arriving| {
            arriving.bytes = arriving.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
            arriving.text.push(piece, of.secrets());
        });
    }

    /// Publishes a text soon, in place of the one before.
    pub fn replace(&self, of: &Call, text: &str, threads: &Handle) {
        self.change(of, 0, threads, |arriving| {
            arriving.text = ArrivingText::default();
            arriving.text.push(text, of.secrets());
        });
    }

    fn change(&self, of: &Call, call: usize, threads: &Handle, change: impl FnOnce(&mut Arriving)) {
        let mut calls = self.calls();
        let arriving = calls.entry(call).or_default();
        change(arriving);
        if std::mem::replace(&mut arriving.is_due, true) {
            return;
        }
        let (shown, of) = (self.clone(), of.clone());
        threads.spawn(async move {
            tokio::time::sleep(EVERY).await;
            shown.publish(&of, call);
        });
    }

    fn publish(&self, of: &Call, call: usize) {
        let mut calls = self.calls();
        let Some(arriving) = calls.get_mut(&call) else { return };
        arriving.is_due = false;
        let (bytes, text) = (arriving.bytes, arriving.text.end(of.secrets()));
        drop(calls);
        publish(of, call, bytes, text, None);
    }

    /// Publishes why an answer takes longer.
    pub fn note(&self, of: &Call, call: usize, note: &str) {
        publish(of, call, 0, String::new(), Some(of.secrets().redact(note).into_owned()));
    }
}

fn publish(of: &Call, call: usize, bytes: u64, text: String, note: Option<String>) {
    let (run, effect, src) = (of.run.clone(), of.effect.clone(), of.name().into());
    let call = u32::try_from(call).unwrap_or(u32::MAX);
    of.host().progress(CallProgress { run, effect, src, call, bytes, text, note });
}
