//! What a path means: where it leads, and whether that is inside, protected, secret or the guard's.

mod listed;
mod names;
mod resolve;
mod tree;

use std::path::{Path, PathBuf};

pub(crate) use listed::{Marks, marked};
pub(crate) use names::{is_glob, linked_control};
use resolve::Resolved;
pub(crate) use resolve::Unresolved;
use tree::Below;
pub(crate) use tree::NotExpanded;

use crate::data::{Description, PathFact, Usage};
use crate::workspace::Workspace;

/// Secrets that are listed for one folder; with more, the folder is.
const MAX_SECRETS: usize = 64;

/// What resolving a path costs: about the number of its folders.
pub(crate) fn cost(cwd: &Path, given: &str) -> usize {
    let slashes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'/').count();
    slashes(cwd.as_os_str().as_encoded_bytes()).saturating_add(slashes(given.as_bytes())).saturating_add(4)
}

/// Which files below a folder are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only what the path names.
    One,
    /// Everything below.
    All,
    /// Everything below that version control does not ignore.
    Tracked,
}

/// Adds a path of a call to its description: everything that can be said about it, or why nothing
/// can be said.
pub(crate) fn add(
    description: &mut Description,
    workspace: &Workspace,
    cwd: &Path,
    given: &str,
    usage: Usage,
    depth: Depth,
) {
    if names::is_harmless_device(given) || !description.charge(cost(cwd, given)) {
        return;
    }
    match resolve::resolve(workspace, cwd, given) {
        Ok(resolved) => {
            let fact = describe(description, workspace, given, &resolved, usage, depth);
            description.path(fact);
        }
        Err(reason) => {
            description.opaque(format!("path `{}`: {reason}", names::shown(given)));
            description.path(PathFact {
                given: given.chars().take(200).collect(),
                resolved: None,
                relative: None,
                usage,
                recursive: depth != Depth::One,
                inside: false,
                protected: false,
                secret: false,
                guard: false,
            });
        }
    }
}

/// Adds what a pattern with `*`, `?` and `[...]` matches now.
pub(crate) fn add_glob(
    description: &mut Description,
    workspace: &Workspace,
    cwd: &Path,
    pattern: &str,
    usage: Usage,
    depth: Depth,
) {
    match tree::expand(description, workspace, cwd, pattern) {
        Ok(paths) => {
            // Without a match, a shell passes the pattern itself.
            if paths.is_empty() {
                add(description, workspace, cwd, pattern, usage, depth);
            }
            for path in paths {
                add(description, workspace, cwd, &path, usage, depth);
            }
        }
        Err(reason) => description.opaque(format!("pattern `{}`: {reason}", names::shown(pattern))),
    }
}

/// Adds the secrets below a folder that a search with patterns for the names of files reads,
/// whether they are ignored or not.
pub(crate) fn add_ignored_secrets(
    description: &mut Description,
    workspace: &Workspace,
    cwd: &Path,
    given: &str,
    patterns: &[&str],
) {
    let Some(found) = secrets_below(description, workspace, cwd, given, Depth::All) else {
        description.opaque("files of a search that are not certain");
        return;
    };
    let mut read = found.iter().filter(|path| patterns.iter().any(|pattern| may_match(pattern, path)));
    for path in read.by_ref().take(MAX_SECRETS) {
        add(description, workspace, cwd, &path.to_string_lossy(), Usage::Read, Depth::One);
    }
    if read.next().is_some() {
        add(description, workspace, cwd, given, Usage::Read, Depth::All);
    }
}

/// Whether a pattern for names of files may match a file. One with nothing but an ending, such as
/// `src/**/*.{rs,md}`, matches no other endings; what other patterns match is not looked at.
fn may_match(pattern: &str, path: &Path) -> bool {
    let (folder, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let Some(endings) = last.strip_prefix("*.") else { return true };
    let several = endings.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let endings: Vec<&str> = several.map_or_else(|| vec![endings], |several| several.split(',').collect());
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_folder = |c: char| c.is_ascii_alphanumeric() || "/._-*".contains(c);
    if !folder.chars().all(is_folder) || endings.iter().any(|ending| ending.is_empty() || !plain(ending)) {
        return true;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(&format!(".{}", ending.to_ascii_lowercase())))
}

/// Returns what a pattern matches now.
pub(crate) fn matches(
    description: &mut Description,
    workspace: &Workspace,
    cwd: &Path,
    pattern: &str,
) -> Result<Vec<String>, NotExpanded> {
    tree::expand(description, workspace, cwd, pattern)
}

/// Resolves the folder that a `cd` goes to.
pub(crate) fn folder(workspace: &Workspace, cwd: &Path, given: &str) -> Result<PathBuf, Unresolved> {
    Ok(resolve::resolve(workspace, cwd, given)?.path)
}

/// The files with the names of secrets that `git add` of this path adds; nothing if that is not
/// certain.
pub(crate) fn secrets_below(
    description: &mut Description,
    workspace: &Workspace,
    cwd: &Path,
    given: &str,
    depth: Depth,
) -> Option<Vec<PathBuf>> {
    let Resolved { path, .. } = resolve::resolve(workspace, cwd, given).ok()?;
    tree::secrets(description, workspace, &path, depth)
}

/// Whether moving or copying this may put a link in another place.
pub(crate) fn has_links(description: &mut Description, workspace: &Workspace, cwd: &Path, given: &str) -> bool {
    match resolve::resolve(workspace, cwd, given) {
        Ok(Resolved { path, entry }) if path == entry => match tree::below(description, workspace, &path, Depth::All) {
            Below::Names { links, .. } => links,
            Below::TooMany => true,
        },
        _ => true,
    }
}

/// Whether a folder has names below it that are protected, or part of the control of agents.
pub(crate) fn has_control(description: &mut Description, workspace: &Workspace, cwd: &Path, given: &str) -> bool {
    let Ok(Resolved { path, .. }) = resolve::resolve(workspace, cwd, given) else { return true };
    match tree::below(description, workspace, &path, Depth::All) {
        Below::Names { protected, guard, .. } => protected || guard,
        Below::TooMany => true,
    }
}

fn describe(
    description: &mut Description,
    workspace: &Workspace,
    given: &str,
    resolved: &Resolved,
    usage: Usage,
    depth: Depth,
) -> PathFact {
    let Resolved { path, entry } = resolved;
    let relative = path.strip_prefix(&workspace.root).ok();
    let mut fact = PathFact {
        given: given.to_owned(),
        resolved: Some(path.to_string_lossy().into_owned()),
        relative: relative.map(|path| path.to_string_lossy().into_owned()),
        usage,
        recursive: depth != Depth::One,
        inside: relative.is_some() && entry.starts_with(&workspace.root),
        protected: false,
        secret: false,
        guard: false,
    };
    for path in [path, entry] {
        fact.protected |= names::is_protected(workspace, path);
        fact.guard |= names::is_guard(workspace, path);
        fact.secret |= names::is_secret(workspace, path) || names::is_kept(workspace, path);
    }
    if usage == Usage::Delete || usage.changes() && depth != Depth::One {
        // Who moves or deletes a folder does so to all of it.
        fact.guard |= names::holds_guard(workspace, path);
    }
    if depth != Depth::One && usage != Usage::Search {
        match tree::below(description, workspace, path, depth) {
            Below::Names { protected, secret, guard, .. } => {
                fact.protected |= protected;
                fact.secret |= secret;
                fact.guard |= guard;
            }
            Below::TooMany => {
                description.opaque(format!("folder `{}`: too many files to look through", names::shown(given)));
            }
        }
    }
    fact
}
