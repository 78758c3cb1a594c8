//! The writer thread: all waiting jobs are written in one transaction and answered after its
//! commit.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::checkpoint::Checkpoints;
use super::connect::keep_log;
use super::jobs::{CommitStats, Job, Jobs, Request};
use super::lock::Watched;
use super::write::{Unwritten, Writing};
use crate::error::StoreError;

/// The results of the jobs of a commit, in order.
pub(crate) type Results = Vec<Result<(), StoreError>>;

/// How jobs are committed: [`commit`], or a failing variant in tests.
pub(crate) trait Committing: FnMut(&mut Writing<'_>, &mut Jobs<'_>) -> rusqlite::Result<Results> {}
impl<F: FnMut(&mut Writing<'_>, &mut Jobs<'_>) -> rusqlite::Result<Results>> Committing for F {}

/// Whether a writer can write.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Set by the first failure that leaves the state of the disk unknown; nothing is written
    /// afterwards.
    stopped: OnceLock<String>,
    /// Since when the disk has been full.
    full: Mutex<Option<Instant>>,
}

impl Health {
    /// Why the writer has stopped.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    fn stop(&self, reason: &str) {
        let _ = self.stopped.set(reason.to_owned());
    }

    /// How long every write has failed because the disk is full.
    pub(crate) fn full_for(&self) -> Option<Duration> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed())
    }

    fn set_full(&self, full: bool) {
        let mut since = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        *since = full.then(|| since.unwrap_or_else(Instant::now));
    }
}

/// How long the writer polls for the next request before it sleeps: a fraction of the time of a
/// commit.
const SPIN: Duration = Duration::from_micros(50);

/// Executes requests until the channel is closed.
pub(crate) fn run(
    mut writing: Writing<'_>,
    requests: &Receiver<Request>,
    mut place: Watched,
    health: &Health,
    mut commit: impl Committing,
    mut checkpoints: Checkpoints,
) {
    let mut stats = CommitStats::default();
    while let Some(first) = next(requests) {
        let begin = Instant::now();
        let mut jobs = Jobs::new(first, requests, &stats);
        let results = write_in_place(&mut writing, &mut jobs, &mut place, health, &mut commit);
        let took = begin.elapsed().saturating_sub(jobs.waited());
        let size = results.len();
        let replies = jobs.into_replies();
        for (reply, result) in replies.into_iter().zip(results) {
            reply(result);
        }
        stats.record(size, took);
        if health.stopped().is_none() {
            add_ids(&mut writing, health, false);
            checkpoints.poll(&mut writing);
        }
    }
    // After an unnoticed move of the file, its content is none of this process's business.
    if health.stopped().is_none() && place.check().is_ok() {
        add_ids(&mut writing, health, true);
    }
    if health.stopped().is_none() && place.check().is_ok() {
        // If this fails, the file says that it was not closed, which is true.
        let _ = writing.close();
    } else {
        // Nothing more is written, so the log is not moved into the file either.
        let _ = keep_log(writing.connection, true);
    }
}

/// Adds event ids to their table. A failure after which the file is certainly as before only delays
/// that.
fn add_ids(writing: &mut Writing<'_>, health: &Health, closing: bool) {
    if let Err(e) = writing.add_ids(closing)
        && harmless(&e).is_none()
    {
        health.stop(&said(&e));
    }
}

/// Receives the next request; returns `None` if the channel is closed. Senders that have just
/// received a reply often send again at once, and polling for a moment is faster than being woken
/// up.
fn next(requests: &Receiver<Request>) -> Option<Request> {
    let begin = Instant::now();
    while begin.elapsed() < SPIN {
        match requests.try_recv() {
            Ok(request) => return Some(request),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    requests.recv().ok()
}

/// Writes jobs into the file if its path still leads to it. Records in a file that nobody finds
/// again are not acknowledged.
fn write_in_place(
    writing: &mut Writing<'_>,
    jobs: &mut Jobs<'_>,
    place: &mut Watched,
    health: &Health,
    commit: &mut impl Committing,
) -> Results {
    if health.stopped().is_none()
        && let Err(reason) = place.check()
    {
        health.stop(&reason);
        return jobs.close().map(|_| Err(cannot_write(&reason))).collect();
    }
    let results = write(writing, jobs, health, commit);
    place.note_log();
    match place.check() {
        Err(reason) if health.stopped().is_none() => {
            health.stop(&reason);
            results.into_iter().map(|result| result.and(Err(cannot_write(&reason)))).collect()
        }
        _ => results,
    }
}

fn cannot_write(reason: &str) -> StoreError {
    StoreError::Failed { doing: "writing the journal", reason: reason.into() }
}

/// Writes jobs together; if that fails, each one separately, so that a job that cannot be written
/// does not affect the others.
fn write(writing: &mut Writing<'_>, jobs: &mut Jobs<'_>, health: &Health, commit: &mut impl Committing) -> Results {
    if let Some(reason) = health.stopped() {
        let answer = || Err(StoreError::Stopped { reason: reason.to_owned() });
        return jobs.close().map(|_| answer()).collect();
    }
    let failure = match commit(writing, jobs) {
        Ok(results) => {
            health.set_full(false);
            return results;
        }
        Err(failure) => failure,
    };
    let places = jobs.close();
    writing.roll_back();
    // SQLite may have rolled back on its own.
    let undone = writing.connection.is_autocommit() || writing.connection.execute_batch("ROLLBACK").is_ok();
    let reason = said(&failure);
    health.set_full(failure.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull));
    match undone.then(|| harmless(&failure)).flatten() {
        Some(error) if jobs.len() == 1 => vec![Err(error(reason))],
        Some(_) => places
            .flat_map(|place| {
                jobs.only(place);
                write(writing, jobs, health, commit)
            })
            .collect(),
        // The transaction may or may not be durable; no sender has received a confirmation.
        None => {
            health.stop(&reason);
            places.map(|_| Err(cannot_write(&reason))).collect()
        }
    }
}

/// Returns the error to report for a failure after which it is certain that nothing was written;
/// `None` for other failures.
pub(super) fn harmless(e: &rusqlite::Error) -> Option<fn(String) -> StoreError> {
    use rusqlite::ErrorCode::{ConstraintViolation, DatabaseBusy, DatabaseLocked, DiskFull, TooBig};
    match e.sqlite_error_code()? {
        DiskFull | DatabaseBusy | DatabaseLocked | TooBig => Some(|reason| StoreError::NotWritten { reason }),
        // The record continues its run, but a row with its key already exists.
        ConstraintViolation => {
            Some(|reason| StoreError::Damaged(format!("a row with the key of a new record already exists ({reason})")))
        }
        _ => None,
    }
}

/// Commits all jobs in one transaction. A refused job writes nothing and does not affect the
/// others.
pub(crate) fn commit(writing: &mut Writing<'_>, jobs: &mut Jobs<'_>) -> rusqlite::Result<Results> {
    writing.mark_open()?;
    writing.begin()?;
    let results = perform(writing, jobs)?;
    writing.commit()?;
    Ok(results)
}

/// Executes the jobs within the transaction.
fn perform(writing: &mut Writing<'_>, jobs: &mut Jobs<'_>) -> rusqlite::Result<Results> {
    let mut results = Vec::new();
    while let Some(job) = jobs.next() {
        let written = match job {
            Job::Append(batch) => writing.append(batch),
            Job::Charter(charter) => writing.charter(charter),
            Job::Blob(digest, data) => writing.blob(*digest, data),
            Job::Snapshot(run, snapshot) => writing.put_snapshot(run, snapshot),
            Job::ForgetSnapshots => writing.forget_snapshots(),
            Job::Rebuild => undone_if_refused(writing, |writing| writing.rebuild())?,
            Job::HostState(changes) => writing.host_state(changes),
            Job::Usage(rows) => writing.usage(rows),
            Job::Delete(deletion) => undone_if_refused(writing, |writing| writing.delete(deletion))?,
        };
        results.push(match written {
            Ok(()) => Ok(()),
            Err(Unwritten::Refused(e)) => Err(e),
            Err(Unwritten::Failed(e)) => return Err(e),
        });
    }
    Ok(results)
}

/// Executes a job that changes rows before it may be refused.
fn undone_if_refused(
    writing: &mut Writing<'_>,
    work: impl FnOnce(&mut Writing<'_>) -> Result<(), Unwritten>,
) -> rusqlite::Result<Result<(), Unwritten>> {
    writing.connection.execute_batch("SAVEPOINT job")?;
    let result = work(writing);
    if matches!(result, Err(Unwritten::Refused(_))) {
        writing.connection.execute_batch("ROLLBACK TO job")?;
    }
    writing.connection.execute_batch("RELEASE job")?;
    Ok(result)
}

/// Describes an error of SQLite for users.
pub(crate) fn said(e: &rusqlite::Error) -> String {
    match e.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "the disk is full, or the file has reached its size limit".into(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            "another program is writing to the file".into()
        }
        Some(rusqlite::ErrorCode::ReadOnly) => format!("the file is not writable ({e})"),
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            format!("the file is damaged ({e})")
        }
        _ => e.to_string(),
    }
}

#[cfg(test)]
pub(super) mod tests;
