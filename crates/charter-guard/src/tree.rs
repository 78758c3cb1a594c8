//! The digest of a workspace's files: what a person reviews is what is committed.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::Path;

use ignore::WalkBuilder;
use sha2::{Digest as _, Sha256};

use crate::data::hex;
use crate::repository::Repository;

/// Files that a digest covers at most.
pub const MAX_TREE_FILES: usize = 20_000;
/// Bytes that a digest covers at most.
pub const MAX_TREE_BYTES: u64 = 256 * 1024 * 1024;

/// Computes a digest of all files of a folder that version control does not ignore, or tracks:
/// their paths, contents, links, and whether they may be executed. Returns nothing if there are
/// more than [`MAX_TREE_FILES`] or [`MAX_TREE_BYTES`], or if one cannot be read.
#[must_use]
pub fn tree_digest(root: &Path) -> Option<String> {
    let mut walk = WalkBuilder::new(root);
    // Git does not look at `.ignore`, so a file that it names is committed all the same.
    walk.hidden(false).ignore(false).follow_links(false).require_git(false).git_global(false).parents(false);
    walk.sort_by_file_name(std::ffi::OsStr::cmp);
    walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    let mut tree = Tree { digest: Sha256::new(), files: 0, bytes: 0 };
    let mut seen = HashSet::new();
    for entry in walk.build() {
        let entry = entry.ok()?;
        if entry.file_type()?.is_dir() {
            continue;
        }
        tree.file(root, entry.path(), &entry.metadata().ok()?)?;
        seen.insert(entry.into_path());
    }
    // What was added although it is ignored is part of each commit.
    let repository = Repository::of(root);
    let tracked = repository.iter().filter_map(|repository| Some((&repository.top, repository.tracked()?)));
    for path in tracked.flat_map(|(top, names)| names.into_iter().map(|name| top.join(name))) {
        if !path.starts_with(root) || seen.contains(&path) {
            continue;
        }
        match path.symlink_metadata() {
            Ok(metadata) if !metadata.is_dir() => tree.file(root, &path, &metadata)?,
            _ => {}
        }
    }
    Some(hex(&tree.digest.finalize()))
}

/// A digest of files.
struct Tree {
    digest: Sha256,
    files: usize,
    bytes: u64,
}

impl Tree {
    fn file(&mut self, root: &Path, path: &Path, metadata: &Metadata) -> Option<()> {
        self.files = self.files.saturating_add(1);
        self.bytes = self.bytes.saturating_add(metadata.len());
        if self.files > MAX_TREE_FILES || self.bytes > MAX_TREE_BYTES {
            return None;
        }
        let digest = &mut self.digest;
        field(digest, path.strip_prefix(root).ok()?.as_os_str().as_encoded_bytes());
        if metadata.is_symlink() {
            field(digest, b"link");
            field(digest, path.read_link().ok()?.as_os_str().as_encoded_bytes());
        } else if metadata.is_file() {
            field(digest, if is_executable(metadata) { b"program" } else { b"file" });
            field(digest, &Sha256::digest(std::fs::read(path).ok()?));
        } else {
            // A pipe or a device: opening it could wait for ever.
            field(digest, b"other");
        }
        Some(())
    }
}

/// Adds a field with its length, so that no two lists of fields have the same bytes.
fn field(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}
