//! The approvals that a record has made wait.

use std::collections::BTreeMap;

use charter_journal::{Record, Verdict};
use charter_runtime::approval;
use charter_runtime::{Charter, RuntimeError};
use serde_json::Value as Json;

use crate::http::App;

/// The approvals that wait after a record, and did not before it. They follow from the records, so
/// a message that is sent again is the same.
pub(super) async fn asked(app: &App, record: &Record, charter: &Charter) -> Result<Vec<Json>, RuntimeError> {
    let machine = charter.machine();
    if record.verdict != Verdict::Accepted || !approval::has_approvals(machine.definition()) {
        return Ok(Vec::new());
    }
    let open = async |seq: u64| match app.backend.at(record.run.to_string(), seq).await {
        Ok(view) => Ok(approval::open(machine, &view.snapshot, record.at)),
        Err(e @ (RuntimeError::Store(_) | RuntimeError::Closing)) => Err(e),
        // It was deleted since, or its start was refused, or its records cannot be replayed. The
        // messages behind it are not held up.
        Err(_) => Ok(BTreeMap::new()),
    };
    let mut waiting = open(record.seq).await?;
    if let (Some(before), false) = (record.seq.checked_sub(1), waiting.is_empty()) {
        let before = open(before).await?;
        waiting.retain(|id, _| !before.contains_key(id));
    }
    Ok(waiting.into_values().collect())
}
