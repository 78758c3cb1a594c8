//! Names that mean something: the configuration of clients, secrets, protected files, devices.

use std::path::{Component, Path, PathBuf};

use crate::workspace::Workspace;

/// Folders and files where clients of agents keep hooks and what may run them, as the end of a
/// path or as a part of it, in lower case.
const CONTROL: &[&[&str]] = &[
    &[".claude"],
    &[".claude.json"],
    &["claude-code"],
    &[".mcp.json"],
    &[".codex"],
    &[".gemini"],
    &[".cursor"],
    &[".copilot"],
    &[".opencode"],
    &["opencode.json"],
    &["opencode.jsonc"],
    &[".config", "opencode"],
    &[".config", "goose"],
    &[".goose"],
    &[".agents", "plugins"],
    &[".github", "hooks"],
    &[".github", "copilot"],
    &[".charter"],
    // What runs of the sessions that come are started with.
    &["charters", "coder"],
    // What git runs by itself.
    &[".git", "hooks"],
    &[".git", "config"],
];

/// Whether a path is part of the control of agents.
pub(super) fn is_guard(workspace: &Workspace, resolved: &Path) -> bool {
    has_guard_name(workspace, resolved) || is_kept(workspace, resolved)
}

/// The same by its name alone, for the many files of a folder.
pub(super) fn has_guard_name(workspace: &Workspace, resolved: &Path) -> bool {
    let names: Vec<String> = folded(resolved);
    let named = CONTROL.iter().any(|control| {
        names.windows(control.len()).any(|window| window.iter().zip(*control).all(|(name, part)| same(name, part)))
    });
    named || workspace.guarded.iter().any(|guarded| covers(guarded, resolved))
}

/// Whether a path belongs to the host: the journal, keys, or what a link of a client's
/// configuration leads to.
pub(super) fn is_kept(workspace: &Workspace, resolved: &Path) -> bool {
    workspace.guarded.iter().any(|guarded| covers(guarded, resolved) || same_file(guarded, resolved))
}

/// Where the control of agents in a folder really is, if a link leads there.
pub(crate) fn linked_control(folder: &Path) -> Vec<PathBuf> {
    CONTROL
        .iter()
        .filter_map(|control| {
            let path = folder.join(control.join("/"));
            path.canonicalize().ok().filter(|target| *target != path)
        })
        .collect()
}

/// Whether a folder has part of the control of agents below it, as far as names say.
pub(super) fn holds_guard(workspace: &Workspace, folder: &Path) -> bool {
    workspace.guarded.iter().any(|guarded| guarded.starts_with(folder))
        || workspace.root.starts_with(folder)
        || workspace.home.as_ref().is_some_and(|home| home.starts_with(folder))
        || CONTROL.iter().any(|control| {
            let [first, rest @ ..] = *control else { return false };
            folder.file_name().is_some_and(|name| same(&fold(&name.to_string_lossy()), first))
                && !rest.is_empty()
                && folder.join(rest.join("/")).symlink_metadata().is_ok()
        })
}

/// Whether a path is the guarded one, below it, or beside it with a name that continues its name.
fn covers(guarded: &Path, path: &Path) -> bool {
    if path.starts_with(guarded) {
        return true;
    }
    let (Some(name), Some(parent)) = (guarded.file_name(), guarded.parent()) else { return false };
    let (name, Ok(rest)) = (fold(&name.to_string_lossy()), path.strip_prefix(parent)) else { return false };
    let Some(Component::Normal(first)) = rest.components().next() else { return false };
    fold(&first.to_string_lossy()).strip_prefix(&name).is_some_and(|end| end.is_empty() || end.starts_with(['-', '.']))
}

/// Whether both are one file, by another name.
#[cfg(unix)]
fn same_file(guarded: &Path, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (guarded.metadata(), path.metadata()) {
        (Ok(one), Ok(two)) => one.is_file() && one.dev() == two.dev() && one.ino() == two.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_: &Path, _: &Path) -> bool {
    false
}

/// Whether the project protects a path.
pub(super) fn is_protected(workspace: &Workspace, resolved: &Path) -> bool {
    let Ok(relative) = resolved.strip_prefix(&workspace.root) else { return false };
    if folded(relative).iter().any(|name| same(name, ".git")) {
        return true;
    }
    !relative.as_os_str().is_empty() && matches(&workspace.protected, relative)
}

/// Whether a path has the name of a secret.
pub(super) fn is_secret(workspace: &Workspace, resolved: &Path) -> bool {
    resolved.strip_prefix("/").is_ok_and(|path| !path.as_os_str().is_empty() && matches(&workspace.secrets, path))
        || resolved.starts_with("/proc") && resolved.ends_with("environ")
}

/// Matches a relative path as it is spelled and as other file systems would read it.
fn matches(patterns: &ignore::gitignore::Gitignore, path: &Path) -> bool {
    let hit = |path: &Path| {
        [false, true].iter().any(|is_folder| patterns.matched_path_or_any_parents(path, *is_folder).is_ignore())
    };
    if hit(path) {
        return true;
    }
    let other: PathBuf = folded(path).into_iter().filter(|name| !name.is_empty()).collect();
    !other.as_os_str().is_empty() && other != path && hit(&other)
}

fn folded(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(fold(&name.to_string_lossy())),
            _ => None,
        })
        .collect()
}

/// A name as the file systems that are less strict than most take it: without case, without dots
/// and spaces at the end, without what follows a colon, without characters that are not shown.
fn fold(name: &str) -> String {
    let shown: String = name
        .chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}'))
        .flat_map(char::to_lowercase)
        .collect();
    let shown = match shown.find(':') {
        Some(at) if at > 0 => shown.get(..at).unwrap_or_default(),
        _ => &shown,
    };
    shown.trim_end_matches(['.', ' ']).trim_start_matches(' ').to_owned()
}

/// Whether a folded name is the other, also in the short form `GIT~1` of some file systems.
fn same(name: &str, control: &str) -> bool {
    if name == control {
        return true;
    }
    let Some((start, digits)) = name.split_once('~') else { return false };
    let plain: String = control.chars().filter(char::is_ascii_alphanumeric).collect();
    !start.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && plain.starts_with(start)
}

/// Whether a path is a device whose use changes nothing and reveals nothing.
pub(super) fn is_harmless_device(given: &str) -> bool {
    matches!(
        given,
        "/dev/null"
            | "/dev/zero"
            | "/dev/urandom"
            | "/dev/random"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/tty"
    )
}

/// Whether a shell would look for files that match.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The beginning of a path without control characters, for a reason.
pub(super) fn shown(given: &str) -> String {
    given.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
