//! Git: what is not committed when a cycle begins, and a branch for each cycle if the input wants
//! it.

use charter_workspace::{Changeset, CommitRequest, Error, Repository, Workspace};
use serde_json::{Value as Json, json};

use crate::call::Call;
use crate::executor::Fault;

/// Maximum number of paths in the answer of `curate` that are not committed.
const MAX_UNCOMMITTED: usize = 50;

/// The branch of a cycle, and what its commit says.
pub(super) struct Branch {
    name: String,
    trailers: Vec<(&'static str, String)>,
}

/// Whether the input wants a branch for each cycle.
fn is_wanted(call: &Call) -> Result<bool, Fault> {
    match call.input.get("git") {
        None | Some(Json::Null) => Ok(false),
        Some(Json::String(text)) if text == "branch" => Ok(true),
        Some(other) => Err(Fault::new("config", format!("`git` is `branch`, not {other}"))),
    }
}

/// The branch of the cycle, if the input wants one. `key` identifies the apply.
pub(super) fn wanted(call: &Call, key: &str) -> Result<Option<Branch>, Fault> {
    if !is_wanted(call)? {
        return Ok(None);
    }
    let cycle = call.input.get("cycle").and_then(Json::as_u64).unwrap_or_default();
    let run = call.run.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "-");
    Ok(Some(Branch { name: format!("sentinel/{run}/{cycle}"), trailers: vec![("Charter-Run", key.to_owned())] }))
}

/// The repository of a workspace, which has to be in one.
fn repository(workspace: &Workspace) -> Result<Repository, Error> {
    let missing = || {
        let path = workspace.path().display();
        Error::Usage(format!(
            "the workspace `{path}` is in no Git repository; make one (`git init` and a commit), or leave `git` out of the input"
        ))
    };
    Repository::find(workspace.path())?.ok_or_else(missing)
}

/// What people should know before the cycle goes on: tracked files that are not committed. Fails if
/// the input wants a branch and there cannot be one.
pub(super) fn look(call: &Call) -> Result<impl FnOnce(&Workspace) -> Result<Json, Error> + Send + use<>, Fault> {
    let wanted = is_wanted(call)?;
    Ok(move |workspace: &Workspace| {
        if wanted {
            repository(workspace)?.branch()?;
        }
        let uncommitted = match Repository::find(workspace.path()).and_then(|found| match found {
            Some(repository) => repository.uncommitted(),
            None => Ok(Vec::new()),
        }) {
            Ok(paths) => paths,
            Err(error) if wanted => return Err(error),
            Err(error) => vec![format!("unknown: {error}")],
        };
        let more = uncommitted.len().saturating_sub(MAX_UNCOMMITTED);
        let shown = uncommitted.into_iter().take(MAX_UNCOMMITTED);
        Ok(json!(shown.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>()))
    })
}

impl Branch {
    /// Adds who approved what to the message.
    pub(super) fn approved(mut self, approval: &charter_workspace::ChangesetApproval) -> Branch {
        self.trailers.push(("Changeset", approval.changeset.to_string()));
        self.trailers.push(("Proposed-by", approval.proposer.clone()));
        self.trailers.push(("Approved-by", approval.approver.clone()));
        self
    }

    /// Checks before an apply that its changes can be committed.
    pub(super) fn check(&self, workspace: &Workspace, changeset: &Changeset) -> Result<(), Error> {
        repository(workspace)?.can_commit(&self.name, changeset, workspace.store())
    }

    /// Commits what was applied.
    pub(super) fn commit(&self, workspace: &Workspace, changeset: &Changeset) -> Result<Json, Error> {
        let order = CommitRequest { branch: &self.name, changeset, trailers: &self.trailers };
        Ok(json!(repository(workspace)?.commit(order)?))
    }

    /// Goes back to the branch before, after files were put back.
    pub(super) fn leave(&self, workspace: &Workspace) -> Result<(), Error> {
        match Repository::find(workspace.path())? {
            Some(repository) => repository.leave(&self.name, &self.trailers).map(drop),
            None => Ok(()),
        }
    }
}
