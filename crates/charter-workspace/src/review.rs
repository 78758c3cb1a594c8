//! Shows an approver what a changeset would do to a folder in its current state. It only reads, and
//! takes no lock.

use std::path::Path;

use charter_kernel::Digest;
use serde_json::Value as Json;

use crate::changeset::{Change, Changeset};
use crate::diff::FileDiff;
use crate::dir::{Dir, Node};
use crate::error::Error;
use crate::store::Store;
use crate::workspace::MAX_FILE_BYTES;

/// Compares each file of a changeset with the current folder. The changeset is given as its
/// [manifest](Changeset::manifest), with contents in the store. A file that cannot be compared, or
/// that differs from what the change expects, has a note.
///
/// # Errors
/// The manifest is invalid, or content that it names is not in the store.
pub fn review(folder: &Path, manifest: &Json, store: &Store) -> Result<Vec<FileDiff>, Error> {
    let changeset = Changeset::from_manifest(manifest, store)?;
    let root = Dir::root(folder);
    let one = |change: &Change| {
        let now = match &root {
            Ok(root) => now(root, change).map_err(|e| e.to_string()),
            Err(e) => Err(e.to_string()),
        };
        match (now, change.old_sha256) {
            (Err(why), _) => FileDiff::noted(change, &format!("({why})")),
            (Ok(Some(_)), None) if change.operation == crate::Operation::Create => FileDiff::of(change, None)
                .with_note("(the file already exists: applying this will fail with a conflict)"),
            (Ok(old), Some(expected)) if old.as_deref().map(Digest::of_bytes) != Some(expected) => FileDiff::noted(
                change,
                "(the file has changed since this was proposed: applying this will fail with a conflict)",
            ),
            (Ok(old), _) => FileDiff::of(change, old.as_deref()),
        }
    };
    Ok(changeset.changes().iter().map(one).collect())
}

/// Returns the current content of the file; `None` if it does not exist.
fn now(root: &Dir, change: &Change) -> Result<Option<Vec<u8>>, Error> {
    let path = &change.path;
    let Some((dir, name)) = root.parent(path)? else {
        return Ok(None);
    };
    match dir.node(name, path.as_str())? {
        Node::Absent => Ok(None),
        _ => dir.read(name, path.as_str(), MAX_FILE_BYTES).map(|(bytes, _)| Some(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RelPath;
    use crate::watch::Unwatched;

    #[test]
    fn a_review_compares_with_the_current_files() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("w");
        std::fs::create_dir(&folder).unwrap();
        let store = Store::open(&temporary.path().join("store")).unwrap();
        let path = |p: &str| RelPath::parse(p).unwrap();
        std::fs::write(folder.join("a"), "one\n").unwrap();
        std::fs::write(temporary.path().join("secret"), "secret\n").unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        let old = Digest::of_bytes(b"one\n");
        let changeset = Changeset::new(
            "s",
            vec![
                Change::modify(path("a"), old, "two\n"),
                Change::create(path("b/c"), "new\n"),
                Change::modify(path("link"), Digest::of_bytes(b"secret\n"), "x\n"),
            ],
        )
        .unwrap();
        for change in changeset.changes() {
            let content = change.content.as_ref().unwrap();
            store.put(content, &mut Unwatched).unwrap();
        }
        let manifest = changeset.manifest();
        let texts = || -> Vec<String> {
            let all = review(&folder, &manifest, &store).unwrap();
            all.iter().map(FileDiff::to_text).collect()
        };
        let shown = texts();
        assert!(shown[0].ends_with("-one\n+two\n"), "{}", shown[0]);
        assert!(shown[1].ends_with("+new\n"), "{}", shown[1]);
        assert!(!shown[2].contains("secret"), "{}", shown[2]);
        assert!(shown[2].contains("symbolic link"), "{}", shown[2]);

        std::fs::write(folder.join("a"), "other\n").unwrap();
        std::fs::create_dir(folder.join("b")).unwrap();
        std::fs::write(folder.join("b/c"), "mine\n").unwrap();
        let shown = texts();
        assert!(shown[0].contains("has changed since"), "{}", shown[0]);
        assert!(shown[1].contains("already exists"), "{}", shown[1]);
        let mut unknown = manifest.clone();
        unknown["changes"][0]["new_sha256"] = Digest::of_bytes(b"?").hex().into();
        assert!(review(&folder, &unknown, &store).is_err());
    }
}
