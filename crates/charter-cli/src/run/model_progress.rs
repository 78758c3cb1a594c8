//! The progress of model calls: how much of an answer has arrived, and what delays it. It is shown
//! on the terminal and never recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use charter_models::Listener;

/// Maximum number of notes that have not been shown; further ones are dropped.
const MAX_NOTES: usize = 100;

/// Progress of model calls; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelProgress(Arc<Mutex<Calls>>);

#[derive(Debug, Default)]
struct Calls {
    /// Bytes received, by run, actor and call.
    bytes: BTreeMap<(String, String, usize), usize>,
    /// Run and text of each note.
    notes: Vec<(String, String)>,
}

impl ModelProgress {
    fn progress(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the number of bytes received for an actor so far.
    pub(crate) fn bytes(&self, run: &str, actor: &str) -> usize {
        let progress = self.progress();
        let own = progress.bytes.iter();
        own.filter(|((r, a, _), _)| r == run && a == actor).map(|(_, bytes)| bytes).sum()
    }

    /// Forgets the progress of an actor that starts again.
    pub(crate) fn forget(&self, run: &str, actor: &str) {
        self.progress().bytes.retain(|(r, a, _), _| r != run || a != actor);
    }

    /// Takes the notes about a run that have not been shown.
    pub(crate) fn notes(&self, run: &str) -> Vec<String> {
        let mut progress = self.progress();
        let own = progress.notes.extract_if(.., |(r, _)| r == run);
        own.map(|(_, line)| line).collect()
    }
}

impl Listener for ModelProgress {
    fn received(&self, run: &str, actor: &str, call: usize, bytes: usize) {
        let key = (run.to_owned(), actor.to_owned(), call);
        self.progress().bytes.insert(key, bytes);
    }

    fn note(&self, run: &str, actor: &str, _: usize, sentence: &str) {
        let mut progress = self.progress();
        if progress.notes.len() < MAX_NOTES {
            progress.notes.push((run.to_owned(), format!("{actor}: {sentence}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ModelProgress;
    use charter_models::Listener as _;

    #[test]
    fn runs_are_separate() {
        let progress = ModelProgress::default();
        for (run, call, bytes) in [("a", 0, 10), ("a", 0, 30), ("a", 1, 5), ("b", 0, 7)] {
            progress.received(run, "ask", call, bytes);
            progress.note(run, "ask", call, "busy");
        }
        assert_eq!((progress.bytes("a", "ask"), progress.bytes("b", "ask")), (35, 7));
        progress.forget("a", "ask");
        assert_eq!((progress.bytes("a", "ask"), progress.bytes("b", "ask")), (0, 7));
        assert_eq!(progress.notes("a").len(), 3);
        assert_eq!(progress.notes("a").len(), 0);
        assert_eq!(progress.notes("b"), ["ask: busy"]);
    }
}
