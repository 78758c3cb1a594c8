//! The folder in which the actors of a run work: that of the charter with which the run was
//! started, unless somebody moves the run.

use std::convert::Infallible;
use std::path::Path;

use charter_actors::{Folder, KeptFiles};
use charter_journal::{Manifest, RunInfo, StoredCharter, move_run, place_area};
use charter_runtime::Charter;

use super::host::Host;
use super::setup;
use crate::io::Failure;
use crate::journal::Db;
use crate::journal::text::{clean, quoted};

/// Returns where the charter of a run is, if the run has a place of its own and its host tells.
pub(super) fn place(host: &Host, run: &str) -> Result<Option<String>, Failure> {
    let entries = host.try_call(|b| b.host_state(place_area(run)))?;
    Ok(entries.ok().and_then(|mut entries| entries.pop()).map(|(_, name)| name))
}

/// The folder of a charter with this name; `None` if the name is none of a file.
pub(super) fn folder_of(name: &str) -> Option<String> {
    let path = Path::new(name);
    path.parent().filter(|_| path.is_absolute()).map(|folder| clean(&folder.display().to_string()))
}

/// Reads where the charter of a run is from a journal file, also if the run has no place of its
/// own.
pub(super) fn stored_place(db: &Db, info: &RunInfo) -> Result<Option<String>, Failure> {
    let store = db.read()?;
    match charter_journal::place(store.as_ref(), &info.run)? {
        Some(place) => Ok(Some(place)),
        None => Ok(store.charter(info.charter)?.map(|charter| charter.name)),
    }
}

/// What record 0 names: the files that the run uses.
pub(super) fn manifest(host: &Host, run: &str) -> Result<Manifest, Failure> {
    let first = host.call(|b| b.records(run.to_owned(), 0, 1))?.into_iter().next();
    Ok(first.and_then(|first| first.manifest.clone()).map(|m| *m).unwrap_or_default())
}

/// What of the files that the commands of a run use is not as it was when the run started, in the
/// folder of a charter with this name.
pub(super) fn changes(manifest: &Manifest, name: &str) -> Vec<String> {
    let dir = Path::new(name).parent().unwrap_or(Path::new(name)).to_owned();
    // Commands use no content from the journal.
    let kept = KeptFiles::restore(manifest.clone(), Folder::Dir(dir), |_, _| Ok::<_, Infallible>(Vec::new()));
    match kept {
        Ok(kept) => kept.changes(),
    }
}

/// What the actors of a run need of the folder of the charter, if no folder is known: `charter` is
/// named as it is without one.
pub(super) fn need(charter: &StoredCharter, manifest: &Manifest) -> Result<Option<String>, Failure> {
    let charter = Charter::restore(charter, setup::folder_of(charter))?;
    Ok(charter_runtime::folder_need(&setup::executors(), &charter, manifest).map(|need| clean(&need)))
}

/// Whether the folder of a charter with this name exists.
pub(super) fn exists(name: &str) -> bool {
    let path = Path::new(name);
    path.is_absolute() && path.parent().is_some_and(Path::is_dir)
}

/// Loads a copy of the charter of a run.
///
/// # Errors
/// The file cannot be read, or is another charter.
pub(super) fn copy(file: &str, info: &RunInfo) -> Result<Charter, Failure> {
    let found = setup::charter(file)?;
    match found.digest() == info.charter {
        true => Ok(found),
        false => {
            let message = format!("`{file}` is another charter than that of run `{}`", clean(&info.run));
            Err(Failure::new(format!("{message}: {}, not {}", found.digest(), info.charter)))
        }
    }
}

/// Moves a run to the folder of a copy of its charter.
///
/// # Errors
/// The copy cannot be used, or its folder has other programs than the run.
pub(super) fn move_to_copy(host: &Host, info: &RunInfo, file: &str) -> Result<(), Failure> {
    let charter = copy(file, info)?;
    let manifest = manifest(host, &info.run)?;
    let name = charter.stored().name.clone();
    if let Some(change) = changes(&manifest, &name).first() {
        return Err(Failure::with_help(
            format!("run `{}` does not move to the folder of `{}`: {}", clean(&info.run), clean(file), clean(change)),
            "its commands would not start there; nothing was changed, and the run works where it did before",
        ));
    }
    host.call(|b| b.add(charter.clone()))?;
    move_to(host, &info.run, &name)
}

/// Moves a run to where its charter has this name.
pub(super) fn move_to(host: &Host, run: &str, name: &str) -> Result<(), Failure> {
    host.call(|b| b.put_host_state(vec![move_run(run, name)]))
}

/// Checks that a run that exists already is in the folder of the charter that was named to start
/// it.
pub(super) fn check_existing(host: &Host, run: &str, charter: &Charter, options: &str) -> Result<(), Failure> {
    let name = &charter.stored().name;
    match place(host, run)? {
        Some(other) if other != *name => {
            let of = |name: &str| folder_of(name).unwrap_or_else(|| clean(name));
            let run = quoted(run);
            Err(Failure::with_help(
                format!("run `{run}` already exists, in `{}`, not in `{}`", of(&other), of(name)),
                format!(
                    "choose another id, or continue it there with `charter run --resume {run}{options}`; with `--charter FILE` as well, it moves to the folder of FILE"
                ),
            ))
        }
        _ => Ok(()),
    }
}

impl Host {
    /// Returns the folder of a run's `workspace`, for messages.
    pub(crate) fn place(&self, run: &str, workspace: &str) -> String {
        #[cfg(unix)]
        let workspace = &self.workspaces.place(run, workspace);
        #[cfg(not(unix))]
        let (_, workspace) = (run, std::path::Path::new(workspace));
        workspace.canonicalize().as_deref().unwrap_or(workspace).display().to_string()
    }
}
