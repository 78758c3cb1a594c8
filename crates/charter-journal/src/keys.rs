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
    /// The hash of the record, if it was deleted with its run.
    pub(crate) deleted: Option<Digest>,
}

/// How a record reserves its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// No run may have it.
    Own,
    /// The record is a copy in a fork: the run that it was copied from has the key, if it is in
    /// this journal.
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

/// Returns the keys that a batch reserves, or why it is refused. `origin_of` returns the origin of
/// a run that is in the store, `holder_of` the run that has a key there.
pub(crate) fn reserve<E>(
    batch: &[Append],
    mut origin_of: impl FnMut(&str) -> Result<Option<Origin<'static>>, E>,
    mut holder_of: impl FnMut(&Reservation) -> Result<Option<KeyHolder>, E>,
) -> Result<Result<Vec<Reservation>, StoreError>, E> {
    let mut reserved: Vec<Reservation> = Vec::new();
    if batch.iter().all(|a| a.record.unique.is_none()) {
        return Ok(Ok(reserved));
    }
    let mut origins: BTreeMap<&str, Option<Origin<'static>>> = BTreeMap::new();
    let mut own: BTreeMap<(String, String), String> = BTreeMap::new();
    for Append { record, .. } in batch {
        let run = record.run.as_ref();
        if record.seq == 0 {
            origins.insert(run, record.forked_from.clone());
        }
        if record.unique.is_none() {
            continue;
        }
        if !origins.contains_key(run) {
            origins.insert(run, origin_of(run)?);
        }
        let origin = origins.get(run).and_then(Option::as_ref);
        let Some((reservation, claim)) = claim(record, origin) else {
            continue;
        };
        let name = (reservation.event.clone(), reservation.key.clone());
        let holder = match own.get(&name) {
            Some(run) => Some(run.clone()),
            None => match holder_of(&reservation)? {
                // The run was deleted, kept its keys, and is imported again.
                Some(holder) if holder.run == record.run && holder.deleted == Some(record.hash) => continue,
                holder => holder.map(|h| h.run),
            },
        };
        match (holder, claim) {
            (Some(_), Claim::Copy) => {}
            (Some(holder), Claim::Own) => {
                let Reservation { event, key, run, seq } = reservation;
                return Ok(Err(StoreError::KeyTaken { run, seq, event, key, holder }));
            }
            (None, _) => {
                own.insert(name, reservation.run.clone());
                reserved.push(reservation);
            }
        }
    }
    Ok(Ok(reserved))
}
