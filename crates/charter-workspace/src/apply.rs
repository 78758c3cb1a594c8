//! Applies an approved changeset, all or nothing: checks it, makes a checkpoint, verifies the
//! changes in a copy, stages the files, and switches them in.
//!
//! The order of writes makes an apply atomic. Before the first file of the workspace is touched,
//! the store holds the old state (the checkpoint) and the planned one (the intent). After the last
//! file is in place and synced, renaming the intent commits the apply. If the apply is interrupted
//! at any point, [`recover`](crate::recover) undoes or finishes it.

use std::collections::BTreeSet;

use charter_kernel::Digest;
use serde_json::json;

use crate::changeset::{Change, Changeset, Operation};
use crate::dir::Dir;
use crate::error::{Context as _, Error};
use crate::intent::{Applied, Checkpoint, Intent, Phase, Planned, plan};
use crate::path::STAGE;
use crate::recover::ApplyRecovery;
use crate::store;
use crate::verify::VerifyCommand;
use crate::watch::Watch;
use crate::workspace::{MAX_FILE_BYTES, PathState, Workspace, look};

/// The approval of a changeset. The host reads it from the record of the approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesetApproval {
    /// Digest of the changeset that was approved.
    pub changeset: Digest,
    /// The person who approved it.
    pub approver: String,
    /// Who proposed it.
    pub proposer: String,
}

/// A request to apply a changeset.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// Idempotency key: a second apply with the same key returns the first result and does nothing.
    pub key: &'a str,
    /// The changeset.
    pub changeset: &'a Changeset,
    /// The approval of exactly this changeset.
    pub approval: &'a ChangesetApproval,
    /// The command that must accept the changed files, if any.
    pub verify: Option<&'a VerifyCommand>,
}

/// The steps of an operation. Each is announced to the observer, which can stop the operation until
/// the switch is complete.
pub(crate) struct Step<'w> {
    pub(crate) watch: &'w mut dyn Watch,
    pub(crate) stoppable: bool,
}

impl Step<'_> {
    /// Announces a write. Fails if the observer stops the operation.
    pub(crate) fn announce(&mut self, what: &'static str, path: &str) -> Result<(), Error> {
        if self.stoppable && self.watch.stopped() {
            return Err(Error::Stopped(format!("cancelled before {what} `{path}`")));
        }
        self.watch.before(what, path).context(|| format!("{what} `{path}`"))
    }
}

impl Workspace {
    /// Applies an approved changeset. If it returns an error, the workspace is unchanged, unless
    /// the error is [`Error::Dirty`].
    ///
    /// # Errors
    /// [`Error::Unapproved`] without an approval of exactly this changeset by somebody other than
    /// its proposer; [`Error::Conflict`] if a file is not as expected; [`Error::Verify`] if the
    /// command rejects the changes; and errors of the operating system.
    pub fn apply(&self, order: ApplyRequest<'_>, watch: &mut dyn Watch) -> Result<Applied, Error> {
        self.ensure_clean()?;
        let digest = order.changeset.digest();
        approved(order.approval, digest)?;
        if let Some(applied) = self.applied(order.key)? {
            return match applied {
                applied if applied.changeset != digest => Err(Error::Unapproved(format!(
                    "the key `{}` was already used to apply the changeset {}",
                    order.key, applied.changeset
                ))),
                applied if applied.undone => {
                    Err(Error::Stopped(format!("`{}` was rolled back and cannot be applied again", order.key)))
                }
                applied => Ok(applied),
            };
        }
        // Recover from an earlier apply whose last step or rollback failed.
        self.recover_now(watch)?;
        let olds = self.expect_all(order.changeset)?;
        let mut step = Step { watch, stoppable: true };
        let (paths, folders) = (plan(order.changeset, &olds), self.missing_folders(order.changeset)?);
        let plan = Checkpoint { paths, folders };
        let checkpoint = self.checkpoint(&plan, &mut step)?;
        let verification = match order.verify {
            Some(verify) => Some(self.verify_in_copy(order.changeset, &olds, verify, step.watch)?),
            None => None,
        };
        // Somebody may have changed a file meanwhile: then nothing is touched.
        if self.expect_all(order.changeset)? != olds {
            return Err(Error::Conflict {
                path: order.changeset.changes().iter().map(|c| c.path.as_str()).collect::<Vec<_>>().join("`, `"),
                why: "changed while it was verified".into(),
            });
        }
        let changes = order.changeset.changes().iter();
        let applied = Applied {
            key: order.key.to_owned(),
            changeset: digest,
            approver: order.approval.approver.clone(),
            proposer: order.approval.proposer.clone(),
            checkpoint,
            changed: changes.map(|c| (c.path.as_str().to_owned(), c.operation)).collect(),
            verification,
            undone: false,
        };
        let intent =
            Intent { v: 1, phase: Phase::Staging, undoing: false, applied, paths: plan.paths, folders: plan.folders };
        match self.stage_and_switch(order.changeset, intent, &mut step) {
            Ok(applied) => Ok(applied),
            Err(error) => self.recover_from(order.key, error, watch),
        }
    }

    /// Recovers after a failure. If everything was restored, returns the error; if all files were
    /// already in place, returns the result.
    fn recover_from(&self, key: &str, error: Error, watch: &mut dyn Watch) -> Result<Applied, Error> {
        match self.recover_now(watch) {
            Ok(ApplyRecovery::Finished { .. }) => self.applied(key)?.ok_or(error),
            Ok(_) => Err(error),
            Err(undo) => {
                let reason = format!("{error}; and undoing it failed: {undo}");
                // If even the mark cannot be written, the intent still exists and the next start
                // tries again.
                let _ = self.mark_dirty(&reason, watch);
                Err(Error::Dirty(reason))
            }
        }
    }

    fn stage_and_switch(
        &self,
        changeset: &Changeset,
        mut intent: Intent,
        step: &mut Step<'_>,
    ) -> Result<Applied, Error> {
        self.write_intent(&intent, step.watch)?;
        let stage = self.create_stage(step)?;
        for (i, (change, planned)) in changeset.changes().iter().zip(&intent.paths).enumerate() {
            if let (Some(content), PathState::File { mode, owner, .. }) = (&change.content, &planned.new) {
                step.announce("write", change.path.as_str())?;
                stage.write_new(&format!("new-{i}"), content, *mode, *owner, change.path.as_str())?;
            }
        }
        step.announce("sync", STAGE)?;
        stage.sync()?;
        self.root.sync()?;
        intent.phase = Phase::Switching;
        self.write_intent(&intent, step.watch)?;
        self.create_folders(&intent.folders, step)?;
        for (i, planned) in intent.paths.iter().enumerate() {
            self.switch(&stage, i, planned, step)?;
        }
        intent.phase = Phase::Done;
        self.write_intent(&intent, step.watch)?;
        // The apply is committed now, even if a later step fails.
        step.stoppable = false;
        self.finish(&intent, step.watch)?;
        Ok(intent.applied)
    }

    /// Creates the staging folder, on the same file system, so that files can be moved into place.
    pub(crate) fn create_stage(&self, step: &mut Step<'_>) -> Result<Dir, Error> {
        step.announce("make", STAGE)?;
        self.root.create_folder(STAGE, STAGE)?;
        let stage = self.stage()?.ok_or_else(|| Error::Damaged(format!("`{STAGE}` no longer exists")))?;
        step.announce("write", "origin")?;
        stage.remove("origin", STAGE)?;
        stage.write_new("origin", self.store.folder().as_os_str().as_encoded_bytes(), 0o600, None, STAGE)?;
        Ok(stage)
    }

    fn create_folders(&self, folders: &[String], step: &mut Step<'_>) -> Result<(), Error> {
        for folder in folders {
            // `parent` resolves the enclosing folder; the name itself does not have to exist.
            let below =
                crate::path::RelPath::parse(folder).map_err(|fault| Error::Damaged(format!("`{folder}` {fault}")))?;
            let gone = || Error::Conflict {
                path: folder.clone(),
                why: "cannot be created: its parent folder no longer exists".into(),
            };
            let (parent, name) = self.root.parent(&below)?.ok_or_else(gone)?;
            step.announce("make", folder)?;
            parent.create_folder(name, folder)?;
            parent.sync()?;
        }
        Ok(())
    }

    /// Moves one file into place, then checks the file that it replaced. If that is not the
    /// expected file, the move is reverted.
    fn switch(&self, stage: &Dir, i: usize, planned: &Planned, step: &mut Step<'_>) -> Result<(), Error> {
        let path = planned.path()?;
        let shown = path.as_str();
        let conflict = |why: &str| Err(Error::Conflict { path: shown.to_owned(), why: why.to_owned() });
        let Some((parent, name)) = self.root.parent(&path)? else {
            return conflict("no longer exists: its folder is missing");
        };
        let (new, old) = (format!("new-{i}"), format!("old-{i}"));
        step.announce("rename", shown)?;
        match planned.operation {
            Operation::Create => {
                if !stage.move_new(&new, &parent, name, shown)? {
                    return conflict("was created by another program, but should be created by this changeset");
                }
            }
            Operation::Modify if stage.exchange(&new, &parent, name, shown)? => {
                if !is(stage, &new, &planned.old) {
                    stage.exchange(&new, &parent, name, shown)?;
                    return conflict("has changed since the changeset was approved");
                }
            }
            Operation::Modify | Operation::Delete => {
                parent.move_over(name, stage, &old, shown)?;
                if !is(stage, &old, &planned.old) {
                    stage.move_new(&old, &parent, name, shown)?;
                    return conflict("has changed since the changeset was approved");
                }
                if planned.operation == Operation::Modify {
                    step.announce("rename", shown)?;
                    if !stage.move_new(&new, &parent, name, shown)? {
                        return conflict("was written by another program at the same time");
                    }
                }
            }
        }
        step.announce("sync", shown)?;
        parent.sync()
    }

    /// Checks that every file is as the changeset expects it.
    fn expect_all(&self, changeset: &Changeset) -> Result<Vec<PathState>, Error> {
        changeset.changes().iter().map(|change| self.expect(change)).collect()
    }

    fn expect(&self, change: &Change) -> Result<PathState, Error> {
        let now = self.look(&change.path)?;
        let conflict = |why: String| Err(Error::Conflict { path: change.path.as_str().to_owned(), why });
        match (change.operation, &now) {
            (Operation::Create, PathState::Absent) | (Operation::Delete, PathState::Link { .. })
                if change.old_sha256.is_none() =>
            {
                Ok(now)
            }
            (Operation::Create, _) => conflict("already exists, but should be created".into()),
            (Operation::Modify | Operation::Delete, PathState::Absent) => conflict("does not exist".into()),
            (Operation::Modify | Operation::Delete, PathState::Link { .. }) => {
                conflict("is a symbolic link, not the file that was read".into())
            }
            (Operation::Modify, _) if change.old_sha256.is_none() => {
                conflict("should be modified, but the changeset does not name its old content (`old_sha256`)".into())
            }
            (Operation::Modify | Operation::Delete, PathState::File { sha256, .. }) => match change.old_sha256 {
                Some(old) if old != *sha256 => conflict(format!(
                    "has changed: the changeset expects the content {}, found {}",
                    old.hex(),
                    sha256.hex()
                )),
                _ => Ok(now),
            },
        }
    }

    /// Stores the state of every path, including absence. Returns the digest of the checkpoint.
    fn checkpoint(&self, plan: &Checkpoint, step: &mut Step<'_>) -> Result<Digest, Error> {
        for planned in &plan.paths {
            let PathState::File { sha256, .. } = planned.old else {
                continue;
            };
            let conflict = |why: &str| Error::Conflict { path: planned.path.clone(), why: why.to_owned() };
            let path = planned.path()?;
            let (parent, name) = self.root.parent(&path)?.ok_or_else(|| conflict("no longer exists"))?;
            let (bytes, _) = parent.read(name, path.as_str(), MAX_FILE_BYTES)?;
            step.announce("keep", path.as_str())?;
            if self.store.put(&bytes, step.watch)? != sha256 {
                return Err(conflict("changed while it was read"));
            }
        }
        let text = charter_kernel::digest::canonical(&json!(plan));
        self.store.put(text.as_bytes(), step.watch)
    }

    /// Lists the missing folders that new files need, outermost first.
    fn missing_folders(&self, changeset: &Changeset) -> Result<Vec<String>, Error> {
        let mut missing = BTreeSet::new();
        for change in changeset.changes().iter().filter(|c| c.operation == Operation::Create) {
            let mut dir = Some(self.root.again()?);
            for (folder, name) in change.path.folders().zip(change.path.split().0) {
                dir = match dir {
                    Some(dir) => dir.enter(name, change.path.as_str())?,
                    None => None,
                };
                if dir.is_none() {
                    missing.insert(folder.to_owned());
                }
            }
        }
        Ok(missing.into_iter().collect())
    }

    /// Stores the result of an apply and removes its temporary files. Idempotent.
    pub(crate) fn finish(&self, intent: &Intent, watch: &mut dyn Watch) -> Result<(), Error> {
        self.write_applied(&intent.applied, watch)?;
        self.remove_stage(watch)?;
        store::remove(&self.state, "intent.json", watch)
    }
}

/// Whether the file at a name is the expected one; `false` if it cannot be inspected.
pub(crate) fn is(dir: &Dir, name: &str, expected: &PathState) -> bool {
    look(dir, name, name).is_ok_and(|now| now.same(expected))
}

/// Checks that the approval is for exactly this changeset, by someone other than its proposer.
fn approved(approval: &ChangesetApproval, digest: Digest) -> Result<(), Error> {
    if approval.changeset != digest {
        return Err(Error::Unapproved(format!(
            "the approval is for {}, but the changeset is {digest}",
            approval.changeset
        )));
    }
    if approval.approver.is_empty() || is_same(&approval.approver, &approval.proposer) {
        return Err(Error::Unapproved(format!("`{}` proposed the changeset and cannot approve it", approval.proposer)));
    }
    Ok(())
}

/// Whether two ids name the same principal, however they are written: `model:propose` is the actor
/// `propose`, and so is `Propose `.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |id: &str| {
        let seen: String = id.chars().filter(|c| !crate::path::misleading(*c)).collect();
        let name = seen.rsplit_once(':').map_or(seen.as_str(), |(_, name)| name);
        name.trim().to_lowercase()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::{Folder, image};
    use crate::watch::Unwatched;

    /// On a file system without atomic exchange the result is the same, also after an interruption.
    #[test]
    fn without_exchange() {
        struct Stop(usize);
        impl Watch for Stop {
            fn before(&mut self, _: &'static str, _: &str) -> std::io::Result<()> {
                self.0 = self.0.wrapping_sub(1);
                if self.0 == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
            }
        }
        for n in 0..60 {
            let folder = Folder::new();
            let before = image(&folder.workspace);
            let changeset = folder.changeset();
            let approval =
                ChangesetApproval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
            let order = ApplyRequest { key: "k", changeset: &changeset, approval: &approval, verify: None };
            let mut workspace = folder.open(&mut Unwatched).unwrap();
            workspace.root.without_exchange();
            match workspace.apply(order, &mut Stop(n)) {
                Ok(_) => assert_eq!(image(&folder.workspace), folder.after(), "stopped at {n}"),
                Err(_) => assert_eq!(image(&folder.workspace), before, "stopped at {n}"),
            }
            workspace.roll_back("k", &mut Unwatched).unwrap();
            assert_eq!(image(&folder.workspace), before);
        }
    }
}
