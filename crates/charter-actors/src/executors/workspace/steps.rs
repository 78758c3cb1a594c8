//! The steps of an agent's work: curate, plan, propose, apply, roll back, reflect, remember.

use charter_kernel::{Auth, Digest};
use charter_workspace::{
    ApplyRequest, Bundle, Changeset, ChangesetApproval, CurateOptions, Draft, FileKind, Insight, ListedFile, leaves_out,
};
use serde_json::{Value as Json, json};

use super::fits::{few_enough, max_changes};
use super::input::{approved, by, contents, insights, key, limit, read_draft, record, selected, set, wishes};
use super::{Workspaces, delegate, git};
use crate::call::Call;
use crate::executor::Fault;
use charter_run::texts;

/// Default limit of the contents that an actor is shown, in bytes.
const MAX_SHOWN: u64 = 1 << 20;
/// Number of further answers that an actor may give after its changeset was refused.
const MAX_REPAIRS: usize = 2;
/// Maximum number of files in the answer of `curate` that are left out, with the reason.
const MAX_PASSED_OVER: usize = 200;
/// Maximum number of assumptions in the answer of `propose`.
const MAX_ASSUMED: usize = 20;
/// Maximum number of insights in the answer of `curate`: the latest ones.
const MAX_INSIGHTS: usize = 20;

impl Workspaces {
    pub(super) async fn curate(&self, call: &Call) -> Result<Json, Fault> {
        let list = |key: &str| match call.input.get(key) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(list) => texts(key, list),
        };
        let mut patterns = list("patterns")?;
        let (with, without) = (list("with")?, list("without")?);
        match patterns.is_empty() {
            // Everything is listed already, but for what has to be named.
            true if !with.is_empty() => patterns.extend(std::iter::once("**".to_owned()).chain(with)),
            true => {}
            false => patterns.extend(with),
        }
        let default = CurateOptions::default();
        let request = CurateOptions {
            patterns,
            max_files: limit(call, "maxFiles", 500),
            max_file_bytes: limit(call, "maxFileBytes", default.max_file_bytes),
        };
        // What cannot work is said before anybody is asked.
        if let Some(verify) = self.verify(call.actor(), call.input.get("verify").unwrap_or(&Json::Null))? {
            verify.check().map_err(super::fault)?;
        }
        let cleared = call.input.get("cleared").is_some_and(|c| !c.is_null());
        let look = git::look(call)?;
        let found = self.on(call, move |workspace, watch| {
            if cleared && workspace.dirty()?.is_some() {
                workspace.clear_dirty(watch)?;
            }
            let learned = workspace.learned()?;
            let newest = learned.into_iter().rev().take(MAX_INSIGHTS).rev().map(|l| l.insight);
            Ok((workspace.curate(&request)?, newest.collect::<Vec<_>>(), workspace.identity()?, look(workspace)?))
        });
        let (mut listing, insights, place, uncommitted) = found.await?;
        // A model reads the texts itself.
        let wishes = if by(call).is_none() { wishes(&call.input) } else { Vec::new() };
        let (kept, left_out) = listing.files.into_iter().partition(|file: &ListedFile| {
            !without.contains(&file.path) && !wishes.iter().any(|wish| leaves_out(wish, &file.path))
        });
        listing.files = kept;
        let mut passed_over: Vec<Json> = Vec::new();
        for file in left_out {
            passed_over.push(json!({"path": file.path, "why": "a person has left it out"}));
        }
        passed_over.extend(listing.skipped.iter().map(|(path, why)| json!({"path": path, "why": why})));
        let more = passed_over.len().saturating_sub(MAX_PASSED_OVER);
        passed_over.truncate(MAX_PASSED_OVER);
        let mut output = json!({"place": place, "insights": insights, "passedOver": passed_over, "morePassedOver": more, "uncommitted": uncommitted});
        let (files, curator) = match by(call) {
            None => (listing.files.into_iter().filter(|f| f.kind == FileKind::Text).collect(), call.principal().id),
            Some(kind) => {
                let mut input = (*call.input).clone();
                set(&mut input, "files", json!(listing.files));
                let schema = json!({"type": "object", "required": ["select"], "properties": {"select": {"type": "array", "items": {"type": "string"}}}});
                let answer = delegate::ask(call, kind, input, Some(schema)).await?;
                (selected(&listing.files, &answer)?, call.principal().id)
            }
        };
        let most = limit(call, "maxBytes", MAX_SHOWN);
        let size: u64 = files.iter().map(|f: &ListedFile| f.size).sum();
        if size > most {
            let why = format!(
                "the {} files have {size} bytes in total; the limit is {most}; select fewer with `patterns`, such as `src/**`",
                files.len()
            );
            return Err(Fault::new("too-large", &why));
        }
        self.fits(call, &files).await?;
        set(&mut output, "files", json!(files));
        set(&mut output, "curator", curator.into());
        Ok(output)
    }

    /// Asks the other actor, which is shown the contents of the approved files.
    pub(super) async fn plan(&self, call: &Call) -> Result<Json, Fault> {
        let (input, _) = self.with_contents(call).await?;
        delegate::ask(call, by(call).unwrap_or_default(), input, None).await
    }

    /// Returns the input with the contents of the files that it names, and these files. Each must
    /// have the approved digest.
    async fn with_contents(&self, call: &Call) -> Result<(Json, Bundle), Fault> {
        let mut input = (*call.input).clone();
        let files = approved(&input)?;
        let bundle = self.on(call, move |workspace, _| workspace.bundle(&files)).await?;
        set(&mut input, "files", contents(&bundle).into());
        Ok((input, bundle))
    }

    /// Asks for a changeset. Its contents, and those that it would replace, go into the store.
    pub(super) async fn propose(&self, call: &Call) -> Result<Json, Fault> {
        let (mut input, bundle) = self.with_contents(call).await?;
        let shown = bundle.digests();
        let kind = by(call).unwrap_or_default();
        let (mut tries, most) = (0usize, max_changes(call));
        let (changeset, mut assumed) = loop {
            let answer = delegate::ask(call, kind, input.clone(), Some(delegate::changeset_schema(most))).await?;
            let read = |(draft, assumed): (Draft, Vec<String>)| {
                let changeset = draft.on(&bundle.files)?;
                few_enough(&changeset, most)?;
                Ok((changeset.bind(&shown)?, assumed))
            };
            match read_draft(&answer).and_then(read) {
                Ok(read) => break read,
                Err(refused) if tries >= MAX_REPAIRS => {
                    return Err(Fault::new("changeset", refused.to_string()).retryable());
                }
                // The next question includes the reason for the refusal.
                Err(refused) => set(&mut input, "refused", refused.to_string().into()),
            }
            tries = tries.saturating_add(1);
        };
        let more = assumed.len().saturating_sub(MAX_ASSUMED);
        assumed.truncate(MAX_ASSUMED);
        if more > 0 {
            assumed.push(format!("{more} more"));
        }
        let output = json!({
            "changeset": changeset.manifest(), "digest": changeset.digest().hex(), "proposer": call.principal().id, "assumed": assumed,
        });
        let keep = self.on(call, move |workspace, watch| {
            for content in changeset.changes().iter().filter_map(|c| c.content.as_ref()) {
                workspace.store().put(content, watch)?;
            }
            // What would be replaced, for the approver to read. If a file has changed by now, there
            // is nothing to read, and applying will be a conflict.
            let replaced = changeset.changes().iter().filter_map(|c| Some((c.path.clone(), c.old_sha256?)));
            if let Ok(old) = workspace.bundle(&replaced.collect::<Vec<_>>()) {
                for content in old.files.values() {
                    workspace.store().put(content, watch)?;
                }
            }
            Ok(())
        });
        keep.await.map(|()| output)
    }

    pub(super) async fn apply(&self, call: &Call) -> Result<Json, Fault> {
        let (key, approval) = (key(call).await?, self.approval(call).await?);
        let manifest = call.input.get("changeset").cloned().unwrap_or_default();
        let command = call.input.get("verify").cloned().unwrap_or_default();
        let verify = self.verify(call.actor(), &command)?;
        if verify.as_ref().is_some_and(|verify| verify.unconfined) {
            self.is_authenticated(call).await?;
        }
        let branch = git::wanted(call, &key)?.map(|branch| branch.approved(&approval));
        let applied = self.on(call, move |workspace, watch| {
            let changeset = Changeset::from_manifest(&manifest, workspace.store())?;
            // An attempt after an interruption finds the changes made.
            if let (Some(branch), None) = (&branch, workspace.applied(&key)?) {
                branch.check(workspace, &changeset)?;
            }
            let order = ApplyRequest { key: &key, changeset: &changeset, approval: &approval, verify: verify.as_ref() };
            let mut applied = json!(workspace.apply(order, watch)?);
            if let Some(branch) = &branch {
                set(&mut applied, "git", branch.commit(workspace, &changeset)?);
            }
            Ok(applied)
        });
        applied.await
    }

    /// Returns the approval. The record that requests the apply must itself be an approval of the
    /// changeset, by the approver that the input names.
    async fn approval(&self, call: &Call) -> Result<ChangesetApproval, Fault> {
        let unapproved = |why: &str| Fault::new("unapproved", why);
        let text = |key: &str| {
            call.input.pointer(&format!("/approval/{key}")).and_then(Json::as_str).unwrap_or_default().to_owned()
        };
        let (by, proposer) = (text("by"), text("proposer"));
        let changeset =
            Digest::parse(&text("digest")).ok_or_else(|| unapproved("the input has no `approval.digest`"))?;
        let record = record(call, call.effect_id.seq).await?;
        let seq = record.seq;
        let same = |a: &charter_journal::Approval<'_>| Digest::parse(&a.digest) == Some(changeset);
        if !record.approvals.iter().any(same) {
            return Err(unapproved(&format!("record {seq}, which requests it, is not an approval of {changeset}")));
        }
        if record.by.id != by {
            return Err(unapproved(&format!("record {seq} is by `{}`, but the input says `{by}`", record.by.id)));
        }
        if proposer.is_empty() {
            return Err(unapproved("the input has no `approval.proposer`"));
        }
        Ok(ChangesetApproval { changeset, approver: by, proposer })
    }

    /// Checks that the approver was authenticated, by more than access to this machine: a command
    /// that is not confined can do all that its user can, so it could approve, too.
    async fn is_authenticated(&self, call: &Call) -> Result<(), Fault> {
        let by = record(call, call.effect_id.seq).await?.by.auth();
        match by {
            Auth::Key | Auth::Session | Auth::Oidc | Auth::Ssh | Auth::Passkey => Ok(()),
            _ => Err(Fault::new(
                "unapproved",
                "the `verify` command is `unconfined`, so the approval must be by somebody with a key (`charter serve`, \
                 `charter key add`) that is kept where the command cannot read it",
            )),
        }
    }

    pub(super) async fn roll_back(&self, call: &Call) -> Result<Json, Fault> {
        if call.input.get("needed") == Some(&Json::Bool(false)) {
            return Ok(json!({"restored": []}));
        }
        let key = key(call).await?;
        // A cycle that has ended well is undone only while nobody else has changed its files.
        let finished = call.input.get("finished") == Some(&Json::Bool(true));
        let branch = git::wanted(call, &key)?;
        let restored = self.on(call, move |workspace, watch| {
            let restored = match finished {
                true => workspace.roll_back_unchanged(&key, watch)?,
                false => workspace.roll_back(&key, watch)?,
            };
            if let Some(branch) = branch {
                branch.leave(workspace)?;
            }
            Ok(restored)
        });
        let restored = restored.await?;
        Ok(json!({"restored": restored}))
    }

    pub(super) async fn reflect(&self, call: &Call) -> Result<Json, Fault> {
        let key = key(call).await?;
        let input = (*call.input).clone();
        match delegate::ask(call, by(call).unwrap_or_default(), input, None).await {
            Ok(answer) => {
                let insights = insights(&answer)?;
                self.on(call, move |workspace, watch| workspace.learn(&key, &insights, watch)).await?;
                Ok(answer)
            }
            Err(fault) => {
                // Record that the changes were applied, although the reflection on them is missing.
                let insight = Insight {
                    outcome: charter_workspace::CycleOutcome::Partial,
                    category: "reflection".into(),
                    description: format!("applied, but the reflection failed: {}", fault.message),
                    tags: Vec::new(),
                    evidence: call.input.get("goal").cloned().unwrap_or_default(),
                };
                let _ = self.on(call, move |workspace, watch| workspace.learn(&key, &[insight], watch)).await;
                Err(fault)
            }
        }
    }

    pub(super) async fn remember(&self, call: &Call) -> Result<Json, Fault> {
        let (key, insights) = (format!("{}/failed", key(call).await?), insights(&call.input)?);
        self.on(call, move |workspace, watch| workspace.learn(&key, &insights, watch)).await?;
        Ok(json!({}))
    }
}
