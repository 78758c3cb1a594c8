//! A store in memory that writes differently.

use charter_journal::*;
use charter_kernel::{Digest, Timestamp};

type Submit = dyn Fn(&MemoryStore, Vec<Append>, Reply) + Send + Sync;

/// A store that reserves no keys, and whose writes are what a test says.
pub(crate) struct Altered {
    inside: MemoryStore,
    submit: Box<Submit>,
}

impl Altered {
    pub(crate) fn new(
        inside: MemoryStore,
        submit: impl Fn(&MemoryStore, Vec<Append>, Reply) + Send + Sync + 'static,
    ) -> Altered {
        Altered { inside, submit: Box::new(submit) }
    }
}

macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> $result { self.inside.$name($($arg),*) })*
    };
}

impl Store for Altered {
    fn submit(&self, batch: Vec<Append>, reply: Reply) {
        (self.submit)(&self.inside, batch, reply);
    }
    forward! {
        put_charter(charter: &StoredCharter) -> Result<(), StoreError>;
        charter(digest: Digest) -> Result<Option<StoredCharter>, StoreError>;
        charters() -> Result<Vec<StoredCharter>, StoreError>;
        put_blob(data: &[u8]) -> Result<Digest, StoreError>;
        blob(digest: Digest) -> Result<Option<Vec<u8>>, StoreError>;
        scan_blobs(visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError>;
        run(run: &str) -> Result<Option<RunInfo>, StoreError>;
        records_after(position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError>;
        last_position() -> Result<u64, StoreError>;
        runs(filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError>;
        imported(run: &str) -> Result<u64, StoreError>;
        records(run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError>;
        find(run: &str, id: &str) -> Result<Option<Record>, StoreError>;
        snapshot(run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError>;
        put_snapshot(run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError>;
        forget_snapshots() -> Result<(), StoreError>;
        pending_timers(until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError>;
        open_effects(after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError>;
        emitted(r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError>;
        scan(run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError>;
        scan_runs(run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError>;
        scan_snapshots(run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError>;
    }
}
