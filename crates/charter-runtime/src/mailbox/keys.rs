//! Looks up the unique keys of events.

use std::collections::BTreeSet;

use charter_journal::{Record, Store, StoreError, Verdict, origin};
use charter_kernel::digest::canonical;
use charter_kernel::{Machine, Unique};
use charter_run::EventInput;
use rustc_hash::FxHashMap;
use serde_json::Value as Json;

/// Maximum number of runs from which a dry fork descends.
const MAX_ORIGINS: usize = 100;

/// A key: event type, and the key as canonical JSON.
type Key = (String, String);

/// The keys of the events of a batch, each with the run that has it.
#[derive(Debug, Default)]
pub(super) struct Keys {
    holders: FxHashMap<Key, Option<String>>,
}

impl Keys {
    /// Whether an event of the batch has a key.
    pub(super) fn are_used(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Reads the runs that have these keys. A store that does not reserve keys has no answer, so
    /// that the kernel refuses the events.
    pub(super) fn read(store: &dyn Store, run: &str, dry: bool, keys: Vec<(String, Json)>) -> Result<Keys, StoreError> {
        let mut holders = FxHashMap::default();
        for (event, key) in keys.into_iter().filter(|_| store.keeps_keys()) {
            let holder = match dry {
                true => in_dry_fork(store, run, &event, &key)?,
                false => store.key_holder(&event, &key)?,
            };
            holders.insert((event, canonical(&key)), holder);
        }
        Ok(Keys { holders })
    }

    /// Returns what is known about the key of an event. `accepted` are the records of the batch.
    pub(super) fn of<'r>(
        &self,
        machine: &Machine,
        run: &str,
        event: &EventInput,
        mut batch: impl Iterator<Item = &'r Record>,
    ) -> Option<Unique> {
        let key = machine.unique_key(&event.r#type, &event.data, &event.by)?;
        let holder = self.holders.get(&(event.r#type.clone(), canonical(&key)))?;
        let taken_by = match batch.any(|record| has_accepted(record, &event.r#type, &key)) {
            true => Some(run.to_owned()),
            false => holder.clone(),
        };
        Some(Unique { key, taken_by })
    }
}

fn has_accepted(record: &Record, event: &str, key: &Json) -> bool {
    record.verdict == Verdict::Accepted
        && record.event.r#type == event
        && record.unique.as_deref().is_some_and(|unique| unique.key == *key)
}

/// Returns the run that has a key, as a dry fork sees it. It reserves nothing itself, so its own
/// keys are those of its records; and it may repeat what the runs did from which it descends.
fn in_dry_fork(store: &dyn Store, run: &str, event: &str, key: &Json) -> Result<Option<String>, StoreError> {
    let mut own = false;
    store.scan(Some(run), 0, &mut |row| {
        own = row.r#type == event
            && row.verdict == Verdict::Accepted.word()
            && std::str::from_utf8(row.text).is_ok_and(|t| Record::read(t).is_ok_and(|r| has_accepted(&r, event, key)));
        !own
    })?;
    if own {
        return Ok(Some(run.to_owned()));
    }
    let Some(holder) = store.key_holder(event, key)? else {
        return Ok(None);
    };
    let mut origins: BTreeSet<String> = BTreeSet::new();
    let mut of = run.to_owned();
    while let Some(origin) = origin(store, &of)?.filter(|_| origins.len() < MAX_ORIGINS) {
        of = origin.run.to_string();
        // The id of a deleted run may have been given to another one, even to one of its forks.
        if !origins.insert(of.clone()) {
            break;
        }
    }
    Ok((!origins.contains(&holder)).then_some(holder))
}
