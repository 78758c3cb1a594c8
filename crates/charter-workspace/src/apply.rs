//! Applies an approved changeset: check, checkpoint, verify in a copy, stage, switch. All of it or nothing.
//!
//! The order of writes is the whole point. Before the first file of the workspace is touched, the store holds what was there (the
//! checkpoint) and what is intended (the intent); after the last one is in place and on the disk, one rename of the intent makes it
//! so. Interrupted anywhere, [`recover`](crate::recover) undoes or finishes it.

use std::collections::{BTreeMap, BTreeSet};

use charter_kernel::Digest;
use serde_json::json;

use crate::changeset::{Change, Changeset, Operation};
use crate::dir::Dir;
use crate::error::{Context as _, Error};
use crate::intent::{Applied, Checkpoint, Intent, Phase, Planned, plan};
use crate::path::STAGE;
use crate::recover::Recovery;
use crate::store;
use crate::verify::{Verification, VerifyCommand};
use crate::watch::Watch;
use crate::workspace::{MAX_FILE_BYTES, PathState, Workspace, look};

/// Who approved which changeset. The host takes it from the record of the approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Digest of the changeset that was approved.
    pub changeset: Digest,
    /// The person who approved it.
    pub approver: String,
    /// Who proposed it.
    pub proposer: String,
}

/// What an apply is asked to do.
#[derive(Debug, Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// Names this apply: asked for again under the same key, the first answer is given and nothing is done.
    pub key: &'a str,
    /// The changeset.
    pub changeset: &'a Changeset,
    /// The approval of exactly this changeset.
    pub approval: &'a Approval,
    /// The command that must accept the changed files, if there is one.
    pub verify: Option<&'a VerifyCommand>,
}

/// Work under watch; it may be stopped until the switch is made.
pub(crate) struct Step<'w> {
    pub(crate) watch: &'w mut dyn Watch,
    pub(crate) stoppable: bool,
}

impl Step<'_> {
    /// About to write.
    pub(crate) fn about(&mut self, what: &'static str, path: &str) -> Result<(), Error> {
        if self.stoppable && self.watch.stopped() {
            return Err(Error::Stopped(format!("{what} {path}")));
        }
        self.watch.before(what, path).context(|| format!("{what} `{path}`"))
    }
}

impl Workspace {
    /// Applies a changeset that was approved. When it returns an error, the workspace is as it was, unless the error is
    /// [`Error::Dirty`].
    ///
    /// # Errors
    /// [`Error::Unapproved`] without an approval of exactly this changeset by somebody else than its proposer; [`Error::Conflict`]
    /// when a file is not as expected; [`Error::Verify`] when the command does not accept it; and what the system refuses.
    pub fn apply(&self, order: ApplyRequest<'_>, watch: &mut dyn Watch) -> Result<Applied, Error> {
        self.clean()?;
        let digest = order.changeset.digest();
        approved(order.approval, digest)?;
        if let Some(applied) = self.applied(order.key)? {
            return match applied {
                applied if applied.changeset != digest => Err(Error::Unapproved(format!(
                    "`{}` has applied another changeset already, {}",
                    order.key, applied.changeset
                ))),
                applied if applied.undone => {
                    Err(Error::Stopped(format!("`{}` is done again: it was rolled back", order.key)))
                }
                applied => Ok(applied),
            };
        }
        // Left by an apply whose last step failed, or whose undoing did.
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
            Err(error) => self.put_back(order.key, error, watch),
        }
    }

    /// What the caller gets after a failure: the error if everything could be put back. If it came when all was in place already, it
    /// is applied.
    fn put_back(&self, key: &str, error: Error, watch: &mut dyn Watch) -> Result<Applied, Error> {
        match self.recover_now(watch) {
            Ok(Recovery::Finished { .. }) => self.applied(key)?.ok_or(error),
            Ok(_) => Err(error),
            Err(undo) => {
                let reason = format!("{error}; and it could not be undone: {undo}");
                // If even the mark cannot be written, the intent is still there and the next start tries again.
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
        let stage = self.make_stage(step)?;
        for (i, (change, planned)) in changeset.changes().iter().zip(&intent.paths).enumerate() {
            if let (Some(content), PathState::File { mode, .. }) = (&change.content, &planned.new) {
                step.about("write", change.path.as_str())?;
                stage.write_new(&format!("new-{i}"), content, *mode, change.path.as_str())?;
            }
        }
        step.about("sync", STAGE)?;
        stage.sync()?;
        self.root.sync()?;
        intent.phase = Phase::Switching;
        self.write_intent(&intent, step.watch)?;
        self.make_folders(&intent.folders, step)?;
        for (i, planned) in intent.paths.iter().enumerate() {
            self.switch(&stage, i, planned, step)?;
        }
        intent.phase = Phase::Done;
        self.write_intent(&intent, step.watch)?;
        // It is done now, whatever happens to what follows.
        step.stoppable = false;
        self.finish(&intent, step.watch)?;
        Ok(intent.applied)
    }

    /// The folder in which new files are prepared: of the same file system, so that they can be moved into place.
    pub(crate) fn make_stage(&self, step: &mut Step<'_>) -> Result<Dir, Error> {
        step.about("make", STAGE)?;
        self.root.make(STAGE, STAGE)?;
        let stage = self.stage()?.ok_or_else(|| Error::Damaged(format!("`{STAGE}` has gone")))?;
        step.about("write", "origin")?;
        stage.remove("origin", STAGE)?;
        stage.write_new("origin", self.store.folder().as_os_str().as_encoded_bytes(), 0o600, STAGE)?;
        Ok(stage)
    }

    fn make_folders(&self, folders: &[String], step: &mut Step<'_>) -> Result<(), Error> {
        for folder in folders {
            // A path below it tells the parent; the name itself is never looked at.
            let below =
                crate::path::RelPath::parse(folder).map_err(|fault| Error::Damaged(format!("`{folder}` {fault}")))?;
            let gone = || Error::Conflict {
                path: folder.clone(),
                why: "cannot be made: the folder around it has gone".into(),
            };
            let (parent, name) = self.root.parent(&below)?.ok_or_else(gone)?;
            step.about("make", folder)?;
            parent.make(name, folder)?;
            parent.sync()?;
        }
        Ok(())
    }

    /// Puts one file in place, and looks at what it took the place of: it must be what was expected, or it goes back at once.
    fn switch(&self, stage: &Dir, i: usize, planned: &Planned, step: &mut Step<'_>) -> Result<(), Error> {
        let path = planned.path()?;
        let shown = path.as_str();
        let conflict = |why: &str| Err(Error::Conflict { path: shown.to_owned(), why: why.to_owned() });
        let Some((parent, name)) = self.root.parent(&path)? else {
            return conflict("is not there any more: its folder has gone");
        };
        let (new, old) = (format!("new-{i}"), format!("old-{i}"));
        step.about("rename", shown)?;
        match planned.operation {
            Operation::Create => {
                if !stage.move_new(&new, &parent, name, shown)? {
                    return conflict("is there now, and should be created");
                }
            }
            Operation::Modify if stage.exchange(&new, &parent, name, shown)? => {
                if !is(stage, &new, &planned.old) {
                    stage.exchange(&new, &parent, name, shown)?;
                    return conflict("was changed since the changeset was approved");
                }
            }
            Operation::Modify | Operation::Delete => {
                parent.move_over(name, stage, &old, shown)?;
                if !is(stage, &old, &planned.old) {
                    stage.move_new(&old, &parent, name, shown)?;
                    return conflict("was changed since the changeset was approved");
                }
                if planned.operation == Operation::Modify {
                    step.about("rename", shown)?;
                    if !stage.move_new(&new, &parent, name, shown)? {
                        return conflict("was written by somebody else at this moment");
                    }
                }
            }
        }
        step.about("sync", shown)?;
        parent.sync()
    }

    /// Every file must be as the changeset expects it.
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
            (Operation::Create, _) => conflict("is there already, and should be created".into()),
            (Operation::Modify | Operation::Delete, PathState::Absent) => conflict("is not there".into()),
            (Operation::Modify | Operation::Delete, PathState::Link { .. }) => {
                conflict("is a symbolic link, not the file that was read".into())
            }
            (Operation::Modify, _) if change.old_sha256.is_none() => conflict(
                "should be modified, but the changeset does not say what its content was (`old_sha256`)".into(),
            ),
            (Operation::Modify | Operation::Delete, PathState::File { sha256, .. }) => match change.old_sha256 {
                Some(old) if old != *sha256 => {
                    conflict(format!("was changed: its content was {}, now it is {}", old.hex(), sha256.hex()))
                }
                _ => Ok(now),
            },
        }
    }

    /// Keeps what is at every path, "nothing" included. Returns the digest of the checkpoint.
    fn checkpoint(&self, plan: &Checkpoint, step: &mut Step<'_>) -> Result<Digest, Error> {
        for planned in &plan.paths {
            let PathState::File { sha256, .. } = planned.old else {
                continue;
            };
            let conflict = |why: &str| Error::Conflict { path: planned.path.clone(), why: why.to_owned() };
            let path = planned.path()?;
            let (parent, name) = self.root.parent(&path)?.ok_or_else(|| conflict("is not there any more"))?;
            let (bytes, _) = parent.read(name, path.as_str(), MAX_FILE_BYTES)?;
            step.about("keep", path.as_str())?;
            if self.store.put(&bytes, step.watch)? != sha256 {
                return Err(conflict("was changed while it was read"));
            }
        }
        let text = charter_kernel::digest::canonical(&json!(plan));
        self.store.put(text.as_bytes(), step.watch)
    }

    /// Folders that new files need and that are not there, from the outside in.
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

    /// Notes that an apply is done and removes what it needed. May be repeated.
    pub(crate) fn finish(&self, intent: &Intent, watch: &mut dyn Watch) -> Result<(), Error> {
        self.write_applied(&intent.applied, watch)?;
        self.remove_stage(watch)?;
        store::remove(&self.state, "intent.json", watch)
    }

    /// Runs the command in a copy of the workspace that has the changes, so that the workspace never holds what was not verified.
    fn verify_in_copy(
        &self,
        changeset: &Changeset,
        olds: &[PathState],
        verify: &VerifyCommand,
        watch: &mut dyn Watch,
    ) -> Result<Verification, Error> {
        let scratch = self.state.join("scratch");
        let modes: BTreeMap<&str, u32> = changeset
            .changes()
            .iter()
            .zip(olds)
            .filter_map(|(c, old)| {
                if let PathState::File { mode, .. } = old { Some((c.path.as_str(), mode & 0o777)) } else { None }
            })
            .collect();
        let result = self.copy_to(&scratch, changeset, &modes).and_then(|()| verify.run(&scratch, &*watch));
        let removed = std::fs::remove_dir_all(&scratch).context(|| format!("remove `{}`", scratch.display()));
        let verification = result?;
        removed?;
        if verification.accepted {
            Ok(verification)
        } else {
            Err(Error::Verify { why: verification.ended, output: verification.output })
        }
    }
}

/// Whether the file at a name is what was expected. What cannot be looked at is not.
pub(crate) fn is(dir: &Dir, name: &str, expected: &PathState) -> bool {
    look(dir, name, name).is_ok_and(|now| now.same(expected))
}

/// An approval of exactly this changeset, by somebody else than its proposer.
fn approved(approval: &Approval, digest: Digest) -> Result<(), Error> {
    if approval.changeset != digest {
        return Err(Error::Unapproved(format!("the approval is of {}, the changeset is {digest}", approval.changeset)));
    }
    if approval.approver.is_empty() || approval.approver == approval.proposer {
        return Err(Error::Unapproved(format!("`{}` proposed it and cannot approve it", approval.proposer)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::{Folder, image};
    use crate::watch::Unwatched;

    /// What is done where the file system cannot exchange two names has the same outcome, also when it is interrupted.
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
            let approval = Approval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
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
