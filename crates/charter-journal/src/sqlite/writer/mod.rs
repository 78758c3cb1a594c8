//! The writer's thread: everything that waits is written in one transaction and answered after its commit.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::checkpoint::Checkpoints;
use super::jobs::{Habit, Job, Jobs, Request};
use super::write::{Unwritten, Writing};
use crate::error::StoreError;

/// What came of each of some jobs.
pub(crate) type Results = Vec<Result<(), StoreError>>;

/// How jobs are committed: [`commit`]; in tests also something that fails on the way.
pub(crate) trait Committing: FnMut(&mut Writing<'_>, &mut Jobs<'_>) -> rusqlite::Result<Results> {}
impl<F: FnMut(&mut Writing<'_>, &mut Jobs<'_>) -> rusqlite::Result<Results>> Committing for F {}

/// How long the writer looks for the next request before it sleeps: a part of what one commit takes.
const ATTENTION: Duration = Duration::from_micros(50);

/// Writes until nobody can send any more. `stopped` is set by the first failure that leaves open what is on the disk; nothing is
/// written after it.
pub(crate) fn run(
    mut writing: Writing<'_>,
    requests: &Receiver<Request>,
    stopped: &Arc<OnceLock<String>>,
    mut commit: impl Committing,
    mut checkpoints: Checkpoints,
) {
    let mut habit = Habit::default();
    while let Some(first) = next(requests) {
        let begin = Instant::now();
        let mut jobs = Jobs::new(first, requests, &habit);
        let results = write(&mut writing, &mut jobs, stopped, &mut commit);
        let took = begin.elapsed().saturating_sub(jobs.waited());
        let size = results.len();
        let replies = jobs.into_replies();
        for (reply, result) in replies.into_iter().zip(results) {
            reply(result);
        }
        habit.learn(size, took);
        if stopped.get().is_none() {
            checkpoints.look(&mut writing);
        }
    }
}

/// The next request, or none if nobody can send any more. Who was just answered often sends at once: for a moment it is quicker to
/// look for it than to be woken.
fn next(requests: &Receiver<Request>) -> Option<Request> {
    let begin = Instant::now();
    while begin.elapsed() < ATTENTION {
        match requests.try_recv() {
            Ok(request) => return Some(request),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    requests.recv().ok()
}

/// Writes jobs together, and if that is not possible each by itself, so that one that cannot be written does not disturb the others.
fn write(
    writing: &mut Writing<'_>,
    jobs: &mut Jobs<'_>,
    stopped: &OnceLock<String>,
    commit: &mut impl Committing,
) -> Results {
    if let Some(reason) = stopped.get() {
        let answer = || Err(StoreError::Stopped { reason: reason.clone() });
        return jobs.close().map(|_| answer()).collect();
    }
    let failure = match commit(writing, jobs) {
        Ok(results) => return results,
        Err(failure) => failure,
    };
    let places = jobs.close();
    writing.forget();
    // SQLite may have taken everything back by itself.
    let undone = writing.connection.is_autocommit() || writing.connection.execute_batch("ROLLBACK").is_ok();
    let reason = said(&failure);
    match undone.then(|| harmless(&failure)).flatten() {
        Some(error) if jobs.len() == 1 => vec![Err(error(reason))],
        Some(_) => places
            .flat_map(|place| {
                jobs.only(place);
                write(writing, jobs, stopped, commit)
            })
            .collect(),
        // Whether it is undone now or when the file is opened again, nobody was told that it was written.
        None => {
            let _ = stopped.set(reason.clone());
            let failed = || Err(StoreError::Failed { doing: "writing the journal", reason: reason.clone() });
            places.map(|_| failed()).collect()
        }
    }
}

/// Failures after which it is certain that nothing was written, and as what they are answered.
fn harmless(e: &rusqlite::Error) -> Option<fn(String) -> StoreError> {
    use rusqlite::ErrorCode::{ConstraintViolation, DatabaseBusy, DatabaseLocked, DiskFull, TooBig};
    match e.sqlite_error_code()? {
        DiskFull | DatabaseBusy | DatabaseLocked | TooBig => Some(|reason| StoreError::NotWritten { reason }),
        // The record follows its run's head, but something is in its place already.
        ConstraintViolation => Some(|reason| {
            StoreError::Damaged(format!("the tables have something in the place of a new record ({reason})"))
        }),
        _ => None,
    }
}

/// One transaction for all jobs. A job that does not fit has written nothing, and does not disturb the others.
pub(crate) fn commit(writing: &mut Writing<'_>, jobs: &mut Jobs<'_>) -> rusqlite::Result<Results> {
    writing.begin()?;
    let results = perform(writing, jobs)?;
    writing.commit()?;
    Ok(results)
}

/// What lies between begin and commit.
fn perform(writing: &mut Writing<'_>, jobs: &mut Jobs<'_>) -> rusqlite::Result<Results> {
    let mut results = Vec::new();
    while let Some(job) = jobs.next() {
        let written = match job {
            Job::Append(batch) => writing.append(batch),
            Job::Charter(charter) => writing.charter(charter),
            Job::Blob(digest, data) => writing.blob(*digest, data),
            Job::Snapshot(run, snapshot) => writing.put_snapshot(run, snapshot),
            Job::ForgetSnapshots => writing.forget_snapshots(),
            Job::Rebuild => {
                // It empties tables before it may find damage, so it is undone by itself.
                writing.connection.execute_batch("SAVEPOINT rebuild")?;
                let result = writing.rebuild();
                if matches!(result, Err(Unwritten::Refused(_))) {
                    writing.connection.execute_batch("ROLLBACK TO rebuild")?;
                }
                writing.connection.execute_batch("RELEASE rebuild")?;
                result
            }
        };
        results.push(match written {
            Ok(()) => Ok(()),
            Err(Unwritten::Refused(e)) => Err(e),
            Err(Unwritten::Failed(e)) => return Err(e),
        });
    }
    Ok(results)
}

/// What SQLite says, in words that help.
pub(crate) fn said(e: &rusqlite::Error) -> String {
    match e.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "the disk is full (or the file has reached its size limit)".into(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            "another program is writing to the file".into()
        }
        Some(rusqlite::ErrorCode::ReadOnly) => format!("the file cannot be written ({e})"),
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            format!("the file is damaged ({e})")
        }
        _ => e.to_string(),
    }
}

#[cfg(test)]
mod tests;
