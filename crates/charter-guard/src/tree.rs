//! The digest of a workspace's files: what a person reviews is what is committed.

use std::path::Path;

use ignore::WalkBuilder;
use sha2::{Digest as _, Sha256};

use crate::data::hex;

/// Files that a digest covers at most.
pub const MAX_TREE_FILES: usize = 20_000;
/// Bytes that a digest covers at most.
pub const MAX_TREE_BYTES: u64 = 256 * 1024 * 1024;

/// Computes a digest of all files of a folder that version control does not ignore: their paths,
/// contents, links, and whether they may be executed. Returns nothing if there are more than
/// [`MAX_TREE_FILES`] or [`MAX_TREE_BYTES`], or if one cannot be read.
#[must_use]
pub fn tree_digest(root: &Path) -> Option<String> {
    let mut walk = WalkBuilder::new(root);
    // Git does not look at `.ignore`, so a file that it names is committed all the same.
    walk.hidden(false).ignore(false).follow_links(false).require_git(false).git_global(false).parents(false);
    walk.sort_by_file_name(std::ffi::OsStr::cmp);
    walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    let mut digest = Sha256::new();
    let (mut files, mut bytes) = (0_usize, 0_u64);
    for entry in walk.build() {
        let entry = entry.ok()?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            continue;
        }
        files = files.saturating_add(1);
        let metadata = entry.metadata().ok()?;
        bytes = bytes.saturating_add(metadata.len());
        if files > MAX_TREE_FILES || bytes > MAX_TREE_BYTES {
            return None;
        }
        let path = entry.path().strip_prefix(root).ok()?;
        field(&mut digest, path.as_os_str().as_encoded_bytes());
        if kind.is_symlink() {
            field(&mut digest, b"link");
            field(&mut digest, entry.path().read_link().ok()?.as_os_str().as_encoded_bytes());
        } else if kind.is_file() {
            field(&mut digest, if is_executable(&metadata) { b"program" } else { b"file" });
            field(&mut digest, &Sha256::digest(std::fs::read(entry.path()).ok()?));
        } else {
            // A pipe or a device: opening it could wait for ever.
            field(&mut digest, b"other");
        }
    }
    Some(hex(&digest.finalize()))
}

/// Adds a field with its length, so that no two lists of fields have the same bytes.
fn field(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}
