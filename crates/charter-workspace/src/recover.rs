//! Recovery finishes or undoes an interrupted apply. If recovery is itself interrupted, it is
//! repeated.

use std::io::Read as _;

use serde::{Deserialize, Serialize};

use crate::apply::{Step, is};
use crate::changeset::Operation;
use crate::dir::Dir;
use crate::error::Error;
use crate::intent::{Applied, Checkpoint, Intent, Phase, Planned};
use crate::path::STAGE;
use crate::store;
use crate::watch::Watch;
use crate::workspace::{PathState, Workspace, look};

/// The result of the recovery when a workspace is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ApplyRecovery {
    /// Nothing was interrupted.
    Nothing,
    /// An interrupted apply was undone completely.
    Undone {
        /// The key of the apply.
        key: String,
    },
    /// An apply was interrupted after all files were in place; it counts as applied.
    Finished {
        /// The key of the apply.
        key: String,
    },
    /// An interrupted apply could not be undone: the workspace is dirty.
    Failed {
        /// Why it could not be undone.
        reason: String,
    },
}

impl Workspace {
    /// Finishes or undoes an interrupted apply; a failure marks the workspace dirty.
    pub(crate) fn recover(&self, watch: &mut dyn Watch) -> Result<ApplyRecovery, Error> {
        match self.recover_now(watch) {
            Ok(recovery) => Ok(recovery),
            Err(error @ Error::Interrupted { .. }) => Err(error),
            Err(error) => {
                let reason = format!("an interrupted apply could not be undone: {error}");
                self.mark_dirty(&reason, watch)?;
                Ok(ApplyRecovery::Failed { reason })
            }
        }
    }

    pub(crate) fn recover_now(&self, watch: &mut dyn Watch) -> Result<ApplyRecovery, Error> {
        let Some(intent) = self.read_intent()? else {
            self.foreign_stage()?;
            let _ = std::fs::remove_dir_all(self.state.join("scratch"));
            return Ok(ApplyRecovery::Nothing);
        };
        let key = intent.applied.key.clone();
        match intent.phase {
            Phase::Done => {
                self.finish(&intent, watch)?;
                return Ok(ApplyRecovery::Finished { key });
            }
            Phase::Staging => {}
            Phase::Switching => self.undo(&intent, watch)?,
        }
        if intent.undoing {
            let applied = Applied { undone: true, ..intent.applied };
            self.write_applied(&applied, watch)?;
        }
        self.remove_stage(watch)?;
        store::remove(&self.state, "intent.json", watch)?;
        Ok(ApplyRecovery::Undone { key })
    }

    /// Fails if there is a staging folder without an intent: it belongs to another store.
    fn foreign_stage(&self) -> Result<(), Error> {
        let Some(stage) = self.stage()? else {
            return Ok(());
        };
        let mut origin = Vec::new();
        if let Ok((file, _)) = stage.open_file("origin", STAGE) {
            let _ = file.take(4_096).read_to_end(&mut origin);
        }
        let (path, ours) = (self.path.display().to_string(), self.store.folder().as_os_str().as_encoded_bytes());
        if origin.is_empty() || origin == ours {
            return Err(Error::Escape {
                path,
                why: format!("contains a folder `{STAGE}` that was not created from this store; inspect and remove it"),
            });
        }
        Err(Error::Interrupted { path, store: String::from_utf8_lossy(&origin).into_owned() })
    }

    /// Rolls back a finished apply, in the same way as an interrupted one. Does nothing if there is
    /// no such apply, or if it has already been rolled back. Returns the restored paths.
    ///
    /// # Errors
    /// [`Error::Dirty`] if the rollback fails, for example because one of the files has changed
    /// since: the workspace is then marked dirty.
    pub fn roll_back(&self, key: &str, watch: &mut dyn Watch) -> Result<Vec<String>, Error> {
        self.ensure_clean()?;
        let Some(plan) = self.read_plan(key)? else {
            return Ok(Vec::new());
        };
        let paths = plan.paths.iter().map(|p| p.path.clone()).collect();
        let undo = (|| {
            self.write_intent(&Intent { phase: Phase::Switching, undoing: true, ..plan }, watch)?;
            self.recover_now(watch)
        })();
        match undo {
            Ok(_) => Ok(paths),
            Err(error) => {
                let reason = format!("`{key}` could not be rolled back: {error}");
                self.mark_dirty(&reason, watch)?;
                Err(Error::Dirty(reason))
            }
        }
    }

    /// Rolls back an apply as [`Workspace::roll_back`] does, but only if each of its files is still
    /// as it was left.
    ///
    /// # Errors
    /// [`Error::Conflict`] if somebody has changed one of the files since: then nothing is changed.
    pub fn roll_back_unchanged(&self, key: &str, watch: &mut dyn Watch) -> Result<Vec<String>, Error> {
        self.ensure_clean()?;
        let Some(plan) = self.read_plan(key)? else {
            return Ok(Vec::new());
        };
        for planned in &plan.paths {
            if !self.look(&planned.path()?)?.same(&planned.new) {
                let why = "has changed since it was applied; nothing was put back".into();
                return Err(Error::Conflict { path: planned.path.clone(), why });
            }
        }
        self.roll_back(key, watch)
    }

    /// Builds the intent of a finished apply from its result and its checkpoint.
    fn read_plan(&self, key: &str) -> Result<Option<Intent>, Error> {
        let Some(applied) = self.applied(key)? else {
            return Ok(None);
        };
        if applied.undone {
            return Ok(None);
        }
        let checkpoint = self.store.get(applied.checkpoint)?;
        let Checkpoint { paths, folders } =
            serde_json::from_slice(&checkpoint).map_err(|e| Error::Damaged(format!("checkpoint of `{key}`: {e}")))?;
        Ok(Some(Intent { v: 1, phase: Phase::Switching, undoing: true, applied, paths, folders }))
    }

    fn undo(&self, intent: &Intent, watch: &mut dyn Watch) -> Result<(), Error> {
        let mut step = Step { watch, stoppable: false };
        let stage = self.create_stage(&mut step)?;
        // Restore every file that can be restored before reporting the first failure.
        let mut failed = None;
        for (i, planned) in intent.paths.iter().enumerate().rev() {
            if let Err(error) = self.undo_one(&stage, i, planned, intent.undoing, &mut step) {
                failed.get_or_insert(error);
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        for folder in intent.folders.iter().rev() {
            let path =
                crate::path::RelPath::parse(folder).map_err(|fault| Error::Damaged(format!("`{folder}` {fault}")))?;
            if let Some((parent, name)) = self.root.parent(&path)? {
                step.announce("remove", folder)?;
                if parent.remove_empty(name, folder)? {
                    parent.sync()?;
                }
            }
        }
        Ok(())
    }

    fn undo_one(
        &self,
        stage: &Dir,
        i: usize,
        planned: &Planned,
        undoing: bool,
        step: &mut Step<'_>,
    ) -> Result<(), Error> {
        let path = planned.path()?;
        let shown = path.as_str();
        let (old, new) = (&planned.old, &planned.new);
        let Some((parent, name)) = self.root.parent(&path)? else {
            return match old {
                PathState::Absent => Ok(()),
                _ => Err(changed(shown, "its folder no longer exists")),
            };
        };
        let now = look(&parent, name, shown)?;
        // The switch may have moved out a file that is neither old nor new, because another program
        // wrote it at that moment. Put that file back.
        for aside in [format!("new-{i}"), format!("old-{i}")] {
            let Ok(taken) = look(stage, &aside, shown) else {
                continue;
            };
            if taken == PathState::Absent || taken.same(old) || taken.same(new) {
                continue;
            }
            return self.place(stage, &aside, &parent, name, &now, new, shown, step);
        }
        if now.same(old) {
            return Ok(());
        }
        // What the apply has not reached yet is left as somebody else has made it.
        let is_reached = match planned.operation {
            Operation::Create | Operation::Modify => {
                let waits = is(stage, &format!("new-{i}"), new) && !is(stage, &format!("old-{i}"), old);
                !waits || now.same(new)
            }
            Operation::Delete => undoing || look(stage, &format!("old-{i}"), shown)? != PathState::Absent,
        };
        if !is_reached {
            return Ok(());
        }
        // Without an atomic exchange there is a moment when the old file has been moved out and the
        // new one is not yet in place.
        let between = now == PathState::Absent && is(stage, &format!("old-{i}"), old);
        if !now.same(new) && !between {
            return Err(changed(shown, "it has changed since the apply"));
        }
        if *old == PathState::Absent {
            step.announce("rename", shown)?;
            let aside = format!("undo-{i}");
            parent.move_over(name, stage, &aside, shown)?;
            if !is(stage, &aside, new) {
                stage.move_new(&aside, &parent, name, shown)?;
                return Err(changed(shown, "it has changed since the apply"));
            }
            step.announce("sync", shown)?;
            return parent.sync();
        }
        // Prefer the original file: it still has its owner and times.
        let own = [format!("new-{i}"), format!("old-{i}")].into_iter().find(|aside| is(stage, aside, old));
        let from = match own {
            Some(aside) => aside,
            None => {
                let aside = format!("undo-{i}");
                step.announce("write", shown)?;
                stage.remove(&aside, shown)?;
                match old {
                    PathState::File { sha256, mode, owner } => {
                        stage.write_new(&aside, &self.store.get(*sha256)?, *mode, *owner, shown)?
                    }
                    PathState::Link { target } => stage.link(target, &aside, shown)?,
                    PathState::Absent => {}
                }
                aside
            }
        };
        self.place(stage, &from, &parent, name, &now, new, shown, step)
    }

    /// Moves `aside` to the place of `now`, if `now` is what the apply put there.
    #[allow(clippy::too_many_arguments)] // source and target
    fn place(
        &self,
        stage: &Dir,
        aside: &str,
        parent: &Dir,
        name: &str,
        now: &PathState,
        new: &PathState,
        shown: &str,
        step: &mut Step<'_>,
    ) -> Result<(), Error> {
        if *now != PathState::Absent && !now.same(new) {
            return Err(changed(shown, "it has changed since the apply"));
        }
        step.announce("rename", shown)?;
        if *now == PathState::Absent {
            if !stage.move_new(aside, parent, name, shown)? {
                return Err(changed(shown, "it has been created since the apply"));
            }
        } else if stage.exchange(aside, parent, name, shown)? {
            if !is(stage, aside, new) {
                stage.exchange(aside, parent, name, shown)?;
                return Err(changed(shown, "it has changed since the apply"));
            }
        } else {
            stage.move_over(aside, parent, name, shown)?;
        }
        step.announce("sync", shown)?;
        parent.sync()
    }
}

fn changed(path: &str, why: &str) -> Error {
    Error::Undo { path: path.to_owned(), why: why.to_owned() }
}
