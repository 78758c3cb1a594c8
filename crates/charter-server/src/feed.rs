//! The live streams: records as they are committed. One task reads them from the journal; readers
//! take them from its memory, or, if they are behind, from the journal.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use charter_journal::Record;
use charter_runtime::RuntimeError;
use charter_runtime::backend::{Backend, Update};
use tokio::sync::{broadcast, watch};

/// Records that are kept in memory, and their bytes.
const MAX_KEPT: usize = 4_096;
const MAX_KEPT_BYTES: usize = 16 << 20;
/// Records that are read from the journal at once.
const PAGE: usize = 256;
/// News of a run, other than records, that a slow reader may be behind; it misses older ones.
const MAX_NEWS: usize = 64;
/// Bytes of a page, unless one record is larger, and its records.
const PAGE_BYTES: usize = 512 << 10;
const MAX_PAGE: usize = 128;
/// The journal is read again after this time even if nothing was announced.
const POLL: Duration = Duration::from_secs(2);

/// A record and its position in the journal.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) position: u64,
    pub(crate) record: Record,
}

#[derive(Default)]
struct Kept {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Every record after this position is kept.
    after: u64,
}

/// What a reader of one run waits for.
struct Channel {
    /// The number of records of the run, as far as it is known here.
    records: watch::Sender<u64>,
    /// The last records of the run, without a gap: those of them that are kept anyway.
    last: VecDeque<Entry>,
    news: broadcast::Sender<Arc<Update>>,
}

impl Channel {
    fn keep(&mut self, entry: Entry) {
        let seq = entry.record.seq;
        // After a gap, or if the run was deleted and started again, the others do not belong to it.
        if self.last.back().is_some_and(|last| last.record.seq.checked_add(1) != Some(seq)) {
            self.last.clear();
        }
        self.last.push_back(entry);
        self.records.send_replace(seq.saturating_add(1));
    }

    /// Forgets what is not kept any more, up to a position.
    fn forget(&mut self, position: u64) {
        while self.last.front().is_some_and(|first| first.position <= position) {
            self.last.pop_front();
        }
    }

    /// At most `limit` records from a number on, none if the next one is that; `None` if not all of
    /// them are kept.
    fn from(&self, from: u64, limit: usize) -> Option<Vec<Record>> {
        let first = self.last.front()?.record.seq;
        let skipped = usize::try_from(from.checked_sub(first)?).ok()?;
        let rest = self.last.len().checked_sub(skipped)?;
        Some(self.last.range(skipped..skipped.saturating_add(rest.min(limit))).map(|e| e.record.clone()).collect())
    }
}

struct Inner {
    kept: Mutex<Kept>,
    position: watch::Sender<u64>,
    runs: Mutex<HashMap<String, Channel>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records of the journal as they are committed.
#[derive(Clone)]
pub(crate) struct Feed(Arc<Inner>);

impl Feed {
    /// A feed that begins after a position.
    pub(crate) fn new(position: u64) -> Feed {
        let kept = Kept { after: position, ..Kept::default() };
        let inner = Inner { kept: Mutex::new(kept), position: watch::Sender::new(position), runs: Mutex::default() };
        Feed(Arc::new(inner))
    }

    /// Follows the journal for ever. `seen` is called with every record, in order, before readers
    /// get it.
    pub(crate) async fn follow(self, backend: Arc<dyn Backend>, seen: impl AsyncFn(&Record)) {
        let mut updates = None;
        loop {
            if updates.is_none() {
                updates = backend.updates(None).await.ok();
            }
            self.read_new(backend.as_ref(), &seen).await;
            let Some(subscription) = &mut updates else {
                tokio::time::sleep(POLL).await;
                continue;
            };
            // All that is announced already is read at once.
            let mut patience = POLL;
            for _ in 0..PAGE {
                match tokio::time::timeout(patience, subscription.next()).await {
                    Err(_) => break,
                    Ok(Some(Update::Recorded(_) | Update::Missed(_))) => {}
                    Ok(Some(news)) => self.tell(news),
                    Ok(None) => {
                        updates = None;
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        break;
                    }
                }
                patience = Duration::ZERO;
            }
        }
    }

    async fn read_new(&self, backend: &dyn Backend, seen: &impl AsyncFn(&Record)) {
        loop {
            let last = *self.0.position.borrow();
            // An error of the journal is reported to those who use it; here it is tried again.
            let Ok(page) = backend.records_after(last, PAGE).await else { return };
            let Some((position, _)) = page.last() else { return };
            let position = *position;
            for (_, record) in &page {
                seen(record).await;
            }
            self.keep(page);
            self.0.position.send_replace(position);
        }
    }

    fn keep(&self, page: Vec<(u64, Record)>) {
        let mut runs = lock(&self.0.runs);
        let mut kept = lock(&self.0.kept);
        for (position, record) in page {
            kept.bytes = kept.bytes.saturating_add(record.text().len());
            let entry = Entry { position, record };
            if let Some(channel) = runs.get_mut(&*entry.record.run) {
                channel.keep(entry.clone());
            }
            kept.entries.push_back(entry);
        }
        while kept.entries.len() > MAX_KEPT || kept.bytes > MAX_KEPT_BYTES {
            let Some(oldest) = kept.entries.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(oldest.record.text().len());
            kept.after = oldest.position;
            if let Some(channel) = runs.get_mut(&*oldest.record.run) {
                channel.forget(oldest.position);
            }
        }
    }

    fn tell(&self, news: Update) {
        let run = match &news {
            Update::Emitted { run, .. } | Update::Logged { run, .. } => run.clone(),
            Update::Began(work) | Update::Waiting(work) | Update::Stopped(work) | Update::Retrying { work, .. } => {
                work.run.clone()
            }
            Update::Progress(progress) => progress.run.clone(),
            Update::Trouble { run: Some(run), .. } => run.clone(),
            _ => return,
        };
        if let Some(channel) = lock(&self.0.runs).get(&*run) {
            let _ = channel.news.send(Arc::new(news));
        }
    }

    /// The position of the last record that readers can get.
    pub(crate) fn position(&self) -> u64 {
        *self.0.position.borrow()
    }

    /// Waits until there are records after a position.
    pub(crate) async fn after(&self, position: u64) {
        let mut last = self.0.position.subscribe();
        let _ = last.wait_for(|last| *last > position).await;
    }

    /// Returns at most `limit` records after a position; none if there are none yet.
    pub(crate) async fn page(
        &self,
        backend: &dyn Backend,
        position: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, RuntimeError> {
        {
            let kept = lock(&self.0.kept);
            if position >= kept.after {
                let from = kept.entries.partition_point(|e| e.position <= position);
                return Ok(kept.entries.iter().skip(from).take(limit).cloned().collect());
            }
        }
        let page = backend.records_after(position, limit).await?;
        Ok(page.into_iter().map(|(position, record)| Entry { position, record }).collect())
    }

    /// Waits for records and news of a run from now on.
    pub(crate) fn run(&self, run: &str) -> Watch {
        let mut runs = lock(&self.0.runs);
        let channel = runs.entry(run.to_owned()).or_insert_with(|| Channel {
            records: watch::Sender::new(0),
            last: VecDeque::new(),
            news: broadcast::channel(MAX_NEWS).0,
        });
        Watch {
            feed: self.clone(),
            run: run.to_owned(),
            records: channel.records.subscribe(),
            news: channel.news.subscribe(),
        }
    }
}

/// How many records the next page has: as many as were small enough before.
#[derive(Debug)]
pub(crate) struct PageSize(pub(crate) usize);

impl PageSize {
    /// Takes note of a page.
    pub(crate) fn after(&mut self, records: usize, bytes: usize) {
        self.0 = match bytes.saturating_mul(2) <= PAGE_BYTES {
            true if records == self.0 => self.0.saturating_mul(2).min(MAX_PAGE),
            true => self.0,
            false => self.0.checked_div(2).unwrap_or(1).max(1),
        };
    }
}

/// A reader of one run.
pub(crate) struct Watch {
    feed: Feed,
    run: String,
    records: watch::Receiver<u64>,
    news: broadcast::Receiver<Arc<Update>>,
}

/// What a reader of one run waited for.
pub(crate) enum Next {
    /// There may be new records.
    Records,
    /// Something else happened.
    News(Arc<Update>),
}

impl Watch {
    /// Returns at most `limit` records of the run from a number on; none if there are none yet.
    pub(crate) async fn page(
        &self,
        backend: &dyn Backend,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Record>, RuntimeError> {
        let kept = lock(&self.feed.0.runs).get(&self.run).and_then(|channel| channel.from(from, limit));
        match kept {
            Some(kept) => Ok(kept),
            None => backend.records(self.run.clone(), from, limit).await,
        }
    }

    /// Waits for what is next. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            tokio::select! {
                biased;
                changed = self.records.changed() => match changed {
                    Ok(()) => return Next::Records,
                    Err(_) => std::future::pending().await,
                },
                news = self.news.recv() => match news {
                    Ok(news) => return Next::News(news),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut runs = lock(&self.feed.0.runs);
        // This reader still counts.
        if runs.get(&self.run).is_some_and(|channel| channel.records.receiver_count() <= 1) {
            runs.remove(&self.run);
        }
    }
}
