//! The time of a fork: it stands still between the last record that it shares with the other run
//! and its own first one, so that its deadlines have left what they had left there.

use charter_kernel::{Event, Principal, PrincipalKind, Status};
use serde_json::{Map, Value as Json};

use crate::handling::Handling;
use crate::position::Incoming;
use crate::run::Run;

impl Run {
    /// Whether it is a fork with timers and without a record of its own.
    pub(crate) fn stands_still(&self) -> bool {
        let first = self.fork_point.and_then(|seq| seq.checked_add(1));
        first == Some(self.chain.next_seq())
            && self.snapshot().is_some_and(|s| s.status() == Status::Active && !s.timers().is_empty())
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
        // The host resumes the open calls of a fork by itself.
        self.appended.iter_mut().for_each(|appended| appended.actions.clear());
    }
}
