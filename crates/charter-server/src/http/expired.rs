//! Requests that expired: nobody answered them in time, for example while nobody had the page open.

use std::collections::VecDeque;

use charter_journal::{Record, SourceKind, Verdict};
use charter_kernel::Timestamp;
use charter_scenario::timestamp;
use serde::Serialize;

use super::app::{App, takes_part};
use super::inbox::{Request, describe, described_charter, open_requests};
use super::problem::Problem;
use crate::identity::{Caller, HOST_RUN};

/// Records that are searched, the last ones; how many are read at once; and requests in an answer.
const SEARCHED: u64 = 5_000;
const PAGE: usize = 250;
const MAX_EXPIRED: usize = 50;

/// The record with which a request expired.
#[derive(Debug, Serialize)]
pub(super) struct Expired {
    seq: u64,
    at: String,
}

/// The requests of a caller that expired since a time, the last ones first, and whether these are
/// all.
pub(super) async fn since(app: &App, caller: &Caller, since: Timestamp) -> Result<(Vec<Request>, bool), Problem> {
    let (records, all) = expiries(app, caller, since).await?;
    let mut found = Vec::new();
    for record in records.iter().rev() {
        found.extend(before(app, caller, record).await?);
    }
    Ok((found, all))
}

/// The records in which a timer moved an actor on, since a time, in runs the caller may change.
async fn expiries(app: &App, caller: &Caller, since: Timestamp) -> Result<(VecDeque<Record>, bool), Problem> {
    let last = app.backend.last_position().await?;
    let mut position = last.saturating_sub(SEARCHED);
    let mut all = position == 0;
    let mut found = VecDeque::new();
    while position < last {
        let page = app.backend.records_after(position, PAGE).await?;
        let Some((end, _)) = page.last() else { break };
        position = *end;
        for (_, record) in page {
            if record.at < since {
                // What is older than this one was earlier, too.
                all = true;
                continue;
            }
            let is_timer = record.source.kind == SourceKind::Timer && record.verdict == Verdict::Accepted;
            if !is_timer || record.from == record.state || &*record.run == HOST_RUN {
                continue;
            }
            if takes_part(caller, app.charter(record.charter).await?.as_ref(), Some(&record.run)) {
                found.push_back(record);
            }
            if found.len() > MAX_EXPIRED {
                found.pop_front();
                all = false;
            }
        }
    }
    Ok((found, all))
}

/// What the actor of a record waited for before it.
async fn before(app: &App, caller: &Caller, record: &Record) -> Result<Vec<Request>, Problem> {
    let Some(seq) = record.seq.checked_sub(1) else { return Ok(Vec::new()) };
    // The run may have been deleted in the meantime.
    if app.backend.run(record.run.to_string()).await?.is_none() {
        return Ok(Vec::new());
    }
    let view = app.backend.at(record.run.to_string(), seq).await?;
    if view.dry {
        return Ok(Vec::new());
    }
    let definition = view.charter.machine().definition();
    let by = caller.principal(&definition.id, Some(&record.run), definition.roles.keys());
    let charter = described_charter(definition, record.charter);
    let mut found = open_requests(&view, &by, record.at, &charter);
    found.retain(|request| request.is_to(&record.to));
    describe(app, caller, &view, &mut found, record.at).await?;
    for request in &mut found {
        request.expired = Some(Expired { seq: record.seq, at: timestamp::text(record.at) });
    }
    Ok(found)
}
