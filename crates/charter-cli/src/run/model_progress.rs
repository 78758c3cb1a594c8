//! How questions to models go: how much of their answers has come, and what costs time. For lines on the terminal, never for the record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use charter_models::Listener;

/// Lines that wait to be shown; more of them are dropped.
const MOST: usize = 100;

/// What was heard. Clones hear the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelProgress(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    /// By run, actor and call.
    bytes: BTreeMap<(String, String, usize), usize>,
    /// Run and line.
    notes: Vec<(String, String)>,
}

impl ModelProgress {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Bytes of an actor's answers so far.
    pub(crate) fn bytes(&self, run: &str, actor: &str) -> usize {
        let heard = self.heard();
        let own = heard.bytes.iter();
        own.filter(|((r, a, _), _)| r == run && a == actor).map(|(_, bytes)| bytes).sum()
    }

    /// An actor begins anew.
    pub(crate) fn forget(&self, run: &str, actor: &str) {
        self.heard().bytes.retain(|(r, a, _), _| r != run || a != actor);
    }

    /// Lines about a run that were not shown yet.
    pub(crate) fn notes(&self, run: &str) -> Vec<String> {
        let mut heard = self.heard();
        let own = heard.notes.extract_if(.., |(r, _)| r == run);
        own.map(|(_, line)| line).collect()
    }
}

impl Listener for ModelProgress {
    fn received(&self, run: &str, actor: &str, call: usize, bytes: usize) {
        let key = (run.to_owned(), actor.to_owned(), call);
        self.heard().bytes.insert(key, bytes);
    }

    fn note(&self, run: &str, actor: &str, _: usize, sentence: &str) {
        let mut heard = self.heard();
        if heard.notes.len() < MOST {
            heard.notes.push((run.to_owned(), format!("{actor}: {sentence}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ModelProgress;
    use charter_models::Listener as _;

    #[test]
    fn each_run_for_itself() {
        let hearing = ModelProgress::default();
        for (run, call, bytes) in [("a", 0, 10), ("a", 0, 30), ("a", 1, 5), ("b", 0, 7)] {
            hearing.received(run, "ask", call, bytes);
            hearing.note(run, "ask", call, "busy");
        }
        assert_eq!((hearing.bytes("a", "ask"), hearing.bytes("b", "ask")), (35, 7));
        hearing.forget("a", "ask");
        assert_eq!((hearing.bytes("a", "ask"), hearing.bytes("b", "ask")), (0, 7));
        assert_eq!(hearing.notes("a").len(), 3);
        assert_eq!(hearing.notes("a").len(), 0);
        assert_eq!(hearing.notes("b"), ["ask: busy"]);
    }
}
