//! A copy of a workspace with the changes of a changeset, for the `verify` command.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;

use crate::changeset::{Changeset, Operation};
use crate::dir::{Dir, Node};
use crate::error::{Context as _, Error};
use crate::intent::new_mode;
use crate::path::STAGE;
use crate::store::{self, Within};
use crate::verify::{Verification, VerifyCommand};
use crate::watch::Watch;
use crate::workspace::{PathState, Workspace};

/// Maximum number of files in a copy, and maximum total size in bytes.
const MAX_FILES: usize = 200_000;
const MAX_BYTES: u64 = 4 << 30;
/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 128;

impl Workspace {
    /// Runs the command in a copy of the workspace with the changes, so that the workspace never
    /// contains unverified files.
    pub(crate) fn verify_in_copy(
        &self,
        changeset: &Changeset,
        olds: &[PathState],
        verify: &VerifyCommand,
        watch: &mut dyn Watch,
    ) -> Result<Verification, Error> {
        let scratch = self.state.join("scratch");
        let modes: BTreeMap<&str, u32> = changeset
            .changes()
            .iter()
            .zip(olds)
            .map(|(change, old)| (change.path.as_str(), new_mode(change, old) & 0o777))
            .collect();
        // What is left of an interrupted verification.
        let _ = std::fs::remove_dir_all(&scratch);
        store::create_folder(&scratch)?;
        let copied = self.copy_to(&scratch.join("tree"), changeset, &modes, verify.git);
        let result = copied.and_then(|()| verify.run(&scratch, self.store.with_journal(), &*watch));
        let removed = std::fs::remove_dir_all(&scratch).context(|| format!("remove `{}`", scratch.display()));
        let verification = result?;
        removed?;
        if verification.accepted {
            Ok(verification)
        } else {
            Err(Error::Verify { why: verification.ended, output: verification.output })
        }
    }

    /// Copies everything except special files (pipes, devices), and `.git` unless `git` says so,
    /// then applies the changes. A link is copied if its target stays inside; other links are
    /// omitted, because a command could follow them back into the workspace.
    pub(crate) fn copy_to(
        &self,
        to: &Path,
        changeset: &Changeset,
        modes: &BTreeMap<&str, u32>,
        git: bool,
    ) -> Result<(), Error> {
        if to.exists() {
            fs::remove_dir_all(to).context(|| format!("remove `{}`", to.display()))?;
        }
        store::create_folder(to)?;
        let mut left = Left { files: MAX_FILES, bytes: MAX_BYTES, git, journal: self.journal.as_ref() };
        copy(&self.root, to, "", &mut left)?;
        for change in changeset.changes() {
            let path = to.join(change.path.as_str());
            let doing = || format!("write `{}`", path.display());
            if change.operation != Operation::Create {
                fs::remove_file(&path).context(doing)?;
            }
            let Some(content) = &change.content else {
                continue;
            };
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).context(doing)?;
            }
            let mode = modes.get(change.path.as_str()).copied().unwrap_or(0o644);
            let written = create(&path, mode).and_then(|mut file| file.write_all(content));
            written.context(doing)?;
        }
        Ok(())
    }
}

/// The remaining limits of a copy.
struct Left<'a> {
    files: usize,
    bytes: u64,
    /// Whether `.git` is copied.
    git: bool,
    /// What is never copied.
    journal: Option<&'a Within>,
}

/// Copies the folder `at` of the workspace, given with a `/` at the end.
fn copy(from: &Dir, to: &Path, at: &str, left: &mut Left<'_>) -> Result<(), Error> {
    let depth = at.matches('/').count();
    if depth > MAX_DEPTH {
        return Err(Error::TooLarge(format!("folders are nested more than {MAX_DEPTH} deep at `{}`", to.display())));
    }
    for name in from.names(&to.display().to_string())?.0 {
        if depth == 0 && name == STAGE || name == ".git" && !left.git {
            continue;
        }
        let within = format!("{at}{name}");
        if left.journal.is_some_and(|journal| journal.has(&within)) {
            continue;
        }
        let path = to.join(&name);
        let shown = path.display().to_string();
        let doing = || format!("write `{shown}`");
        match from.node(&name, &name)? {
            Node::Folder => {
                fs::create_dir(&path).context(doing)?;
                if let Some(below) = from.enter(&name, &name)? {
                    copy(&below, &path, &format!("{within}/"), left)?;
                }
            }
            Node::File { size, mode, .. } => {
                let (files, bytes) = (left.files.checked_sub(1), left.bytes.checked_sub(size));
                let (Some(files), Some(bytes)) = (files, bytes) else {
                    let why = format!(
                        "the workspace is too large to copy for the `verify` command: the limits are {MAX_FILES} files and {} GiB",
                        MAX_BYTES >> 30
                    );
                    return Err(Error::TooLarge(why));
                };
                (left.files, left.bytes) = (files, bytes);
                let (mut file, _) = from.open_file(&name, &name)?;
                let copied = create(&path, mode & 0o777 | 0o600).and_then(|mut new| io::copy(&mut file, &mut new));
                copied.context(doing)?;
            }
            Node::Link { target } if stays_inside(&target, depth) => symlink(&target, &path).context(doing)?,
            Node::Link { .. } | Node::Other(_) | Node::Absent => {}
        }
    }
    Ok(())
}

fn create(path: &Path, mode: u32) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Whether the target of a link, at a depth of `depth` folders, stays inside.
fn stays_inside(target: &str, depth: usize) -> bool {
    let mut level = depth;
    !target.starts_with('/')
        && target.split('/').all(|name| {
            if name == ".." {
                level.checked_sub(1).map(|l| level = l).is_some()
            } else {
                if !matches!(name, "" | ".") {
                    level = level.saturating_add(1);
                }
                true
            }
        })
}

#[cfg(test)]
mod tests {
    use super::stays_inside;

    #[test]
    fn link_targets_inside_and_outside() {
        for (target, depth, inside) in [
            ("a", 0, true),
            ("../a", 0, false),
            ("../a", 1, true),
            ("a/../../b", 1, true),
            ("a/../../../b", 1, false),
            ("/a", 3, false),
            ("./a/..", 0, true),
        ] {
            assert_eq!(stays_inside(target, depth), inside, "{target} at {depth}");
        }
    }
}
