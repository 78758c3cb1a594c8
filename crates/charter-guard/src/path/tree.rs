//! What is below a folder, and what a pattern matches: with limits, because a folder may hold
//! anything.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use thiserror::Error;

use super::Depth;
use super::names;
use crate::data::Description;
use crate::workspace::Workspace;

/// Entries that are looked at below one folder.
const MAX_ENTRIES: usize = 10_000;
/// Upper limits of a pattern.
const MAX_PATTERN_BYTES: usize = 512;
const MAX_PARTS: usize = 32;
/// Paths that one pattern may match.
const MAX_MATCHES: usize = 100;

/// What is below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// Whether there is a name of this kind.
    Names { protected: bool, secret: bool, guard: bool, links: bool },
    /// There are more entries than may be looked at.
    TooMany,
}

/// The ways through a folder whose entries are looked at, all together.
fn walks(folder: &Path, depth: Depth) -> Vec<WalkBuilder> {
    let mut all = vec![walk(folder, depth)];
    if depth == Depth::Tracked {
        // Some searches also look at these files. The one that is more special wins, and it may
        // bring back what another leaves out, but not every search obeys what they leave out.
        let mut more = walk(folder, depth);
        more.ignore(true).add_custom_ignore_filename(".rgignore");
        all.push(more);
    }
    all
}

fn walk(folder: &Path, depth: Depth) -> WalkBuilder {
    let mut walk = WalkBuilder::new(folder);
    walk.standard_filters(false).hidden(false).follow_links(false);
    if depth == Depth::Tracked {
        // Those of Git only in a repository.
        walk.git_ignore(true).ignore(false).parents(true).require_git(true);
    }
    if depth != Depth::All {
        // What such searches leave out by themselves.
        walk.filter_entry(|entry| entry.file_name() != OsStr::new(".git"));
    }
    walk
}

/// The files below a folder, or itself, that have the names of secrets; nothing if there are too
/// many files.
pub(super) fn secrets(
    description: &mut Description,
    workspace: &Workspace,
    folder: &Path,
    depth: Depth,
) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let walks = walks(folder, depth);
    for (seen, entry) in walks.iter().flat_map(WalkBuilder::build).enumerate() {
        if seen > MAX_ENTRIES.saturating_mul(walks.len()) || !description.charge(1) {
            return None;
        }
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
        if is_file && names::is_secret(workspace, entry.path()) {
            found.push(entry.into_path());
        }
    }
    found.sort();
    found.dedup();
    Some(found)
}

/// Looks through a folder.
pub(super) fn below(description: &mut Description, workspace: &Workspace, folder: &Path, depth: Depth) -> Below {
    let (mut protected, mut secret, mut guard, mut links) = (false, false, false, false);
    if !folder.is_dir() {
        return Below::Names { protected, secret, guard, links };
    }
    let walks = walks(folder, depth);
    for (seen, entry) in walks.iter().flat_map(WalkBuilder::build).enumerate() {
        if seen > MAX_ENTRIES.saturating_mul(walks.len()) || !description.charge(1) {
            return Below::TooMany;
        }
        let Ok(entry) = entry else { continue };
        protected |= names::is_protected(workspace, entry.path());
        secret |= names::is_secret(workspace, entry.path());
        guard |= names::has_guard_name(workspace, entry.path());
        links |= entry.path_is_symlink();
        if protected && secret && guard && links {
            break;
        }
    }
    Below::Names { protected, secret, guard, links }
}

/// Why it is not certain what a pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum NotExpanded {
    #[error("it matches too many files")]
    TooMany,
    #[error("it cannot be read")]
    Invalid,
    #[error("it matches a file whose name looks like an option")]
    Option,
    #[error("the folder it starts from is not certain")]
    Folder,
}

/// Returns what a pattern matches now. Hidden names count as matches of `*`, as some shells do it.
pub(super) fn expand(
    description: &mut Description,
    workspace: &Workspace,
    cwd: &Path,
    pattern: &str,
) -> Result<Vec<String>, NotExpanded> {
    let parts: Vec<&str> = pattern.split('/').collect();
    if pattern.len() > MAX_PATTERN_BYTES || parts.len() > MAX_PARTS {
        return Err(NotExpanded::TooMany);
    }
    let fixed = parts.iter().take_while(|part| !names::is_glob(part)).count();
    let (start, rest) = parts.split_at(fixed);
    if rest.iter().any(|part| *part == ".." || *part == ".") {
        return Err(NotExpanded::Folder);
    }
    let prefix = start.join("/");
    let folder = match (prefix.as_str(), fixed) {
        ("", 0) => cwd.to_path_buf(),
        ("", _) => PathBuf::from("/"),
        (prefix, _) => super::folder(workspace, cwd, prefix).map_err(|_| NotExpanded::Folder)?,
    };
    let rest: Vec<&str> = rest.iter().copied().filter(|part| !part.is_empty()).collect();
    let mut found = vec![folder];
    let mut looked_at = 0_usize;
    for part in rest {
        let mut next = Vec::new();
        // `**` is any depth in some shells and one folder in the others.
        if part.contains("**") {
            return Err(NotExpanded::TooMany);
        }
        // These mean something else to the matcher than to a shell.
        if part.contains(['{', '\\']) || part.contains("[[") || part.contains("[:") {
            return Err(NotExpanded::Invalid);
        }
        let mut builder = OverrideBuilder::new("/");
        builder.add(&format!("/{part}")).map_err(|_| NotExpanded::Invalid)?;
        let matcher = builder.build().map_err(|_| NotExpanded::Invalid)?;
        for folder in &found {
            let Ok(entries) = folder.read_dir() else { continue };
            for entry in entries.flatten() {
                looked_at = looked_at.saturating_add(1);
                if looked_at > MAX_ENTRIES || !description.charge(1) {
                    return Err(NotExpanded::TooMany);
                }
                let name = PathBuf::from("/").join(entry.file_name());
                if matcher.matched(&name, false).is_whitelist() {
                    if !pattern.contains('/') && entry.file_name().as_encoded_bytes().starts_with(b"-") {
                        return Err(NotExpanded::Option);
                    }
                    next.push(entry.path());
                    if next.len() > MAX_MATCHES {
                        return Err(NotExpanded::TooMany);
                    }
                }
            }
        }
        found = next;
    }
    found.sort();
    found.into_iter().map(|path| path.into_os_string().into_string().map_err(|_| NotExpanded::Invalid)).collect()
}
