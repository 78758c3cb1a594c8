//! Kind `workspace`: an agent's work on a folder that changes under an approval only. What each step does is in `charter-workspace`;
//! here it is put together with a run: who asks, what was approved, who may be shown what.

mod asked;
mod hold;
mod scratch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use charter_kernel::Digest;
use charter_kernel::definition::ActorDecl;
use charter_workspace::{
    ApplyRequest, Approval, Changeset, CurateOptions, Error, FileKind, Insight, ListedFile, RelPath, VerifyCommand,
    Watch, Workspace, dogs, json as form,
};
use serde_json::{Map, Value as Json, json};

use crate::call::{Call, Executor, Fault, Outcome};
use crate::charter::Folder;
use crate::clock::BoxFuture;
use crate::config::{delay, texts};
use hold::Holds;

/// Kind `workspace`. The input of every actor has `workspace`, a folder (`scratch:NAME` is a copy of the folder NAME beside the
/// charter, made for the run). Configuration:
///
/// | `do` | input | output |
/// |---|---|---|
/// | `curate` | `patterns`, `cleared` | `{files: [{path, size, sha256, kind}], curator, passedOver, insights}` |
/// | `plan`, `reflect` | `files`, and what else is there | what the actor that is asked answers |
/// | `propose` | `files` | `{changeset, digest, proposer}`: the manifest; contents go into the store |
/// | `apply` | `cycle`, `changeset`, `approval: {by, digest, proposer}`, `verify` | what was done |
/// | `rollback` | `cycle`, `needed` | `{restored}` |
/// | `remember` | `cycle`, `insights` | `{}` |
///
/// `by`: the kind of actor that is asked (`scripted`, `model`, `exec`, ...), with its configuration beside it; it sees the input, and
/// in `files` also the contents of the approved files. `answer`: the schema of what it answers, where that differs from the output.
/// `maxFiles`, `maxFileBytes`, `maxBytes` bound what is shown; `verify` (a command), `verifyTimeout`, `verifyOutput`.
///
/// `apply` does nothing unless the very record that asks for it is an approval of exactly that changeset.
#[derive(Debug, Clone)]
pub struct Workspaces {
    /// Where contents, checkpoints and what is known about workspaces are kept: a folder beside the database.
    folder: PathBuf,
    /// Environment of `verify` commands. Default: `PATH=/usr/local/bin:/usr/bin:/bin` and `LANG=C.UTF-8`.
    pub env: BTreeMap<String, String>,
    holds: Arc<Holds>,
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

/// Keys of ours; with `by`, the others belong to the actor that is asked.
const KEYS: [&str; 9] =
    ["do", "by", "answer", "maxFiles", "maxFileBytes", "maxBytes", "verify", "verifyTimeout", "verifyOutput"];

/// Bytes of contents that an actor is shown, unless it says otherwise.
const SHOWN: u64 = 1 << 20;
/// How often an actor whose changeset is refused may try again, knowing why.
const REPAIRS: usize = 2;
/// Insights that planning sees.
const INSIGHTS: usize = 20;
/// Bytes of a command's output in an error.
const TOLD: usize = 4 << 10;

impl Workspaces {
    /// Keeps its store in a folder, which must lie outside every workspace.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Workspaces {
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];
        Workspaces {
            folder: folder.into(),
            env: env.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            holds: Arc::default(),
        }
    }

    /// The folder that a run means by `workspace`: a `scratch:` copy is where it was made for that run.
    #[must_use]
    pub fn place(&self, run: &str, workspace: &str) -> PathBuf {
        match workspace.strip_prefix("scratch:") {
            Some(_) => scratch::place(run, &self.folder),
            None => PathBuf::from(workspace),
        }
    }

    /// What a changeset (as `propose` answered it) would do to the workspace of a run as it is now, for whoever has to approve it.
    ///
    /// # Errors
    /// It is no changeset, or its contents are not in the store.
    pub fn review(
        &self,
        run: &str,
        workspace: &str,
        changeset: &Json,
    ) -> Result<Vec<charter_workspace::FileDiff>, Error> {
        let store = charter_workspace::Store::open(&self.folder)?;
        charter_workspace::review(&self.place(run, workspace), changeset, &store)
    }
}

impl Executor for Workspaces {
    fn check(&self, name: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), String> {
        let task = task(actor)?;
        match actor.config.get("by") {
            None if matches!(task, Task::Plan | Task::Propose | Task::Reflect) => {
                Err("`by` is missing: the kind of actor that is asked, such as `scripted` or `model`".into())
            }
            None => super::known(&actor.config, &KEYS),
            Some(Json::String(by)) if by == "scripted" => {
                let inner = asked::decl(actor, by);
                super::Scripted.check(name, &inner, folder)
            }
            Some(Json::String(_)) => Ok(()),
            Some(other) => Err(format!("`by` is a kind of actor, not `{other}`")),
        }?;
        verify(actor, &Json::Null, &self.env).map(drop)
    }

    fn is_idempotent(&self) -> bool {
        // Reading may be repeated; an apply is answered from what is known under its key.
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let host = self.clone();
        Box::pin(async move {
            let output = match task(call.actor()).map_err(|why| Fault::new("config", &why))? {
                Task::Curate => host.curate(&call).await,
                Task::Plan => host.shown(&call).await,
                Task::Propose => host.propose(&call).await,
                Task::Apply => host.apply(&call).await,
                Task::Rollback => host.roll_back(&call).await,
                Task::Reflect => host.reflect(&call).await,
                Task::Remember => host.remember(&call).await,
            };
            output.map(Outcome::Done)
        })
    }
}

fn task(actor: &ActorDecl) -> Result<Task, String> {
    let word = actor.config.get("do").and_then(Json::as_str).unwrap_or_default();
    TASKS.iter().find(|(w, _)| *w == word).map(|(_, t)| *t).ok_or_else(|| {
        let all: Vec<_> = TASKS.iter().map(|(w, _)| format!("`{w}`")).collect();
        format!("`do` says what it does: {}", all.join(", "))
    })
}

/// Set when nobody waits any more: the work stops before its next write, and is undone.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Stopper(Arc<AtomicBool>);

impl Watch for Stopper {
    fn before(&mut self, _: &'static str, _: &str) -> std::io::Result<()> {
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Workspaces {
    /// Does something with the workspace of a call, beside the threads that drive runs.
    async fn on<T: Send + 'static>(
        &self,
        call: &Call,
        work: impl FnOnce(&Workspace, &mut dyn Watch) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Fault> {
        let path = self.path(call)?;
        let (host, call) = (self.clone(), call.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let _stop = Stop(stop.clone());
        let done = crate::runtime::blocking(move || {
            let mut watch = Stopper(stop);
            let workspace = host.holds.take(&path, &host.folder, &call, &mut watch)?;
            let workspace = crate::runtime::lock(&workspace);
            work(&workspace, &mut watch)
        });
        done.await.map_err(|e| Fault::new("internal", &e.to_string()))?.map_err(fault)
    }

    /// The folder that the input names.
    fn path(&self, call: &Call) -> Result<PathBuf, Fault> {
        let Some(name) = call.input.get("workspace").and_then(Json::as_str) else {
            return Err(Fault::new("config", "the input has no `workspace`: the path of a folder"));
        };
        match name.strip_prefix("scratch:") {
            Some(name) => scratch::path(name, call, &self.folder).map_err(|why| Fault::new("scratch", &why)),
            None => Ok(PathBuf::from(name)),
        }
    }

    async fn curate(&self, call: &Call) -> Result<Json, Fault> {
        let patterns = match call.input.get("patterns") {
            None | Some(Json::Null) => Vec::new(),
            Some(list) => texts("patterns", list).map_err(|why| Fault::new("config", &why))?,
        };
        let usual = CurateOptions::default();
        let what = CurateOptions {
            patterns,
            max_files: bound(call, "maxFiles", 500),
            max_file_bytes: bound(call, "maxFileBytes", usual.max_file_bytes),
        };
        let cleared = call.input.get("cleared").is_some_and(|c| !c.is_null());
        let found = self.on(call, move |workspace, watch| {
            if cleared && workspace.dirty()?.is_some() {
                workspace.clear_dirty(watch)?;
            }
            let learned = workspace.learned()?;
            let newest = learned.into_iter().rev().take(INSIGHTS).rev().map(|l| l.insight);
            Ok((workspace.curate(&what)?, newest.collect::<Vec<_>>()))
        });
        let (listing, insights) = found.await?;
        let mut output = json!({"passedOver": listing.skipped, "insights": insights});
        let (files, curator) = match by(call) {
            None => (listing.files.into_iter().filter(|f| f.kind == FileKind::Text).collect(), call.principal().id),
            Some(kind) => {
                let mut input = (*call.input).clone();
                set(&mut input, "files", json!(listing.files));
                let schema = json!({"type": "object", "required": ["select"], "properties": {"select": {"type": "array", "items": {"type": "string"}}}});
                let answer = asked::ask(call, kind, input, Some(schema)).await?;
                (selected(&listing.files, &answer)?, asked::name(call, kind))
            }
        };
        let most = bound(call, "maxBytes", SHOWN);
        let size: u64 = files.iter().map(|f: &ListedFile| f.size).sum();
        if size > most {
            let why = format!(
                "the {} files have {size} bytes together, more than {most}; choose fewer with `patterns`, like `src/**`",
                files.len()
            );
            return Err(Fault::new("too-large", &why));
        }
        set(&mut output, "files", json!(files));
        set(&mut output, "curator", curator.into());
        Ok(output)
    }

    /// Asks an actor, which sees the contents of the approved files.
    async fn shown(&self, call: &Call) -> Result<Json, Fault> {
        let input = self.with_contents(call).await?;
        asked::ask(call, by(call).unwrap_or_default(), input, None).await
    }

    /// The input with the contents of the files it names. Each must still be what was approved.
    async fn with_contents(&self, call: &Call) -> Result<Json, Fault> {
        let mut input = (*call.input).clone();
        let files = approved(&input)?;
        let bundle = self.on(call, move |workspace, _| workspace.bundle(&files)).await?;
        let described = |(path, bytes): (&RelPath, &Vec<u8>)| {
            let mut file = json!({"path": path.as_str(), "size": bytes.len(), "sha256": Digest::of_bytes(bytes).hex()});
            if let Ok(text) = std::str::from_utf8(bytes) {
                set(&mut file, "content", text.into());
            }
            file
        };
        let files: Vec<Json> = bundle.files.iter().map(described).collect();
        set(&mut input, "files", files.into());
        Ok(input)
    }

    async fn propose(&self, call: &Call) -> Result<Json, Fault> {
        let mut input = self.with_contents(call).await?;
        let shown: BTreeMap<RelPath, Digest> = approved(&call.input)?.into_iter().collect();
        let kind = by(call).unwrap_or_default();
        let mut tries = 0usize;
        let changeset = loop {
            let answer = asked::ask(call, kind, input.clone(), Some(asked::changeset_schema())).await?;
            match read(&answer).and_then(|c| c.bind(&shown)) {
                Ok(changeset) => break changeset,
                Err(refused) if tries >= REPAIRS => {
                    return Err(Fault::new("changeset", &refused.to_string()).retryable());
                }
                // The actor is told why, and may try again.
                Err(refused) => set(&mut input, "refused", refused.to_string().into()),
            }
            tries = tries.saturating_add(1);
        };
        let output = json!({"changeset": changeset.manifest(), "digest": changeset.digest().hex(), "proposer": asked::name(call, kind)});
        let keep = self.on(call, move |workspace, watch| {
            for content in changeset.changes().iter().filter_map(|c| c.content.as_ref()) {
                workspace.store().put(content, watch)?;
            }
            Ok(())
        });
        keep.await.map(|()| output)
    }

    async fn apply(&self, call: &Call) -> Result<Json, Fault> {
        let (key, approval) = (key(call)?, self.approval(call).await?);
        let manifest = call.input.get("changeset").cloned().unwrap_or_default();
        let command = call.input.get("verify").cloned().unwrap_or_default();
        let verify = verify(call.actor(), &command, &self.env).map_err(|why| Fault::new("config", &why))?;
        let applied = self.on(call, move |workspace, watch| {
            let changeset = Changeset::from_manifest(&manifest, workspace.store())?;
            let order = ApplyRequest { key: &key, changeset: &changeset, approval: &approval, verify: verify.as_ref() };
            workspace.apply(order, watch)
        });
        Ok(json!(applied.await?))
    }

    /// The approval: what the input says must be what the journal says. The record that asks for the apply is the approval itself.
    async fn approval(&self, call: &Call) -> Result<Approval, Fault> {
        let unapproved = |why: &str| Fault::new("unapproved", why);
        let text = |key: &str| {
            call.input.pointer(&format!("/approval/{key}")).and_then(Json::as_str).unwrap_or_default().to_owned()
        };
        let (by, proposer) = (text("by"), text("proposer"));
        let changeset =
            Digest::parse(&text("digest")).ok_or_else(|| unapproved("the input has no `approval.digest`"))?;
        let (inner, run, seq) = (call.inner.clone(), call.run.clone(), call.id.seq);
        let record = crate::runtime::blocking(move || inner.store.records(&run, seq, 1)).await;
        let record = record
            .map_err(|e| Fault::new("journal", &e.to_string()))?
            .map_err(|e| Fault::new("journal", &e.to_string()))?;
        let record =
            record.first().filter(|r| r.seq == seq).ok_or_else(|| unapproved("its record is not in the journal"))?;
        let same = |a: &charter_journal::Approval<'_>| Digest::parse(&a.digest) == Some(changeset);
        if !record.approvals.iter().any(same) {
            return Err(unapproved(&format!("record {seq}, which asks for it, is no approval of {changeset}")));
        }
        if record.by.id != by {
            return Err(unapproved(&format!("record {seq} is by `{}`, the input says `{by}`", record.by.id)));
        }
        if proposer.is_empty() {
            return Err(unapproved("the input does not say who proposed it (`approval.proposer`)"));
        }
        Ok(Approval { changeset, approver: by, proposer })
    }

    async fn roll_back(&self, call: &Call) -> Result<Json, Fault> {
        if call.input.get("needed") == Some(&Json::Bool(false)) {
            return Ok(json!({"restored": []}));
        }
        let key = key(call)?;
        let restored = self.on(call, move |workspace, watch| workspace.roll_back(&key, watch)).await?;
        Ok(json!({"restored": restored}))
    }

    async fn reflect(&self, call: &Call) -> Result<Json, Fault> {
        let key = key(call)?;
        let input = (*call.input).clone();
        match asked::ask(call, by(call).unwrap_or_default(), input, None).await {
            Ok(answer) => {
                let insights = insights(&answer)?;
                self.on(call, move |workspace, watch| workspace.learn(&key, &insights, watch)).await?;
                Ok(answer)
            }
            Err(fault) => {
                // What exists is kept: that it was done, and that nobody could say what it teaches.
                let insight = Insight {
                    outcome: charter_workspace::CycleOutcome::Partial,
                    category: "reflection".into(),
                    description: format!("it was applied, but not reflected upon: {}", fault.message),
                    tags: Vec::new(),
                    evidence: call.input.get("goal").cloned().unwrap_or_default(),
                };
                let _ = self.on(call, move |workspace, watch| workspace.learn(&key, &[insight], watch)).await;
                Err(fault)
            }
        }
    }

    async fn remember(&self, call: &Call) -> Result<Json, Fault> {
        let (key, insights) = (format!("{}/failed", key(call)?), insights(&call.input)?);
        self.on(call, move |workspace, watch| workspace.learn(&key, &insights, watch)).await?;
        Ok(json!({}))
    }
}

/// The kind of actor that is asked.
fn by(call: &Call) -> Option<&str> {
    call.config("by").and_then(Json::as_str)
}

fn set(value: &mut Json, key: &str, to: Json) {
    match value {
        Json::Object(map) => drop(map.insert(key.to_owned(), to)),
        other => *other = Json::Object(Map::from_iter([(key.to_owned(), to)])),
    }
}

fn bound<T: TryFrom<u64>>(call: &Call, key: &str, usual: T) -> T {
    let given = call.config(key).and_then(Json::as_u64);
    given.and_then(|n| T::try_from(n).ok()).unwrap_or(usual)
}

/// What an apply and its roll-back are called: run and cycle.
fn key(call: &Call) -> Result<String, Fault> {
    match call.input.get("cycle").and_then(Json::as_u64) {
        Some(cycle) => Ok(format!("{}/{cycle}", call.run)),
        None => Err(Fault::new("config", "the input has no `cycle`: the number of the cycle")),
    }
}

/// The files of an input: path and digest.
fn approved(input: &Json) -> Result<Vec<(RelPath, Digest)>, Fault> {
    let wrong = |why: String| Fault::new("config", &why);
    let files = input.get("files").and_then(Json::as_array).ok_or_else(|| wrong("the input has no `files`".into()))?;
    let one = |file: &Json| {
        let text = |key: &str| file.get(key).and_then(Json::as_str).unwrap_or_default();
        let path =
            RelPath::parse(text("path")).map_err(|fault| wrong(format!("the path `{}` {fault}", text("path"))))?;
        let digest = Digest::parse(text("sha256")).ok_or_else(|| wrong(format!("`{path}` has no `sha256`")))?;
        Ok((path, digest))
    };
    files.iter().map(one).collect()
}

fn selected(files: &[ListedFile], answer: &Json) -> Result<Vec<ListedFile>, Fault> {
    let wrong = |why: String| Fault::new("selection", &why).retryable();
    let paths = answer
        .get("select")
        .and_then(Json::as_array)
        .ok_or_else(|| wrong("the answer has no `select`: a list of paths".into()))?;
    let mut chosen = BTreeMap::new();
    for path in paths {
        let file = files.iter().find(|f| path.as_str() == Some(&f.path));
        let file = file.ok_or_else(|| wrong(format!("`{path}` is none of the listed files")))?;
        chosen.insert(file.path.clone(), file.clone());
    }
    Ok(chosen.into_values().collect())
}

fn insights(value: &Json) -> Result<Vec<Insight>, Fault> {
    let list = value.get("insights").cloned().unwrap_or_else(|| json!([]));
    serde_json::from_value(list).map_err(|e| Fault::new("insight", &format!("the insights cannot be read: {e}")))
}

/// A changeset as an actor writes it: the JSON form, or the text form as a string or under `text`.
fn read(answer: &Json) -> Result<Changeset, charter_workspace::ChangesetError> {
    match answer.as_str().or_else(|| answer.get("text").and_then(Json::as_str)) {
        Some(text) => dogs::read(text.as_bytes()),
        None => form::of_value(answer),
    }
}

/// The `verify` command: the input's, or the configuration's.
fn verify(actor: &ActorDecl, command: &Json, env: &BTreeMap<String, String>) -> Result<Option<VerifyCommand>, String> {
    let command = if command.is_null() { actor.config.get("verify").unwrap_or(&Json::Null) } else { command };
    if command.is_null() {
        return Ok(None);
    }
    let mut verify = VerifyCommand::new(texts("verify", command)?);
    if let Some(limit) = actor.config.get("verifyTimeout") {
        verify.time_limit = Duration::from_millis(u64::try_from(delay("verifyTimeout", limit)?).unwrap_or_default());
    }
    if let Some(limit) = actor.config.get("verifyOutput").and_then(Json::as_u64) {
        verify.output_limit = usize::try_from(limit).unwrap_or(usize::MAX);
    }
    verify.environment.clone_from(env);
    Ok(Some(verify))
}

fn fault(error: Error) -> Fault {
    let fault = Fault::new(error.code(), &error.to_string());
    match error {
        Error::Verify { output, .. } => {
            let start = output.char_indices().rev().nth(TOLD).map_or(0, |(at, _)| at);
            fault.with("output", output.get(start..).unwrap_or_default())
        }
        Error::Locked { .. } => fault.retryable(),
        _ => fault,
    }
}
