//! The requests that a host accepts, and its responses.

use std::sync::Arc;

use charter_journal::{Record, Verdict};
use charter_kernel::{Digest, Explanation, Machine, Principal, RefusalDetails, Snapshot, Status, Timestamp};
use charter_run::Task;
use serde_json::Value as Json;
use tokio::sync::oneshot;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::events::Working;

/// A run to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The charter, by the digest that [`Runtime::add`](crate::Runtime::add) returned.
    pub charter: Digest,
    /// Id of the run; `None`: the host generates one. Repeating a start with the same id and input
    /// returns the existing run.
    pub run: Option<String>,
    /// Input of the run.
    pub input: Json,
    /// The principal that starts the run.
    pub by: Principal,
}

/// An event to send.
#[derive(Debug, Clone)]
pub struct SendEvent {
    /// The run.
    pub run: String,
    /// The actor of the run that receives it; `None`: the root actor.
    pub to: Option<String>,
    /// Event type; also `charter.pause`, `charter.resume` and `charter.cancel`.
    pub r#type: String,
    /// Event data.
    pub data: Json,
    /// The sender, as the host has authenticated it.
    pub by: Principal,
    /// The event id, chosen by the sender: sending the same event again with the same id returns
    /// the first result and changes nothing.
    pub id: Option<String>,
    /// The last record that the sender has seen; if the run has changed since, the event is refused
    /// as `stale`.
    pub expected_seq: Option<u64>,
}

impl SendEvent {
    /// Creates an event for the root actor of a run.
    #[must_use]
    pub fn new(run: &str, r#type: &str, data: Json, by: Principal) -> SendEvent {
        SendEvent { run: run.into(), to: None, r#type: r#type.into(), data, by, id: None, expected_seq: None }
    }

    /// Sets the actor of the run that receives the event.
    #[must_use]
    pub fn to(mut self, actor: &str) -> SendEvent {
        self.to = Some(actor.into());
        self
    }

    /// Sets the event id.
    #[must_use]
    pub fn id(mut self, id: &str) -> SendEvent {
        self.id = Some(id.into());
        self
    }
}

/// The receipt of a recorded event, accepted or refused.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The record; it is durable.
    pub record: Record,
    /// The run after the record (for a repeated event, its current state); `None` if the start was
    /// refused.
    pub snapshot: Option<Snapshot>,
    /// Whether the event was recorded earlier under the same id; if so, this call changed nothing.
    pub repeated: bool,
}

impl Receipt {
    /// Why the event was refused; `None` if it was accepted. [`Receipt::explanation`] renders it.
    #[must_use]
    pub fn refusal(&self) -> Option<&RefusalDetails> {
        self.record.refusal.as_deref()
    }

    /// Explains why the event was refused. With the machine, the explanation includes the messages
    /// of the charter's rules.
    #[must_use]
    pub fn explanation(&self, machine: Option<&Machine>) -> Option<Explanation> {
        self.record.explanation(machine)
    }

    /// Whether the event was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.record.verdict == Verdict::Refused
    }
}

/// The current state of a run.
#[derive(Debug, Clone)]
pub struct View {
    /// The charter of the run.
    pub charter: Arc<Charter>,
    /// The snapshot of the run.
    pub snapshot: Snapshot,
    /// Actors that are executing an invocation of the run on this host.
    pub working: Vec<Working>,
    /// Tasks of the run that wait for a person.
    pub tasks: Vec<Task>,
    /// Whether the run came from another journal, and nobody has allowed its actors to work.
    pub untrusted: bool,
    /// Whether the run is a dry fork: no actor is called for it.
    pub dry: bool,
    /// When the next timer fires; `None` if there is none, or if each was refused: it was too
    /// costly, or it waits for the run to change.
    pub next_due: Option<Timestamp>,
}

impl View {
    /// Describes the state of a run of which no timer was refused; `dry` is whether it is a dry
    /// fork.
    #[must_use]
    pub fn new(charter: Arc<Charter>, snapshot: Snapshot, working: Vec<Working>, dry: bool) -> View {
        let tasks = charter_run::tasks(charter.machine(), &snapshot, dry);
        let next_due = snapshot.next_timer().map(|timer| timer.due);
        View { charter, snapshot, working, tasks, untrusted: false, dry, next_due }
    }

    /// The ids of open invocations for which no attempt of an actor is under way on this host, and
    /// about which no person is asked. Until the run is resumed, nothing answers them.
    #[must_use]
    pub fn unattended(&self) -> Vec<String> {
        let run = self.snapshot.run();
        let open = self.snapshot.invocations().filter(|(_, i)| !i.is_machine());
        let is_attended = |effect: &str| {
            self.working.iter().any(|w| *w.effect == *effect) || self.tasks.iter().any(|task| task.effect == effect)
        };
        open.filter(|(_, i)| !is_attended(&i.effect.text(run))).map(|(_, i)| i.id.to_string()).collect()
    }

    /// Whether an actor is in a state, or within one, that has this tag.
    #[must_use]
    pub fn is_tagged(&self, actor: &str, tag: &str) -> bool {
        let definition = self.charter.machine.definition();
        let Some(actor) = self.snapshot.actor(actor) else { return false };
        let chart = match actor.machine() {
            "root" => Some(&definition.root),
            name => definition.machines.get(name),
        };
        let Some(chart) = chart else { return false };
        actor.state().any(|path| {
            let mut at = Some(&chart.state);
            let mut within = path.split('.');
            while let Some(state) = at {
                if state.tags.iter().any(|own| own == tag) {
                    return true;
                }
                at = within.next().and_then(|key| state.states.get(key));
            }
            false
        })
    }

    /// Whether the run is active but can never continue: no timer that fires, no open
    /// invocation, no event that any principal may send.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let s = &self.snapshot;
        if s.status() != Status::Active || self.next_due.is_some() || s.invocations().any(|(_, i)| !i.is_machine()) {
            return false;
        }
        let machine = &self.charter.machine;
        let anybody = Principal { roles: machine.definition().roles.keys().cloned().collect(), ..Principal::default() };
        // Time affects legality only through the expiry of permits, so any time gives the same
        // answer.
        machine.legal(s, &anybody, i64::from(u32::MAX)).is_empty()
    }
}

pub(crate) type Reply = oneshot::Sender<Result<Receipt, RuntimeError>>;

/// An entry of a mailbox.
pub(crate) struct Input {
    pub(crate) input: charter_run::Input,
    /// The charter of a run to start.
    pub(crate) charter: Option<Arc<Charter>>,
    /// `None` if nobody waits for the result.
    pub(crate) reply: Option<Reply>,
}
