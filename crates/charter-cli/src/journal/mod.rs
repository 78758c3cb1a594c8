//! The commands on a journal file, and their shared functions: opening the file and finding runs.

pub(crate) mod access;
mod apart;
pub mod backup;
mod db;
pub mod delete;
pub(crate) mod exclude;
pub mod explain;
pub mod fork;
pub(crate) mod holder;
pub mod log;
mod offer_text;
pub(crate) mod offers;
pub(crate) mod overdue;
pub mod replay;
pub mod runs;
pub mod show;
pub mod sql;
pub(crate) mod table;
pub(crate) mod text;
pub mod transfer;
pub(crate) mod usage;
pub mod verify;

pub use access::InUse;
pub use db::Db;
pub(crate) use db::usual;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use charter_journal::{
    Record, ReplayError, RunInfo, SqliteStore, Store, StoreError, StoredCharter, TransferError, Verdict,
};
use charter_kernel::{Code, Digest, Machine, Snapshot};
use serde_json::Value as Json;

use crate::io::Failure;
use crate::load::plain;
use crate::pipe::is_stream;

/// Opens for reading the journal file that a command takes as an argument. `usage` says how the
/// file is passed.
///
/// # Errors
/// The file does not exist.
pub fn open(path: &Path, usage: &str) -> Result<SqliteStore, Failure> {
    exists(path, usage)?;
    opened(path, SqliteStore::open_read_only(path))
}

/// Adds the name of the file to the error message.
pub(crate) fn opened<T>(path: &Path, store: Result<T, StoreError>) -> Result<T, Failure> {
    store.map_err(|e| match e {
        StoreError::OtherUser { .. } => Failure::with_help(
            e.to_string(),
            "run the command as that user, who can also let you in over HTTP (`charter serve`; then `--server URL`)",
        ),
        StoreError::Failed { reason, .. } => Failure::new(format!("cannot open `{}`: {reason}", path.display())),
        StoreError::Head { why, .. } => {
            let file = text::quoted(&path.display().to_string());
            let help = format!(
                "`charter verify {file}` lists what is missing; if this is deliberate, for example after you have restored an older copy: `charter rebuild {file} --accept-head REASON`"
            );
            Failure::with_help(format!("cannot open `{}`: {why}", path.display()), help)
        }
        other => other.into(),
    })
}

/// Renders the answers that a record delivers, if it resumed the run: `delivers what was held:
/// done.invoke.work (record 4)`.
pub(crate) fn delivered(store: &dyn Store, record: &Record) -> Option<String> {
    const PAGE: usize = 100;
    let resumed = record.verdict == Verdict::Accepted && *record.event.r#type == *"charter.resume";
    if !resumed {
        return None;
    }
    let mut held = Vec::new();
    let mut end = record.seq;
    while end > 0 {
        let from = end.saturating_sub(PAGE as u64);
        let count = usize::try_from(end.saturating_sub(from)).unwrap_or(PAGE);
        let page = store.records(&record.run, from, count).ok()?;
        for earlier in page.iter().rev() {
            if earlier.status != Some(charter_kernel::Status::Paused) {
                end = 0;
                break;
            }
            if text::is_held(earlier) {
                held.push(format!("{} (record {})", text::clean(&earlier.event.r#type), earlier.seq));
            }
        }
        end = end.min(from);
    }
    held.reverse();
    let more = held.len().saturating_sub(PAGE);
    held.truncate(PAGE);
    if more > 0 {
        held.push(format!("and {more} more"));
    }
    (!held.is_empty()).then(|| format!("delivers what was held: {}", held.join(", ")))
}

/// The head of a journal file as JSON, for commands that have written to it; null if it cannot be
/// read. If several processes write, it may include what others have written since.
pub(crate) fn head_of(path: &Path) -> Json {
    let head = SqliteStore::open_read_only(path).and_then(|store| store.head());
    head.ok().flatten().and_then(|head| serde_json::to_value(head).ok()).unwrap_or_default()
}

/// Checks that a file exists and can be a journal file. `usage` says how to select another file.
///
/// # Errors
/// The file does not exist, cannot be read, or is not a journal file.
pub(crate) fn exists(path: &Path, usage: &str) -> Result<(), Failure> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(is_folder(path)),
        // SQLite accepts an empty file as a new database.
        Ok(found) if found.is_file() && found.len() == 0 => {
            Err(Failure::new(format!("`{shown}` is not a journal file: it is empty")))
        }
        Ok(_) => other_file(path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Failure::with_help(
            format!("journal file `{shown}` not found"),
            format!("`charter run CHARTER` or `charter import FILE` creates one; {usage}"),
        )),
        Err(e) => Err(Failure::new(format!("cannot read `{shown}`: {}", plain(&e)))),
    }
}

/// Rejects a file of another format, before anything is created next to it.
fn other_file(path: &Path) -> Result<(), Failure> {
    // A pipe without a writer would be waited for without end.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(Failure::new(format!(
            "`{}` is not a journal file: it is not a file but a device or a pipe",
            path.display()
        )));
    }
    if path.is_file() && begins_as_sqlite(path) == Some(false) {
        let shown = path.display();
        let why = format!("`{shown}` is not a journal file: it is not a SQLite file");
        return Err(Failure::new(why));
    }
    Ok(())
}

/// Whether a file starts like an SQLite file; `None` if it cannot be read.
fn begins_as_sqlite(path: &Path) -> Option<bool> {
    const BEGIN: &[u8] = b"SQLite format 3\0";
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(16).read_to_end(&mut bytes).ok()?;
    Some(bytes == BEGIN)
}

/// The ends of the names of the files that stand beside a journal file and belong to it.
const BESIDE: [&str; 6] = ["-wal", "-shm", "-journal", "-head", "-lock", "-socket"];

/// Refuses to overwrite a journal file, or a file that belongs to one, with results.
///
/// # Errors
/// The file is, or belongs to, a journal file.
pub(crate) fn refuse_overwrite(path: &Path) -> Result<(), Failure> {
    let is_sqlite = |path: &Path| path.is_file() && begins_as_sqlite(path) == Some(true);
    // A link leads to the file itself.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = real.to_string_lossy();
    let mut journals = BESIDE.iter().filter_map(|end| name.strip_suffix(end)).map(Path::new);
    let journal = journals.find(|journal| is_sqlite(journal));
    let why = match journal {
        Some(journal) => format!("it belongs to the journal file `{}`", journal.display()),
        None if is_sqlite(path) => "it is a journal file or another SQLite file".to_owned(),
        None => return Ok(()),
    };
    Err(Failure::with_help(format!("cannot overwrite `{}`: {why}", path.display()), "choose another file"))
}

/// Warns if users other than its owner can read a journal file.
pub(crate) fn warn_if_shared(path: &Path, err: &mut dyn std::io::Write) -> Result<(), Failure> {
    let Some(mode) = charter_journal::shared_mode(path) else {
        return Ok(());
    };
    let names = std::iter::once("").chain(BESIDE).map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    });
    let names: Vec<String> = names.filter(|name| name.is_file()).map(|n| text::quoted(&n.to_string_lossy())).collect();
    writeln!(
        err,
        "warning: other users of this machine can read `{}` (mode {mode:o}); `chmod go= {}` makes it private",
        text::clean(&path.to_string_lossy()),
        names.join(" ")
    )?;
    Ok(())
}

/// Whether an argument looks like a journal file.
pub(crate) fn is_journal(word: &str) -> bool {
    let path = Path::new(word);
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("db" | "sqlite" | "sqlite3")) || path.is_file() || is_stream(path)
}

fn is_folder(path: &Path) -> Failure {
    Failure::new(format!("`{}` is a folder, not a journal file", path.display()))
}

/// Returns the stored charter of a run.
///
/// # Errors
/// The journal file does not contain the charter.
pub fn charter_of(store: &dyn Store, digest: Digest) -> Result<StoredCharter, Failure> {
    let stored = store.charter(digest)?;
    stored.ok_or_else(|| {
        Failure::with_help(
            format!("charter {digest} not found in this journal file"),
            "run `charter verify` for details",
        )
    })
}

/// Replays a run up to a record; returns its machine and its snapshot.
///
/// # Errors
/// The records cannot be replayed, or the start of the run was refused.
pub fn at(store: &dyn Store, run: &RunInfo, seq: Option<u64>) -> Result<(Machine, Snapshot), Failure> {
    let machine = charter_journal::machine(store, run.charter)?;
    let snapshot = charter_journal::replay(store, &machine, &run.run, seq)?;
    match snapshot {
        Some(snapshot) => Ok((machine, snapshot)),
        None => Err(Failure::with_help(
            format!("run `{}` never started: its start was refused", run.run),
            format!("`charter explain {} 0` shows why", run.run),
        )),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::KeyTaken { .. } => Failure::Refused { code: Code::Taken, message: error.to_string() },
            other => Failure::new(other.to_string()),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        match error {
            ReplayError::Store(error) => error.into(),
            other => Failure::new(other.to_string()),
        }
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        match error {
            TransferError::Store(error) => error.into(),
            TransferError::Replay(error) => error.into(),
            other => Failure::new(other.to_string()),
        }
    }
}
