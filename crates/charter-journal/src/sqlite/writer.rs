//! The writer's thread: everything that waits is written in one transaction and answered after its commit.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use charter_kernel::Digest;

use super::write::{Unwritten, Writing};
use crate::error::StoreError;
use crate::store::{Append, Reply, StoredCharter, StoredSnapshot};

/// The most batches in a transaction, and the most bytes of records: enough to share an fsync, little enough to be answered soon.
const MOST_JOBS: usize = 1_024;
const MOST_BYTES: usize = 8 << 20;

/// Something to write.
pub(crate) enum Job {
    Append(Vec<Append>),
    Charter(Box<StoredCharter>),
    Blob(Digest, Vec<u8>),
    Snapshot(String, StoredSnapshot),
    ForgetSnapshots,
    Rebuild,
}

/// Something to write, and whom to tell.
pub(crate) struct Request {
    pub(crate) job: Job,
    pub(crate) reply: Reply,
}

impl Request {
    fn size(&self) -> usize {
        match &self.job {
            Job::Append(batch) => batch
                .iter()
                .map(|a| {
                    a.record
                        .text()
                        .len()
                        .saturating_add(a.snapshot.as_ref().map_or(0, String::len))
                })
                .fold(0, usize::saturating_add),
            Job::Blob(_, data) => data.len(),
            _ => 0,
        }
    }
}

/// What came of each of some jobs.
pub(crate) type Results = Vec<Result<(), StoreError>>;

/// How jobs are committed: [`commit`]; in tests also something that fails on the way.
pub(crate) trait Committing:
    FnMut(&mut Writing, &[Job]) -> rusqlite::Result<Results>
{
}
impl<F: FnMut(&mut Writing, &[Job]) -> rusqlite::Result<Results>> Committing for F {}

/// Writes until nobody can send any more. `stopped` is set by the first failure that leaves open what is on the disk; nothing is
/// written after it.
pub(crate) fn run(
    mut writing: Writing,
    requests: &Receiver<Request>,
    stopped: &Arc<OnceLock<String>>,
    mut commit: impl Committing,
) {
    let mut habit = Habit::default();
    while let Ok(first) = requests.recv() {
        let group = gather(first, requests, &habit);
        let begin = Instant::now();
        let size = group.len();
        let (jobs, replies): (Vec<Job>, Vec<Reply>) =
            group.into_iter().map(|r| (r.job, r.reply)).unzip();
        let results = write(&mut writing, &jobs, stopped, &mut commit);
        replies
            .into_iter()
            .zip(results)
            .for_each(|(reply, result)| reply(result));
        habit.learn(size, begin.elapsed());
    }
}

/// What the last commits were like. Whoever is answered by a commit often has the next event ready a moment later; without a little
/// patience the first of them would have the next commit for itself, and the others would wait for the one after it.
#[derive(Default)]
struct Habit {
    /// Jobs in the last two commits.
    sizes: [usize; 2],
    /// How long the last one took.
    took: Duration,
}

impl Habit {
    fn learn(&mut self, size: usize, took: Duration) {
        self.sizes = [self.sizes[1], size];
        self.took = took;
    }

    /// How many jobs may be expected to come together. One alone is never waited for.
    fn expected(&self) -> usize {
        self.sizes[0].max(self.sizes[1])
    }

    /// How long it is worth waiting for them: a small part of what a commit of their own would cost each.
    fn patience(&self) -> Duration {
        self.took.checked_div(4).unwrap_or_default()
    }
}

/// What waits, and what may be expected to come within a moment.
fn gather(first: Request, requests: &Receiver<Request>, habit: &Habit) -> Vec<Request> {
    let begin = Instant::now();
    let mut bytes = first.size();
    let mut group = vec![first];
    while group.len() < MOST_JOBS && bytes < MOST_BYTES {
        let next = requests.try_recv().ok().or_else(|| {
            let left = habit.patience().checked_sub(begin.elapsed())?;
            (group.len() < habit.expected()).then(|| requests.recv_timeout(left).ok())?
        });
        let Some(request) = next else { break };
        bytes = bytes.saturating_add(request.size());
        group.push(request);
    }
    group
}

/// Writes jobs together, and if that is not possible each by itself, so that one that cannot be written does not disturb the others.
fn write(
    writing: &mut Writing,
    jobs: &[Job],
    stopped: &OnceLock<String>,
    commit: &mut impl Committing,
) -> Results {
    if let Some(reason) = stopped.get() {
        let answer = || {
            Err(StoreError::Stopped {
                reason: reason.clone(),
            })
        };
        return jobs.iter().map(|_| answer()).collect();
    }
    let failure = match commit(writing, jobs) {
        Ok(results) => return results,
        Err(failure) => failure,
    };
    writing.forget();
    // SQLite may have taken everything back by itself.
    let undone =
        writing.connection.is_autocommit() || writing.connection.execute_batch("ROLLBACK").is_ok();
    let reason = said(&failure);
    match undone.then(|| harmless(&failure)).flatten() {
        Some(error) if jobs.len() == 1 => vec![Err(error(reason))],
        Some(_) => jobs
            .iter()
            .flat_map(|job| write(writing, std::slice::from_ref(job), stopped, commit))
            .collect(),
        // Whether it is undone now or when the file is opened again, nobody was told that it was written.
        None => {
            let _ = stopped.set(reason.clone());
            let failed = || {
                Err(StoreError::Failed {
                    doing: "writing the journal",
                    reason: reason.clone(),
                })
            };
            jobs.iter().map(|_| failed()).collect()
        }
    }
}

/// Failures after which it is certain that nothing was written, and as what they are answered.
fn harmless(e: &rusqlite::Error) -> Option<fn(String) -> StoreError> {
    use rusqlite::ErrorCode::{
        ConstraintViolation, DatabaseBusy, DatabaseLocked, DiskFull, TooBig,
    };
    match e.sqlite_error_code()? {
        DiskFull | DatabaseBusy | DatabaseLocked | TooBig => {
            Some(|reason| StoreError::NotWritten { reason })
        }
        // The record follows its run's head, but something is in its place already.
        ConstraintViolation => Some(|reason| {
            StoreError::Damaged(format!(
                "the tables have something in the place of a new record ({reason})"
            ))
        }),
        _ => None,
    }
}

/// One transaction for all jobs. A job that does not fit has written nothing, and does not disturb the others.
pub(crate) fn commit(writing: &mut Writing, jobs: &[Job]) -> rusqlite::Result<Results> {
    writing
        .connection
        .prepare_cached("BEGIN IMMEDIATE")?
        .execute([])?;
    let results = perform(writing, jobs)?;
    writing.connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(results)
}

/// What lies between begin and commit.
fn perform(writing: &mut Writing, jobs: &[Job]) -> rusqlite::Result<Results> {
    let mut results = Vec::with_capacity(jobs.len());
    for job in jobs {
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
        Some(rusqlite::ErrorCode::DiskFull) => {
            "the disk is full (or the file has reached its size limit)".into()
        }
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
#[path = "writer_tests.rs"]
mod tests;
