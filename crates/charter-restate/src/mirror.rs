//! Copies the runs of a Restate server into a journal file.

use charter_journal::{Append, RunInfo, Store};
use charter_runtime::RuntimeError;

use crate::client::Engine;

/// Runs and records that are read at a time.
const RUNS: usize = 500;
const RECORDS: usize = 128;

/// What a pass has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrored {
    /// Runs that the server has.
    pub runs: u64,
    /// Runs that got records.
    pub changed: Vec<String>,
    /// Records that were copied.
    pub records: u64,
    /// What is wrong: a run whose records do not continue those of the file.
    pub problems: Vec<String>,
}

/// Copies the records that the journal file does not have. Each must continue its run; a pass that
/// was interrupted is continued by the next one.
///
/// # Errors
/// The server does not answer, or the file cannot be written.
pub fn mirror(engine: &Engine, store: &dyn Store) -> Result<Mirrored, RuntimeError> {
    let mut done = Mirrored::default();
    let mut after: Option<String> = None;
    loop {
        let page = engine.runs(after.as_deref(), RUNS)?;
        let Some(last) = page.last() else {
            return Ok(done);
        };
        after = Some(last.run.clone());
        for info in &page {
            done.runs = done.runs.saturating_add(1);
            let copied = copy(engine, store, info, &mut done.problems)?;
            if copied > 0 {
                done.records = done.records.saturating_add(copied);
                done.changed.push(info.run.clone());
            }
        }
    }
}

fn copy(engine: &Engine, store: &dyn Store, info: &RunInfo, problems: &mut Vec<String>) -> Result<u64, RuntimeError> {
    let mut copied = 0u64;
    let mut from = match store.run(&info.run)? {
        Some(have) if have.seq == info.seq && have.hash != info.hash => {
            problems
                .push(format!("run `{}`: record {} of the file is another one than the server's", info.run, have.seq));
            return Ok(0);
        }
        Some(have) if have.seq >= info.seq => return Ok(0),
        Some(have) => have.seq.saturating_add(1),
        None => {
            put_charter(engine, store, info)?;
            0
        }
    };
    loop {
        let page = engine.records(&info.run, from, RECORDS)?;
        let Some(last) = page.last() else {
            return Ok(copied);
        };
        from = last.seq.saturating_add(1);
        if let Some(bad) = page.iter().find(|record| !record.is_intact() || *record.run != *info.run) {
            problems.push(format!("run `{}`: record {} does not have its hash", info.run, bad.seq));
            return Ok(copied);
        }
        let count = u64::try_from(page.len()).unwrap_or_default();
        let imported = |record| Append { record, snapshot: None, imported: true };
        match store.append(page.into_iter().map(imported).collect()) {
            Ok(()) => copied = copied.saturating_add(count),
            Err(charter_journal::StoreError::Conflict { why, seq, .. }) => {
                problems.push(format!("run `{}`: record {seq} does not continue the file: {why}", info.run));
                return Ok(copied);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn put_charter(engine: &Engine, store: &dyn Store, info: &RunInfo) -> Result<(), RuntimeError> {
    if store.charter(info.charter)?.is_some() {
        return Ok(());
    }
    let (charter, blobs) = engine.charter(info.charter)?.ok_or(RuntimeError::UnknownCharter(info.charter))?;
    for blob in &blobs {
        store.put_blob(blob)?;
    }
    Ok(store.put_charter(&charter)?)
}
