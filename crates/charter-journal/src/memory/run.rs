//! A run in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use charter_kernel::{Digest, Status, Timestamp};

use super::Inner;
use crate::host_state::{StateChange, areas};
use crate::keys::{KeyHolder, Lookup, Reservation};
use crate::project::{Change, project};
use crate::record::{Origin, Record};
use crate::store::{Append, Head, RunInfo};

/// A run with its records.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Each record with its position in the store.
    pub(super) records: Vec<(i64, Record)>,
    pub(super) snapshots: BTreeMap<u64, String>,
    /// Event id -> index of its first record.
    pub(super) ids: BTreeMap<String, usize>,
    /// Timer id and generation -> due time.
    pub(super) timers: BTreeMap<(String, u64), Timestamp>,
    pub(super) open: BTreeSet<(u64, u32)>,
    /// Number of records that came from another journal.
    pub(super) imported: u64,
}

impl Run {
    pub(super) fn head(&self) -> Option<Head> {
        self.records.last().map(|(_, r)| Head { seq: r.seq, hash: r.hash })
    }

    pub(super) fn origin(&self) -> Option<Origin<'static>> {
        self.records.first().and_then(|(_, first)| first.forked_from.clone())
    }

    pub(super) fn status(&self) -> Option<Status> {
        self.records.last().and_then(|(_, r)| r.status)
    }

    pub(super) fn info(&self) -> Option<RunInfo> {
        let ((_, first), (_, last)) = (self.records.first()?, self.records.last()?);
        Some(RunInfo {
            run: last.run.to_string(),
            charter: last.charter,
            status: last.status,
            seq: last.seq,
            hash: last.hash,
            started: first.at,
            updated: last.at,
        })
    }

    pub(super) fn push(&mut self, place: i64, append: Append) {
        let record = append.record;
        if append.imported {
            self.imported = record.seq.saturating_add(1);
        }
        if record.has_given_id() {
            self.ids.entry(record.id.to_string()).or_insert(self.records.len());
        }
        let Ok(()) = project::<Infallible>(&record, |change| {
            match change {
                Change::TimerSet { timer, generation, due } => {
                    self.timers.insert((timer.to_owned(), generation), due);
                }
                Change::TimerEnded { timer, generation } => {
                    self.timers.remove(&(timer.to_owned(), generation));
                }
                Change::Effect { index, open: true, .. } => {
                    self.open.insert((record.seq, u32::try_from(index).unwrap_or(u32::MAX)));
                }
                Change::EffectEnded { effect, .. } => {
                    self.open.remove(&(effect.seq, effect.index));
                }
                _ => {}
            }
            Ok(())
        });
        if let Some(snapshot) = append.snapshot {
            self.snapshots.insert(record.seq, snapshot);
        }
        self.records.push((place, record));
    }
}

impl Inner {
    /// Keeps what is kept with a record. A run begins without what was kept of an earlier run.
    pub(super) fn keep(&mut self, append: &mut Append) {
        if append.record.seq == 0 {
            let areas = areas(&append.record.run);
            self.host_state.retain(|(area, _), _| !areas.contains(area));
        }
        self.change(std::mem::take(&mut append.state));
    }

    pub(super) fn change(&mut self, changes: Vec<StateChange>) {
        for StateChange { area, name, value } in changes {
            match value {
                Some(value) => self.host_state.insert((area, name), value),
                None => self.host_state.remove(&(area, name)),
            };
        }
    }
}

impl Lookup for &Inner {
    type Error = Infallible;

    fn origin(&mut self, run: &str) -> Result<Option<Option<Origin<'static>>>, Infallible> {
        Ok(self.runs.get(run).map(Run::origin))
    }

    fn hash(&mut self, run: &str, seq: u64) -> Result<Option<Digest>, Infallible> {
        let records = self.runs.get(run).map(|run| run.records.as_slice()).unwrap_or_default();
        let record = usize::try_from(seq).ok().and_then(|index| records.get(index));
        Ok(record.map(|(_, record)| record.hash))
    }

    fn holder(&mut self, key: &Reservation) -> Result<Option<KeyHolder>, Infallible> {
        let holder = self.keys.get(&(key.event.clone(), key.key.clone()));
        Ok(holder.map(|(run, seq)| KeyHolder { run: run.clone(), seq: *seq, deleted: None }))
    }
}
