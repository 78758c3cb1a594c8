//! Folders that `git` takes for repositories by what is in them. The settings of one name programs
//! that `git` starts, so `git` must not look at one that the same command line writes.

use std::path::Path;

use super::shell::Shell;
use crate::data::PathFact;

/// Upper limit of folders above that of a command.
const MAX_FOLDERS: usize = 64;
/// What a repository consists of, as far as `git` looks to find one.
const PARTS: &[&str] = &["head", "objects", "refs", "config", "config.worktree", "commondir", "gitdir"];

/// Whether the search for a repository ends with a folder, because it has one in `.git`.
pub(super) fn is_top(folder: &Path) -> bool {
    folder.join(".git").symlink_metadata().is_ok()
}

/// The folders that are themselves repositories to `git` if they look like it: those from this one
/// to the first that has a repository, or to that of the workspace.
pub(super) fn below_top<'a>(root: &'a Path, folder: &'a Path) -> impl Iterator<Item = &'a Path> {
    let inside = folder.starts_with(root);
    let below = folder.ancestors().take_while(|folder| !is_top(folder)).take(MAX_FOLDERS);
    below.take_while(move |folder| !inside || folder.starts_with(root))
}

/// Whether a folder is a repository to `git`.
pub(super) fn is_bare(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    // With `commondir`, the rest is elsewhere.
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

impl Shell<'_> {
    /// Looks whether the command line itself writes what `git` may take for a repository. Which of
    /// the two comes first is not looked at: in a loop or in the background it may be either.
    pub(super) fn check_repositories(&mut self) {
        let root = &self.workspace.root;
        let written = |folder: &Path| {
            self.description.paths.iter().filter(|fact| fact.usage.changes()).any(|fact| may_make(fact, folder))
        };
        let made = self.git_folders.iter().any(|folder| below_top(root, folder).any(written));
        if made {
            self.opaque("`git` in a folder that this command line writes; use two calls");
        }
    }
}

/// Whether a write may make a repository of a folder, or change one.
fn may_make(fact: &PathFact, folder: &Path) -> bool {
    let Some(path) = fact.resolved.as_deref().map(Path::new) else { return true };
    let is_part = || {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        path.parent() == Some(folder) && PARTS.contains(&name.as_str())
    };
    path == folder || fact.recursive && folder.starts_with(path) || is_part()
}
