//! Access to a journal file for writing: this process opens it, or reaches the process that already
//! has it open.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_actors::BoxFuture;
use charter_journal::{AcceptHead, Holder, SqliteOptions, SqliteStore, StoreError, holder};
use charter_local::{Client, ConnectError};
use charter_runtime::RuntimeError;
use tokio::runtime::Runtime as Threads;

use super::opened;
use crate::io::Failure;
use crate::run::Who;
use crate::run::follow::now;

/// How long to wait for a holder that accepts no connections: commands such as `import` end soon.
const SHORT: Duration = Duration::from_secs(2);
/// The same for a holder whose socket is gone, because it is ending.
const ENDING: Duration = Duration::from_secs(5);
/// The same for a holder that is starting, or reads or writes the whole journal.
const STARTING: Duration = Duration::from_secs(30);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a command continues with another holder after a lost connection.
pub(crate) const MAX_LOST: u32 = 20;

/// A journal file that can be written.
pub(crate) enum Access {
    /// This process has the file open.
    Own(Box<SqliteStore>),
    /// Another process has it open.
    Other(Arc<Client>),
}

/// Gets access to a journal file. `free` is called while no process has the file open: it opens the
/// file, or returns `None` if another process is about to do so.
pub(crate) fn access(
    path: &Path,
    threads: &Threads,
    mut free: impl FnMut() -> Result<Option<SqliteStore>, Failure>,
) -> Result<Access, Failure> {
    // Neither this file nor the socket of its holder would let this process in.
    opened(path, charter_journal::check_owner(path))?;
    let begin = Instant::now();
    loop {
        let mut held = holder_of(path)?;
        if held.is_none() {
            match free() {
                Ok(Some(store)) => return Ok(Access::Own(Box::new(store))),
                Ok(None) => held = Some(Holder { pid: 0, address: None, starting: true }),
                Err(Failure::InUse(found)) => held = Some(found.holder),
                Err(other) => return Err(other),
            }
        }
        let Some(held) = held else {
            continue;
        };
        let patience = match &held {
            Holder { address: Some(_), .. } => match threads.block_on(Client::connect(&held)) {
                Ok(client) => return Ok(Access::Other(Arc::new(client))),
                Err(ConnectError::Gone { .. }) => ENDING,
                Err(e) => return Err(Failure::new(format!("`{}`: {e}", path.display()))),
            },
            Holder { starting: true, .. } => STARTING,
            _ => SHORT,
        };
        if begin.elapsed() > patience {
            return Err(in_use(path, held));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns the process that has a journal file open for writing, if there is one. Must be called
/// before this process opens the file.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn holder_of(path: &Path) -> Result<Option<Holder>, Failure> {
    match path.exists() {
        true => holder(path).map_err(|e| cannot_open(path, e)),
        false => Ok(None),
    }
}

/// Opens a journal file for writing.
pub(crate) fn open(path: &Path) -> Result<SqliteStore, Failure> {
    in_use_or_opened(path, SqliteStore::open(path))
}

fn in_use_or_opened(path: &Path, store: Result<SqliteStore, StoreError>) -> Result<SqliteStore, Failure> {
    match store {
        Err(StoreError::InUse { holder, .. }) => {
            let unknown = Holder { pid: 0, address: None, starting: false };
            Err(in_use(path, holder.map_or(unknown, |h| *h)))
        }
        other => opened(path, other),
    }
}

/// Opens a journal file to rebuild it. With a reason, even if its entries do not match its head.
pub(crate) fn open_to_repair(path: &Path, reason: Option<&str>) -> Result<SqliteStore, Failure> {
    let by = Who::unnamed().id().to_owned();
    let accept_head = reason.map(|reason| AcceptHead { reason: reason.to_owned(), by, at: now() });
    let options = SqliteOptions { accept_head, repair: true, ..SqliteOptions::default() };
    in_use_or_opened(path, SqliteStore::open_with(path, &options))
}

fn cannot_open(path: &Path, e: StoreError) -> Failure {
    match e {
        StoreError::Failed { reason, .. } => Failure::new(format!("cannot open `{}`: {reason}", path.display())),
        other => other.into(),
    }
}

fn in_use(path: &Path, holder: Holder) -> Failure {
    let others = match holder.pid {
        0 => other_names(path),
        _ => None,
    };
    Failure::InUse(Box::new(InUse { path: path.to_owned(), holder, others }))
}

/// A journal file that another process has open and does not share.
#[derive(Debug)]
pub struct InUse {
    pub(crate) path: PathBuf,
    pub(crate) holder: Holder,
    /// The other names of the file in its folder, if it has other names and its holder has opened
    /// it by one of them.
    others: Option<Vec<PathBuf>>,
}

/// Returns the other names of a file (hard links) that are in its folder; `None` if it has none
/// anywhere.
fn other_names(path: &Path) -> Option<Vec<PathBuf>> {
    use std::os::unix::fs::MetadataExt as _;
    /// Maximum number of files that are looked at.
    const MAX_FILES: usize = 10_000;
    let own = std::fs::metadata(path).ok().filter(|own| own.nlink() > 1)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let is_other = |file: &std::fs::DirEntry| {
        let same = file.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
        same && path.file_name() != Some(&file.file_name())
    };
    let names = files.filter(is_other).map(|file| path.with_file_name(file.file_name()));
    Some(names.collect())
}

impl std::fmt::Display for InUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = match self.holder.pid {
            0 => "another process".to_owned(),
            pid => format!("process {pid}"),
        };
        if let Some(others) = &self.others {
            let path = self.path.display();
            write!(
                f,
                "`{path}` is another name of a journal file that is in use, whose holder accepts requests only "
            )?;
            let names: Vec<String> = others.iter().map(|name| format!("`{}`", name.display())).collect();
            return match names.is_empty() {
                true => f.write_str("under the name by which it has opened the file"),
                false => write!(f, "under the name by which it has opened the file: {}", names.join(" or ")),
            };
        }
        write!(f, "`{}` is in use by {by}, which accepts no requests of other processes", self.path.display())
    }
}

impl InUse {
    /// What to do about it.
    pub(crate) const HELP: &'static str = "only one process can write to a journal file at a time: stop it, or wait for it. Meanwhile `charter runs`, `show`, `log`, `verify` and `sql` can read it";
}

/// An operation on a journal that this process has opened, or that a holder carries out.
pub(crate) trait Operation {
    /// What the operation returns.
    type Output;

    /// Carries it out. `lost` means that a holder may have done so already.
    fn own(&mut self, store: &SqliteStore, lost: bool) -> Result<Self::Output, Failure>;

    /// Requests it.
    fn other<'a>(&'a mut self, client: &'a Client, lost: bool) -> BoxFuture<'a, Result<Self::Output, Failure>>;
}

/// Carries out an operation wherever the journal file is open.
pub(crate) fn perform<O: Operation>(path: &Path, operation: &mut O) -> Result<O::Output, Failure> {
    perform_with(path, operation, || open(path))
}

/// Like [`perform`]; `open` opens the file if no process has it open.
pub(crate) fn perform_with<O: Operation>(
    path: &Path,
    operation: &mut O,
    open: impl Fn() -> Result<SqliteStore, Failure>,
) -> Result<O::Output, Failure> {
    let threads = threads(1)?;
    let mut lost = 0;
    loop {
        match access(path, &threads, || open().map(Some))? {
            Access::Own(store) => {
                // It ends soon, so others wait.
                store.announce(None, true)?;
                return operation.own(&store, lost > 0);
            }
            Access::Other(client) => match threads.block_on(operation.other(&client, lost > 0)) {
                Err(Failure::Lost(_)) if lost < MAX_LOST => lost += 1,
                result => return result,
            },
        }
    }
}

/// The threads for connections and actors.
pub(crate) fn threads(count: usize) -> Result<Threads, Failure> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(count).enable_all().build();
    built.map_err(|e| Failure::new(format!("cannot start the host: {e}")))
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Failure {
        match error {
            RuntimeError::Store(error) => error.into(),
            RuntimeError::Replay(error) => error.into(),
            RuntimeError::Lost { pid } => Failure::Lost(pid),
            RuntimeError::WrongClock(wrong) => Failure::with_help(
                wrong.to_string(),
                "set the system clock; if it is right, repeat the command with `--accept-clock`",
            ),
            other => Failure::new(other.to_string()),
        }
    }
}
