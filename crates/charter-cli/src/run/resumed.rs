//! Tells the user of a process that resumes all runs of a journal (`charter serve`, `--detach`) for
//! which of them somebody else answers than before.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_journal::{LastModel, RunFilter, RunInfo, SqliteStore, Store as _};
use charter_kernel::{Digest, Status};
use charter_runtime::{Charter, Runtime};
use serde_json::{Value as Json, json};

use super::answers::{Models, between, may_ask, say};
use super::host::{Host, Place};
use crate::io::{Failure, Io};
use crate::journal::text::{clean, count};

/// Maximum number of runs that are named.
const MOST: usize = 10;

/// The open runs of a journal, the latest first, with the model that each actor asked last.
pub(super) struct Before(Vec<(RunInfo, Vec<LastModel>)>);

impl Before {
    /// Reads them before a host resumes them.
    pub(super) fn read(store: &SqliteStore) -> Result<Before, Failure> {
        let mut runs = store.runs(&RunFilter { status: Some(Status::Active), ..RunFilter::default() })?;
        runs.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.run.cmp(&b.run)));
        let read = |info: RunInfo| Ok((store.last_models(&info.run)?, info)).map(|(last, info)| (info, last));
        runs.into_iter().map(read).collect::<Result<_, Failure>>().map(Before)
    }

    /// What to tell about those that somebody else answers for now, for [`tell`].
    pub(super) async fn compare(self, runtime: &Runtime, store: &SqliteStore) -> Result<Json, Failure> {
        let mut charters: BTreeMap<Digest, Option<(Arc<Charter>, Models)>> = BTreeMap::new();
        let (mut lines, mut more) = (Vec::new(), 0_u64);
        for (info, last) in self.0 {
            if let std::collections::btree_map::Entry::Vacant(place) = charters.entry(info.charter) {
                let charter = runtime.charter(info.charter).await.ok().filter(|c| may_ask(c.machine()));
                place.insert(charter.map(|charter| (charter.clone(), runtime.models(&charter))));
            }
            let Some(Some((charter, now))) = charters.get(&info.charter) else { continue };
            let first = store.records(&info.run, 0, 1)?.into_iter().next();
            let begun = first.and_then(|first| first.manifest.clone()).map(|m| m.models.clone()).unwrap_or_default();
            if between(charter, &last, &begun, now).is_empty() {
                continue;
            }
            // A run whose state cannot be read is reported when somebody asks for it.
            let Ok(view) = runtime.view(&info.run).await else { continue };
            let changes = super::answers::changes_of(&view, &last, &begun, &runtime.models(&view.charter));
            let others = changes.len().saturating_sub(1) as u64;
            let Some(line) = changes.into_values().next() else { continue };
            if lines.len() == MOST {
                more += 1;
                continue;
            }
            let also = if others > 0 { format!(" (also for {})", count(others, "other actor")) } else { String::new() };
            lines.push(format!("run {}: {line}{also}", clean(&info.run)));
        }
        if more > 0 {
            lines.push(format!("and {}", count(more, "more run")));
        }
        Ok(json!(lines))
    }
}

/// Says for which runs somebody else answers since the host has resumed them, if this process or
/// one that it has started is the host.
pub(crate) fn tell(host: &Host, io: &mut Io<'_>) -> Result<(), Failure> {
    let about = match &*host.place.borrow() {
        Place::Own(own) => own.about.clone(),
        Place::Other(client) if host.started.get() => client.about().clone(),
        _ => return Ok(()),
    };
    let lines = about.get("another").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    say(lines, io)
}
