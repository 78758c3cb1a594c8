//! A store in memory: for tests, for the checker, and for hosts that keep their records elsewhere.
//! Nothing is persisted.

mod run;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use charter_kernel::digest::canonical;
use charter_kernel::{Digest, Status, Timestamp};
use serde_json::Value as Json;

use crate::error::StoreError;
use crate::head::{HeadCheck, JournalHead};
use crate::host_state::check_changes;
use crate::imports::Imported;
use crate::keys::{self, Reservation};
use crate::record::Record;
use crate::store::{
    Append, Head, LastModel, OpenEffect, PendingTimer, Reply, Row, RunFilter, RunInfo, RunRow, StateChange, Store,
    StoredCharter, StoredSnapshot, UsageFilter, UsageRow, UsageTotals, follows,
};
use run::Run;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    runs: BTreeMap<String, Run>,
    charters: BTreeMap<Digest, StoredCharter>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    place: i64,
    head: Option<JournalHead>,
    /// Position -> hash of an entry that is not a record.
    interventions: BTreeMap<i64, Digest>,
    /// Event type and unique key -> the run that has it, and its record.
    keys: BTreeMap<(String, String), (String, u64)>,
    /// Area and name -> what a host keeps beside the records.
    host_state: BTreeMap<(String, String), String>,
    usage: Vec<UsageRow>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing can panic while the data is inconsistent, so a poisoned lock is safe to use.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_append(&self, batch: Vec<Append>) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let mut heads: BTreeMap<&str, Head> = BTreeMap::new();
        let mut ids: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for Append { record, .. } in &batch {
            let run = record.run.as_ref();
            let head = heads.get(run).copied().or_else(|| inner.runs.get(run).and_then(Run::head));
            if head.is_none() && !inner.charters.contains_key(&record.charter) {
                return Err(StoreError::UnknownCharter { digest: record.charter });
            }
            heads.insert(run, follows(head, record)?);
            if !record.has_given_id() {
                continue;
            }
            let stored = inner.runs.get(run).and_then(|r| r.ids.get(record.id.as_ref()));
            let stored = stored.map(|seq| u64::try_from(*seq).unwrap_or(u64::MAX));
            if let Some(seq) = stored.or_else(|| ids.insert((run, record.id.as_ref()), record.seq)) {
                return Err(StoreError::IdTaken { run: run.to_owned(), id: record.id.to_string(), seq });
            }
        }
        drop((heads, ids));
        let Ok(reserved) = keys::reserve(&batch, &*inner);
        for Reservation { event, key, run, seq } in reserved? {
            inner.keys.insert((event, key), (run, seq));
        }
        let mut imported = Imported::of_batch(&batch);
        for mut append in batch {
            if let Some(imported) = imported.remove(append.record.run.as_ref()) {
                inner.place = inner.place.saturating_add(1);
                let (place, hash) = (inner.place, imported.entry_hash());
                inner.interventions.insert(place, hash);
                inner.head.get_or_insert(JournalHead::EMPTY).add_intervention(hash);
            }
            inner.place = inner.place.saturating_add(1);
            let place = inner.place;
            let record = &append.record;
            inner.head.get_or_insert(JournalHead::EMPTY).add_record(record.seq, record.hash);
            inner.keep(&mut append);
            inner.runs.entry(append.record.run.to_string()).or_default().push(place, append);
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    fn head(&self) -> Result<Option<JournalHead>, StoreError> {
        Ok(Some(self.lock().head.unwrap_or(JournalHead::EMPTY)))
    }

    fn check_head(&self, anchors: &[(u64, Digest)], _: bool) -> Result<HeadCheck, StoreError> {
        let inner = self.lock();
        let records = inner.runs.values().flat_map(|r| r.records.iter().map(|(n, r)| (*n, (Some(r.seq), r.hash))));
        let others = inner.interventions.iter().map(|(n, hash)| (*n, (None, *hash)));
        let in_order: BTreeMap<i64, (Option<u64>, Digest)> = records.chain(others).collect();
        let mut head = JournalHead::EMPTY;
        let mut left = anchors.to_vec();
        for (seq, hash) in in_order.into_values() {
            match seq {
                Some(seq) => head.add_record(seq, hash),
                None => head.add_intervention(hash),
            }
            left.retain(|(at, hash)| (*at, *hash) != (head.entries, head.hash));
        }
        let problems = left.iter().map(|(at, hash)| head.not_anchored(*at, *hash));
        Ok(HeadCheck { head: Some(head), problems: problems.collect(), remarks: Vec::new() })
    }

    fn blocks(&self) -> bool {
        false
    }

    fn submit(&self, batch: Vec<Append>, reply: Reply) {
        reply(self.try_append(batch));
    }

    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError> {
        charter.definition()?;
        let mut inner = self.lock();
        let stored = inner.charters.entry(charter.digest).or_insert_with(|| charter.clone());
        if charter.has_place() {
            *stored = charter.clone();
        }
        Ok(())
    }

    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError> {
        Ok(self.lock().charters.get(&digest).cloned())
    }

    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError> {
        Ok(self.lock().charters.values().cloned().collect())
    }

    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(data);
        self.lock().blobs.entry(digest).or_insert_with(|| data.to_vec());
        Ok(digest)
    }

    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().blobs.get(&digest).cloned())
    }

    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        let blobs = self.lock().blobs.clone();
        blobs.iter().for_each(|(digest, data)| visit(&digest.to_string(), data));
        Ok(())
    }

    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError> {
        Ok(self.lock().runs.get(run).and_then(Run::info))
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
        let inner = self.lock();
        let fits = |i: &RunInfo| {
            filter.charter.is_none_or(|c| c == i.charter)
                && filter.status.is_none_or(|s| i.status == Some(s))
                && filter.after.as_ref().is_none_or(|a| *a < i.run)
        };
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit };
        Ok(inner.runs.values().filter_map(Run::info).filter(fits).take(limit).collect())
    }

    fn newest(&self) -> Result<Option<Timestamp>, StoreError> {
        let inner = self.lock();
        let own = |run: &Run| {
            let (place, last) = run.records.last().filter(|(_, last)| last.seq >= run.imported)?;
            Some((*place, last.at))
        };
        Ok(inner.runs.values().filter_map(own).max_by_key(|(place, _)| *place).map(|(_, at)| at))
    }

    fn imported(&self, run: &str) -> Result<u64, StoreError> {
        Ok(self.lock().runs.get(run).map_or(0, |r| r.imported))
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let inner = self.lock();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let records = inner.runs.get(run).and_then(|r| r.records.get(from..)).unwrap_or_default();
        Ok(records.iter().take(limit).map(|(_, r)| r.clone()).collect())
    }

    fn records_after(&self, position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError> {
        let inner = self.lock();
        let mut found: Vec<(u64, &Record)> = Vec::new();
        for run in inner.runs.values() {
            // The positions of a run's records increase.
            let from = run.records.partition_point(|(n, _)| u64::try_from(*n).is_ok_and(|n| n <= position));
            let records = run.records.get(from..).unwrap_or_default().iter().take(limit);
            found.extend(records.map(|(n, record)| (u64::try_from(*n).unwrap_or_default(), record)));
        }
        found.sort_unstable_by_key(|(n, _)| *n);
        Ok(found.into_iter().take(limit).map(|(n, record)| (n, record.clone())).collect())
    }

    fn last_position(&self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.lock().place).unwrap_or_default())
    }

    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError> {
        let inner = self.lock();
        let found = inner.runs.get(run).and_then(|r| r.records.get(*r.ids.get(id)?));
        Ok(found.map(|(_, r)| r.clone()))
    }

    fn keeps_keys(&self) -> bool {
        true
    }

    fn key_holder(&self, event: &str, key: &Json) -> Result<Option<String>, StoreError> {
        Ok(self.lock().keys.get(&(event.to_owned(), canonical(key))).map(|(run, _)| run.clone()))
    }

    fn put_host_state(&self, changes: Vec<StateChange>) -> Result<(), StoreError> {
        check_changes(&changes)?;
        self.lock().change(changes);
        Ok(())
    }

    fn host_state(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let inner = self.lock();
        let entries = inner.host_state.iter().filter(|((of, _), _)| of == area);
        Ok(entries.map(|((_, name), value)| (name.clone(), value.clone())).collect())
    }

    fn put_usage(&self, rows: Vec<UsageRow>) -> Result<(), StoreError> {
        self.lock().usage.extend(rows);
        Ok(())
    }

    fn usage(&self, filter: &UsageFilter) -> Result<UsageTotals, StoreError> {
        Ok(filter.totals(&self.lock().usage))
    }

    fn last_models(&self, run: &str) -> Result<Vec<LastModel>, StoreError> {
        Ok(LastModel::of(run, &self.lock().usage))
    }

    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError> {
        let inner = self.lock();
        let found = inner.runs.get(run).and_then(|r| r.snapshots.range(..=at_most).next_back());
        Ok(found.map(|(seq, text)| StoredSnapshot { seq: *seq, text: text.clone() }))
    }

    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let run = inner.runs.get_mut(run).ok_or_else(|| StoreError::UnknownRun(run.into()))?;
        run.snapshots.insert(snapshot.seq, snapshot.text.clone());
        Ok(())
    }

    fn forget_snapshots(&self) -> Result<(), StoreError> {
        self.lock().runs.values_mut().for_each(|r| r.snapshots.clear());
        Ok(())
    }

    fn pending_timers(&self, until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError> {
        let inner = self.lock();
        let active = inner.runs.iter().filter(|(_, r)| r.status() == Some(Status::Active));
        let timers = active.flat_map(|(run, r)| {
            r.timers.iter().map(move |((timer, generation), due)| (run, timer, *generation, *due))
        });
        let mut due: Vec<PendingTimer> = timers
            .filter(|(.., due)| *due <= until)
            .map(|(run, timer, generation, due)| PendingTimer {
                due,
                run: run.clone(),
                timer: timer.clone(),
                generation,
            })
            .collect();
        due.sort();
        due.truncate(limit);
        Ok(due)
    }

    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError> {
        let inner = self.lock();
        let unfinished = inner.runs.iter().filter(|(_, r)| matches!(r.status(), Some(Status::Active | Status::Paused)));
        let open = unfinished.flat_map(|(run, r)| {
            r.open.iter().map(move |(seq, index)| OpenEffect { run: run.clone(), seq: *seq, index: *index })
        });
        Ok(open.filter(|e| after.is_none_or(|a| e > a)).take(limit).collect())
    }

    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        let mut records: Vec<(i64, Record)> = {
            let inner = self.lock();
            let all = inner.runs.values().flat_map(|r| r.records.iter().cloned());
            all.filter(|(_, r)| !r.effects.is_empty()).collect()
        };
        records.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        for (_, record) in &records {
            for effect in record.effects.iter().rev() {
                let word = |key: &str| effect.get(key).and_then(serde_json::Value::as_str);
                if word("kind") == Some("emit") && word("type") == Some(r#type) {
                    let data = effect.get("data").map(charter_kernel::digest::canonical);
                    if !visit(&record.run, record.seq, data.as_deref().unwrap_or("null")) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError> {
        // The records are cloned, so that the visitor can use the store; clones share their data
        // and are cheap.
        let records: Vec<(i64, Record)> = {
            let inner = self.lock();
            let runs = inner.runs.iter().filter(|(id, _)| run.is_none_or(|r| r == id.as_str()));
            runs.flat_map(|(_, r)| r.records.iter().filter(|(_, r)| r.seq >= from).cloned()).collect()
        };
        for (place, record) in &records {
            if !Row::of_record(*place, record, visit) {
                break;
            }
        }
        Ok(())
    }

    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError> {
        let infos: Vec<RunInfo> = {
            let inner = self.lock();
            inner
                .runs
                .iter()
                .filter(|(id, _)| run.is_none_or(|r| r == id.as_str()))
                .filter_map(|(_, r)| r.info())
                .collect()
        };
        for i in infos {
            let timestamp = crate::record::timestamp::text;
            let (charter, hash, started, updated) =
                (i.charter.to_string(), i.hash.to_string(), timestamp(i.started), timestamp(i.updated));
            let (status, seq) = (i.status.map_or("refused", Status::word), i64::try_from(i.seq).unwrap_or(i64::MAX));
            visit(&RunRow {
                run: &i.run,
                charter: &charter,
                status,
                seq,
                hash: &hash,
                started: &started,
                updated: &updated,
            });
        }
        Ok(())
    }

    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError> {
        let snapshots: Vec<(String, u64, String)> = {
            let inner = self.lock();
            let runs = inner.runs.iter().filter(|(id, _)| run.is_none_or(|r| r == id.as_str()));
            runs.flat_map(|(id, r)| r.snapshots.iter().map(move |(seq, text)| (id.clone(), *seq, text.clone())))
                .collect()
        };
        snapshots.iter().for_each(|(run, seq, text)| visit(run, *seq, text.as_bytes()));
        Ok(())
    }
}
