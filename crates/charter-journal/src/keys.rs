//! The unique keys of events (`unique` in a charter): which records reserve one, and which batches
//! are refused because a run has a key already.

use std::collections::BTreeMap;

use charter_kernel::Digest;
use charter_kernel::digest::canonical;

use crate::error::StoreError;
use crate::record::{Fields, Origin, Verdict};
use crate::store::Append;

/// A key that a record reserves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// Event type.
    pub(crate) event: String,
    /// The key as canonical JSON.
    pub(crate) key: String,
    /// The run.
    pub(crate) run: String,
    /// The record.
    pub(crate) seq: u64,
}

/// The run that has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyHolder {
    pub(crate) run: String,
    /// The record.
    pub(crate) seq: u64,
    /// The hash of the record, if it was deleted with its run.
    pub(crate) deleted: Option<Digest>,
}

/// How a record reserves its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// No run may have it.
    Own,
    /// The record is a copy in a fork: a run that it was copied from may have the key.
    Copy,
}

/// Returns the key that a record reserves, by the origin of its run: that of an accepted event with
/// a key, unless its run is a dry fork.
pub(crate) fn claim(record: &Fields<'_>, origin: Option<&Origin<'_>>) -> Option<(Reservation, Claim)> {
    let unique = record.unique.as_deref().filter(|_| record.verdict == Verdict::Accepted)?;
    let claim = match origin {
        Some(origin) if origin.dry => return None,
        Some(origin) if record.seq <= origin.seq => Claim::Copy,
        _ => Claim::Own,
    };
    let reservation = Reservation {
        event: record.event.r#type.to_string(),
        key: canonical(&unique.key),
        run: record.run.to_string(),
        seq: record.seq,
    };
    Some((reservation, claim))
}

/// Maximum number of runs from which a fork descends, for a key that it shares with them.
const MAX_ORIGINS: usize = 1_000;

/// What decides who has a key.
pub(crate) trait Lookup {
    /// Why the lookup fails.
    type Error;

    /// Returns the origin of a run; outside `None` if there is no such run.
    fn origin(&mut self, run: &str) -> Result<Option<Option<Origin<'static>>>, Self::Error>;

    /// Returns the hash of a record.
    fn hash(&mut self, run: &str, seq: u64) -> Result<Option<Digest>, Self::Error>;

    /// Returns the run that has a key.
    fn holder(&mut self, key: &Reservation) -> Result<Option<KeyHolder>, Self::Error>;
}

/// Where a record of a run was copied from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The most distant run that has the record and is not dry: what it says was done there.
    pub(crate) run: String,
    /// Whether all runs are known that have the record.
    pub(crate) is_complete: bool,
}

/// Finds where a record of a run was copied from. A dry fork has done nothing, so it is no source.
pub(crate) fn source<L: Lookup>(lookup: &mut L, run: &str, seq: u64) -> Result<Source, L::Error> {
    let mut source = run.to_owned();
    let mut next = lookup.origin(run)?.flatten();
    for _ in 0..MAX_ORIGINS {
        let Some(origin) = next.take().filter(|origin| seq <= origin.seq) else {
            return Ok(Source { run: source, is_complete: true });
        };
        let of = origin.run.into_owned();
        // The id of a deleted run, or of one in another journal, may belong to another run here.
        match lookup.hash(&of, origin.seq)? {
            None => return Ok(Source { run: of, is_complete: false }),
            Some(hash) if hash != origin.hash => break,
            Some(_) => {}
        }
        next = lookup.origin(&of)?.flatten();
        if next.as_ref().is_none_or(|origin| !origin.dry) {
            source = of;
        }
    }
    Ok(Source { run: source, is_complete: false })
}

/// Whether the record of a fork may repeat a key that a run has: both say the same, namely what was
/// done once. `None` if that is not known, because a run is missing between them.
pub(crate) fn is_shared<L: Lookup>(
    lookup: &mut L,
    copy: &Reservation,
    (holder, seq): (&str, u64),
) -> Result<Option<bool>, L::Error> {
    if copy.seq != seq {
        return Ok(Some(false));
    }
    let ours = source(lookup, &copy.run, seq)?;
    if ours.run == holder {
        return Ok(Some(true));
    }
    let theirs = source(lookup, holder, seq)?;
    Ok((ours.is_complete && theirs.is_complete).then(|| ours.run == theirs.run))
}

/// The runs of a batch, and those of the store.
struct WithBatch<'b, L> {
    batch: &'b [Append],
    store: L,
    origins: BTreeMap<String, Option<Option<Origin<'static>>>>,
}

impl<L: Lookup> Lookup for WithBatch<'_, L> {
    type Error = L::Error;

    fn origin(&mut self, run: &str) -> Result<Option<Option<Origin<'static>>>, L::Error> {
        if let Some(known) = self.origins.get(run) {
            return Ok(known.clone());
        }
        let origin = self.store.origin(run)?;
        self.origins.insert(run.to_owned(), origin.clone());
        Ok(origin)
    }

    fn hash(&mut self, run: &str, seq: u64) -> Result<Option<Digest>, L::Error> {
        match self.batch.iter().find(|a| a.record.seq == seq && a.record.run == run) {
            Some(append) => Ok(Some(append.record.hash)),
            None => self.store.hash(run, seq),
        }
    }

    fn holder(&mut self, key: &Reservation) -> Result<Option<KeyHolder>, L::Error> {
        self.store.holder(key)
    }
}

/// Returns the keys that a batch reserves, or why it is refused.
pub(crate) fn reserve<L: Lookup>(batch: &[Append], store: L) -> Result<Result<Vec<Reservation>, StoreError>, L::Error> {
    let mut reserved: Vec<Reservation> = Vec::new();
    if batch.iter().all(|a| a.record.unique.is_none()) {
        return Ok(Ok(reserved));
    }
    let mut lookup = WithBatch { batch, store, origins: BTreeMap::new() };
    let mut own: BTreeMap<(String, String), (String, u64)> = BTreeMap::new();
    for Append { record, .. } in batch {
        let run = record.run.as_ref();
        if record.seq == 0 {
            lookup.origins.insert(run.to_owned(), Some(record.forked_from.clone()));
        }
        if record.unique.is_none() {
            continue;
        }
        let origin = lookup.origin(run)?.flatten();
        let Some((reservation, claim)) = claim(record, origin.as_ref()) else {
            continue;
        };
        let name = (reservation.event.clone(), reservation.key.clone());
        let holder = match own.get(&name) {
            Some(holder) => Some(holder.clone()),
            None => match lookup.holder(&reservation)? {
                // The run was deleted, kept its keys, and is imported again.
                Some(holder) if holder.run == record.run && holder.deleted == Some(record.hash) => continue,
                holder => holder.map(|h| (h.run, h.seq)),
            },
        };
        let Some((holder, at)) = holder else {
            own.insert(name, (reservation.run.clone(), reservation.seq));
            reserved.push(reservation);
            continue;
        };
        // In doubt, the key is taken: a false refusal is seen, a second payment is not.
        if claim == Claim::Copy && is_shared(&mut lookup, &reservation, (&holder, at))? == Some(true) {
            continue;
        }
        let Reservation { event, key, run, seq } = reservation;
        return Ok(Err(StoreError::KeyTaken { run, seq, event, key, holder }));
    }
    Ok(Ok(reserved))
}
