//! Copies the runs of a Restate server into a journal file.

use std::cmp::Ordering;

use charter_journal::{Append, Record, RunInfo, Store, StoreError};
use charter_kernel::Digest;
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
    mirror_each(engine, |info, done| copy_run(engine, store, info, &mut done.problems, &mut |_| {}))
}

/// Lets `copy` copy each run of the server; it returns the number of records.
pub(crate) fn mirror_each(
    engine: &Engine,
    mut copy: impl FnMut(&RunInfo, &mut Mirrored) -> Result<u64, RuntimeError>,
) -> Result<Mirrored, RuntimeError> {
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
            let copied = copy(info, &mut done)?;
            if copied > 0 {
                done.records = done.records.saturating_add(copied);
                done.changed.push(info.run.clone());
            }
        }
    }
}

/// Copies the records of a run that the file does not have; `copied` is called with each.
pub(crate) fn copy_run(
    engine: &Engine,
    store: &dyn Store,
    info: &RunInfo,
    problems: &mut Vec<String>,
    copied: &mut dyn FnMut(&Record),
) -> Result<u64, RuntimeError> {
    let mut count = 0u64;
    let mut from = match store.run(&info.run)? {
        Some(have) if have.seq == info.seq && have.hash != info.hash => {
            problems
                .push(format!("run `{}`: record {} of the file is another one than the server's", info.run, have.seq));
            return Ok(0);
        }
        Some(have) if have.seq >= info.seq => return Ok(0),
        Some(have) => have.seq.saturating_add(1),
        None => {
            put_charter(engine, store, info.charter)?;
            0
        }
    };
    loop {
        let page = engine.records(&info.run, from, RECORDS)?;
        let Some(last) = page.last() else {
            return Ok(count);
        };
        from = last.seq.saturating_add(1);
        let appended = append(store, &info.run, page, problems, copied)?;
        count = count.saturating_add(appended.unwrap_or_default());
        if appended.is_none() {
            return Ok(count);
        }
    }
}

/// Copies a record that the server has made just now, and those before it.
pub(crate) fn continue_copy(
    engine: &Engine,
    store: &dyn Store,
    record: &Record,
    problems: &mut Vec<String>,
    copied: &mut dyn FnMut(&Record),
) -> Result<(), RuntimeError> {
    let have = store.run(&record.run)?;
    let next = have.as_ref().map_or(0, |have| have.seq.saturating_add(1));
    match next.cmp(&record.seq) {
        Ordering::Greater => {}
        Ordering::Equal => {
            if have.is_none() {
                put_charter(engine, store, record.charter)?;
            }
            append(store, &record.run, vec![record.clone()], problems, copied)?;
        }
        Ordering::Less => {
            if let Some(info) = engine.run(&record.run)? {
                copy_run(engine, store, &info, problems, copied)?;
            }
        }
    }
    Ok(())
}

/// Appends records that continue those of the file; returns their number. `None`: they do not,
/// which is a problem.
fn append(
    store: &dyn Store,
    run: &str,
    page: Vec<Record>,
    problems: &mut Vec<String>,
    copied: &mut dyn FnMut(&Record),
) -> Result<Option<u64>, RuntimeError> {
    if let Some(bad) = page.iter().find(|record| !record.is_intact() || *record.run != *run) {
        problems.push(format!("run `{run}`: record {} does not have its hash", bad.seq));
        return Ok(None);
    }
    let imported = |record: &Record| Append { imported: true, ..Append::from(record.clone()) };
    match store.append(page.iter().map(imported).collect()) {
        Ok(()) => {
            page.iter().for_each(copied);
            Ok(Some(u64::try_from(page.len()).unwrap_or_default()))
        }
        Err(StoreError::Conflict { why, seq, .. }) => {
            problems.push(format!("run `{run}`: record {seq} does not continue the file: {why}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn put_charter(engine: &Engine, store: &dyn Store, digest: Digest) -> Result<(), RuntimeError> {
    if store.charter(digest)?.is_some() {
        return Ok(());
    }
    let (charter, blobs) = engine.charter(digest)?.ok_or(RuntimeError::UnknownCharter(digest))?;
    for blob in &blobs {
        store.put_blob(blob)?;
    }
    Ok(store.put_charter(&charter)?)
}
