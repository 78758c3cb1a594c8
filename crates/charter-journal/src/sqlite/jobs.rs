//! Group commit: jobs are taken from the queue while earlier ones are written.

use std::ops::Range;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use charter_kernel::Digest;

use super::delete::Deletion;
use crate::store::{Append, Reply, StateChange, StoredCharter, StoredSnapshot, UsageRow};

/// Maximum number of jobs and of bytes per transaction: enough to share an fsync, but not so many
/// that replies are late.
const MAX_JOBS: usize = 1_024;
const MAX_BYTES: usize = 8 << 20;

/// A write operation.
pub(crate) enum Job {
    Append(Vec<Append>),
    Charter(Box<StoredCharter>),
    Blob(Digest, Vec<u8>),
    Snapshot(String, StoredSnapshot),
    ForgetSnapshots,
    Rebuild,
    Delete(Box<Deletion>),
    HostState(Vec<StateChange>),
    Usage(Vec<UsageRow>),
}

/// A job and the callback for its result.
pub(crate) struct Request {
    pub(crate) job: Job,
    pub(crate) reply: Reply,
}

impl Job {
    fn size(&self) -> usize {
        match self {
            Job::Append(batch) => batch
                .iter()
                .map(|a| a.record.text().len().saturating_add(a.snapshot.as_ref().map_or(0, String::len)))
                .fold(0, usize::saturating_add),
            Job::Blob(_, data) => data.len(),
            _ => 0,
        }
    }
}

/// Statistics of the last commits. Senders that are answered by a commit often have the next event
/// ready a moment later. Without a short wait the first of them would get the next commit for
/// itself, and the others would wait for the one after it.
#[derive(Default)]
pub(super) struct CommitStats {
    /// Number of jobs in the last two commits.
    sizes: [usize; 2],
    /// Duration of the last commit.
    took: Duration,
}

impl CommitStats {
    pub(super) fn record(&mut self, size: usize, took: Duration) {
        self.sizes = [self.sizes[1], size];
        self.took = took;
    }

    /// The expected number of jobs in the next commit. With a single sender, the writer never
    /// waits.
    fn expected(&self) -> usize {
        self.sizes[0].max(self.sizes[1])
    }

    /// How long to wait for the expected jobs: a fraction of the time of a separate commit.
    fn max_wait(&self) -> Duration {
        self.took.checked_div(4).unwrap_or_default()
    }
}

/// Jobs that share a commit.
pub(crate) struct Jobs<'q> {
    queue: &'q Receiver<Request>,
    stats: &'q CommitStats,
    jobs: Vec<Job>,
    replies: Vec<Reply>,
    /// The indices of the jobs to write now. While `open` is set, more jobs are taken from the
    /// queue.
    range: Range<usize>,
    open: bool,
    next: usize,
    bytes: usize,
    waited: Duration,
}

impl<'q> Jobs<'q> {
    pub(super) fn new(first: Request, queue: &'q Receiver<Request>, stats: &'q CommitStats) -> Jobs<'q> {
        let mut jobs = Jobs {
            queue,
            stats,
            jobs: Vec::with_capacity(stats.expected()),
            replies: Vec::with_capacity(stats.expected()),
            range: 0..0,
            open: true,
            next: 0,
            bytes: 0,
            waited: Duration::ZERO,
        };
        jobs.push(first);
        jobs
    }

    fn push(&mut self, request: Request) {
        self.bytes = self.bytes.saturating_add(request.job.size());
        self.jobs.push(request.job);
        self.replies.push(request.reply);
        self.range.end = self.jobs.len();
    }

    /// Returns the next job: one already taken, one in the queue, or an expected one that arrives
    /// within a short wait.
    pub(super) fn next(&mut self) -> Option<&Job> {
        if self.next == self.range.end && self.open {
            let request = self.receive()?;
            self.push(request);
        }
        let place = self.next;
        if place >= self.range.end {
            return None;
        }
        self.next = place.saturating_add(1);
        self.jobs.get(place)
    }

    fn receive(&mut self) -> Option<Request> {
        if self.jobs.len() >= MAX_JOBS || self.bytes >= MAX_BYTES {
            return None;
        }
        if let Ok(request) = self.queue.try_recv() {
            return Some(request);
        }
        if self.jobs.len() >= self.stats.expected() {
            return None;
        }
        let left = self.stats.max_wait().checked_sub(self.waited)?;
        let begin = Instant::now();
        let request = self.queue.recv_timeout(left).ok();
        self.waited = self.waited.saturating_add(begin.elapsed());
        request
    }

    /// The number of jobs to write now.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// Stops taking jobs from the queue. Returns the indices of the jobs to write.
    pub(super) fn close(&mut self) -> Range<usize> {
        self.open = false;
        self.range.clone()
    }

    /// Restricts the jobs to write to the one at this index.
    pub(super) fn only(&mut self, place: usize) {
        self.range = place..place.saturating_add(1);
        self.next = place;
    }

    /// How long the writer waited for jobs.
    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    pub(super) fn into_replies(self) -> Vec<Reply> {
        self.replies
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A job without data whose result is ignored.
    fn request() -> Request {
        Request { job: Job::ForgetSnapshots, reply: Box::new(drop) }
    }

    /// Collects the jobs of one commit and returns their number.
    fn together(queue: &Receiver<Request>, stats: &CommitStats) -> usize {
        let mut jobs = Jobs::new(request(), queue, stats);
        while jobs.next().is_some() {}
        jobs.into_replies().len()
    }

    #[test]
    fn jobs_that_arrive_a_moment_later_share_the_commit() {
        let (sender, requests) = channel();
        let slow = |sizes| CommitStats { sizes, took: Duration::from_secs(40) };
        // A recent commit had two jobs, so the writer waits for a second job but not for a third.
        let late = std::thread::spawn({
            let sender = sender.clone();
            move || {
                std::thread::sleep(Duration::from_millis(20));
                sender.send(request()).unwrap();
            }
        });
        assert_eq!(together(&requests, &slow([2, 1])), 2);
        late.join().unwrap();
        // Jobs already in the queue are taken, regardless of the statistics.
        (0..3).for_each(|_| sender.send(request()).unwrap());
        assert_eq!(together(&requests, &slow([1, 1])), 4);
        // A single sender does not wait, and the wait is limited to a fraction of a commit.
        let begin = Instant::now();
        assert_eq!(together(&requests, &slow([1, 1])), 1);
        let quick = CommitStats { sizes: [9, 9], took: Duration::from_millis(4) };
        assert_eq!(together(&requests, &quick), 1);
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
