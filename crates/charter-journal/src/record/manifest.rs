//! The manifest of a run: the files of its charter's folder that its actors name, and the models
//! that they ask.

use std::collections::{BTreeMap, BTreeSet};

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The files of a charter's folder that a run may use, by their path in the folder, each with the
/// SHA-256 of its bytes. Their bytes are blobs of the journal. Where the folder is does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `files`, `programs`, `folders`, `models`")]
pub struct Manifest {
    /// Files that the run reads from the journal: prompts, scripted answers, skills.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
    /// Files that commands use in place: programs, and files among their arguments. They must still
    /// have this digest when a command starts. A file that a command names and that is not among
    /// them did not exist when the run started, and must not exist then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, Digest>,
    /// Folders among the arguments of commands: all files in them are in `programs`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub folders: BTreeSet<String>,
    /// The models that each actor asked when the run started, by its name: each as
    /// `PROVIDER:NAME at ADDRESS`, the first one first. Actors that are not here had none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Vec<String>>,
}

impl Manifest {
    /// Whether the run uses no file and asks no model.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.programs.is_empty() && self.folders.is_empty() && self.models.is_empty()
    }

    /// All files with their digests.
    pub fn all(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.files.iter().chain(&self.programs).map(|(path, digest)| (path.as_str(), *digest))
    }

    /// The digest that names what a run of `charter` with these files does: SHA-256 of the
    /// canonical JSON `{"charter", "files", "programs"}`, with `folders` and `models` if there are
    /// any.
    #[must_use]
    pub fn digest(&self, charter: Digest) -> Digest {
        let mut named = json!({"charter": charter, "files": self.files, "programs": self.programs});
        let further = [
            ("folders", self.folders.is_empty(), json!(self.folders)),
            ("models", self.models.is_empty(), json!(self.models)),
        ];
        for (key, _, value) in further.into_iter().filter(|(_, empty, _)| !empty) {
            if let Some(named) = named.as_object_mut() {
                named.insert(key.into(), value);
            }
        }
        Digest::of_json(&named)
    }
}
