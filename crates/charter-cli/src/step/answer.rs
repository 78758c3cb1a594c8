//! One line of output, written without copying the run: names and values are borrowed from the snapshots before and after.

use std::io;

use charter_kernel::{Actor, Explanation, Note, Snapshot};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

use crate::session::Outcome;

/// An output line (04-interfaces, `step`).
#[derive(serde::Serialize)]
struct Answer<'a> {
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
    notes: Vec<NoteForm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Json>,
    refusal: Option<&'a Explanation>,
}

#[derive(serde::Serialize)]
struct NoteForm<'a> {
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    message: &'a str,
}

impl<'a> NoteForm<'a> {
    fn of(note: &'a Note) -> NoteForm<'a> {
        NoteForm { actor: &note.actor, at: note.at.as_deref(), message: &note.message }
    }
}

/// Paths of the active atomic states; none of an actor that is not there.
struct States<'a>(Option<&'a Actor>);

impl Serialize for States<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().flat_map(|actor| actor.state()))
    }
}

/// The context; `null` of an actor that is not there.
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

/// Writes the line of an outcome, with its line break. `before`: none for the start.
///
/// # Errors
/// Those of the stream.
pub(crate) fn write(
    out: &mut dyn io::Write,
    outcome: &Outcome<'_>,
    before: Option<&Snapshot>,
    after: &Snapshot,
) -> io::Result<()> {
    let answer = Answer {
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
        notes: outcome.notes.iter().map(NoteForm::of).collect(),
        output: after.output(),
        refusal: outcome.refusal.as_deref(),
    };
    serde_json::to_writer(&mut *out, &answer)?;
    out.write_all(b"\n")
}

/// Writes the line of a start that was refused: there is no run.
///
/// # Errors
/// Those of the stream.
pub(crate) fn write_no_start(out: &mut dyn io::Write, story: &Explanation) -> io::Result<()> {
    let answer = Answer {
        seq: 0,
        verdict: "refused",
        code: Some(story.code.word()),
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
        refusal: Some(story),
    };
    serde_json::to_writer(&mut *out, &answer)?;
    out.write_all(b"\n")
}

/// Writes the line of an input line that cannot be read.
///
/// # Errors
/// Those of the stream.
pub(crate) fn write_error(out: &mut dyn io::Write, line: u64, message: &str) -> io::Result<()> {
    let error = serde_json::json!({"error": format!("line {line}: {message}"), "line": line});
    writeln!(out, "{error}")
}
