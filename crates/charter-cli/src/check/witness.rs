//! Prints a counterexample: the start and the events, as input lines for `charter step`, and what
//! each one does.

use charter_check::{After, Finding};
use serde_json::Value as Json;

use crate::io::{Failure, Io, Paint};

/// Maximum number of events in the text output; equal ones in a row count once.
const MAX_EVENTS: usize = 12;
/// Maximum length of the value of a variable, in characters.
const MAX_VALUE: usize = 60;

/// Prints the events that lead to a finding, if it has any.
pub(super) fn print(finding: &Finding, io: &mut Io<'_>) -> Result<(), Failure> {
    if finding.witness.is_empty() {
        return Ok(());
    }
    writeln!(io.out, "  reached by these lines, which `charter step --events` takes:")?;
    let (all, mut done) = (finding.witness.as_slice(), 0);
    for _ in 0..MAX_EVENTS {
        let left = all.get(done..).unwrap_or_default();
        let Some(event) = left.first() else { break };
        let same = left.iter().take_while(|other| is_same(event, other)).count();
        writeln!(io.out, "    {event}")?;
        match same {
            1 => {}
            2 => writeln!(io.out, "    the same again")?,
            _ => writeln!(io.out, "    the same again, {} times", same - 1)?,
        }
        let range = done..done + same;
        done = range.end;
        if let Some((last, before)) = finding.after.get(range).and_then(<[After]>::split_last) {
            let mut changed = serde_json::Map::new();
            changed.extend(before.iter().chain([last]).flat_map(|after| after.changed.clone()));
            let after = After { states: last.states.clone(), changed };
            writeln!(io.out, "{}", Paint(io.color_out).help(&format!("      -> {}", described(&after))))?;
        }
    }
    let more = all.len().saturating_sub(done);
    if more > 0 {
        writeln!(io.out, "    and {more} more (`--json` lists them all)")?;
    }
    Ok(())
}

/// Whether two events of a trace differ in nothing but their time.
fn is_same(event: &Json, other: &Json) -> bool {
    let rest = |event: &Json| {
        let fields = event.as_object().into_iter().flatten().filter(|(key, _)| *key != "at");
        fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
    };
    event == other || (event.is_object() && rest(event) == rest(other))
}

/// `review and idle of w; n = 3`: the active states and the variables that have changed.
fn described(after: &After) -> String {
    let states = |id: &str| after.states.get(id).map(|states| states.join(" and ")).filter(|s| !s.is_empty());
    let mut parts: Vec<String> = vec![states("root").unwrap_or_else(|| "the run has ended".to_owned())];
    let others = after.states.keys().filter(|id| *id != "root");
    parts.extend(others.filter_map(|id| Some(format!("{} of {id}", states(id)?))));
    let variables = after.changed.iter().map(|(name, value)| format!("{name} = {}", short(value)));
    std::iter::once(parts.join(", ")).chain(variables).collect::<Vec<_>>().join("; ")
}

/// A value as JSON, cut if it is long.
fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
