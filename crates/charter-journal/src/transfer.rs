//! A run as a file: its charter and its records, one JSON object a line. What is imported is verified first.

use std::io::{self, BufRead, Read as _, Write};

use charter_kernel::Digest;
use charter_kernel::digest::canonical;
use serde::Deserialize;
use serde_json::json;

use crate::error::StoreError;
use crate::memory::MemoryStore;
use crate::record::Record;
use crate::replay::{ReplayError, load, machine};
use crate::store::{Append, MAX_RECORD_BYTES, RunInfo, Store, StoredCharter};
use crate::verify::{Finding, verify};

/// Version of the file format; `journal` in its first line.
pub const EXPORT: u32 = 1;

/// The longest line: a definition (16 MiB) as text within a text, or a record.
const MAX_LINE_BYTES: usize = 2 * MAX_RECORD_BYTES;

/// How many records are held at a time while exporting.
const PAGE: usize = 1_000;

/// Why a run could not be exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The charter, or the records.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Reading or writing the file.
    #[error("the file: {0}")]
    File(#[from] io::Error),
    /// A line of the file is not what it should be.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// The records are not what they should be; nothing was imported.
    #[error("the run is not imported, because it does not verify: {0}")]
    NotVerified(Finding),
}

/// The first line.
#[derive(Deserialize)]
#[serde(expecting = "an object with `journal`, `run`, `records`, `head`, `charter`")]
pub(crate) struct Header {
    journal: u32,
    pub(crate) run: String,
    pub(crate) records: u64,
    pub(crate) head: Digest,
    charter: CharterLine,
    /// What comes before the first record, if that is not record 0.
    #[serde(default)]
    pub(crate) after: Option<After>,
}

/// A record, and the snapshot after it: a run goes on from there.
#[derive(Deserialize)]
#[serde(expecting = "an object with `record`, `snapshot`")]
pub(crate) struct After {
    pub(crate) record: String,
    pub(crate) snapshot: String,
}

impl Header {
    /// Reads the first line of a file.
    pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Header, TransferError> {
        let bad = |why: String| TransferError::Line { line: 1, why };
        let first = lines.next()?.ok_or_else(|| bad("the file is empty".into()))?;
        let header: Header = serde_json::from_str(&first)
            .map_err(|e| bad(format!("it is not the first line of an exported run: {e}")))?;
        if header.journal != EXPORT {
            return Err(bad(format!(
                "version {} of the format is not known; this program knows {EXPORT}",
                header.journal
            )));
        }
        Ok(header)
    }

    pub(crate) fn charter(&self) -> StoredCharter {
        let CharterLine { digest, name, core, source } = self.charter.clone();
        StoredCharter { digest, name, core, source }
    }
}

#[derive(Deserialize, Clone)]
#[serde(expecting = "an object with `digest`, `name`, `core`, `source`")]
struct CharterLine {
    digest: Digest,
    name: String,
    core: String,
    source: String,
}

/// Writes a run: a first line with the charter, then its records in order.
///
/// The first line is `{"journal": 1, "run", "records", "head", "charter": {"digest", "name", "core", "source"}}`; `core` is the
/// definition as a text, because the digest is over that very text.
///
/// # Errors
/// No such run; the store cannot be read; the file cannot be written.
pub fn export(store: &dyn Store, run: &str, out: &mut dyn Write) -> Result<RunInfo, TransferError> {
    let info = store.run(run)?.ok_or_else(|| StoreError::UnknownRun(run.into()))?;
    let missing = || ReplayError::Charter { digest: info.charter, why: "it is not in this store".into() };
    let charter = store.charter(info.charter)?.ok_or_else(missing)?;
    let records = info.seq.saturating_add(1);
    let header = export_header(run, records, info.hash, &charter, None);
    writeln!(out, "{header}")?;
    let mut next = 0;
    while next <= info.seq {
        let page = store.records(run, next, PAGE)?;
        for record in page.iter().take_while(|r| r.seq <= info.seq) {
            writeln!(out, "{}", record.text())?;
        }
        match page.last() {
            Some(last) if last.seq >= next => next = last.seq.saturating_add(1),
            _ => {
                return Err(StoreError::Damaged(format!("run `{run}`: record {next} is missing")).into());
            }
        }
    }
    out.flush()?;
    Ok(info)
}

/// The first line of an exported run, without its line end: `records` is the number of records that the run has, `head` the hash of the
/// last. A host that drops old records gives `after`: the text of the record before the first one in the file, and of the snapshot after it;
/// such a file can be [verified](crate::verify_export), not imported.
#[must_use]
pub fn export_header(
    run: &str,
    records: u64,
    head: Digest,
    charter: &StoredCharter,
    after: Option<(String, String)>,
) -> String {
    let mut header = json!({
        "journal": EXPORT,
        "run": run,
        "records": records,
        "head": head,
        "charter": {"digest": charter.digest, "name": charter.name, "core": charter.core, "source": charter.source},
    });
    if let (Some((record, snapshot)), Some(map)) = (after, header.as_object_mut()) {
        map.insert("after".into(), json!({"record": record, "snapshot": snapshot}));
    }
    canonical(&header)
}

/// Reads a run, verifies it whole (hashes, chain, every event through the kernel), and only then writes it, with its charter.
///
/// # Errors
/// A line that is no record; a run that does not verify; a run of that id that is there already; reading or writing failed.
pub fn import(store: &dyn Store, from: &mut dyn BufRead) -> Result<RunInfo, TransferError> {
    Verified::read(from)?.write(store)
}

/// A run from a file that was verified whole and is in no journal yet.
#[derive(Debug)]
pub struct Verified {
    charter: StoredCharter,
    batch: Vec<Append>,
    info: RunInfo,
}

impl Verified {
    /// Writes it, with its charter.
    ///
    /// # Errors
    /// A run of that id is there already; writing failed.
    pub fn write(self, store: &dyn Store) -> Result<RunInfo, TransferError> {
        store.put_charter(&self.charter)?;
        store.append(self.batch)?;
        Ok(self.info)
    }

    /// Reads and verifies a run; the first half of [`import`].
    ///
    /// # Errors
    /// A line that is no record; a run that does not verify; reading failed.
    pub fn read(from: &mut dyn BufRead) -> Result<Verified, TransferError> {
        let mut lines = Lines { from, number: 0 };
        let bad = |line: usize, why: String| TransferError::Line { line, why };
        let header = Header::read(&mut lines)?;
        if header.after.is_some() {
            let why = "the run's first records are not in the file (its host has dropped them): it can be verified, not taken in";
            return Err(bad(1, why.into()));
        }
        let charter = header.charter();
        // First into memory, where it is verified as any journal is.
        let memory = MemoryStore::new();
        memory.put_charter(&charter)?;
        let mut batch = Vec::new();
        while let Some(text) = lines.next()? {
            let record = Record::read(&text).map_err(|e| bad(lines.number, e.to_string()))?;
            if record.run != header.run {
                return Err(bad(
                    lines.number,
                    format!("the record is of run `{}`, the file is of run `{}`", record.run, header.run),
                ));
            }
            memory.append(vec![record.clone().into()]).map_err(|e| bad(lines.number, e.to_string()))?;
            batch.push(Append::from(record));
        }
        let report = verify(&memory, None)?;
        if let Some(finding) = report.findings.into_iter().next() {
            return Err(TransferError::NotVerified(finding));
        }
        let info = memory.run(&header.run)?.ok_or_else(|| bad(lines.number, "the file has no records".into()))?;
        if (info.seq.saturating_add(1), info.hash) != (header.records, header.head) {
            let why = format!(
                "the file ends too early or too late: its first line says {} records up to the hash {}, there are {} up to {}",
                header.records,
                header.head,
                info.seq.saturating_add(1),
                info.hash
            );
            return Err(bad(lines.number, why));
        }
        // One snapshot at the end, so that the run can go on without being replayed.
        let machine = machine(&memory, charter.digest)?;
        if let (Some(last), Some(snapshot)) = (batch.last_mut(), load(&memory, &machine, &header.run)?.snapshot) {
            last.snapshot = Some(machine.snapshot_text(&snapshot));
        }
        Ok(Verified { charter, batch, info })
    }
}

/// Lines of bounded length.
pub(crate) struct Lines<'f> {
    pub(crate) from: &'f mut dyn BufRead,
    pub(crate) number: usize,
}

impl Lines<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<String>, TransferError> {
        let mut line = Vec::new();
        self.number = self.number.saturating_add(1);
        let limit = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
        (&mut *self.from).take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let bad = |why: &str| TransferError::Line { line: self.number, why: why.into() };
        if line.pop_if(|b| *b == b'\n').is_none() && line.len() >= MAX_LINE_BYTES {
            return Err(bad("it is longer than any record"));
        }
        String::from_utf8(line).map(Some).map_err(|_| bad("it is not UTF-8"))
    }
}
