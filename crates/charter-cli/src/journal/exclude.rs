//! Keeps a journal inside a Git repository out of its commits.

use std::path::{Path, PathBuf};

use super::Db;
use crate::hook::install::{Change, read};
use crate::io::Failure;

/// The change of `.git/info/exclude` that keeps a journal in `dir` out of the commits of the Git
/// repository that `dir` is in: it changes with each call, so what was reviewed could never be
/// committed, and it is nobody else's. `dir` has no links.
pub(crate) fn excluded(dir: &Path, db: &Db) -> Result<Option<Change>, Failure> {
    let Some((file, lines)) = lines(dir, &std::path::absolute(&db.db)?) else { return Ok(None) };
    let old = read(&file)?;
    let mut new = old.clone().unwrap_or_default();
    for line in lines.iter().filter(|line| !old.iter().flat_map(|old| old.lines()).any(|known| known == *line)) {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(line);
        new.push('\n');
    }
    Ok(Some(Change { path: file, old, new: Some(new) }))
}

/// The file of Git that can name a journal in a folder, and the lines for it; `None` if the journal
/// is not in there, or the folder in no repository.
pub(crate) fn lines(dir: &Path, journal: &Path) -> Option<(PathBuf, [String; 2])> {
    let repository = dir.ancestors().find(|at| at.join(".git").is_dir())?;
    let line = ignored(repository, journal).filter(|_| ignored(dir, journal).is_some())?;
    let file = repository.join(".git").join("info").join("exclude");
    Some((file, [line.clone(), format!("{line}-*")]))
}

/// The line of Git's ignore files for a journal in a folder; `None` if it is not in there.
pub(crate) fn ignored(dir: &Path, journal: &Path) -> Option<String> {
    let folder = journal.parent().and_then(|folder| folder.canonicalize().ok())?;
    let path = folder.strip_prefix(dir).ok()?.join(journal.file_name()?);
    let escape = |c| "*?[]\\!# ".contains(c).then_some('\\').into_iter().chain(std::iter::once(c));
    Some(format!("/{}", path.to_string_lossy().chars().flat_map(escape).collect::<String>()))
}
