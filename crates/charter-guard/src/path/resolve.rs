//! Where a path leads, with every link on the way followed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::workspace::Workspace;

const MAX_PATH_BYTES: usize = 1_024;
const MAX_COMPONENTS: usize = 256;
const MAX_LINKS: usize = 40;

/// Why it is not certain where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Unresolved {
    #[error("it is empty")]
    Empty,
    #[error("it has a control character")]
    Control,
    #[error("it is too long")]
    TooLong,
    #[error("links lead in a circle")]
    Loop,
    #[error("`~` of a user is not known")]
    Home,
    #[error("it depends on the process that opens it")]
    Process,
    #[error("`..` after a link or a missing folder means two things")]
    Ambiguous,
    #[error("it starts from a folder that is not absolute")]
    Relative,
    #[error("it is an address")]
    Address,
    #[error("a link on the way cannot be read")]
    Unreadable,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The file or folder, without links.
    pub(super) path: PathBuf,
    /// The entry of a folder that the path names: the link itself, if it is one.
    pub(super) entry: PathBuf,
}

/// Returns the absolute path without links that `given` leads to. What does not exist yet is part
/// of the result as it is spelled.
pub(super) fn resolve(workspace: &Workspace, cwd: &Path, given: &str) -> Result<Resolved, Unresolved> {
    if given.is_empty() {
        return Err(Unresolved::Empty);
    }
    if given.len() > MAX_PATH_BYTES {
        return Err(Unresolved::TooLong);
    }
    if given.chars().any(char::is_control) {
        return Err(Unresolved::Control);
    }
    if given.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric())) {
        return Err(Unresolved::Address);
    }
    let start = match given.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = workspace.home.as_ref().ok_or(Unresolved::Home)?;
            home.join(rest.trim_start_matches('/'))
        }
        // A file may have such a name; a shell takes it for the home of a user.
        Some(_) => return Err(Unresolved::Home),
        None if Path::new(given).is_absolute() => PathBuf::from(given),
        None if !cwd.is_absolute() => return Err(Unresolved::Relative),
        None => cwd.join(given),
    };
    let physical = follow(&start)?;
    // Some programs remove `..` before they open a path, others let the kernel go there.
    if start.components().any(|part| part == Component::ParentDir) && follow(&without_parents(&start))? != physical {
        return Err(Unresolved::Ambiguous);
    }
    let entry = match (start.parent(), start.file_name()) {
        (Some(parent), Some(name)) => follow(parent)?.join(name),
        _ => physical.clone(),
    };
    Ok(Resolved { path: physical, entry })
}

fn without_parents(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(name) => out.push(name),
            _ => {}
        }
    }
    out
}

fn follow(path: &Path) -> Result<PathBuf, Unresolved> {
    let mut todo: VecDeque<OsString> = VecDeque::new();
    queue(&mut todo, path)?;
    let mut out = PathBuf::from("/");
    let mut links = 0_usize;
    while let Some(name) = todo.pop_front() {
        if name == ".." {
            out.pop();
            continue;
        }
        out.push(&name);
        if depends_on_process(&out) {
            return Err(Unresolved::Process);
        }
        match out.symlink_metadata() {
            Ok(metadata) if metadata.file_type().is_symlink() => {
                links = links.saturating_add(1);
                if links > MAX_LINKS {
                    return Err(Unresolved::Loop);
                }
                let target = out.read_link().map_err(|_| Unresolved::Unreadable)?;
                if target.is_absolute() {
                    out = PathBuf::from("/");
                } else {
                    out.pop();
                }
                queue(&mut todo, &target)?;
            }
            // What does not exist, or may not be looked at by this user, is taken as it is spelled:
            // nobody else can have put a link there that this user can follow.
            _ => {}
        }
    }
    Ok(out)
}

/// Puts the components of a path in front of those that are still to be followed.
fn queue(todo: &mut VecDeque<OsString>, path: &Path) -> Result<(), Unresolved> {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => todo.push_front(name.to_owned()),
            Component::ParentDir => todo.push_front(OsString::from("..")),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
        if todo.len() > MAX_COMPONENTS {
            return Err(Unresolved::TooLong);
        }
    }
    Ok(())
}

/// Whether a path leads elsewhere in each process: `/proc/self/cwd`, `/dev/fd/3`.
fn depends_on_process(path: &Path) -> bool {
    let mut parts = path.components().skip(1).filter_map(|part| part.as_os_str().to_str());
    match (parts.next(), parts.next()) {
        (Some("proc"), Some(second)) => {
            second == "self" || second == "thread-self" || second.bytes().all(|byte| byte.is_ascii_digit())
        }
        (Some("dev"), Some(second)) => matches!(second, "fd" | "stdin" | "stdout" | "stderr"),
        _ => false,
    }
}
