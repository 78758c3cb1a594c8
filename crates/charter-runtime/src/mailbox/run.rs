//! A run in memory: its mailbox and its state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use charter_actors::{ActivityGuard, Executors};
use charter_journal::{Record, SourceKind, StateChange, Verdict, attempt_waits};
use charter_kernel::{Digest, Snapshot, Timestamp};
use charter_run::{Denied, InvocationRequest};
use serde_json::Value as Json;
use tokio::sync::watch;

use crate::admit::lacking_folder;
use crate::charter::Charter;
use crate::grant::OPERATOR;
use crate::request::Input;
use crate::sync::lock;

/// An entry of a mailbox. It counts as an activity until it has been processed.
pub(crate) struct Queued {
    pub(super) input: Input,
    pub(super) activity: ActivityGuard,
}

/// The mailbox of a run, and the run itself while it is in memory.
#[derive(Default)]
pub(crate) struct Run {
    pub(super) mailbox: Mutex<Mailbox>,
    /// The first record of the commit under way. Others may read its records already, but not yet
    /// the state after them.
    committing: watch::Sender<Option<u64>>,
}

/// A commit under way; it ends when this is dropped.
pub(super) struct Committing<'r>(&'r Run);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.committing.send_replace(None);
    }
}

#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) queue: VecDeque<Queued>,
    /// Whether a task is processing the queue.
    pub(super) draining: bool,
    /// The run, while no task is processing the queue.
    pub(super) state: Option<Box<RunState>>,
    /// Whether the run is to be read from the journal again.
    pub(super) reload: bool,
    /// What readers see: the state after the last durable record.
    pub(super) view: Option<Seen>,
}

/// The state of a run as readers see it.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) charter: Arc<Charter>,
    pub(crate) snapshot: Snapshot,
    /// Whether it is a dry fork.
    pub(crate) dry: bool,
    /// When the next timer fires; `None` if there is none, or all were refused.
    pub(crate) next_due: Option<Timestamp>,
}

impl Run {
    pub(crate) fn view(&self) -> Option<Seen> {
        lock(&self.mailbox).view.clone()
    }

    /// Records are about to be written, from this number on.
    pub(super) fn commits_from(&self, first: u64) -> Committing<'_> {
        self.committing.send_replace(Some(first));
        Committing(self)
    }

    /// Waits until readers see the state after a record that has been written, or a later one.
    pub(crate) async fn settled(&self, seq: u64) {
        let is_settled = |first: &Option<u64>| first.is_none_or(|first| first > seq);
        // The sender lives as long as this.
        let _ = self.committing.subscribe().wait_for(is_settled).await;
    }
}

/// Whether a record allows exactly this manifest.
pub(super) fn allows(record: &Record, manifest: &Digest) -> bool {
    record.verdict == Verdict::Accepted
        && record.event.r#type == TRUST
        && record.event.data.get("manifest").and_then(Json::as_str) == Some(manifest.to_string().as_str())
}

/// The event that allows the actors of an imported run to work. Its data is `{manifest}`.
pub(super) const TRUST: &str = "charter.trust";

/// The most characters of a manifest's digest that an error shows.
const MAX_SHOWN: usize = 80;

/// The state of a run after its last durable record.
#[derive(Clone)]
pub(crate) struct RunState {
    pub(crate) charter: Arc<Charter>,
    pub(crate) run: charter_run::Run,
    /// Whether actors may work for the run: it was started here, or somebody has allowed it.
    pub(crate) trusted: bool,
    /// Number of its first records that came from another journal.
    pub(crate) imported: u64,
}

impl RunState {
    /// Whether an actor may work. A task of a person may wait in any run.
    pub(crate) fn allows(&self, src: &str) -> bool {
        self.trusted || self.is_person(src)
    }

    /// Whether a call of an actor is only repeated from the past.
    pub(crate) fn repeats(&self, src: &str) -> bool {
        self.run.is_dry() && !self.is_person(src)
    }

    fn is_person(&self, src: &str) -> bool {
        self.charter.actors.get(src).is_some_and(|actor| *actor.kind == *"human")
    }

    /// Returns an error for an event that would allow nothing, because the run needs no permission,
    /// has another manifest or lacks the folder in which its actors work: its record would look as
    /// if somebody had allowed something.
    pub(super) fn allows_nothing(&self, input: &charter_run::Input, executors: &Executors) -> Option<Denied> {
        let charter_run::Input::Event(event) = input else {
            return None;
        };
        if event.r#type != TRUST || !self.run.exists() {
            return None;
        }
        if self.trusted {
            return Some(Denied::NothingToAllow);
        }
        let manifest = self.charter.manifest().digest(self.charter.digest());
        let given = event.data.get("manifest").unwrap_or(&Json::Null);
        if given.as_str() != Some(manifest.to_string().as_str()) {
            let given = given.to_string().chars().take(MAX_SHOWN).collect();
            return Some(Denied::OtherManifest { manifest, given });
        }
        // Others are refused, and their refusal is recorded.
        let may_allow = event.by.roles.iter().any(|role| role == OPERATOR);
        let need = may_allow.then(|| lacking_folder(executors, &self.charter)).flatten()?;
        Some(Denied::NoFolder { need })
    }

    /// What is kept beside a record: where the charter of the run is, with the first record and
    /// with one that allows its actors to work; and which attempts have not begun.
    pub(super) fn beside(&self, record: &Record, is_repeated: impl Fn(&str) -> bool) -> Vec<StateChange> {
        let id = self.run.id();
        let allowed = !self.trusted && allows(record, &self.charter.manifest().digest(self.charter.digest()));
        let place = (record.seq == 0 || allowed).then(|| charter_journal::move_run(id, &self.charter.stored.name));
        // What was requested while no actor was allowed to work; the attempt after a failed one.
        let waits = |request: &InvocationRequest| match record.source.kind {
            SourceKind::Attempt => record.source.effect.as_deref() == Some(&*request.effect.text(id)),
            _ => allowed && (self.imported..record.seq).contains(&request.effect.seq),
        };
        let open = if allowed || record.source.kind == SourceKind::Attempt { self.run.open() } else { Vec::new() };
        let waiting = open.into_iter().filter(waits).filter(|request| !is_repeated(&request.src));
        let waiting = waiting.map(|request| attempt_waits(id, request.effect, Some(request.attempt)));
        place.into_iter().chain(waiting).collect()
    }

    /// Notes a record that allows the actors of the run to work.
    pub(crate) fn note_trust(&mut self, record: &Record) {
        self.trusted |= allows(record, &self.charter.manifest().digest(self.charter.digest()));
    }

    /// What readers see; nothing if the start of the run was refused.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let snapshot = self.run.snapshot().cloned()?;
        let (dry, next_due) = (self.run.is_dry(), self.run.next_due());
        Some(Seen { charter: self.charter.clone(), snapshot, dry, next_due })
    }
}
