//! Data for a suggested event that the run accepts: each is tried on the snapshot, which changes
//! nothing.

use std::cell::Cell;

use charter_check::event_data;
use charter_kernel::{Envelope, Machine, Principal, Snapshot, TakenKeys, Timestamp, Verdict};
use serde_json::Value as Json;

use crate::journal::offers::Offer;

/// Upper limit of the events that are tried for all suggestions together.
const MAX_TRIES: u32 = 500;
/// Upper limit of the suggestions for which other data than the example is looked for.
const MAX_SEARCHES: u32 = 20;

/// Tries events on a snapshot.
pub(super) struct Tries<'a> {
    machine: &'a Machine,
    snapshot: &'a Snapshot,
    now: Timestamp,
    /// How many more may be tried.
    left: Cell<u32>,
    searches: Cell<u32>,
}

impl<'a> Tries<'a> {
    pub(super) fn new((machine, snapshot): (&'a Machine, &'a Snapshot), now: Timestamp) -> Tries<'a> {
        Tries { machine, snapshot, now, left: Cell::new(MAX_TRIES), searches: Cell::new(MAX_SEARCHES) }
    }

    /// Returns data with which a sender may send an event: the first, or what its conditions need.
    /// `free` gives it a unique key that is free. `None` if none was found that is accepted.
    pub(super) fn accepted(
        &self,
        offer: &Offer,
        first: Json,
        by: &Principal,
        free: impl Fn(Json) -> Option<Json>,
    ) -> Option<Json> {
        let (kind, to) = offer.key();
        let is_accepted = |data: &Json| self.is_accepted(&kind, &to, data, by);
        if is_accepted(&first) {
            return Some(first);
        }
        self.searches.set(self.searches.get().checked_sub(1)?);
        let others = event_data(self.machine, self.snapshot, &to, &kind, self.now);
        others.into_iter().filter_map(free).find(is_accepted)
    }

    fn is_accepted(&self, kind: &str, to: &str, data: &Json, by: &Principal) -> bool {
        let Some(left) = self.left.get().checked_sub(1) else { return false };
        self.left.set(left);
        let seq = self.snapshot.seq().saturating_add(1);
        let mut envelope = Envelope::event(seq, kind, data.clone(), by.clone(), self.now).to(to);
        // Whether the key is free was asked before.
        envelope.unique = TakenKeys::default().look_up(self.machine, &envelope.event, by);
        let step = self.machine.step(self.snapshot, &envelope);
        step.is_ok_and(|step| matches!(step.verdict, Verdict::Accepted | Verdict::Vote))
    }
}
