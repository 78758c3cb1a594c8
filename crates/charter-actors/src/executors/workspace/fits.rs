//! Limits that are checked before anybody is asked: what is known then about the later questions of
//! a cycle.

use charter_kernel::Digest;
use charter_workspace::{Changeset, ChangesetError, ListedFile, RelPath};
use serde_json::{Value as Json, json};

use super::input::{contents, limit, set};
use super::{Workspaces, delegate};
use crate::call::Call;
use crate::executor::Fault;
use charter_run::texts;

/// Default limit of the number of changes of a changeset.
const MAX_CHANGES: usize = 2_000;

/// The limit of the number of changes.
pub(super) fn max_changes(call: &Call) -> usize {
    limit(call, "maxChanges", MAX_CHANGES).min(charter_workspace::MAX_CHANGES)
}

/// Refuses a changeset with more than `most` changes.
pub(super) fn few_enough(changeset: &Changeset, most: usize) -> Result<(), ChangesetError> {
    match changeset.changes().len() {
        count if count > most => Err(ChangesetError {
            line: None,
            change: None,
            why: format!("the changeset has {count} changes; the limit of a cycle is {most}"),
            help: "propose a first part, and leave the rest to further cycles".into(),
        }),
        _ => Ok(()),
    }
}

impl Workspaces {
    /// Fails if an actor that `shownTo` names cannot be shown these files, because they alone take
    /// its budget.
    pub(super) async fn fits(&self, call: &Call, files: &[ListedFile]) -> Result<(), Fault> {
        let Some(names) = call.config("shownTo") else {
            return Ok(());
        };
        let named = files.iter().filter_map(|f| Some((RelPath::parse(&f.path).ok()?, Digest::parse(&f.sha256)?)));
        let named: Vec<_> = named.collect();
        let bundle = self.on(call, move |workspace, _| workspace.bundle(&named)).await?;
        let mut input = (*call.input).clone();
        set(&mut input, "files", json!(contents(&bundle)));
        let machine = call.host().machine(&call.run)?;
        for name in texts("shownTo", names)? {
            let Some(actor) = machine.definition().actors.get(&name) else {
                return Err(Fault::new(
                    "config",
                    format!("`shownTo` names `{name}`, which is no actor of the charter"),
                ));
            };
            let Some(kind) = actor.config.get("by").and_then(Json::as_str) else {
                continue;
            };
            let Some(executor) = call.host().executor(kind).filter(|_| kind != "workspace") else {
                continue;
            };
            let mut decl = delegate::decl(actor, kind);
            decl.input = None;
            let Some(estimate) = executor.estimate(&decl, call.folder(), &input)? else {
                continue;
            };
            if !estimate.fits() {
                let (count, question, budget) = (files.len(), estimate.question, estimate.budget);
                let why = format!(
                    "with the {count} files, the question to `{name}` takes about {question} tokens, but the budget for \
                     it and its answer is {budget} (`budget.tokens`); choose fewer or smaller files: start a run with \
                     `patterns`, such as `src/**`"
                );
                return Err(Fault::new("too-large", why).with("tokens", question));
            }
        }
        Ok(())
    }
}
