//! An open workspace: locked and recovered, with its state kept in the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use charter_kernel::Digest;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::dir::{Dir, Node, escape};
use crate::error::{Context as _, Error};
use crate::path::{RelPath, STAGE};
use crate::place::FolderIdentity;
use crate::recover::ApplyRecovery;
use crate::store::{self, Store, Within};
use crate::watch::Watch;

/// A folder that one run uses. While it is open, no other run or process can open it. Opening it
/// finishes or undoes an interrupted apply.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) root: Dir,
    pub(crate) path: PathBuf,
    pub(crate) store: Store,
    /// The state of this workspace, a folder in the store.
    pub(crate) state: PathBuf,
    /// The journal, if it is inside.
    pub(crate) journal: Option<Within>,
    recovery: ApplyRecovery,
}

/// The state of a path, as far as an apply can change or restore it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PathState {
    Absent,
    File {
        sha256: Digest,
        mode: u32,
        /// User and group.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
    },
    Link {
        target: String,
    },
}

impl PathState {
    /// Whether the content is the same; permissions are ignored.
    pub(crate) fn same(&self, other: &PathState) -> bool {
        match (self, other) {
            (PathState::File { sha256: a, .. }, PathState::File { sha256: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }
}

/// The mark of a failed restore.
#[derive(Debug, Serialize, Deserialize)]
struct DirtyMark {
    reason: String,
}

/// Identifies who holds the lock; used only in messages.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    holder: String,
}

impl Workspace {
    /// Opens a folder for `holder` (a run), locks it, and finishes or undoes an interrupted apply.
    /// Its state is kept in the store. If the store is inside the folder, then it and the journal
    /// beside it do not belong to the workspace: they are neither listed nor read, copied or
    /// changed.
    ///
    /// # Errors
    /// [`Error::Locked`] if another run or process has it open, [`Error::Interrupted`] if an apply
    /// with another store was interrupted in it. A failed recovery is not an error here: it leaves
    /// the workspace [dirty](Workspace::dirty).
    pub fn open(path: &Path, store: &Store, holder: &str, watch: &mut dyn Watch) -> Result<Workspace, Error> {
        let shown = path.display().to_string();
        let path = path.canonicalize().context(|| format!("open the workspace `{shown}`"))?;
        let root = Dir::root(&path)?;
        let journal = store.within(&path);
        let state = state(&path, store);
        store::create_folder(&state.join("done"))?;
        match rustix::fs::flock(root.handle(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = store::read_json::<Holder>(&state, "holder.json").ok().flatten();
                return Err(Error::Locked { path: shown, holder: holder.map(|h| h.holder) });
            }
            Err(e) => return Err(e).context(|| format!("lock the workspace `{shown}`")),
        }
        // This file is for messages and for `last_holder`.
        let _ = fs::write(state.join("holder.json"), serde_json::json!({"holder": holder}).to_string());
        let mut workspace =
            Workspace { root, path, store: store.clone(), state, journal, recovery: ApplyRecovery::Nothing };
        workspace.recovery = workspace.recover(watch)?;
        Ok(workspace)
    }

    /// Returns the run for which this store last opened the folder, if known. A host that reserves
    /// a folder for a run while the folder is not open (the run waits for a person, and its process
    /// has ended) checks this first.
    #[must_use]
    pub fn last_holder(path: &Path, store: &Store) -> Option<String> {
        let state = state(&path.canonicalize().ok()?, store);
        let holder = store::read_json::<Holder>(&state, "holder.json");
        holder.ok().flatten().map(|h| h.holder)
    }

    /// The folder, with links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which folder this is.
    ///
    /// # Errors
    /// The folder cannot be found any more.
    pub fn identity(&self) -> Result<FolderIdentity, Error> {
        FolderIdentity::of(&self.path)
    }

    /// Fails unless the open folder is this one. It was opened once; its path may lead elsewhere.
    ///
    /// # Errors
    /// [`Error::Replaced`] if it is another one.
    pub fn expect_identity(&self, expected: &FolderIdentity) -> Result<(), Error> {
        expected.find()?;
        let (device, inode) = self.root.identity()?;
        if (device.to_string(), inode.to_string()) != (expected.device.clone(), expected.inode.clone()) {
            let why = "another folder was open in its place".into();
            return Err(Error::Replaced { path: expected.path.clone(), why });
        }
        Ok(())
    }

    /// The store of the workspace.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What was recovered when the workspace was opened.
    #[must_use]
    pub fn recovery(&self) -> &ApplyRecovery {
        &self.recovery
    }

    /// Returns why the workspace is dirty: why a restore failed, if one did.
    ///
    /// # Errors
    /// The mark cannot be read.
    pub fn dirty(&self) -> Result<Option<String>, Error> {
        Ok(store::read_json::<DirtyMark>(&self.state, "dirty.json")?.map(|mark| mark.reason))
    }

    /// Fails if the workspace is dirty.
    pub(crate) fn ensure_clean(&self) -> Result<(), Error> {
        match self.dirty()? {
            Some(reason) => Err(Error::Dirty(reason)),
            None => Ok(()),
        }
    }

    pub(crate) fn mark_dirty(&self, reason: &str, watch: &mut dyn Watch) -> Result<(), Error> {
        store::write_json(&self.state, "dirty.json", &DirtyMark { reason: reason.to_owned() }, watch)
    }

    /// Clears the mark after a person has inspected the workspace. The workspace does not change.
    /// Files that an apply had set aside are kept in the store; returns their names and digests.
    ///
    /// # Errors
    /// A file cannot be kept or removed.
    pub fn clear_dirty(&self, watch: &mut dyn Watch) -> Result<BTreeMap<String, Digest>, Error> {
        let mut kept = BTreeMap::new();
        if let Some(stage) = self.stage()? {
            for name in stage.names(STAGE)?.0 {
                if matches!(stage.node(&name, &name)?, Node::File { .. }) {
                    let (bytes, _) = stage.read(&name, &name, MAX_FILE_BYTES)?;
                    kept.insert(name, self.store.put(&bytes, watch)?);
                }
            }
            self.remove_stage(watch)?;
        }
        store::remove(&self.state, "intent.json", watch)?;
        store::remove(&self.state, "dirty.json", watch)?;
        Ok(kept)
    }

    /// Returns the state of a path: absent, a file with its digest, or a link. Anything else is an
    /// error.
    pub(crate) fn look(&self, path: &RelPath) -> Result<PathState, Error> {
        self.is_content(path)?;
        match self.root.parent(path)? {
            Some((dir, name)) => look(&dir, name, path.as_str()),
            None => Ok(PathState::Absent),
        }
    }

    /// Fails for a path of the journal, which is no content of the workspace.
    pub(crate) fn is_content(&self, path: &RelPath) -> Result<(), Error> {
        match self.journal.as_ref().is_some_and(|journal| journal.has(path.as_str())) {
            true => Err(escape(path.as_str(), "belongs to the journal of the run, which no agent reads or changes")),
            false => Ok(()),
        }
    }

    /// Opens the folder in which an apply stages its files, if it exists.
    pub(crate) fn stage(&self) -> Result<Option<Dir>, Error> {
        self.root.enter(STAGE, STAGE)
    }

    /// Removes the staging folder with its content.
    pub(crate) fn remove_stage(&self, watch: &mut dyn Watch) -> Result<(), Error> {
        let Some(stage) = self.stage()? else {
            return Ok(());
        };
        for name in stage.names(STAGE)?.0 {
            watch.before("remove", &name).context(|| format!("remove `{STAGE}/{name}`"))?;
            stage.remove(&name, &name)?;
        }
        watch.before("remove", STAGE).context(|| format!("remove `{STAGE}`"))?;
        self.root.remove_empty(STAGE, STAGE)?;
        self.root.sync()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Closing the handle is not enough: a process that another thread is just starting briefly
        // holds a copy of it.
        let _ = rustix::fs::flock(self.root.handle(), FlockOperation::Unlock);
    }
}

/// Maximum size of a file that is read as a whole, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

/// Returns the folder in which the state of a workspace is kept.
fn state(path: &Path, store: &Store) -> PathBuf {
    let id = Digest::of_bytes(path.as_os_str().as_encoded_bytes()).hex();
    let folders = store.folder().join("workspaces");
    folders.join(id.get(..32).unwrap_or(&id))
}

/// Returns the state of a name in a folder.
pub(crate) fn look(dir: &Dir, name: &str, path: &str) -> Result<PathState, Error> {
    match dir.node(name, path)? {
        Node::Absent => Ok(PathState::Absent),
        Node::File { mode, owner, .. } => {
            Ok(PathState::File { sha256: dir.digest(name, path)?, mode, owner: Some(owner) })
        }
        Node::Link { target } => Ok(PathState::Link { target }),
        other => Err(escape(path, &format!("is {}; a changeset can change regular files only", other.describe()))),
    }
}
