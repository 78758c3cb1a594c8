//! `charter export RUN` and `charter import FILE`: transfers a single run as a file.

use std::fs::OpenOptions;
use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use charter_actors::BoxFuture;
use charter_journal::{RunInfo, SqliteStore, StoreError, TransferError, Verified};
use charter_local::Client;
use charter_runtime::backend::Backend as _;
use charter_runtime::{RuntimeError, read_export};
use serde_json::json;

use super::access::{Operation, perform};
use super::text::count;
use super::{Db, head_of, refuse_overwrite};
use crate::input::open;
use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;
use crate::pipe::is_stream;

/// Exports a run.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The run, or the beginning of its id
    run: String,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    db: Db,
}

/// Imports a run.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A file written by `charter export`; `-` reads standard input
    file: String,
    #[command(flatten)]
    db: Db,
}

/// Runs `export`.
///
/// # Errors
/// The run does not exist, or the file cannot be written.
pub fn export(args: &ExportArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.read_and_warn(io)?;
    let run = args.db.find(store.as_ref(), &args.run)?;
    let Some(path) = &args.output else {
        charter_journal::export(store.as_ref(), &run.run, io.out).map_err(failed)?;
        return Ok(Exit::Yes);
    };
    refuse_overwrite(path)?;
    let cannot = |e: std::io::Error| Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e)));
    if is_stream(path) {
        let mut stream = BufWriter::new(OpenOptions::new().write(true).open(path).map_err(cannot)?);
        charter_journal::export(store.as_ref(), &run.run, &mut stream).map_err(failed)?;
        stream.flush().map_err(cannot)?;
    } else {
        // The file is there when it is whole, and until then an older one stays.
        let part = Temporary::beside(path, "part");
        let mut file = BufWriter::new(charter_journal::create_private(&part.0).map_err(cannot)?);
        charter_journal::export(store.as_ref(), &run.run, &mut file).map_err(failed)?;
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(cannot)?;
        std::fs::rename(&part.0, path).map_err(cannot)?;
    }
    if machine_output {
        let all = json!({"run": run.run, "records": run.seq + 1, "file": path.display().to_string()});
        writeln!(io.out, "{all}")?;
        return Ok(Exit::Yes);
    }
    let done = format!("{} of run {} written to `{}`", count(run.seq + 1, "record"), run.run, path.display());
    writeln!(io.err, "{}", Paint(io.color_err).faint(&done))?;
    Ok(Exit::Yes)
}

/// Keeps errors of the output stream separate: a closed pipe is not a failure.
fn failed(error: TransferError) -> Failure {
    match error {
        TransferError::File(e) => Failure::Io(e),
        other => other.into(),
    }
}

/// Runs `import`. A run that does not verify is not imported, and the command exits with 1.
///
/// # Errors
/// The file cannot be read, or the id of the run is taken.
pub fn import(args: &ImportArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.file_only("import")?;
    let mut file = open(&args.file, "records", io)?;
    let mut piped = Vec::new();
    let is_stream = args.file == "-" || is_stream(Path::new(&args.file));
    let read = match is_stream {
        // A holder reads the run from a file.
        true => {
            file.read_to_end(&mut piped)?;
            read_export(&mut piped.as_slice())
        }
        false => read_export(&mut file),
    };
    let imported = match read {
        Ok(run) => {
            // The journal file is created only after the run has been verified.
            args.db.check_new()?;
            let info = run.info().clone();
            let file = (!is_stream).then(|| PathBuf::from(&args.file));
            perform(&args.db.db, &mut Import { args, run: Some(run), info, file, piped })
        }
        Err(error) => Ok(Err(error)),
    };
    match imported? {
        Ok(run) if machine_output => {
            let line =
                json!({"run": run.run, "records": run.seq + 1, "hash": run.hash, "journal": head_of(&args.db.db)});
            writeln!(io.out, "{line}")?;
            Ok(Exit::Yes)
        }
        Ok(run) => {
            writeln!(io.out, "{}", run.run)?;
            let done = format!("{} verified and imported", count(run.seq + 1, "record"));
            writeln!(io.err, "{}", Paint(io.color_err).faint(&done))?;
            Ok(Exit::Yes)
        }
        Err(TransferError::NotVerified(finding)) => {
            let paint = Paint(io.color_err);
            writeln!(io.err, "{} {finding}; nothing was imported", paint.error("not verified:"))?;
            Ok(Exit::No)
        }
        Err(TransferError::Store(StoreError::Conflict { run, .. })) => Err(Failure::with_help(
            format!("run `{run}` already exists in this journal file"),
            "`--db FILE` imports into another journal file",
        )),
        Err(other) => Err(other.into()),
    }
}

/// The import of a verified run.
struct Import<'a> {
    args: &'a ImportArgs,
    /// `None` once it was written.
    run: Option<Verified>,
    info: RunInfo,
    /// The file that a holder reads; `None`: it has to be written.
    file: Option<PathBuf>,
    /// What was read from standard input.
    piped: Vec<u8>,
}

impl Operation for Import<'_> {
    type Output = Result<RunInfo, TransferError>;

    fn own(&mut self, store: &SqliteStore, lost: bool) -> Result<Self::Output, Failure> {
        if lost && charter_journal::Store::run(store, &self.info.run)?.is_some_and(|found| found == self.info) {
            return Ok(Ok(self.info.clone()));
        }
        let run = self.run.take().ok_or_else(|| Failure::new("the run was already written"))?;
        Ok(run.write(store))
    }

    fn other<'a>(&'a mut self, client: &'a Client, lost: bool) -> BoxFuture<'a, Result<Self::Output, Failure>> {
        Box::pin(async move {
            if lost && client.run(self.info.run.clone()).await?.is_some_and(|found| found == self.info) {
                return Ok(Ok(self.info.clone()));
            }
            let imported = match &self.file {
                Some(file) => client.import(file).await,
                None => {
                    let spooled = Temporary::write(&self.args.db, &self.piped)?;
                    client.import(&spooled.0).await
                }
            };
            match imported {
                Ok(run) => Ok(Ok(run)),
                Err(RuntimeError::Store(e)) => Ok(Err(e.into())),
                Err(e) => Err(e.into()),
            }
        })
    }
}

/// A file beside another one, removed when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(file: &Path, what: &str) -> Temporary {
        let mut path = file.as_os_str().to_owned();
        path.push(format!("-{what}.{}", std::process::id()));
        Temporary(path.into())
    }

    fn write(db: &Db, bytes: &[u8]) -> Result<Temporary, Failure> {
        let spooled = Temporary::beside(&db.db, "import");
        let cannot = |e: std::io::Error| Failure::new(format!("cannot write `{}`: {}", spooled.0.display(), plain(&e)));
        let mut file = charter_journal::create_private(&spooled.0).map_err(cannot)?;
        file.write_all(bytes).map_err(cannot)?;
        Ok(spooled)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
