//! What an agent is told: state, code, what is legal, and how to get there.

use std::fmt::Write as _;

use charter_journal::{Record, Verdict};
use charter_kernel::{EntryStatus, Legal, Machine, Principal, Snapshot};
use charter_runtime::backend::Backend;
use charter_runtime::{RuntimeError, View};
use serde_json::Value as Json;

use super::waiting::{Waiting, waiting};
use super::{CALL, Place, RESULT};
use crate::client::Decision;

/// Events, approvals and obligations that are named, at most.
const MAX_NAMED: usize = 12;
/// Bytes of a description, at most.
const MAX_DESCRIPTION: usize = 160;

/// Why no run is asked about a call: its charter cannot decide it.
pub(super) async fn undecided(backend: &dyn Backend, run: &str, data: &Json) -> Result<Option<String>, RuntimeError> {
    let view = backend.view(run.to_owned()).await?;
    let definition = view.charter.machine().definition();
    let id = &definition.id;
    if !definition.events.contains_key(CALL) {
        return Ok(Some(format!(
            "not decided: the charter `{id}` of run `{run}` has no event `{CALL}`, so it cannot decide about agents; `charter guard init` writes a charter that can"
        )));
    }
    // A charter that does not look at it does not say that agents may do this.
    let frees = data.pointer("/does/guard").and_then(Json::as_bool).unwrap_or_default();
    if frees && !view.charter.stored().core.contains("does.guard") {
        return Ok(Some(format!(
            "refused: the call changes what controls agents (configuration of hooks, the journal, keys), and the charter `{id}` does not say that it may; a person changes these files"
        )));
    }
    Ok(None)
}

/// Explains a call that was not accepted.
pub(super) async fn refused(backend: &dyn Backend, record: &Record, place: &Place) -> Result<Decision, RuntimeError> {
    let view = backend.view(record.run.to_string()).await?;
    let machine: &Machine = view.charter.machine();
    let charter = &machine.definition().id;
    let mut said = match (record.explanation(Some(machine)), record.verdict) {
        (Some(explanation), _) => {
            let rule = explanation.rule.as_ref().map(|rule| format!(", rule `{rule}`")).unwrap_or_default();
            format!("refused by the charter `{charter}` ({}{rule}): {}", explanation.code.word(), explanation.message)
        }
        (None, verdict) => format!(
            "refused: the charter `{charter}` does not decide this call (`{}`), so it is not allowed",
            verdict.word()
        ),
    };
    let _ = write!(said, "\nstate: {}", states(&view.snapshot));
    let legal = backend.legal(record.run.to_string(), record.by.clone().into_owned()).await?;
    said.push_str(&legal_text(&legal));
    let call = match record.verdict {
        Verdict::Refused => record.event.data.as_ref(),
        _ => &Json::Null,
    };
    let (first, all) = waiting(machine, &view.snapshot, call, &record.by, record.at);
    match first {
        Some(first) => {
            let reason = format!("waits for approval {}: {}\n{said}", first.id, decide(&view, &first, place));
            Ok(Decision::Waits { reason, approval: first.id })
        }
        None => {
            for other in all.iter().take(MAX_NAMED) {
                let how = decide(&view, other, place);
                let _ = write!(said, "\nwaits for a person: {}; {how}", other.id);
            }
            Ok(Decision::Refused { reason: said })
        }
    }
}

/// What is due before an agent stops: obligations that are open.
pub(super) async fn due(backend: &dyn Backend, run: &str, by: &Principal) -> Result<Decision, RuntimeError> {
    let view = backend.view(run.to_owned()).await?;
    let entries = view.snapshot.ledger().into_iter().flat_map(charter_kernel::Ledger::entries);
    let open = entries.filter(|(_, _, entry)| matches!(entry.status, EntryStatus::Open | EntryStatus::Overdue));
    let names: Vec<String> = open.take(MAX_NAMED).map(|(kind, key, _)| format!("{kind} `{key}`")).collect();
    if names.is_empty() || view.snapshot.status().is_finished() {
        return Ok(Decision::Legal);
    }
    let legal = backend.legal(run.to_owned(), by.clone()).await?;
    let state = states(&view.snapshot);
    let reason = format!("still due: {}\nstate: {state}{}", names.join(", "), legal_text(&legal));
    Ok(Decision::Due { reason })
}

fn states(snapshot: &Snapshot) -> String {
    let active: Vec<&str> = snapshot.actor("root").iter().flat_map(|actor| actor.state()).collect();
    match snapshot.status().is_finished() || snapshot.paused_at().is_some() {
        true => format!("{} ({})", active.join(", "), snapshot.status().word()),
        false => active.join(", "),
    }
}

fn legal_text(legal: &[Legal]) -> String {
    let mut said = String::new();
    let own: Vec<&Legal> = legal.iter().filter(|event| event.r#type != RESULT).collect();
    let (calls, events): (Vec<&Legal>, Vec<&Legal>) = own.into_iter().partition(|event| event.r#type == CALL);
    if !calls.is_empty() {
        said.push_str("\nother calls can be legal in this state");
    }
    if events.is_empty() {
        return said;
    }
    said.push_str("\nlegal for you now (send one with the MCP tool `send`): ");
    let names = events.iter().take(MAX_NAMED).map(|event| match &event.description {
        Some(description) => format!("{} ({})", event.r#type, beginning(description)),
        None => event.r#type.clone(),
    });
    said.push_str(&names.collect::<Vec<_>>().join(", "));
    said
}

fn beginning(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.len() > MAX_DESCRIPTION {
        true => format!("{}…", line.get(..line.floor_char_boundary(MAX_DESCRIPTION)).unwrap_or_default()),
        false => line.to_owned(),
    }
}

/// Where an approval is decided.
fn decide(view: &View, waiting: &Waiting, place: &Place) -> String {
    let run = view.snapshot.run();
    match place {
        Place::Page(url) => {
            let query = format!("run={}&request={}", part(run), part(&waiting.id));
            format!("a person decides (`{}`) at {url}/#/inbox?{query}", waiting.event)
        }
        Place::Command(options) => {
            format!("a person decides (`{}`) with `charter run --resume {run}{options}`", waiting.event)
        }
    }
}

/// A part of an address.
fn part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
