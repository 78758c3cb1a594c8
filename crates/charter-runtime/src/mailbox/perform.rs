//! After the commit: replies, events for subscribers, effects.

use std::sync::Arc;

use charter_journal::Append;
use charter_kernel::{Effect, EffectKind, Snapshot, Timestamp};

use super::run::RunState;
use crate::calls::registry::InvocationRequest;
use crate::error::RuntimeError;
use crate::events::{Recorded, RuntimeEvent};
use crate::inner::Inner;
use crate::request::{Input, Receipt, Reply};

/// A record to commit, and what follows the commit.
pub(super) struct Staged {
    pub(super) append: Append,
    pub(super) effects: Vec<Effect>,
    pub(super) after: Option<Snapshot>,
    pub(super) reply: Option<Reply>,
}

impl Inner {
    pub(super) fn set_timer(&self, run: &Arc<str>, state: Option<&RunState>) {
        self.timers.set(run, state.and_then(RunState::next_due), || self.clock.work());
    }

    /// Publishes a committed record, replies, and executes its effects.
    pub(super) fn perform(self: &Arc<Self>, run: &Arc<str>, state: &RunState, staged: Staged) {
        let Staged { append, effects, after, reply } = staged;
        let record = append.record;
        let seq = record.seq;
        crate::trace::record(&record);
        self.publisher.publish(RuntimeEvent::Recorded(Recorded {
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
                    let request = InvocationRequest {
                        effect: effect.id,
                        invocation,
                        src,
                        input,
                        attempt: 1,
                        not_before: Timestamp::MIN,
                    };
                    self.invoke(&state.charter, run, request);
                }
                EffectKind::Cancel { effect, .. } => self.calls.cancel(run, effect, &self.publisher),
                EffectKind::Emit { r#type, data } => {
                    self.publisher.publish(RuntimeEvent::Emitted { run: run.clone(), seq, r#type, data });
                }
                EffectKind::Log { label, value } => {
                    let label = label.map(Into::into);
                    self.publisher.publish(RuntimeEvent::Logged { run: run.clone(), seq, label, value });
                }
            }
        }
    }

    /// Stops calls whose invocation is no longer open.
    pub(super) fn stop_obsolete_calls(&self, run: &Arc<str>, state: &RunState) {
        let Some(snapshot) = &state.snapshot else {
            return;
        };
        let finished = snapshot.status().is_finished();
        self.calls.retain(run, &self.publisher, |effect| {
            !finished && snapshot.invocations().any(|(_, i)| i.effect == effect)
        });
    }
}

pub(super) fn fail_staged(staged: Staged, e: &RuntimeError) {
    if let Some(reply) = staged.reply {
        drop(reply.send(Err(e.clone())));
    }
}

pub(super) fn fail(input: Input, e: &RuntimeError) {
    match input {
        Input::Start { reply, .. }
        | Input::Event { reply, .. }
        | Input::Attempt { reply, .. }
        | Input::Answer { reply, .. } => drop(reply.send(Err(e.clone()))),
        Input::Due => {}
    }
}
