//! What an apply is about to do, written down before it does it, and what it did.

use std::collections::BTreeMap;

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};

use crate::changeset::{Changeset, Operation};
use crate::error::Error;
use crate::path::RelPath;
use crate::store;
use crate::verify::Verification;
use crate::watch::Watch;
use crate::workspace::{PathState, Workspace};

/// How far an apply has come. Only `Switching` has touched a file of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// New contents are written beside the workspace's files.
    Staging,
    /// They are put in place: undone if interrupted.
    Switching,
    /// All of them are in place: finished if interrupted.
    Done,
}

/// The intent of an apply (or of a roll-back: then in `Switching` from the beginning). There is at most one per workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) v: u32,
    pub(crate) phase: Phase,
    /// What a roll-back undoes is marked as undone.
    pub(crate) undoing: bool,
    pub(crate) applied: Applied,
    pub(crate) paths: Vec<Planned>,
    /// Folders that are made for new files, from the outside in.
    pub(crate) folders: Vec<String>,
}

/// One path of an intent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) operation: Operation,
    pub(crate) path: String,
    pub(crate) old: PathState,
    pub(crate) new: PathState,
}

/// What was there before an apply, and what it makes of it; the old contents are in the store by their digests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) paths: Vec<Planned>,
    pub(crate) folders: Vec<String>,
}

/// That a changeset was applied: by whose approval, what it replaced, how it was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// What the caller calls this apply. An apply that is asked for again under the same key is answered from here.
    pub key: String,
    /// Digest of the changeset.
    pub changeset: Digest,
    /// Who approved it.
    pub approver: String,
    /// Who proposed it.
    pub proposer: String,
    /// Digest of the checkpoint: what was there before, in the store.
    pub checkpoint: Digest,
    /// The files, and what was done to each.
    pub changed: BTreeMap<String, Operation>,
    /// What the `verify` command said, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Whether it was rolled back since.
    #[serde(default)]
    pub undone: bool,
}

/// Name of the file that says what became of an apply.
fn done_name(key: &str) -> String {
    format!("{}.json", Digest::of_bytes(key.as_bytes()).hex())
}

impl Workspace {
    pub(crate) fn write_intent(&self, intent: &Intent, watch: &mut dyn Watch) -> Result<(), Error> {
        store::write_json(&self.state, "intent.json", intent, watch)
    }

    pub(crate) fn read_intent(&self) -> Result<Option<Intent>, Error> {
        let intent: Option<Intent> = store::read_json(&self.state, "intent.json")?;
        match intent {
            Some(i) if i.v != 1 => {
                Err(Error::Damaged(format!("the intent is of version {}, this program reads 1", i.v)))
            }
            intent => Ok(intent),
        }
    }

    /// What became of the apply of that key: nothing if it was never finished.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn applied(&self, key: &str) -> Result<Option<Applied>, Error> {
        store::read_json(&self.state.join("done"), &done_name(key))
    }

    pub(crate) fn write_applied(&self, applied: &Applied, watch: &mut dyn Watch) -> Result<(), Error> {
        store::write_json(&self.state.join("done"), &done_name(&applied.key), applied, watch)
    }
}

impl Planned {
    pub(crate) fn path(&self) -> Result<RelPath, Error> {
        RelPath::parse(&self.path)
            .map_err(|fault| Error::Damaged(format!("the intent names `{}`, which {fault}", self.path)))
    }
}

/// What each path becomes.
pub(crate) fn plan(changeset: &Changeset, olds: &[PathState]) -> Vec<Planned> {
    let pairs = changeset.changes().iter().zip(olds);
    pairs
        .map(|(change, old)| Planned {
            operation: change.operation,
            path: change.path.as_str().to_owned(),
            old: old.clone(),
            new: match &change.content {
                None => PathState::Absent,
                Some(content) => PathState::File {
                    sha256: Digest::of_bytes(content),
                    // New content has the permissions of the old; bits that give somebody's rights away are not handed on.
                    mode: if let PathState::File { mode, .. } = old { mode & 0o777 } else { 0o644 },
                },
            },
        })
        .collect()
}
