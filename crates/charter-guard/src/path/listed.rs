//! Names of a list, such as the index of a repository, that mean something.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::names;
use crate::workspace::Workspace;

/// Which names are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// Those of secrets.
    Secrets,
    /// Those, what is protected, and the control of agents.
    Any,
}

/// Returns the files of a list, relative to `top`, that have such a name, up to `most`.
pub(crate) fn marked<'a>(
    workspace: &Workspace,
    top: &Path,
    listed: impl Iterator<Item = &'a str>,
    marks: Marks,
    most: usize,
) -> Vec<PathBuf> {
    let mut folders = HashMap::new();
    let is_marked = |path: &PathBuf| {
        is_secret(workspace, path, &mut folders)
            || marks == Marks::Any && (names::is_protected(workspace, path) || names::has_guard_name(workspace, path))
    };
    listed.map(|name| top.join(name)).filter(is_marked).take(most).collect()
}

/// [`names::is_secret`] for many files: what their folders are is remembered.
fn is_secret(workspace: &Workspace, path: &Path, folders: &mut HashMap<PathBuf, bool>) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b'@' | b'+');
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    if !name.iter().copied().all(plain) || name.ends_with(b".") {
        return names::is_secret(workspace, path);
    }
    let Ok(relative) = path.strip_prefix("/") else { return true };
    let matched = workspace.secrets.matched(relative, false);
    if !matched.is_none() {
        return matched.is_ignore();
    }
    let Some(folder) = path.parent() else { return false };
    *folders.entry(folder.to_path_buf()).or_insert_with(|| names::is_secret(workspace, folder))
}
