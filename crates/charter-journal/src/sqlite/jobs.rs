//! What shares a commit: jobs are taken from the queue while those before them are written.

use std::ops::Range;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use charter_kernel::Digest;

use crate::store::{Append, Reply, StoredCharter, StoredSnapshot};

/// The most batches in a transaction, and the most bytes of records: enough to share an fsync, little enough to be answered soon.
const MAX_JOBS: usize = 1_024;
const MAX_BYTES: usize = 8 << 20;

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

/// What the last commits were like. Whoever is answered by a commit often has the next event ready a moment later; without a little
/// patience the first of them would have the next commit for itself, and the others would wait for the one after it.
#[derive(Default)]
pub(super) struct Habit {
    /// Jobs in the last two commits.
    sizes: [usize; 2],
    /// How long the last one took.
    took: Duration,
}

impl Habit {
    pub(super) fn learn(&mut self, size: usize, took: Duration) {
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

/// Jobs that are written together.
pub(crate) struct Jobs<'q> {
    queue: &'q Receiver<Request>,
    habit: &'q Habit,
    jobs: Vec<Job>,
    replies: Vec<Reply>,
    /// Those that are to be written now. While it is open, more come from the queue.
    range: Range<usize>,
    open: bool,
    next: usize,
    bytes: usize,
    waited: Duration,
}

impl<'q> Jobs<'q> {
    pub(super) fn new(first: Request, queue: &'q Receiver<Request>, habit: &'q Habit) -> Jobs<'q> {
        let mut jobs = Jobs {
            queue,
            habit,
            jobs: Vec::with_capacity(habit.expected()),
            replies: Vec::with_capacity(habit.expected()),
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

    /// The next job: one that is here, waits in the queue, or may be expected to come within a moment.
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
        if self.jobs.len() >= self.habit.expected() {
            return None;
        }
        let left = self.habit.patience().checked_sub(self.waited)?;
        let begin = Instant::now();
        let request = self.queue.recv_timeout(left).ok();
        self.waited = self.waited.saturating_add(begin.elapsed());
        request
    }

    /// How many are to be written now.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// No more come. What is to be written now, as places.
    pub(super) fn close(&mut self) -> Range<usize> {
        self.open = false;
        self.range.clone()
    }

    /// Only the job in this place is to be written now.
    pub(super) fn only(&mut self, place: usize) {
        self.range = place..place.saturating_add(1);
        self.next = place;
    }

    /// How long the writer had nothing to do but to wait for the next job.
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

    /// A job of no size, which nobody waits for.
    fn request() -> Request {
        Request { job: Job::ForgetSnapshots, reply: Box::new(drop) }
    }

    /// How many share a commit with the first.
    fn together(queue: &Receiver<Request>, habit: &Habit) -> usize {
        let mut jobs = Jobs::new(request(), queue, habit);
        while jobs.next().is_some() {}
        jobs.into_replies().len()
    }

    #[test]
    fn who_comes_a_moment_later_shares_the_commit() {
        let (sender, requests) = channel();
        let slow = |sizes| Habit { sizes, took: Duration::from_secs(40) };
        // Two came together last time: the second is waited for, a third is not.
        let late = std::thread::spawn({
            let sender = sender.clone();
            move || {
                std::thread::sleep(Duration::from_millis(20));
                sender.send(request()).unwrap();
            }
        });
        assert_eq!(together(&requests, &slow([2, 1])), 2);
        late.join().unwrap();
        // What is there already is taken, whatever was expected.
        (0..3).for_each(|_| sender.send(request()).unwrap());
        assert_eq!(together(&requests, &slow([1, 1])), 4);
        // One alone waits for nobody, and nobody waits longer than a part of a commit.
        let begin = Instant::now();
        assert_eq!(together(&requests, &slow([1, 1])), 1);
        let quick = Habit { sizes: [9, 9], took: Duration::from_millis(4) };
        assert_eq!(together(&requests, &quick), 1);
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
