//! The condition of a transition that refuses an event. Records do not contain it: it is computed
//! from the state before the event.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::candidates::reads;
use super::regions::visit_candidates;
use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::event::Ev;
use crate::machine::Machine;
use crate::selection::{Evaluation, evaluate};
use crate::snapshot::Snapshot;
use crate::validate;

/// The condition under which a transition with `refuse` refused an event, and the values that the
/// condition read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Condition {
    /// The transition.
    pub transition: String,
    /// Its guard as one expression.
    pub condition: String,
    /// The values that it read, by path; `null` where there was no value. Long values are
    /// truncated.
    pub read: Map<String, Json>,
}

impl Machine {
    /// Returns the condition of the transition that refuses an event; `None` if no transition with
    /// `refuse` does, or it has no condition. `snapshot` is the snapshot that the event was applied
    /// to.
    #[must_use]
    pub fn refusing(&self, snapshot: &Snapshot, envelope: &Envelope) -> Option<Condition> {
        let Event::External { r#type, data } = &envelope.event else {
            return None;
        };
        let budget = Budget::new(&self.definition.limits);
        let data = validate::validate_event(data, &self.definition.limits, &budget).ok()?;
        let id = self.events.id(r#type);
        let ev = Ev::external(&self.events, id, r#type, &data);
        let snapshot = snapshot.with_expired_permits(envelope.at);
        let actor = snapshot.actors.find(envelope.to.as_deref().unwrap_or("root"))?;
        let ctx = self.context_of(&snapshot, actor, &ev, envelope, &budget);
        let held = self.held(envelope);
        let mut refusing = None;
        visit_candidates(self.chart(actor.chart()), &actor.configuration, &ev, |id, t| {
            let evaluation = evaluate(&ctx, held, Some(&ev), id, t, &mut ());
            if evaluation == Evaluation::Refused {
                refusing = refusing.or(Some(t));
            }
            evaluation
        });
        let t = refusing?;
        let guard = t.guard.as_ref()?;
        let mut read = Map::new();
        guard.programs(&mut |program| read.extend(reads(&ctx, program)));
        Some(Condition { transition: t.name.to_string(), condition: guard.text(), read })
    }
}
