//! Changesets, which are proposed, approved and applied as a unit; their canonical form and digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};

use crate::error::ChangesetError;
use crate::path::{RelPath, misleading};

/// Maximum number of changes in a changeset.
pub const MAX_CHANGES: usize = 10_000;
/// Maximum total size of the contents of a changeset, in bytes.
pub const MAX_CONTENT_BYTES: usize = 256 << 20;
/// Maximum size of a summary, in bytes.
pub const MAX_SUMMARY_BYTES: usize = 4_096;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// Creates a file that does not exist.
    Create,
    /// Replaces the content of a file that has the digest `old_sha256`.
    Modify,
    /// Deletes a file.
    Delete,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 3] = [Operation::Create, Operation::Modify, Operation::Delete];

    /// The written form: `CREATE`, `MODIFY`, `DELETE`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Modify => "MODIFY",
            Operation::Delete => "DELETE",
        }
    }

    /// Parses the written form, exactly.
    #[must_use]
    pub fn parse(text: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|o| o.as_str() == text)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The change of one file. Consistency is checked by [`Changeset::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The operation.
    pub operation: Operation,
    /// The file.
    pub path: RelPath,
    /// SHA-256 of the content that the proposer read; `None` for CREATE.
    pub old_sha256: Option<Digest>,
    /// The whole new content; `None` for DELETE.
    pub content: Option<Vec<u8>>,
    /// Whether the file is executable afterwards; `None`: as before, and not if it is new.
    pub executable: Option<bool>,
}

impl Change {
    /// Describes the creation of a file.
    #[must_use]
    pub fn create(path: RelPath, content: impl Into<Vec<u8>>) -> Change {
        Change { operation: Operation::Create, path, old_sha256: None, content: Some(content.into()), executable: None }
    }

    /// Describes the replacement of a file's content, whose digest is `old`.
    #[must_use]
    pub fn modify(path: RelPath, old: Digest, content: impl Into<Vec<u8>>) -> Change {
        Change {
            operation: Operation::Modify,
            path,
            old_sha256: Some(old),
            content: Some(content.into()),
            executable: None,
        }
    }

    /// Describes the deletion of a file whose content has the digest `old`, if given.
    #[must_use]
    pub fn delete(path: RelPath, old: Option<Digest>) -> Change {
        Change { operation: Operation::Delete, path, old_sha256: old, content: None, executable: None }
    }
}

/// Changes that are proposed, approved and applied as a unit. A changeset is well formed by
/// construction: paths are distinct, no file is also the folder of another, CREATE and MODIFY have
/// content and DELETE has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changeset {
    summary: String,
    changes: Vec<Change>,
}

impl Changeset {
    /// Builds a changeset from changes, in display order.
    ///
    /// # Errors
    /// The changes are inconsistent; the error describes the first inconsistency, with the number
    /// of the change.
    pub fn new(summary: impl Into<String>, changes: Vec<Change>) -> Result<Changeset, ChangesetError> {
        let summary = summary.into();
        if let Some(why) = summary_fault(&summary) {
            return Err(ChangesetError::new(why, "describe the changes in one line"));
        }
        if changes.is_empty() {
            return Err(ChangesetError::new("the changeset has no changes", "propose at least one change"));
        }
        if changes.len() > MAX_CHANGES {
            let why = format!("the changeset has {} changes; the limit is {MAX_CHANGES}", changes.len());
            return Err(ChangesetError::new(why, "split the changeset"));
        }
        let size: usize = changes.iter().filter_map(|c| c.content.as_ref().map(Vec::len)).sum();
        if size > MAX_CONTENT_BYTES {
            let why = format!("the contents total {size} bytes; the limit is {MAX_CONTENT_BYTES}");
            return Err(ChangesetError::new(why, "split the changeset"));
        }
        for (i, change) in changes.iter().enumerate() {
            if let Some((why, help)) = change_fault(change) {
                return Err(ChangesetError::new(why, help).at_change(i, change.path.as_str()));
            }
        }
        paths_fit(&changes)?;
        Ok(Changeset { summary, changes })
    }

    /// What the changeset does, in one line.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The changes, in display order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The digest that an approval names: SHA-256 of the canonical JSON (RFC 8785) of the
    /// [`manifest`](Changeset::manifest). The expression `digest(x)` gives the same value for the
    /// manifest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of_json(&self.manifest())
    }

    /// Returns the changeset with only the accepted paths. It has its own digest.
    ///
    /// # Errors
    /// A path is not in the changeset or is named twice, or no path is named.
    pub fn subset(&self, accepted: &[&str]) -> Result<Changeset, ChangesetError> {
        let mut wanted = BTreeSet::new();
        for path in accepted {
            if !wanted.insert(*path) {
                return Err(ChangesetError::new(format!("`{path}` is accepted twice"), "name each path once"));
            }
            if !self.changes.iter().any(|c| c.path.as_str() == *path) {
                let why = format!("`{path}` is accepted, but is not in the changeset");
                return Err(ChangesetError::new(why, "name paths of the changeset"));
            }
        }
        let changes = self.changes.iter().filter(|c| wanted.contains(c.path.as_str()));
        Changeset::new(self.summary.clone(), changes.cloned().collect())
    }

    /// Fills in the digest of each file that is modified or deleted, from `shown`: the files of the
    /// approved bundle.
    ///
    /// # Errors
    /// A change is to a file that was not shown, or that had different content.
    pub fn bind(mut self, shown: &BTreeMap<RelPath, Digest>) -> Result<Changeset, ChangesetError> {
        for (i, change) in self.changes.iter_mut().enumerate() {
            if change.operation == Operation::Create {
                continue;
            }
            let Some(digest) = shown.get(&change.path) else {
                return Err(unshown(change.operation).at_change(i, change.path.as_str()));
            };
            match change.old_sha256 {
                Some(old) if old != *digest => {
                    return Err(other_content(old, *digest).at_change(i, change.path.as_str()));
                }
                _ => change.old_sha256 = Some(*digest),
            }
        }
        Ok(self)
    }
}

/// The error for a change to a file that the proposer was not shown.
pub(crate) fn unshown(operation: Operation) -> ChangesetError {
    ChangesetError::new(
        format!("it would {} a file that is not in the approved context", verb(operation)),
        "change only files in the context, or request that this file be added to it",
    )
}

/// The error for a change to a file that had other content when the proposer was shown it.
pub(crate) fn other_content(old: Digest, digest: Digest) -> ChangesetError {
    ChangesetError::new(
        format!("`old_sha256` is {}, but the file in the context has {}", old.hex(), digest.hex()),
        "copy it from the context, or omit it",
    )
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Modify => "modify",
        Operation::Delete => "delete",
    }
}

/// Why a summary is invalid.
pub(crate) fn summary_fault(summary: &str) -> Option<&'static str> {
    if summary.is_empty() {
        Some("the summary is empty")
    } else if summary.trim() != summary {
        Some("the summary starts or ends with a space")
    } else if summary.len() > MAX_SUMMARY_BYTES {
        Some("the summary is longer than 4,096 bytes")
    } else if summary.chars().any(misleading) {
        Some("the summary contains a line break, a control character or one that changes the text direction")
    } else {
        None
    }
}

fn change_fault(change: &Change) -> Option<(&'static str, &'static str)> {
    match (change.operation, &change.content, change.old_sha256) {
        (Operation::Create, _, Some(_)) => Some(("CREATE has an `old_sha256`", "omit it, or write MODIFY")),
        (Operation::Create | Operation::Modify, None, _) => {
            Some(("the new content is missing", "provide the whole new content of the file"))
        }
        (Operation::Delete, Some(_), _) => Some(("DELETE has content", "omit the content, or write MODIFY")),
        (Operation::Delete, ..) if change.executable.is_some() => {
            Some(("DELETE says whether the file is executable", "omit `executable`"))
        }
        _ => None,
    }
}

/// Checks that paths are distinct, and that no file is also the folder of another.
fn paths_fit(changes: &[Change]) -> Result<(), ChangesetError> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, change) in changes.iter().enumerate() {
        if let Some(first) = seen.insert(change.path.as_str(), i) {
            let why = format!("same path as change {}", first.saturating_add(1));
            return Err(ChangesetError::new(why, "write one change per file").at_change(i, change.path.as_str()));
        }
    }
    for (i, change) in changes.iter().enumerate() {
        if let Some((folder, file)) = change.path.folders().find_map(|f| Some((f, *seen.get(f)?))) {
            let why = format!("`{folder}` is a folder here, but a file in change {}", file.saturating_add(1));
            return Err(ChangesetError::new(why, "make these changes in separate changesets")
                .at_change(i, change.path.as_str()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn the_digest_covers_operations_paths_and_contents() {
        let digest = |changes| Changeset::new("s", changes).unwrap().digest();
        let old = Digest::of_bytes(b"old");
        let all = [
            digest(vec![Change::create(path("a"), "x")]),
            digest(vec![Change::create(path("b"), "x")]),
            digest(vec![Change::create(path("a"), "y")]),
            digest(vec![Change { executable: Some(true), ..Change::create(path("a"), "x") }]),
            digest(vec![Change { executable: Some(false), ..Change::create(path("a"), "x") }]),
            digest(vec![Change::modify(path("a"), old, "x")]),
            digest(vec![Change::delete(path("a"), Some(old))]),
            digest(vec![Change::delete(path("a"), None)]),
            digest(vec![Change::create(path("a"), "x"), Change::create(path("b"), "x")]),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn a_subset_has_the_digest_of_its_own_manifest() {
        let whole = Changeset::new("s", vec![Change::create(path("a"), "x"), Change::create(path("b"), "y")]).unwrap();
        let part = whole.subset(&["b"]).unwrap();
        assert_eq!(part, Changeset::new("s", vec![Change::create(path("b"), "y")]).unwrap());
        assert_ne!(part.digest(), whole.digest());
        assert_eq!(whole.subset(&["b", "a"]).unwrap().digest(), whole.digest(), "the order is the changeset's");
        for bad in [&["c"][..], &["a", "a"], &[]] {
            assert!(whole.subset(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn inconsistent_changes_are_refused() {
        let refused = |changes| Changeset::new("s", changes).unwrap_err().to_string();
        let (a, ab) = (path("a"), path("a/b"));
        assert_eq!(
            refused(vec![Change::create(a.clone(), ""), Change::delete(a.clone(), None)]),
            "change 2 (`a`): same path as change 1; write one change per file"
        );
        assert_eq!(
            refused(vec![Change::create(ab, ""), Change::delete(a.clone(), None)]),
            "change 1 (`a/b`): `a` is a folder here, but a file in change 2; make these changes in separate changesets"
        );
        let with = |operation, old, content| {
            refused(vec![Change { operation, path: a.clone(), old_sha256: old, content, executable: None }])
        };
        assert!(with(Operation::Create, Some(Digest::default()), Some(vec![])).contains("CREATE has an `old_sha256`"));
        assert!(with(Operation::Modify, None, None).contains("the new content is missing"));
        assert!(with(Operation::Delete, None, Some(vec![])).contains("DELETE has content"));
        let mode = Change { executable: Some(true), ..Change::delete(a.clone(), None) };
        assert!(refused(vec![mode]).contains("executable"));
        assert!(refused(vec![]).contains("no changes"));
        assert!(Changeset::new("a\nb", vec![Change::create(a, "")]).is_err());
    }

    #[test]
    fn only_files_that_were_shown_are_changed() {
        let (digest, other) = (Digest::of_bytes(b"old"), Digest::of_bytes(b"other"));
        let shown = BTreeMap::from([(path("a"), digest)]);
        let bind = |change| Changeset::new("s", vec![change]).unwrap().bind(&shown);
        let unbound = Change { old_sha256: None, ..Change::modify(path("a"), digest, "x") };
        assert_eq!(bind(unbound).unwrap().changes()[0].old_sha256, Some(digest));
        assert_eq!(bind(Change::delete(path("a"), None)).unwrap().changes()[0].old_sha256, Some(digest));
        assert!(
            bind(Change::modify(path("a"), other, "x")).unwrap_err().to_string().contains("copy it from the context")
        );
        assert!(bind(Change::delete(path("b"), None)).unwrap_err().to_string().contains("not in the approved context"));
        assert!(bind(Change::create(path("b"), "")).is_ok());
    }
}
