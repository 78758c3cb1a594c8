//! `charter backup -o FILE`: a copy of a journal file, also while a process writes to it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use charter_journal::BackupError;
use serde_json::json;

use super::Db;
use super::text::{count, quoted};
use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;

/// Folders within the store of workspaces, at most this deep.
const MAX_DEPTH: u32 = 16;

/// Copies a journal file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The copy; the head and the files of workspaces are put beside it
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    db: Db,
}

/// Runs the command.
///
/// # Errors
/// The journal cannot be read, the copy exists, or it cannot be written.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    args.db.file_only("backup")?;
    args.db.check()?;
    // What is missing in the journal is missing in its copy.
    drop(args.db.read_and_warn(io)?);
    let store = super::open(&args.db.db, "select another file with `--db FILE`")?;
    let path = store_of_workspaces(&args.db.db);
    let to = store_of_workspaces(&args.output);
    if to.symlink_metadata().is_ok() {
        return Err(refused(&BackupError::Exists(to.display().to_string())));
    }
    let copied = store.backup(&args.output).map_err(|e| refused(&e))?;
    // Later than the records: what they name is there.
    let files = Files::copy(&path, &to)?;
    let head = copied.keep().map_err(|e| refused(&e))?;
    files.keep();
    if machine_output {
        writeln!(io.out, "{}", json!({"file": args.output.display().to_string(), "journal": head}))?;
        return Ok(Exit::Yes);
    }
    let file = args.output.display().to_string();
    let (records, runs) = (count(head.records, "record"), count(head.runs, "run"));
    let done = format!("{records} of {runs} copied to `{file}`; `charter verify {}` verifies the copy", quoted(&file));
    writeln!(io.err, "{}", Paint(io.color_err).faint(&done))?;
    Ok(Exit::Yes)
}

fn refused(error: &BackupError) -> Failure {
    match error {
        BackupError::Exists(_) => Failure::with_help(error.to_string(), "choose another name, or move that file away"),
        BackupError::Write { path, error } => Failure::new(format!("cannot write `{path}`: {}", plain(error))),
        other => Failure::new(other.to_string()),
    }
}

/// The folder beside a journal file where the contents of its workspaces are stored.
pub(crate) fn store_of_workspaces(db: &Path) -> PathBuf {
    let mut folder = db.canonicalize().unwrap_or_else(|_| db.to_owned()).into_os_string();
    folder.push("-files");
    folder.into()
}

/// The executor of workspaces. Their files are stored next to the journal file; a run may name
/// variables of this program for its `verify` commands.
#[cfg(unix)]
pub(crate) fn workspaces(db: &Path) -> charter_actors::Workspaces {
    let mut workspaces = charter_actors::Workspaces::new(store_of_workspaces(db));
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    workspaces.given = std::env::vars_os().filter_map(text).collect();
    workspaces
}

/// A copied folder, removed when it is dropped before it is kept.
struct Files<'a>(Option<&'a Path>);

impl<'a> Files<'a> {
    /// Copies the store of workspaces, if there is one.
    fn copy(from: &Path, to: &'a Path) -> Result<Files<'a>, Failure> {
        if !from.is_dir() {
            return Ok(Files(None));
        }
        let copied = Files(Some(to));
        match copy_folder(from, to, MAX_DEPTH) {
            Ok(()) => Ok(copied),
            Err(error) => Err(Failure::new(format!(
                "cannot copy the folder `{}` to `{}`: {}",
                from.display(),
                to.display(),
                plain(&error)
            ))),
        }
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        if let Some(to) = self.0 {
            let _ = fs::remove_dir_all(to);
        }
    }
}

/// Copies folders and regular files durably. Files in a store are replaced as a whole, so each copy
/// is whole; one that disappears meanwhile was a temporary one.
fn copy_folder(from: &Path, to: &Path, depth: u32) -> io::Result<()> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(io::Error::other(format!("`{}` has more than {MAX_DEPTH} levels of folders", from.display())));
    };
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&source, &target, depth)?;
        } else if kind.is_file() {
            match fs::copy(&source, &target) {
                Ok(_) => File::open(&target)?.sync_all()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound && !source.exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
    File::open(to)?.sync_all()
}
