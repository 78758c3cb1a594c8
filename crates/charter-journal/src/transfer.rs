//! Export and import of a run, as a file with its charter and its records, one JSON object per
//! line. A run is verified before it is imported.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read as _, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_expr::strict_json;
use charter_kernel::Digest;
use charter_kernel::digest::canonical;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::error::StoreError;
use crate::memory::MemoryStore;
use crate::record::Record;
use crate::replay::{ReplayError, load, machine};
use crate::store::{Append, MAX_RECORD_BYTES, RunInfo, Store, StoredCharter};
use crate::verify::{Difference, Finding, verify};

/// Version of the file format; the value of `journal` in the first line.
pub const EXPORT: u32 = 1;

/// Maximum length of a line: a record, or a definition (16 MiB) escaped as a JSON string.
const MAX_LINE_BYTES: usize = 2 * MAX_RECORD_BYTES;

/// Number of records read at a time while exporting.
const PAGE: usize = 1_000;

/// Why a run could not be exported or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The charter or the records cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The file cannot be read or written.
    #[error("cannot read or write the file: {0}")]
    File(#[from] io::Error),
    /// A line of the file is invalid.
    #[error("line {line}: {why}")]
    Line {
        /// The line number, starting at 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// The verification of the run failed; nothing was imported.
    #[error("the run was not imported because it does not verify: {0}")]
    NotVerified(Finding),
}

/// How the source of a charter compares with its definition, which alone has a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceCheck {
    /// It is the source of the definition, or empty.
    Matches,
    /// It cannot be compared, because it names other files. An import leaves it out.
    Unknown,
    /// It is not the source of the definition; the reason as a clause.
    Differs(String),
}

/// Compares the source of a charter with its definition.
pub type CheckSource<'a> = &'a dyn Fn(&StoredCharter) -> SourceCheck;

/// What a source that differs is reported as.
pub(crate) fn other_source(why: &str) -> String {
    format!(
        "the `source` of the charter is not that of its definition (`core`): {why}; with an empty `source`, the run can be imported without it"
    )
}

/// The first line of the file.
#[derive(Deserialize)]
#[serde(expecting = "an object with `journal`, `run`, `records`, `head`, `charter`", deny_unknown_fields)]
pub(crate) struct Header {
    journal: u32,
    pub(crate) run: String,
    pub(crate) records: u64,
    pub(crate) head: Digest,
    charter: CharterLine,
    /// The files of the run's manifest.
    #[serde(default)]
    files: Vec<FileLine>,
    /// The state before the first record in the file, if that record is not record 0.
    #[serde(default)]
    pub(crate) after: Option<After>,
}

/// A record and the snapshot after it, from which the run continues.
#[derive(Deserialize)]
#[serde(expecting = "an object with `record`, `snapshot`", deny_unknown_fields)]
pub(crate) struct After {
    pub(crate) record: String,
    pub(crate) snapshot: String,
}

impl Header {
    /// Parses the first line of a file.
    pub(crate) fn read(lines: &mut Lines<'_>) -> Result<Header, TransferError> {
        let bad = |why: String| TransferError::Line { line: 1, why };
        let first = lines.next()?.ok_or_else(|| bad("the file is empty".into()))?;
        let header: Header =
            strict_json::typed(&first).map_err(|e| bad(format!("not the first line of an exported run: {e}")))?;
        if header.journal != EXPORT {
            return Err(bad(format!(
                "unsupported format version {}; this program supports version {EXPORT}",
                header.journal
            )));
        }
        Ok(header)
    }

    pub(crate) fn charter(&self) -> StoredCharter {
        let CharterLine { digest, name, core, source } = self.charter.clone();
        let mut charter = StoredCharter { digest, name, core, source };
        // A path of another machine names nothing here.
        charter.name = charter.plain_name().to_owned();
        charter
    }

    /// The files, each with the digest that its content has.
    pub(crate) fn files(&self) -> Result<Vec<(Digest, Vec<u8>)>, TransferError> {
        let bad = |why: String| TransferError::Line { line: 1, why };
        let mut files = Vec::new();
        for FileLine { digest, text, base64 } in &self.files {
            let bytes = match (text, base64) {
                (Some(text), None) => text.clone().into_bytes(),
                (None, Some(coded)) => {
                    STANDARD.decode(coded).map_err(|e| bad(format!("the file {digest} is not base64: {e}")))?
                }
                _ => return Err(bad(format!("the file {digest} needs either `text` or `base64`"))),
            };
            // Under another digest, verification does not find it.
            files.push((Digest::of_bytes(&bytes), bytes));
        }
        Ok(files)
    }
}

#[derive(Deserialize, Clone)]
#[serde(expecting = "an object with `digest`, `name`, `core`, `source`", deny_unknown_fields)]
struct CharterLine {
    digest: Digest,
    name: String,
    core: String,
    source: String,
}

/// A file: its bytes as text, or as base64 if they are not UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object with `digest`, and `text` or `base64`", deny_unknown_fields)]
struct FileLine {
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl FileLine {
    fn of(digest: Digest, bytes: Vec<u8>) -> FileLine {
        match String::from_utf8(bytes) {
            Ok(text) => FileLine { digest, text: Some(text), base64: None },
            Err(e) => FileLine { digest, text: None, base64: Some(STANDARD.encode(e.as_bytes())) },
        }
    }
}

/// Reads the files that the record 0 of a run names.
fn files_of(store: &dyn Store, run: &str) -> Result<Vec<FileLine>, TransferError> {
    let first = store.records(run, 0, 1)?.into_iter().next();
    let Some(manifest) = first.and_then(|first| first.manifest.clone()) else {
        return Ok(Vec::new());
    };
    let digests: BTreeSet<Digest> = manifest.all().map(|(_, digest)| digest).collect();
    let mut files = Vec::new();
    for digest in digests {
        let missing = || StoreError::Damaged(format!("run `{run}`: the blob {digest} of its manifest is missing"));
        files.push(FileLine::of(digest, store.blob(digest)?.ok_or_else(missing)?));
    }
    Ok(files)
}

/// Exports a run: a first line with the charter, then its records in order.
///
/// The first line is `{"journal": 1, "run", "records", "head", "charter": {"digest", "name",
/// "core", "source"}, "files": [{"digest", "text"}]}`; `core` is the definition as a JSON string,
/// because the digest covers exactly that text. `files` are those of the run's manifest, and left
/// out if there are none.
///
/// # Errors
/// The run does not exist; the store cannot be read; the file cannot be written.
pub fn export(store: &dyn Store, run: &str, out: &mut dyn Write) -> Result<RunInfo, TransferError> {
    let info = store.run(run)?.ok_or_else(|| StoreError::UnknownRun(run.into()))?;
    let missing = || ReplayError::Charter { digest: info.charter, why: "not in this store".into() };
    let charter = store.charter(info.charter)?.ok_or_else(missing)?;
    let records = info.seq.saturating_add(1);
    let mut header = first_line(run, records, info.hash, &charter);
    let files = files_of(store, run)?;
    if !files.is_empty() {
        // Plain data with string keys always serializes.
        header.insert("files".into(), serde_json::to_value(files).unwrap_or_default());
    }
    writeln!(out, "{}", canonical(&Json::Object(header)))?;
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

/// Builds the first line of an exported run, without the line feed. `records` is the number of
/// records of the run, `head` is the hash of the last one. A host that drops old records passes
/// `after`: the record before the first one in the file, and the snapshot after it, both as text.
/// Such a file can be [verified](crate::verify_export), but not imported.
#[must_use]
pub fn export_header(
    run: &str,
    records: u64,
    head: Digest,
    charter: &StoredCharter,
    after: Option<(String, String)>,
) -> String {
    let mut header = first_line(run, records, head, charter);
    if let Some((record, snapshot)) = after {
        header.insert("after".into(), json!({"record": record, "snapshot": snapshot}));
    }
    canonical(&Json::Object(header))
}

fn first_line(run: &str, records: u64, head: Digest, charter: &StoredCharter) -> Map<String, Json> {
    let StoredCharter { digest, core, source, .. } = charter;
    let charter = json!({"digest": digest, "name": charter.plain_name(), "core": core, "source": source});
    let line = json!({"journal": EXPORT, "run": run, "records": records, "head": head, "charter": charter});
    match line {
        Json::Object(line) => line,
        _ => Map::new(),
    }
}

/// Imports a run: verifies it completely (hashes, chain, and a replay of every event), then writes
/// it with its charter.
///
/// # Errors
/// A line is not a record; the verification of the run failed; a run with that id already exists;
/// reading or writing failed.
pub fn import(store: &dyn Store, from: &mut dyn BufRead) -> Result<RunInfo, TransferError> {
    Verified::read(from)?.write(store)
}

/// A run from a file, completely verified and not yet written to a journal.
#[derive(Debug)]
pub struct Verified {
    charter: StoredCharter,
    /// The content of the files that its manifest names.
    files: Vec<Vec<u8>>,
    batch: Vec<Append>,
    info: RunInfo,
}

impl Verified {
    /// The run.
    #[must_use]
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Writes the run with its charter.
    ///
    /// # Errors
    /// A run with that id already exists; writing failed.
    pub fn write(self, store: &dyn Store) -> Result<RunInfo, TransferError> {
        store.put_charter(&self.charter)?;
        for file in &self.files {
            store.put_blob(file)?;
        }
        store.append(self.batch)?;
        Ok(self.info)
    }

    /// Reads and verifies a run; the first half of [`import`]. The source of its charter is not
    /// compared with the definition.
    ///
    /// # Errors
    /// A line is not a record; the verification of the run failed; reading failed.
    pub fn read(from: &mut dyn BufRead) -> Result<Verified, TransferError> {
        Verified::read_with(from, &|_| SourceCheck::Matches)
    }

    /// Like [`Verified::read`], but compares the source of the charter with `check`.
    ///
    /// # Errors
    /// See [`Verified::read`]. Also, the source differs.
    pub fn read_with(from: &mut dyn BufRead, check: CheckSource<'_>) -> Result<Verified, TransferError> {
        let mut lines = Lines { from, number: 0 };
        let bad = |line: usize, why: String| TransferError::Line { line, why };
        let header = Header::read(&mut lines)?;
        if header.after.is_some() {
            let why = "the file lacks the first records of the run (its host has dropped them); it can be verified, but not imported";
            return Err(bad(1, why.into()));
        }
        let mut charter = header.charter();
        match check(&charter) {
            SourceCheck::Matches => {}
            SourceCheck::Unknown => charter.source.clear(),
            SourceCheck::Differs(why) => return Err(bad(1, other_source(&why))),
        }
        // Before anything is written, the run is verified in a memory store.
        let memory = MemoryStore::new();
        memory.put_charter(&charter).map_err(|e| match e {
            StoreError::Damaged(message) => TransferError::NotVerified(Finding {
                run: Some(header.run.clone()),
                seq: None,
                what: Difference::Charter,
                message,
            }),
            other => other.into(),
        })?;
        let mut files = header.files()?;
        for (_, bytes) in &files {
            memory.put_blob(bytes)?;
        }
        let mut batch: Vec<Append> = Vec::new();
        while let Some(text) = lines.next()? {
            let record = Record::read(&text).map_err(|e| bad(lines.number, e.to_string()))?;
            if record.run != header.run {
                return Err(bad(
                    lines.number,
                    format!("the record belongs to run `{}`, but the file contains run `{}`", record.run, header.run),
                ));
            }
            memory.append(vec![record.clone().into()]).map_err(|e| bad(lines.number, e.to_string()))?;
            batch.push(Append { imported: true, ..Append::from(record) });
        }
        let report = verify(&memory, None)?;
        if let Some(finding) = report.findings.into_iter().next() {
            return Err(TransferError::NotVerified(finding));
        }
        let info = memory.run(&header.run)?.ok_or_else(|| bad(lines.number, "the file has no records".into()))?;
        if (info.seq.saturating_add(1), info.hash) != (header.records, header.head) {
            let why = format!(
                "the file does not match its first line: expected {} records with the last hash {}, found {} with the last hash {}",
                header.records,
                header.head,
                info.seq.saturating_add(1),
                info.hash
            );
            return Err(bad(lines.number, why));
        }
        // Store one snapshot at the end, so that the run can continue without a replay.
        let machine = machine(&memory, charter.digest)?;
        if let (Some(last), Some(snapshot)) = (batch.last_mut(), load(&memory, &machine, &header.run)?.snapshot) {
            last.snapshot = Some(machine.snapshot_text(&snapshot));
        }
        // Files that the manifest does not name are left out.
        let manifest = batch.first().and_then(|first| first.record.manifest.as_deref());
        files.retain(|(digest, _)| manifest.is_some_and(|m| m.all().any(|(_, named)| named == *digest)));
        let files = files.into_iter().map(|(_, bytes)| bytes).collect();
        Ok(Verified { charter, files, batch, info })
    }
}

/// Reads lines of limited length.
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
            return Err(bad("longer than any record"));
        }
        String::from_utf8(line).map(Some).map_err(|_| bad("not UTF-8"))
    }
}
