//! Writes an output line. The line borrows names and values from the snapshots before and after the
//! step instead of copying them.

use charter_kernel::{Actor, Explanation, Note, Snapshot};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

use crate::session::StepOutcome;

/// An output line.
#[derive(serde::Serialize)]
struct OutputLine<'a> {
    seq: u64,
    verdict: &'a str,
    code: Option<&'a str>,
    to: &'a str,
    from: States<'a>,
    state: States<'a>,
    status: &'a str,
    context: Variables<'a>,
    effects: &'a [Json],
    transitions: &'a [String],
    timers: &'a [Json],
    #[serde(skip_serializing_if = "Option::is_none")]
    fired: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NoteLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Json>,
    refusal: Option<&'a Explanation>,
}

#[derive(serde::Serialize)]
struct NoteLine<'a> {
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    message: String,
}

impl<'a> NoteLine<'a> {
    fn of(note: &'a Note) -> NoteLine<'a> {
        NoteLine { actor: &note.actor, at: note.at.as_deref(), message: note.message() }
    }
}

/// The paths of the active atomic states; empty for an actor that does not exist.
struct States<'a>(Option<&'a Actor>);

impl Serialize for States<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().flat_map(|actor| actor.state()))
    }
}

/// The context; `null` for an actor that does not exist.
struct Variables<'a>(Option<&'a Actor>);

impl Serialize for Variables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(actor) = self.0 else {
            return serializer.serialize_none();
        };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in actor.variables() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Appends the output line of a step, with its line break. `before` is `None` for the start.
pub(crate) fn write(
    out: &mut Vec<u8>,
    outcome: &StepOutcome<'_>,
    before: Option<&Snapshot>,
    after: &Snapshot,
) -> Result<(), serde_json::Error> {
    let line = OutputLine {
        seq: outcome.seq,
        verdict: outcome.verdict,
        code: outcome.code().map(charter_kernel::Code::word),
        to: &outcome.to,
        from: States(before.and_then(|s| s.actor(&outcome.to))),
        state: States(after.actor(&outcome.to)),
        status: after.status().word(),
        context: Variables(after.actor(&outcome.to)),
        effects: &outcome.effects,
        transitions: &outcome.transitions,
        timers: &outcome.timers,
        fired: outcome.fired,
        notes: outcome.notes.iter().map(NoteLine::of).collect(),
        output: after.output(),
        refusal: outcome.refusal.as_deref(),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.push(b'\n');
    Ok(())
}

/// Appends the output line of a refused start, after which there is no run.
pub(crate) fn write_refused_start(out: &mut Vec<u8>, explanation: &Explanation) -> Result<(), serde_json::Error> {
    let line = OutputLine {
        seq: 0,
        verdict: "refused",
        code: Some(explanation.code.word()),
        to: "root",
        from: States(None),
        state: States(None),
        status: "none",
        context: Variables(None),
        effects: &[],
        transitions: &[],
        timers: &[],
        fired: None,
        notes: Vec::new(),
        output: None,
        refusal: Some(explanation),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.push(b'\n');
    Ok(())
}

/// Appends the output line for an invalid input line.
pub(crate) fn write_error(out: &mut Vec<u8>, number: u64, message: &str) {
    let error = serde_json::json!({"error": format!("line {number}: {message}"), "line": number});
    out.extend_from_slice(error.to_string().as_bytes());
    out.push(b'\n');
}
