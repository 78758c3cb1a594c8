//! A changeset: what is proposed, approved and applied as one; its canonical form and digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::error::{ChangesetError, Error};
use crate::path::{RelPath, misleading};
use crate::store::Store;

/// Changes in one changeset.
pub const MAX_CHANGES: usize = 10_000;
/// Bytes of the contents of one changeset together.
pub const MAX_CONTENT_BYTES: usize = 256 << 20;
/// Bytes of a summary.
pub const MAX_SUMMARY_BYTES: usize = 4_096;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A file that is not there yet.
    Create,
    /// A file that is there, with known content.
    Modify,
    /// A file that is there goes.
    Delete,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 3] = [Operation::Create, Operation::Modify, Operation::Delete];

    /// As it is written: `CREATE`, `MODIFY`, `DELETE`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Modify => "MODIFY",
            Operation::Delete => "DELETE",
        }
    }

    /// Reads it, exactly as written.
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

/// One file's change. What fits together is checked when a [`Changeset`] is made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happens.
    pub operation: Operation,
    /// To which file.
    pub path: RelPath,
    /// SHA-256 of the content that the proposer read; none for CREATE.
    pub old_sha256: Option<Digest>,
    /// The full new content; none for DELETE.
    pub content: Option<Vec<u8>>,
}

impl Change {
    /// A new file.
    #[must_use]
    pub fn create(path: RelPath, content: impl Into<Vec<u8>>) -> Change {
        Change { operation: Operation::Create, path, old_sha256: None, content: Some(content.into()) }
    }

    /// New content for a file whose content was `old`.
    #[must_use]
    pub fn modify(path: RelPath, old: Digest, content: impl Into<Vec<u8>>) -> Change {
        Change { operation: Operation::Modify, path, old_sha256: Some(old), content: Some(content.into()) }
    }

    /// A file whose content was `old` goes.
    #[must_use]
    pub fn delete(path: RelPath, old: Option<Digest>) -> Change {
        Change { operation: Operation::Delete, path, old_sha256: old, content: None }
    }
}

/// Changes that are proposed, approved and applied as one. It is well formed by construction: paths differ, no file is a folder of
/// another, CREATE and MODIFY have content and DELETE has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changeset {
    summary: String,
    changes: Vec<Change>,
}

impl Changeset {
    /// Puts changes together, in the order in which they are shown.
    ///
    /// # Errors
    /// What does not fit together, with the number of the change.
    pub fn new(summary: impl Into<String>, changes: Vec<Change>) -> Result<Changeset, ChangesetError> {
        let summary = summary.into();
        if let Some(why) = summary_fault(&summary) {
            return Err(ChangesetError::new(why, "write what the changes do, in one line"));
        }
        if changes.is_empty() {
            return Err(ChangesetError::new("there is no change in it", "propose at least one change"));
        }
        if changes.len() > MAX_CHANGES {
            let why = format!("it has {} changes, more than {MAX_CHANGES}", changes.len());
            return Err(ChangesetError::new(why, "split it"));
        }
        let size: usize = changes.iter().filter_map(|c| c.content.as_ref().map(Vec::len)).sum();
        if size > MAX_CONTENT_BYTES {
            let why = format!("its contents have {size} bytes together, more than {MAX_CONTENT_BYTES}");
            return Err(ChangesetError::new(why, "split it"));
        }
        for (i, change) in changes.iter().enumerate() {
            if let Some((why, help)) = change_fault(change) {
                return Err(ChangesetError::new(why, help).at_change(i, change.path.as_str()));
            }
        }
        paths_fit(&changes)?;
        Ok(Changeset { summary, changes })
    }

    /// What it does, in one line.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The changes, in the order in which they are shown.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The canonical form as a value: operations, paths, sizes and digests of contents instead of the contents, so that it is small
    /// enough for the context of a run. Two changesets with the same manifest change the same files in the same way.
    #[must_use]
    pub fn manifest(&self) -> Json {
        let changes: Vec<Json> = self.changes.iter().map(manifest_of).collect();
        json!({"summary": self.summary, "changes": changes})
    }

    /// The changeset of a manifest; its contents come from the store.
    ///
    /// # Errors
    /// When the manifest is not one, or a content is not in the store.
    pub fn from_manifest(manifest: &Json, store: &Store) -> Result<Changeset, Error> {
        let form: Manifest = Manifest::deserialize(manifest).map_err(|e| {
            ChangesetError::new(format!("the manifest cannot be read: {e}"), "give it as it was proposed")
        })?;
        let mut changes = Vec::with_capacity(form.changes.len());
        for (i, change) in form.changes.into_iter().enumerate() {
            let path = RelPath::parse(&change.file_path).map_err(|fault| {
                ChangesetError::new(format!("the path {fault}"), "name a file inside the workspace")
                    .at_change(i, &change.file_path)
            })?;
            let content = change.new_sha256.map(|digest| store.get(digest)).transpose()?;
            changes.push(Change { operation: change.operation, path, old_sha256: change.old_sha256, content });
        }
        Ok(Changeset::new(form.summary, changes)?)
    }

    /// What an approval is bound to: SHA-256 over the canonical JSON (RFC 8785) of the [`manifest`](Changeset::manifest). It is what
    /// the expression `digest(x)` gives for the manifest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of_json(&self.manifest())
    }

    /// The part of it that is accepted, which has a digest of its own.
    ///
    /// # Errors
    /// When a path is not in it, is named twice, or none is named.
    pub fn subset(&self, accepted: &[&str]) -> Result<Changeset, ChangesetError> {
        let mut wanted = BTreeSet::new();
        for path in accepted {
            if !wanted.insert(*path) {
                return Err(ChangesetError::new(format!("`{path}` is accepted twice"), "name each path once"));
            }
            if !self.changes.iter().any(|c| c.path.as_str() == *path) {
                let why = format!("`{path}` is accepted, but the changeset does not change it");
                return Err(ChangesetError::new(why, "name paths of the changeset"));
            }
        }
        let changes = self.changes.iter().filter(|c| wanted.contains(c.path.as_str()));
        Changeset::new(self.summary.clone(), changes.cloned().collect())
    }

    /// Fills in what the proposer was shown: the digest of each file that is modified or deleted. `shown` are the files of the
    /// approved bundle.
    ///
    /// # Errors
    /// When a change is to a file that was not shown, or that had other content.
    pub fn bind(mut self, shown: &BTreeMap<RelPath, Digest>) -> Result<Changeset, ChangesetError> {
        for (i, change) in self.changes.iter_mut().enumerate() {
            if change.operation == Operation::Create {
                continue;
            }
            let refuse = |why: String, help| Err(ChangesetError::new(why, help).at_change(i, change.path.as_str()));
            let Some(digest) = shown.get(&change.path) else {
                return refuse(
                    format!("it would {} a file that is not in the approved context", verb(change.operation)),
                    "change files that were read, or ask for this one to be put into the context",
                );
            };
            match change.old_sha256 {
                Some(old) if old != *digest => {
                    return refuse(
                        format!("`old_sha256` is {}, but the file that was read has {}", old.hex(), digest.hex()),
                        "copy it from the context, or leave it out",
                    );
                }
                _ => change.old_sha256 = Some(*digest),
            }
        }
        Ok(self)
    }
}

/// The canonical form, read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    summary: String,
    changes: Vec<ManifestChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestChange {
    operation: Operation,
    file_path: String,
    old_sha256: Option<Digest>,
    new_sha256: Option<Digest>,
    /// Follows from the content.
    #[serde(rename = "size")]
    _size: Option<u64>,
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Modify => "modify",
        Operation::Delete => "delete",
    }
}

fn manifest_of(change: &Change) -> Json {
    let mut out = serde_json::Map::new();
    out.insert("operation".into(), change.operation.as_str().into());
    out.insert("file_path".into(), change.path.as_str().into());
    if let Some(old) = change.old_sha256 {
        out.insert("old_sha256".into(), old.hex().into());
    }
    if let Some(content) = &change.content {
        out.insert("new_sha256".into(), Digest::of_bytes(content).hex().into());
        out.insert("size".into(), content.len().into());
    }
    Json::Object(out)
}

/// What is wrong with a summary.
pub(crate) fn summary_fault(summary: &str) -> Option<&'static str> {
    if summary.is_empty() {
        Some("the summary is empty")
    } else if summary.trim() != summary {
        Some("the summary begins or ends with a space")
    } else if summary.len() > MAX_SUMMARY_BYTES {
        Some("the summary is longer than 4,096 bytes")
    } else if summary.chars().any(misleading) {
        Some("the summary holds a line break, a control character or one that changes the direction of text")
    } else {
        None
    }
}

fn change_fault(change: &Change) -> Option<(&'static str, &'static str)> {
    match (change.operation, &change.content, change.old_sha256) {
        (Operation::Create, _, Some(_)) => Some(("CREATE has an `old_sha256`", "leave it out, or write MODIFY")),
        (Operation::Create | Operation::Modify, None, _) => {
            Some(("the new content is missing", "give the whole new content of the file"))
        }
        (Operation::Delete, Some(_), _) => Some(("DELETE has content", "leave the content out, or write MODIFY")),
        _ => None,
    }
}

/// No path twice, and no file that is a folder of another.
fn paths_fit(changes: &[Change]) -> Result<(), ChangesetError> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, change) in changes.iter().enumerate() {
        if let Some(first) = seen.insert(change.path.as_str(), i) {
            let why = format!("the same path as in change {}", first.saturating_add(1));
            return Err(ChangesetError::new(why, "write one change per file").at_change(i, change.path.as_str()));
        }
    }
    for (i, change) in changes.iter().enumerate() {
        if let Some((folder, file)) = change.path.folders().find_map(|f| Some((f, *seen.get(f)?))) {
            let why = format!("`{folder}` is a folder here and a file in change {}", file.saturating_add(1));
            return Err(ChangesetError::new(why, "change the one first and the other in a later changeset")
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
    fn the_digest_covers_what_is_done_to_which_file() {
        let digest = |changes| Changeset::new("s", changes).unwrap().digest();
        let old = Digest::of_bytes(b"old");
        let all = [
            digest(vec![Change::create(path("a"), "x")]),
            digest(vec![Change::create(path("b"), "x")]),
            digest(vec![Change::create(path("a"), "y")]),
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
    fn what_does_not_fit_together_is_refused() {
        let refused = |changes| Changeset::new("s", changes).unwrap_err().to_string();
        let (a, ab) = (path("a"), path("a/b"));
        assert_eq!(
            refused(vec![Change::create(a.clone(), ""), Change::delete(a.clone(), None)]),
            "change 2 (`a`): the same path as in change 1; write one change per file"
        );
        assert_eq!(
            refused(vec![Change::create(ab, ""), Change::delete(a.clone(), None)]),
            "change 1 (`a/b`): `a` is a folder here and a file in change 2; change the one first and the other in a later changeset"
        );
        let with =
            |operation, old, content| refused(vec![Change { operation, path: a.clone(), old_sha256: old, content }]);
        assert!(with(Operation::Create, Some(Digest::default()), Some(vec![])).contains("CREATE has an `old_sha256`"));
        assert!(with(Operation::Modify, None, None).contains("the new content is missing"));
        assert!(with(Operation::Delete, None, Some(vec![])).contains("DELETE has content"));
        assert!(refused(vec![]).contains("no change"));
        assert!(Changeset::new("a\nb", vec![Change::create(a, "")]).is_err());
    }

    #[test]
    fn only_what_was_read_is_changed() {
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
