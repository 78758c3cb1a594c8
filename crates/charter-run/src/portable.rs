//! What a host keeps of a run ([`Kept`]) as JSON, for hosts that store it as text.

use std::collections::BTreeMap;

use charter_journal::Record;
use charter_kernel::{EffectId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::position::RefusedTimers;
use crate::recent::RecentIds;
use crate::retry::NextAttempt;
use crate::run::{Kept, KeptError};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Portable {
    last: Option<String>,
    snapshot: Option<String>,
    #[serde(default)]
    refused: RefusedTimers,
    #[serde(default)]
    attempts: Vec<Attempt>,
    #[serde(default)]
    recent: RecentIds,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    effect: (u64, u32),
    attempt: u32,
    not_before: Timestamp,
    held_since: Option<Timestamp>,
}

impl Kept {
    /// Returns it as JSON, which [`Kept::read`] reads.
    #[must_use]
    pub fn json(&self) -> Json {
        let attempts = self.attempts.iter().map(|(effect, next)| Attempt {
            effect: (effect.seq, effect.index),
            attempt: next.attempt,
            not_before: next.not_before,
            held_since: next.held_since,
        });
        let portable = Portable {
            last: self.last.as_ref().map(|record| record.text().to_owned()),
            snapshot: self.snapshot.clone(),
            refused: self.refused.clone(),
            attempts: attempts.collect(),
            recent: self.recent.clone(),
        };
        // Serializing plain data cannot fail; `null` would not be read again.
        serde_json::to_value(portable).unwrap_or_default()
    }

    /// Reads what [`Kept::json`] has written.
    ///
    /// # Errors
    /// It is something else.
    pub fn read(json: Json) -> Result<Kept, KeptError> {
        let bad = |why: String| KeptError::NotKept(why);
        let portable: Portable = serde_json::from_value(json).map_err(|e| bad(e.to_string()))?;
        let last = portable.last.as_deref().map(Record::read).transpose().map_err(|e| bad(e.to_string()))?;
        let mut attempts = BTreeMap::new();
        for Attempt { effect: (seq, index), attempt, not_before, held_since } in portable.attempts {
            attempts.insert(EffectId { seq, index }, NextAttempt { attempt, not_before, held_since });
        }
        let Portable { snapshot, refused, recent, .. } = portable;
        Ok(Kept { last, snapshot, refused, attempts, recent })
    }
}
