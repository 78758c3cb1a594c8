//! Summarizes the state of each run at the end of a stream: open obligations, live permits, and the
//! values of `stream.summary` in the charter.

use charter_kernel::{Entry, EntryStatus, Snapshot};
use serde_json::{Map, Value as Json, json};

use super::judge::Judge;
use super::stream_run::{StreamRun, state};
use crate::timestamp;

impl Judge<'_> {
    /// Returns `{run, accepted, refused, state, status, open, live, ...}`. If the run never
    /// started, the keys from `state` on are missing.
    #[must_use]
    pub fn summary(&self, name: &str, run: &StreamRun) -> Map<String, Json> {
        let mut out = Map::new();
        out.insert("run".into(), name.into());
        out.insert("accepted".into(), run.accepted.into());
        out.insert("refused".into(), run.refused.into());
        let Some(snapshot) = run.position.snapshot() else {
            return out;
        };
        let at = run.position.last();
        out.insert("state".into(), state(snapshot).into());
        out.insert("status".into(), snapshot.status().word().into());
        let open = |entry: &Entry| matches!(entry.status, EntryStatus::Open | EntryStatus::Overdue);
        out.insert("open".into(), entries(snapshot, open, obligation));
        let live = |entry: &Entry| entry.status == EntryStatus::Granted && entry.expires.is_none_or(|until| at < until);
        out.insert("live".into(), entries(snapshot, live, permit));
        let machine = self.machine();
        let stream = machine.definition().stream.as_ref();
        for (key, cel) in stream.iter().flat_map(|stream| &stream.summary) {
            let value = match machine.query(cel) {
                Ok(query) => {
                    machine.ask(snapshot, "root", &query, at).unwrap_or_else(|e| json!({"error": e.to_string()}))
                }
                Err(e) => json!({"error": e.message}),
            };
            out.insert(key.clone(), value);
        }
        out
    }
}

/// Returns the ledger entries that `include` selects, by kind.
fn entries(snapshot: &Snapshot, include: impl Fn(&Entry) -> bool, show: impl Fn(&str, &Entry) -> Json) -> Json {
    let mut kinds: Map<String, Json> = Map::new();
    for (kind, key, entry) in snapshot.ledger().iter().flat_map(|l| l.entries()) {
        if include(entry) {
            let list = kinds.entry(kind).or_insert_with(|| json!([]));
            if let Json::Array(list) = list {
                list.push(show(key, entry));
            }
        }
    }
    Json::Object(kinds)
}

fn obligation(key: &str, entry: &Entry) -> Json {
    json!({
        "key": key,
        "due": entry.due.map(timestamp::text),
        "overdue": entry.status == EntryStatus::Overdue,
    })
}

fn permit(key: &str, entry: &Entry) -> Json {
    json!({"key": key, "uses": entry.uses, "expires": entry.expires.map(timestamp::text)})
}
