//! The write-ahead intent of an apply, and its result.

use std::collections::BTreeMap;

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};

use crate::changeset::{Change, Changeset, Operation};
use crate::error::Error;
use crate::path::RelPath;
use crate::store;
use crate::verify::Verification;
use crate::watch::Watch;
use crate::workspace::{PathState, Workspace};

/// The progress of an apply. Before `Switching`, no file of the workspace is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// New contents are being written to the staging folder.
    Staging,
    /// Files are being moved into place; undone if interrupted.
    Switching,
    /// All files are in place; finished if interrupted.
    Done,
}

/// The intent of an apply, or of a rollback, which starts in `Switching`. There is at most one per
/// workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) v: u32,
    pub(crate) phase: Phase,
    /// Whether this is a rollback, after which the apply is marked as undone.
    pub(crate) undoing: bool,
    pub(crate) applied: Applied,
    pub(crate) paths: Vec<Planned>,
    /// Folders created for new files, outermost first.
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

/// The state of each path before and after an apply; the old contents are in the store by digest.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) paths: Vec<Planned>,
    pub(crate) folders: Vec<String>,
}

/// The result of an apply: who approved it, what it replaced, how it was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// The caller's key, under which a second apply returns this result.
    pub key: String,
    /// Digest of the changeset.
    pub changeset: Digest,
    /// Who approved it.
    pub approver: String,
    /// Who proposed it.
    pub proposer: String,
    /// Digest of the checkpoint (the old state) in the store.
    pub checkpoint: Digest,
    /// The changed files and their operations.
    pub changed: BTreeMap<String, Operation>,
    /// The result of the `verify` command, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Whether the apply has been rolled back since.
    #[serde(default)]
    pub undone: bool,
}

/// Name of the file with the result of an apply.
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
                Err(Error::Damaged(format!("the intent has version {}; this program supports version 1", i.v)))
            }
            intent => Ok(intent),
        }
    }

    /// Returns the result of the apply with that key; `None` if it was never finished.
    ///
    /// # Errors
    /// The store cannot be read.
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

/// The mode of a file after a change: the old one, or that of a new file, with what the change says
/// about executing it. Who may read the file may then execute it, too.
pub(crate) fn new_mode(change: &Change, old: &PathState) -> u32 {
    let mode = if let PathState::File { mode, .. } = old { *mode } else { 0o644 };
    match change.executable {
        None => mode,
        Some(true) => mode | ((mode & 0o444) >> 2),
        // The set-user-id and set-group-id bits mean nothing without it.
        Some(false) => mode & !0o6111,
    }
}

/// Plans the new state of each path.
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
                    mode: new_mode(change, old),
                    owner: if let PathState::File { owner, .. } = old { *owner } else { None },
                },
            },
        })
        .collect()
}
