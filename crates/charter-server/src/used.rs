//! When keys were last used. It is kept beside the records, so that a restart does not forget it; a
//! record of each request would say nothing that somebody has decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use charter_journal::StateChange;
use charter_kernel::Timestamp;
use charter_runtime::RuntimeError;
use charter_runtime::backend::Backend;
use charter_scenario::timestamp;

use crate::identity::LAST_USED;

/// How often changed times are written; a crash forgets at most what is newer.
pub(crate) const EVERY: Duration = Duration::from_secs(60);

/// Key id -> time of its last request.
#[derive(Debug, Default)]
pub(crate) struct Used(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    of: BTreeMap<String, Timestamp>,
    /// The keys whose time is not written yet.
    changed: BTreeSet<String>,
}

impl Used {
    /// Reads the times of earlier servers.
    pub(crate) async fn read(backend: &dyn Backend) -> Result<Used, RuntimeError> {
        let kept = backend.host_state(LAST_USED.to_owned()).await?;
        // What cannot be read is overwritten by the next use.
        let times = kept.into_iter().filter_map(|(key, at)| Some((key, timestamp::parse(&at).ok()?)));
        Ok(Used(Mutex::new(Times { of: times.collect(), changed: BTreeSet::new() })))
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, key: &str, now: Timestamp) {
        let mut times = self.times();
        match times.of.get_mut(key) {
            Some(last) => *last = now.max(*last),
            None => drop(times.of.insert(key.to_owned(), now)),
        }
        if !times.changed.contains(key) {
            times.changed.insert(key.to_owned());
        }
    }

    pub(crate) fn last(&self, key: &str) -> Option<Timestamp> {
        self.times().of.get(key).copied()
    }

    /// Writes the times that have changed; what cannot be written now is written the next time.
    pub(crate) async fn write(&self, backend: &dyn Backend) {
        let changed = std::mem::take(&mut self.times().changed);
        if changed.is_empty() {
            return;
        }
        let change = |key: &String| StateChange {
            area: LAST_USED.to_owned(),
            name: key.clone(),
            value: self.last(key).map(timestamp::text),
        };
        if backend.put_host_state(changed.iter().map(change).collect()).await.is_err() {
            self.times().changed.extend(changed);
        }
    }
}
