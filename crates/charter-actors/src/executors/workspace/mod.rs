//! Kind `workspace`: an agent's work on a folder that changes only with an approval.
//! `charter-workspace` implements the steps on the folder; this module connects them with a run:
//! who asks, what was approved, and what may be shown to whom.

mod delegate;
mod fits;
mod git;
mod hold;
mod input;
mod scratch;
mod steps;
mod verify;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use charter_kernel::Digest;
use charter_kernel::definition::ActorDecl;
use charter_workspace::{Error, FolderIdentity, Watch, Workspace};
use serde_json::Value as Json;

use crate::call::Call;
use crate::clock::BoxFuture;
use crate::error::ConfigError;
use crate::executor::{Beside, Executor, Fault, Outcome};
use crate::folder::Folder;
use crate::kept::NamedFile;
use crate::lock;
use hold::Holds;

/// Kind `workspace`. The input of every actor has `workspace`, a folder (`scratch:NAME` is a copy
/// of the folder NAME beside the charter, made for the run). Configuration:
///
/// | `do` | input | output |
/// |---|---|---|
/// | `curate` | `patterns`, `with`, `without`, `feedback`, `cleared`, `verify`, `git` | `{place, files: [{path, size, sha256, kind}], curator, passedOver: [{path, why}], morePassedOver, uncommitted, insights}` |
/// | `plan`, `reflect` | `files`, and anything else | the answer of the other actor |
/// | `propose` | `files` | `{changeset, digest, proposer, assumed}`: the manifest; contents, old and new, go into the store |
/// | `apply` | `cycle`, `changeset`, `approval: {by, digest, proposer}`, `verify`, `git` | a report of what was done |
/// | `rollback` | `cycle`, `needed`, `finished`, `git` | `{restored}` |
/// | `remember` | `cycle`, `insights` | `{}` |
///
/// `place` in an input is the folder as `curate` has found it. Every later call finds this folder,
/// whatever `workspace` leads to by then, or fails with `replaced`.
///
/// `by`: the kind of the other actor that is asked (`scripted`, `model`, `exec`, ...), configured
/// by keys next to it; it receives the input, with the contents of the approved files in `files`.
/// `answer`: the schema of its answer, if that differs from the output. `maxFiles`, `maxFileBytes`,
/// `maxBytes` limit what it is shown; `maxChanges` limits a changeset; `verify` (a command),
/// `verifyTimeout`, `verifyOutput`. `shownTo` of `curate` names the actors that are going to be
/// shown the files: what is too much for their budgets is an error before anybody is asked.
///
/// `verify` in an input is a command, a list of commands, or an object: `command`, and if they are
/// to differ, `timeout`, `env` (names of variables that the host gives; `HOME` lets the commands
/// read it), `git` (the copy has `.git`), `unconfined` (for systems that cannot confine a command;
/// then the approval must be by somebody who was authenticated).
///
/// `apply` does nothing unless the record that requests it is an approval of exactly that
/// changeset.
#[derive(Debug, Clone)]
pub struct Workspaces {
    /// The folder with the contents, checkpoints and history of workspaces, next to the journal
    /// file.
    folder: PathBuf,
    /// Environment of `verify` commands. Default: [`default_env`](crate::default_env).
    pub env: BTreeMap<String, String>,
    /// Variables that the input of a run may name for its `verify` commands (`verifyEnv`).
    pub given: BTreeMap<String, String>,
    holds: Arc<Holds>,
    under_way: Arc<UnderWay>,
}

/// Counts the operations on workspaces that are under way.
#[derive(Debug, Default)]
struct UnderWay {
    count: Mutex<usize>,
    ended: Condvar,
}

impl UnderWay {
    fn begin(self: &Arc<Self>) -> Operation {
        let mut count = lock(&self.count);
        *count = count.saturating_add(1);
        Operation(self.clone())
    }
}

/// An operation, until it is dropped.
struct Operation(Arc<UnderWay>);

impl Drop for Operation {
    fn drop(&mut self) {
        let mut count = lock(&self.0.count);
        *count = count.saturating_sub(1);
        self.0.ended.notify_all();
    }
}

/// What an actor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Curate,
    Plan,
    Propose,
    Apply,
    Rollback,
    Reflect,
    Remember,
}

const TASKS: [(&str, Task); 7] = [
    ("curate", Task::Curate),
    ("plan", Task::Plan),
    ("propose", Task::Propose),
    ("apply", Task::Apply),
    ("rollback", Task::Rollback),
    ("reflect", Task::Reflect),
    ("remember", Task::Remember),
];

/// Keys of this kind; with `by`, all other keys belong to the other actor.
const KEYS: [&str; 11] = [
    "do",
    "by",
    "answer",
    "maxFiles",
    "maxFileBytes",
    "maxBytes",
    "maxChanges",
    "shownTo",
    "verify",
    "verifyTimeout",
    "verifyOutput",
];

/// Maximum number of bytes of a command's output in a fault.
const MAX_OUTPUT_IN_FAULT: usize = 4 << 10;

impl Workspaces {
    /// Creates an executor that keeps its store in a folder, which must be outside every workspace.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Workspaces {
        Workspaces {
            folder: folder.into(),
            env: super::default_env(),
            given: BTreeMap::new(),
            holds: Arc::default(),
            under_way: Arc::default(),
        }
    }

    /// Waits until no operation is under way, at most for `time`; returns whether there is none. An
    /// operation whose invocation was cancelled undoes what it has changed, or completes it, so a
    /// process that ends before leaves a mixed tree until the run is resumed. Blocks.
    pub fn wait_until_idle(&self, time: Duration) -> bool {
        let count = lock(&self.under_way.count);
        let waited = self.under_way.ended.wait_timeout_while(count, time, |count| *count > 0);
        waited.is_ok_and(|(count, _)| *count == 0)
    }

    /// Returns the folder that `workspace` means in a run: for `scratch:NAME`, the copy that was
    /// made for the run.
    #[must_use]
    pub fn place(&self, run: &str, workspace: &str) -> PathBuf {
        match workspace.strip_prefix("scratch:") {
            Some(_) => scratch::place(run, &self.folder),
            None => PathBuf::from(workspace),
        }
    }

    /// Returns what a changeset (an answer of `propose`) would change in the current workspace of a
    /// run, for the approver to read.
    ///
    /// # Errors
    /// The value is not a changeset, or its contents are not in the store.
    pub fn review(
        &self,
        run: &str,
        workspace: &str,
        changeset: &Json,
    ) -> Result<Vec<charter_workspace::FileDiff>, Error> {
        let store = charter_workspace::Store::open(&self.folder)?;
        charter_workspace::review(&self.place(run, workspace), changeset, &store)
    }

    /// Returns stored content of a file, at most `max` bytes, for people to read; `None` if it is
    /// not stored.
    ///
    /// # Errors
    /// The content is longer, or damaged, or cannot be read.
    pub fn content(&self, digest: Digest, max: u64) -> Result<Option<Vec<u8>>, Error> {
        // Opening the store would make its folder.
        if !self.folder.is_dir() {
            return Ok(None);
        }
        let store = charter_workspace::Store::open(&self.folder)?;
        match store.size(digest)? {
            None => Ok(None),
            Some(size) if size > max => {
                Err(Error::TooLarge(format!("the content has {size} bytes; {max} bytes can be shown")))
            }
            Some(_) => store.get(digest).map(Some),
        }
    }
}

impl Executor for Workspaces {
    fn check(&self, name: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        let task = task(actor)?;
        let expected = "the kind of the actor to ask, such as `scripted` or `model`";
        match actor.config.get("by") {
            None if matches!(task, Task::Plan | Task::Propose | Task::Reflect) => {
                Err(ConfigError::missing("by", expected))
            }
            None => super::check_keys(actor, &KEYS),
            Some(Json::String(by)) if by == "scripted" => {
                super::Scripted.check(name, &delegate::decl(actor, by), folder)
            }
            Some(Json::String(_)) => Ok(()),
            Some(other) => Err(ConfigError::invalid("by", expected, other)),
        }?;
        self.verify(actor, &Json::Null).map(drop)
    }

    fn files(&self, name: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        match delegate::asked(actor, beside) {
            Some((by, executor)) => executor.files(name, &delegate::decl(actor, by), beside),
            None => Ok(Vec::new()),
        }
    }

    fn models(&self, name: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<String>, ConfigError> {
        match delegate::asked(actor, beside) {
            Some((by, executor)) => executor.models(name, &delegate::decl(actor, by), beside),
            None => Ok(Vec::new()),
        }
    }

    fn is_idempotent(&self) -> bool {
        // Reads may be repeated; a repeated apply finds the result of the first one under its key.
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let workspaces = self.clone();
        Box::pin(async move {
            let output = match task(call.actor())? {
                Task::Curate => workspaces.curate(&call).await,
                Task::Plan => workspaces.plan(&call).await,
                Task::Propose => workspaces.propose(&call).await,
                Task::Apply => workspaces.apply(&call).await,
                Task::Rollback => workspaces.roll_back(&call).await,
                Task::Reflect => workspaces.reflect(&call).await,
                Task::Remember => workspaces.remember(&call).await,
            };
            output.map(Outcome::Done)
        })
    }
}

fn task(actor: &ActorDecl) -> Result<Task, ConfigError> {
    let value = actor.config.get("do").unwrap_or(&Json::Null);
    let found = TASKS.iter().find(|(word, _)| value.as_str() == Some(word));
    found.map(|(_, task)| *task).ok_or_else(|| {
        let all = TASKS.map(|(word, _)| word).join("`, `");
        ConfigError::invalid("do", &format!("one of `{all}`"), value)
    })
}

/// Stops the work when dropped: before its next write, and what was written is undone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct StopFlag(Arc<AtomicBool>);

impl Watch for StopFlag {
    fn before(&mut self, _: &'static str, _: &str) -> std::io::Result<()> {
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Workspaces {
    /// Runs `work` on the workspace of a call, on a thread for blocking work.
    async fn on<T: Send + 'static>(
        &self,
        call: &Call,
        work: impl FnOnce(&Workspace, &mut dyn Watch) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Fault> {
        let (workspaces, call) = (self.clone(), call.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let _stop = StopOnDrop(stop.clone());
        let operation = self.under_way.begin();
        let done = tokio::task::spawn_blocking(move || {
            let _operation = operation;
            let expected = expected(&call)?;
            let path = match &expected {
                Some(expected) => expected.find().map_err(fault)?,
                None => workspaces.path(&call)?,
            };
            let mut watch = StopFlag(stop);
            let workspace = workspaces.holds.take(&path, &workspaces.folder, &call, &mut watch).map_err(fault)?;
            let workspace = lock(&workspace);
            if let Some(expected) = expected {
                workspace.expect_identity(&expected).map_err(fault)?;
            }
            work(&workspace, &mut watch).map_err(fault)
        });
        done.await.map_err(|_| Fault::new("internal", "the work on the workspace was interrupted"))?
    }

    /// Returns the folder that the input names.
    fn path(&self, call: &Call) -> Result<PathBuf, Fault> {
        let Some(name) = call.input.get("workspace").and_then(Json::as_str) else {
            return Err(Fault::new("config", "the input has no `workspace`: the path of a folder"));
        };
        match name.strip_prefix("scratch:") {
            Some(name) => scratch::path(name, call, &self.folder),
            None => Ok(PathBuf::from(name)),
        }
    }
}

/// The folder that was approved; `None` if the input does not say.
fn expected(call: &Call) -> Result<Option<FolderIdentity>, Fault> {
    match call.input.get("place") {
        None | Some(Json::Null) => Ok(None),
        Some(place) => serde_json::from_value(place.clone())
            .map(Some)
            .map_err(|e| Fault::new("config", format!("invalid `place`: {e}; pass what `curate` has answered"))),
    }
}

fn fault(error: Error) -> Fault {
    let fault = Fault::new(error.code(), error.to_string());
    match error {
        Error::Verify { output, .. } => {
            let start = output.char_indices().rev().nth(MAX_OUTPUT_IN_FAULT).map_or(0, |(at, _)| at);
            fault.with("output", output.get(start..).unwrap_or_default())
        }
        Error::Locked { .. } => fault.retryable(),
        _ => fault,
    }
}
