//! The rule that each record of a run follows the one before it.

use charter_kernel::Digest;

use crate::error::StoreError;
use crate::record::{GENESIS, Record};
use crate::store::MAX_RECORD_BYTES;

/// The end of a run's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    pub(crate) hash: Digest,
}

/// Checks that a record continues its run, and returns the new head.
pub(crate) fn follows(head: Option<Head>, record: &Record) -> Result<Head, StoreError> {
    let expected = head.map_or(0, |h| h.seq.saturating_add(1));
    let prev = head.map_or(GENESIS, |h| h.hash);
    let conflict =
        |why: String| Err(StoreError::Conflict { run: record.run.to_string(), seq: record.seq, expected, why });
    if record.seq != expected {
        return conflict(match head {
            Some(h) => format!("the last record is {}, so {expected} is next", h.seq),
            None => "the run has no records yet, so 0 is next".into(),
        });
    }
    if record.prev != prev {
        return conflict(format!("its `prev` is {}, but the previous record has the hash {prev}", record.prev));
    }
    if record.text().len() > MAX_RECORD_BYTES {
        return Err(StoreError::TooLarge {
            run: record.run.to_string(),
            seq: record.seq,
            size: record.text().len(),
            limit: MAX_RECORD_BYTES,
        });
    }
    Ok(Head { seq: record.seq, hash: record.hash })
}
