//! Replay: restores the state of a run after any record, loads a run so that it can continue, and
//! creates forks.

use std::collections::BTreeMap;

use charter_kernel::{Digest, EffectId, Event, Machine, Snapshot};

use crate::chain::Chain;
use crate::error::StoreError;
use crate::places::move_run;
use crate::record::{Origin, Record, RecordBuilder, RecordError, RecordInput, json_of};
use crate::store::{Append, Row, Store};
use crate::waiting::attempt_waits;

/// Why a run could not be restored from its records.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run has no such record.
    #[error("run `{run}` has no record {seq}; its last record is {last}")]
    NoSuchRecord {
        /// The run.
        run: String,
        /// The requested record.
        seq: u64,
        /// The last record.
        last: u64,
    },
    /// The charter of the run is not in the store, or does not compile.
    #[error("charter {digest}: {why}")]
    Charter {
        /// Its digest.
        digest: Digest,
        /// The reason.
        why: String,
    },
    /// A sender gave an event an id that the host would give to a record of the fork.
    #[error(
        "the fork cannot be called `{new}`: record {seq} of run `{run}` has the event id `{id}`, and ids that begin with `{new}/` are reserved for the host; choose another id for the fork"
    )]
    Reserved {
        /// The run.
        run: String,
        /// The record.
        seq: u64,
        /// The id of its event.
        id: String,
        /// The id of the fork.
        new: String,
    },
    /// Replaying the records does not produce the recorded results.
    #[error("run `{run}`, record {seq}: {why}; run `charter verify` for details")]
    Differs {
        /// The run.
        run: String,
        /// The record.
        seq: u64,
        /// The reason.
        why: String,
    },
}

/// A run that is loaded after its last record, ready for the next event.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its snapshot; `None` if its start was refused.
    pub snapshot: Option<Snapshot>,
    /// The end of its chain.
    pub chain: Chain,
}

/// Compiles a charter from the store.
///
/// # Errors
/// The charter is missing, is damaged, or does not compile.
pub fn machine(store: &dyn Store, digest: Digest) -> Result<Machine, ReplayError> {
    let stored =
        store.charter(digest)?.ok_or_else(|| ReplayError::Charter { digest, why: "not in this store".into() })?;
    let definition = stored.definition()?;
    Machine::compile(definition).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        ReplayError::Charter { digest, why: format!("does not compile: {first}") }
    })
}

/// Restores the snapshot of a run after record `to` (`None`: after its last record) from the newest
/// stored snapshot up to that record and the records since then.
///
/// Checks the digest of the result against the record. Returns `None` if the start of the run was
/// refused.
///
/// # Errors
/// The run or record does not exist, the run uses a different charter than the machine, or
/// replaying the records does not produce the recorded results.
pub fn replay(
    store: &dyn Store,
    machine: &Machine,
    run: &str,
    to: Option<u64>,
) -> Result<Option<Snapshot>, ReplayError> {
    Ok(load_at(store, machine, run, to)?.0)
}

/// Loads a run after its last record, ready for the next event.
///
/// # Errors
/// See [`replay`].
pub fn load(store: &dyn Store, machine: &Machine, run: &str) -> Result<Loaded, ReplayError> {
    let (snapshot, last, kept) = load_at(store, machine, run, None)?;
    Ok(Loaded { snapshot, chain: Chain::resumed(&last, kept) })
}

/// Returns the snapshot after a record, that record, and the sequence number of the stored snapshot
/// from which the replay started.
fn load_at(
    store: &dyn Store,
    machine: &Machine,
    run: &str,
    to: Option<u64>,
) -> Result<(Option<Snapshot>, Record, Option<u64>), ReplayError> {
    let info = store.run(run)?.ok_or_else(|| StoreError::UnknownRun(run.into()))?;
    if info.charter != machine.digest() {
        return Err(ReplayError::Charter {
            digest: info.charter,
            why: format!("run `{run}` uses it, not {}", machine.digest()),
        });
    }
    let to = to.unwrap_or(info.seq);
    if to > info.seq {
        return Err(ReplayError::NoSuchRecord { run: run.into(), seq: to, last: info.seq });
    }
    let kept = stored_snapshot(store, machine, run, to)?;
    let (mut snapshot, mut next) = match &kept {
        Some((seq, snapshot)) => (Some(snapshot.clone()), seq.saturating_add(1)),
        None => (None, 0),
    };
    let mut last = match &kept {
        Some((seq, _)) => store.records(run, *seq, 1)?.into_iter().next(),
        None => None,
    };
    let mut failure = None;
    if next <= to {
        store.scan(Some(run), next, &mut |row| {
            match apply(machine, run, snapshot.as_ref(), row, next) {
                Ok(Applied::Unchanged) => {}
                Ok(Applied::Changed(s)) => snapshot = Some(*s),
                Err(error) => {
                    failure = Some(error);
                    return false;
                }
            }
            if next == to {
                last = std::str::from_utf8(row.text).ok().and_then(|text| Record::read(text).ok());
            }
            next = next.saturating_add(1);
            next <= to
        })?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let differs = |why: String| ReplayError::Differs { run: run.into(), seq: to, why };
    let last = last.filter(|r| r.seq == to).ok_or_else(|| differs("the record is missing or unreadable".into()))?;
    if let Some(s) = &snapshot {
        let found = machine.snapshot_digest(s);
        if found != last.snapshot {
            return Err(differs(format!("replay gives the snapshot {found}, but the record has {}", last.snapshot)));
        }
    }
    Ok((snapshot, last, kept.map(|(seq, _)| seq)))
}

/// Finds the newest stored snapshot that matches its record. Others are skipped, because snapshots
/// are only a cache.
fn stored_snapshot(
    store: &dyn Store,
    machine: &Machine,
    run: &str,
    at_most: u64,
) -> Result<Option<(u64, Snapshot)>, ReplayError> {
    let mut at_most = at_most;
    while let Some(kept) = store.snapshot(run, at_most)? {
        let record = store.records(run, kept.seq, 1)?.into_iter().next();
        if record.is_some_and(|r| r.seq == kept.seq && r.snapshot == Digest::of_bytes(kept.text.as_bytes()))
            && let Ok(json) = json_of(&kept.text)
            && let Ok(snapshot) = machine.restore(&json)
        {
            return Ok(Some((kept.seq, snapshot)));
        }
        match kept.seq.checked_sub(1) {
            Some(before) => at_most = before,
            None => break,
        }
    }
    Ok(None)
}

enum Applied {
    Unchanged,
    Changed(Box<Snapshot>),
}

/// Applies a stored record.
fn apply(
    machine: &Machine,
    run: &str,
    before: Option<&Snapshot>,
    row: &Row<'_>,
    seq: u64,
) -> Result<Applied, ReplayError> {
    let differs = |why: String| ReplayError::Differs { run: run.into(), seq, why };
    if u64::try_from(row.seq) != Ok(seq) {
        return Err(differs(format!("missing; the next stored record is {}", row.seq)));
    }
    // These records changed nothing; `verify` checks whether their verdicts are correct.
    if matches!(row.verdict, "refused" | "late") {
        return Ok(Applied::Unchanged);
    }
    let text = std::str::from_utf8(row.text).map_err(|e| differs(e.to_string()))?;
    let envelope = RecordInput::read(text).and_then(RecordInput::envelope).map_err(|e| differs(e.to_string()))?;
    let outcome = match (&envelope.event, before) {
        (Event::Start { .. }, None) => machine.start(run, &envelope),
        (_, Some(before)) => machine.step(before, &envelope),
        (_, None) => return Err(differs("the run has not started".into())),
    };
    match outcome {
        Ok(step) => Ok(Applied::Changed(Box::new(step.snapshot))),
        Err(refusal) => Err(differs(format!(
            "the record has verdict `{}`, but the kernel refuses the event (`{}`)",
            row.verdict, refusal.code
        ))),
    }
}

/// Creates a new run from the records of another, up to and including record `at`: the same events
/// under a new id. Record 0 of the fork names its origin (`forked_from`), and whether the fork is
/// dry: then no host calls an actor for it. Invocations and timers that are open after record `at`
/// are also open in the fork; the host of a fork that is not dry calls their actors again.
///
/// # Errors
/// See [`replay`]. In addition, the new run already exists, or the same events have different
/// results under the new id (because the charter reads `run.id`).
pub fn fork(
    store: &dyn Store,
    machine: &Machine,
    run: &str,
    at: u64,
    new: &str,
    dry: bool,
) -> Result<Loaded, ReplayError> {
    let info = store.run(run)?.ok_or_else(|| StoreError::UnknownRun(run.into()))?;
    if info.charter != machine.digest() {
        return Err(ReplayError::Charter {
            digest: info.charter,
            why: format!("run `{run}` uses it, not {}", machine.digest()),
        });
    }
    if at > info.seq {
        return Err(ReplayError::NoSuchRecord { run: run.into(), seq: at, last: info.seq });
    }
    let imported = store.imported(run)?;
    let past = store.records(run, 0, usize::try_from(at).unwrap_or(usize::MAX).saturating_add(1))?;
    let last = past.last().ok_or_else(|| StoreError::UnknownRun(run.into()))?;
    let reserved = format!("{new}/");
    if let Some(taken) = past.iter().find(|r| r.has_given_id() && r.id.starts_with(&reserved)) {
        let (id, seq) = (taken.id.to_string(), taken.seq);
        return Err(ReplayError::Reserved { run: run.into(), seq, id, new: new.into() });
    }
    let mut chain = Chain::new(new);
    chain.manifest = past.first().and_then(|first| first.manifest.clone());
    chain.forked_from = Some(Origin { run: run.to_owned().into(), seq: at, hash: last.hash, dry });
    let mut snapshot: Option<Snapshot> = None;
    let mut batch = Vec::with_capacity(past.len());
    let mut attempts: BTreeMap<EffectId, u32> = BTreeMap::new();
    for original in &past {
        let differs = |why: String| ReplayError::Differs { run: run.into(), seq: original.seq, why };
        let mut append = match original.envelope() {
            Ok(envelope) => {
                let outcome = match &snapshot {
                    None => machine.start(new, &envelope),
                    Some(before) => machine.step(before, &envelope),
                };
                let id = original.has_given_id().then_some(original.id.as_ref());
                let append = chain.append(machine, id, &envelope, snapshot.as_ref(), &outcome);
                let r = &append.record;
                if (r.verdict, &r.transitions, &r.state, r.status)
                    != (original.verdict, &original.transitions, &original.state, original.status)
                {
                    return Err(differs(
                        "this event has a different result in a fork: the charter depends on the id of the run".into(),
                    ));
                }
                if let Ok(step) = outcome {
                    snapshot = Some(step.snapshot);
                    if let Event::Attempt { effect, attempt, .. } = envelope.event {
                        attempts.insert(effect, attempt);
                    }
                }
                append
            }
            Err(RecordError::Redacted) => Append::from(chain.copy_redacted(original)),
            Err(e) => return Err(differs(e.to_string())),
        };
        append.imported = original.seq < imported;
        chain.advance(&append);
        batch.push(append);
    }
    // The fork works where its origin does.
    if let (Some(first), Some(name)) = (batch.first_mut(), crate::places::place(store, run)?) {
        first.state.push(move_run(new, &name));
    }
    // No call has begun under the id of the fork.
    if let (Some(last), Some(snapshot), false) = (batch.last_mut(), &snapshot, dry) {
        let calls = snapshot.invocations().filter(|(_, invocation)| !invocation.is_machine());
        last.state.extend(calls.map(|(_, invocation)| {
            let failed = attempts.get(&invocation.effect).copied().unwrap_or_default();
            attempt_waits(new, invocation.effect, Some(failed.saturating_add(1)))
        }));
    }
    store.append(batch)?;
    Ok(Loaded { snapshot, chain })
}

/// Returns the origin of a run that is a fork.
///
/// # Errors
/// The store cannot be read, or record 0 of the run is invalid.
pub fn origin(store: &dyn Store, run: &str) -> Result<Option<Origin<'static>>, StoreError> {
    let first = store.records(run, 0, 1)?.into_iter().next();
    Ok(first.and_then(|first| first.forked_from.clone()))
}

impl Chain {
    /// Copies the record of an event with redacted data into a fork. Such an event was refused and
    /// changed nothing, so the copy keeps the result of the original.
    fn copy_redacted(&self, original: &Record) -> Record {
        let mut fields = (**original).clone();
        if !fields.has_given_id() {
            fields.id = format!("{}/{}", self.run(), fields.seq).into();
        }
        fields.run = self.run().to_owned().into();
        fields.prev = self.hash();
        if let Some(digest) = self.snapshot_digest() {
            fields.snapshot = digest;
        }
        (fields.forked_from, fields.manifest) = self.only_first();
        RecordBuilder::finish(fields)
    }
}
