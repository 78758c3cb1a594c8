//! Whether a decision that waits for a person would make a call legal. Nothing is guessed: the
//! kernel takes the decision and then the call, on a copy of the run.

use charter_kernel::{Envelope, Machine, Principal, Snapshot, Timestamp, Verdict};
use charter_runtime::approval;
use serde_json::{Value as Json, json};

/// Votes that are tried for one approval, at most.
const MAX_VOTES: usize = 16;

/// An approval that waits.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// Its id, as in the inbox.
    pub(super) id: String,
    /// The event that decides.
    pub(super) event: String,
}

/// The first approval after which the call would be legal, and all that wait.
pub(super) fn waiting(
    machine: &Machine,
    snapshot: &Snapshot,
    call: &Json,
    by: &Principal,
    now: Timestamp,
) -> (Option<Waiting>, Vec<Waiting>) {
    let open = approval::open(machine, snapshot, now);
    let named = |id: &String, found: &Json| Waiting {
        id: id.clone(),
        event: found.get("event").and_then(Json::as_str).unwrap_or_default().to_owned(),
    };
    let helps = |found: &Json| {
        let after = decided(machine, snapshot, found, now);
        after.is_some_and(|after| {
            let envelope = Envelope::event(after.seq().saturating_add(1), super::CALL, call.clone(), by.clone(), now);
            machine.step(&after, &envelope).is_ok_and(|step| step.verdict == Verdict::Accepted)
        })
    };
    let first = open.iter().find(|(_, found)| helps(found)).map(|(id, found)| named(id, found));
    (first, open.iter().map(|(id, found)| named(id, found)).collect())
}

/// The run after persons have agreed.
fn decided(machine: &Machine, snapshot: &Snapshot, found: &Json, now: Timestamp) -> Option<Snapshot> {
    let text = |member: &str| found.get(member).and_then(Json::as_str);
    let (event, to) = (text("event")?, text("to")?);
    let data = match text("digest") {
        Some(digest) => json!({"digest": digest}),
        None => json!({}),
    };
    let somebody = approval::somebody(machine.definition().roles.keys().cloned().collect());
    let mut current = snapshot.clone();
    for voter in 0..MAX_VOTES {
        let by = Principal { id: format!("{}{voter}", somebody.id), ..somebody.clone() };
        let envelope = Envelope::event(current.seq().saturating_add(1), event, data.clone(), by, now).to(to);
        let step = machine.step(&current, &envelope).ok()?;
        current = step.snapshot;
        match step.verdict {
            Verdict::Accepted => return Some(current),
            Verdict::Vote => {}
            _ => return None,
        }
    }
    None
}
