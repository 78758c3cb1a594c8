//! Actions after the commit: sends replies, publishes events to subscribers, executes effects.

use std::sync::Arc;

use charter_journal::Verdict;
use charter_run::{Action, Reply as Answer};

use super::evaluate::Entry;
use super::run::RunState;
use crate::error::RuntimeError;
use crate::events::{Recorded, RuntimeEvent};
use crate::inner::Inner;
use crate::request::Receipt;
use crate::sync::lock;

impl Inner {
    pub(super) fn set_timer(&self, run: &Arc<str>, state: &RunState) {
        self.timers.set(run, state.run.next_due(), || self.clock.work());
    }

    /// Publishes the committed records of an input, sends the reply, and executes the effects.
    pub(super) fn perform(self: &Arc<Self>, run: &Arc<str>, state: &RunState, entry: Entry) {
        let Entry { mut reply, appended, answer, troubles, .. } = entry;
        let mut later = None;
        for trouble in troubles {
            self.publisher.trouble(Some(run), trouble.to_string());
        }
        for (index, appended) in appended.into_iter().enumerate() {
            let (record, snapshot) = (appended.append.record, appended.after);
            let seq = record.seq;
            let resumed = record.verdict == Verdict::Accepted && &*record.event.r#type == "charter.resume";
            crate::trace::record(&record);
            self.publisher.publish(RuntimeEvent::Recorded(Recorded {
                record: record.clone(),
                charter: state.charter.clone(),
                snapshot: snapshot.clone(),
            }));
            if answer == Answer::Made(index)
                && let Some(reply) = reply.take()
            {
                let receipt = Ok(Receipt { record, snapshot, repeated: false });
                // The next answer from the past of a dry fork is on its way before this one counts
                // as given.
                match state.run.is_dry() {
                    true => later = Some((reply, receipt)),
                    false => drop(reply.send(receipt)),
                }
            }
            for action in appended.actions {
                self.carry_out(run, state, seq, action);
            }
            if resumed {
                self.invoke_held(run, state);
            }
            if let Some((reply, receipt)) = later.take() {
                drop(reply.send(receipt));
            }
        }
        let Some(reply) = reply else {
            return;
        };
        let snapshot = state.run.snapshot().cloned();
        drop(reply.send(match answer {
            Answer::Repeated(record) => Ok(Receipt { record: *record, snapshot, repeated: true }),
            Answer::Denied(denied) => Err(RuntimeError::denied(run, denied)),
            Answer::NotAwaited => Err(RuntimeError::NotAwaited(run.to_string())),
            _ => Err(RuntimeError::Closing),
        }));
    }

    fn carry_out(self: &Arc<Self>, run: &Arc<str>, state: &RunState, seq: u64, action: Action) {
        match action {
            Action::Invoke(request) if state.repeats(&request.src) => self.repeat(&state.charter, run, request),
            Action::Invoke(request) if !state.allows(&request.src) => {
                self.note_open(run, request.effect);
                self.publisher.trouble(Some(run), RuntimeError::Untrusted { run: run.to_string() }.to_string());
            }
            Action::Invoke(request) => {
                let fresh = request.effect.seq == seq;
                self.invoke(&state.charter, run, request, fresh);
            }
            Action::Hold(effect) => self.calls.hold(run, effect),
            Action::Stop(effect) => self.calls.cancel(run, effect, &self.publisher),
            Action::Emit { r#type, data } => {
                self.publisher.publish(RuntimeEvent::Emitted { run: run.clone(), seq, r#type: r#type.into(), data });
            }
            Action::Log { label, value } => {
                self.publisher.publish(RuntimeEvent::Logged { run: run.clone(), seq, label, value });
            }
            other => self.publisher.trouble(Some(run), format!("this host cannot carry out {other:?}")),
        }
    }

    /// Executes the invocations again that a restart has interrupted while the run was paused.
    fn invoke_held(self: &Arc<Self>, run: &Arc<str>, state: &RunState) {
        let held = lock(&self.held).remove(run.as_ref()).unwrap_or_default();
        for request in held.into_iter().filter_map(|effect| state.run.request(effect)) {
            self.invoke(&state.charter, run, request, false);
        }
    }

    /// Stops calls whose invocation is no longer open.
    pub(super) fn stop_obsolete_calls(&self, run: &Arc<str>, state: &RunState) {
        self.calls.retain(run, &self.publisher, |effect| state.run.waits_for(effect));
    }

    /// Replies to an input whose records were not committed.
    pub(super) fn not_committed(run: &str, entry: Entry, e: &RuntimeError) {
        if let Some(reply) = entry.reply {
            drop(reply.send(Err(match entry.answer {
                Answer::Denied(denied) => RuntimeError::denied(run, denied),
                _ => e.clone(),
            })));
        }
    }
}
