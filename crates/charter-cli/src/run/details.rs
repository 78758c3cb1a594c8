//! Renders details of results and emitted events with a known shape: changed files, the command
//! that verified them, an insight.

use charter_journal::Record;
use charter_kernel::Machine;
use serde_json::Value as Json;

use crate::io::Paint;
use crate::journal::text::{clean, short_text};

/// Maximum number of lines of a program's output.
const MAX_OUTPUT_LINES: usize = 20;
/// Maximum number of characters of a note.
const MAX_NOTE: usize = 500;

/// Renders the lines below the line of a record.
pub(crate) fn of_record(record: &Record, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let data = &record.event.data;
    if let Some(applied) = data.get("output") {
        let changed = applied.get("changed").and_then(Json::as_object);
        for (path, operation) in changed.into_iter().flatten() {
            let operation = operation.as_str().unwrap_or_default();
            lines.push(format!("  {operation:<6}  {}", clean(path)));
        }
        if let Some(said) = applied.get("verification") {
            let ended = said.get("ended").and_then(Json::as_str);
            let accepted = match said.get("accepted") {
                Some(Json::Bool(true)) => paint.good("verified:"),
                _ => paint.error("not verified:"),
            };
            lines.push(format!("  {accepted} {}", clean(ended.unwrap_or_default())));
            lines.extend(output(said, paint));
        }
    }
    if let Some(error) = data.get("error") {
        lines.extend(output(error, paint));
    }
    lines.extend(notes(record, paint));
    lines
}

/// Renders the notes of a record, such as the failure of an action that nothing handled.
pub(super) fn notes(record: &Record, paint: Paint) -> impl Iterator<Item = String> {
    let note = move |note: String| format!("  {} {}", paint.warning("note:"), clean(&short_text(&note, MAX_NOTE)));
    record.note_messages().map(note)
}

fn output(of: &Json, paint: Paint) -> Vec<String> {
    let text = of.get("output").and_then(Json::as_str).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    let left_out = all.len().saturating_sub(MAX_OUTPUT_LINES);
    let mut lines = Vec::new();
    if left_out > 0 {
        lines.push(paint.faint(&format!("    ({left_out} earlier lines)")));
    }
    let shown = all.iter().skip(left_out);
    lines.extend(shown.map(|line| paint.faint(&format!("    {}", clean(line)))));
    lines
}

/// Renders the line of an emitted event that is an insight. `failure` is the error message of a
/// failure that was already shown; it is not repeated.
pub(crate) fn of_insight(data: &Json, failure: Option<&str>, paint: Paint) -> Option<String> {
    let insight = data.get("insight")?;
    let text = |key: &str| insight.get(key)?.as_str().map(clean);
    let outcome = match text("outcome")?.as_str() {
        "success" => paint.good("success"),
        "failed" => paint.error("failed"),
        other => paint.warning(other),
    };
    let description = match insight.get("description")?.as_str()? {
        known if failure == Some(known) => "the reason above".to_owned(),
        new => clean(new),
    };
    Some(format!("learned ({outcome}, {}): {description}", text("category")?))
}

/// Whether an emitted event only repeats a state change that the line of the record already shows.
pub(crate) fn is_move(data: &Json, machine: &Machine) -> bool {
    let states = &machine.definition().root.state.states;
    let state = |key: &str| data.get(key).and_then(Json::as_str).is_some_and(|name| states.contains_key(name));
    state("from") && state("to")
}
