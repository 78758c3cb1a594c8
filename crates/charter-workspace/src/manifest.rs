//! The manifest of a changeset: its canonical form, with digests in place of contents.

use charter_kernel::Digest;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::changeset::{Change, Changeset, Operation};
use crate::error::{ChangesetError, Error};
use crate::path::RelPath;
use crate::store::Store;

impl Changeset {
    /// Returns the canonical form as a value: operations, paths, sizes, and digests in place of
    /// contents, so that it is small enough for the context of a run. Two changesets with the same
    /// manifest change the same files in the same way.
    #[must_use]
    pub fn manifest(&self) -> Json {
        let changes: Vec<Json> = self.changes().iter().map(manifest_of).collect();
        json!({"summary": self.summary(), "changes": changes})
    }

    /// Restores a changeset from its manifest; the contents come from the store.
    ///
    /// # Errors
    /// The manifest is invalid, or content that it names is not in the store.
    pub fn from_manifest(manifest: &Json, store: &Store) -> Result<Changeset, Error> {
        let form: Manifest = Manifest::deserialize(manifest).map_err(|e| {
            ChangesetError::new(format!("invalid manifest: {e}"), "pass the manifest as it was proposed")
        })?;
        let mut changes = Vec::with_capacity(form.changes.len());
        for (i, change) in form.changes.into_iter().enumerate() {
            let path = RelPath::parse(&change.file_path).map_err(|fault| {
                ChangesetError::new(format!("the path {fault}"), "name a file inside the workspace")
                    .at_change(i, &change.file_path)
            })?;
            let content = change.new_sha256.map(|digest| store.get(digest)).transpose()?;
            let (operation, old_sha256, executable) = (change.operation, change.old_sha256, change.executable);
            changes.push(Change { operation, path, old_sha256, content, executable });
        }
        Ok(Changeset::new(form.summary, changes)?)
    }
}

/// The canonical form, as deserialized.
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
    /// Redundant: derived from the content.
    #[serde(rename = "size")]
    _size: Option<u64>,
    executable: Option<bool>,
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
    if let Some(executable) = change.executable {
        out.insert("executable".into(), executable.into());
    }
    Json::Object(out)
}
