//! What happens once a batch is written: answers, happenings, effects.

use std::sync::Arc;

use charter_journal::Append;
use charter_kernel::{Effect, EffectKind, Snapshot};

use super::state::RunState;
use crate::calls::InvocationRequest;
use crate::error::RuntimeError;
use crate::publish::{Recorded, RuntimeEvent};
use crate::runtime::{Inner, Input, Receipt, Reply};

/// After this time, in milliseconds, it is tried again to write what could not be written for now (no space).
pub(crate) const AGAIN: i64 = 1_000;

/// What came of a letter.
pub(super) struct Made {
    pub(super) append: Append,
    pub(super) effects: Vec<Effect>,
    pub(super) after: Option<Snapshot>,
    pub(super) reply: Option<Reply>,
}

impl Inner {
    pub(super) fn set_timer(&self, run: &Arc<str>, state: Option<&RunState>) {
        self.wheel.set(run, state.and_then(|s| s.next_due()), || self.clock.work());
    }

    /// After the commit: tells, does, answers.
    pub(super) fn perform(self: &Arc<Self>, run: &Arc<str>, state: &RunState, made: Made) {
        let Made { append, effects, after, reply } = made;
        let record = append.record;
        let seq = record.seq;
        crate::trace::record(&record);
        self.publisher.tell(RuntimeEvent::Recorded(Recorded {
            record: record.clone(),
            charter: state.charter.clone(),
            snapshot: after.clone(),
        }));
        if let Some(reply) = reply {
            drop(reply.send(Ok(Receipt { record, snapshot: after, repeated: false })));
        }
        for effect in effects {
            match effect.kind {
                EffectKind::Invoke { invocation, src, input, .. } => {
                    self.invoke(
                        &state.charter,
                        run,
                        InvocationRequest {
                            effect: effect.id,
                            invocation,
                            src,
                            input,
                            attempt: 1,
                            not_before: i64::MIN,
                        },
                    );
                }
                EffectKind::Cancel { effect, .. } => self.calls.cancel(run, effect, &self.publisher),
                EffectKind::Emit { r#type, data } => {
                    self.publisher.tell(RuntimeEvent::Emitted { run: run.clone(), seq, r#type, data });
                }
                EffectKind::Log { label, value } => {
                    self.publisher.tell(RuntimeEvent::Logged {
                        run: run.clone(),
                        seq,
                        label: label.map(Into::into),
                        value,
                    });
                }
            }
        }
    }

    /// Stops what nobody waits for any more.
    pub(super) fn reconcile(&self, run: &Arc<str>, state: &RunState) {
        let Some(snapshot) = &state.snapshot else {
            return;
        };
        let ended = snapshot.status().is_finished();
        self.calls
            .keep(run, &self.publisher, |effect| !ended && snapshot.invocations().any(|(_, i)| i.effect == effect));
    }
}

pub(super) fn drop_reply(made: Made, e: &RuntimeError) {
    if let Some(reply) = made.reply {
        drop(reply.send(Err(e.clone())));
    }
}

pub(super) fn fail(mail: Input, e: &RuntimeError) {
    match mail {
        Input::Start { reply, .. }
        | Input::Event { reply, .. }
        | Input::Attempt { reply, .. }
        | Input::Answer { reply, .. } => drop(reply.send(Err(e.clone()))),
        Input::Due => {}
    }
}
