//! The manifest of a run: the files of its charter's folder that its actors name.

use std::collections::BTreeMap;

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The files of a charter's folder that a run may use, by their path in the folder, each with the
/// SHA-256 of its bytes. Their bytes are blobs of the journal. Where the folder is does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `files`, `programs`")]
pub struct Manifest {
    /// Files that the run reads from the journal: prompts, scripted answers, skills.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
    /// Files that commands use in place: programs, and files among their arguments. They must still
    /// have this digest when a command starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, Digest>,
}

impl Manifest {
    /// Whether the run uses no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.programs.is_empty()
    }

    /// All files with their digests.
    pub fn all(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.files.iter().chain(&self.programs).map(|(path, digest)| (path.as_str(), *digest))
    }

    /// The digest that names what a run of `charter` with these files does: SHA-256 of the
    /// canonical JSON `{"charter", "files", "programs"}`.
    #[must_use]
    pub fn digest(&self, charter: Digest) -> Digest {
        Digest::of_json(&json!({"charter": charter, "files": self.files, "programs": self.programs}))
    }
}
