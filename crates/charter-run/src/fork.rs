//! The time of a fork: it stands still between the last record that it shares with the other run
//! and its own first one, so that its deadlines have left what they had left there.

use charter_journal::Record;
use charter_kernel::{Event, Principal, PrincipalKind, Status};
use serde_json::{Map, Value as Json};

use crate::handling::Handling;
use crate::position::Incoming;
use crate::run::Run;

impl Run {
    /// Whether it is a fork with timers and without a record of its own: its time goes on with its
    /// next input.
    #[must_use]
    pub fn stands_still(&self) -> bool {
        let first = self.fork_point.and_then(|seq| seq.checked_add(1));
        first == Some(self.chain.next_seq())
            && self.snapshot().is_some_and(|s| s.status() == Status::Active && !s.timers().is_empty())
    }

    /// The number of the record with which the time of a fork begins.
    fn beginning(&self) -> Option<u64> {
        self.fork_point?.checked_add(2)
    }

    /// Whether nothing has changed a fork since its time began.
    fn is_as_forked(&self) -> bool {
        self.snapshot().is_some_and(|snapshot| Some(snapshot.seq()) == self.beginning())
    }

    /// Notes whether the time of a restored fork has begun; `read` is as in [`Run::note_refused`].
    ///
    /// # Errors
    /// Those of `read`.
    pub fn note_fork<E>(&mut self, mut read: impl FnMut(u64, usize) -> Result<Vec<Record>, E>) -> Result<(), E> {
        if let Some(seq) = self.beginning().filter(|_| self.is_as_forked()) {
            // No sender can claim to be the host.
            let is_own = |r: &Record| *r.event.r#type == *"charter.resume" && r.by.id == Principal::system().id;
            self.fork_begun = read(seq, 1)?.first().is_some_and(is_own);
        }
        Ok(())
    }

    /// Returns the last record that a sender has seen, as the kernel compares it. Who has seen the
    /// last shared record of a fork knows its state, although the host has recorded since then that
    /// its time begins.
    pub(crate) fn seen(&self, expected_seq: Option<u64>) -> Option<u64> {
        let (seen, shared) = (expected_seq?, self.fork_point);
        let beginning = self.beginning().filter(|_| self.fork_begun && self.is_as_forked());
        beginning.filter(|beginning| shared.is_some_and(|shared| (shared..*beginning).contains(&seen))).or(Some(seen))
    }
}

impl Handling<'_> {
    /// Lets the time of a fork begin: the records say that it was paused until now.
    pub(crate) fn begin_fork(&mut self) {
        let (since, now) = (self.run.last(), self.run.position.time(self.now));
        if !self.run.stands_still() || since == now || self.is_full(2) {
            return;
        }
        let Principal { id, .. } = Principal::system();
        let by = Principal::new(&id, &["operator"]).of_kind(PrincipalKind::Service);
        for (kind, at) in [("charter.pause", since), ("charter.resume", now)] {
            let event = Event::External { r#type: kind.into(), data: Json::Object(Map::new()) };
            if self.append_at(None, Incoming { by: by.clone(), ..Incoming::host(event) }, at).is_err() {
                return;
            }
        }
        self.run.fork_begun = true;
        // The host resumes the open calls of a fork by itself.
        self.appended.iter_mut().for_each(|appended| appended.actions.clear());
    }
}
