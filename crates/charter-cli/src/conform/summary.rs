//! Where each run of a stream stands at its end: state, what is open, what may still be used, and what the charter's `stream.summary` tells.

use charter_kernel::{Entry, EntryStatus, Snapshot};
use serde_json::{Map, Value as Json, json};

use super::judge::{Judge, Run, state};
use crate::io::{Failure, Io, Paint};
use crate::moment;

/// One line of JSON per run.
pub(crate) fn json(judge: &Judge<'_>, io: &mut Io<'_>) -> Result<(), Failure> {
    for (name, run) in judge.runs() {
        writeln!(io.out, "{}", json!({"summary": of(judge, name, run)}))?;
    }
    Ok(())
}

/// For people.
pub(crate) fn text(judge: &Judge<'_>, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.colour_out);
    let (mut runs, mut accepted, mut refused) = (0u64, 0u64, judge.lost());
    for (name, run) in judge.runs() {
        runs = runs.saturating_add(1);
        accepted = accepted.saturating_add(run.accepted);
        refused = refused.saturating_add(run.refused);
        let Json::Object(summary) = of(judge, name, run) else {
            continue;
        };
        let at = summary.get("state").and_then(Json::as_str);
        writeln!(
            io.out,
            "\n{}  {}  ({} accepted, {} refused)",
            paint.strong(name),
            at.unwrap_or("never started"),
            run.accepted,
            run.refused
        )?;
        let told = summary.iter().filter(|(key, value)| {
            !matches!(key.as_str(), "run" | "state" | "status" | "accepted" | "refused") && !is_empty(value)
        });
        for (key, value) in told {
            writeln!(io.out, "  {key}: {value}")?;
        }
    }
    let verdict = match refused {
        0 => paint.good("conforms"),
        _ => paint.error("does not conform"),
    };
    writeln!(io.out, "\n{verdict}: {runs} runs, {accepted} items accepted, {refused} refused")?;
    Ok(())
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(list) => list.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// `{run, state, status, accepted, refused, open, live, ...}`.
fn of(judge: &Judge<'_>, name: &str, run: &Run) -> Json {
    let mut out = Map::new();
    out.insert("run".into(), name.into());
    out.insert("accepted".into(), run.accepted.into());
    out.insert("refused".into(), run.refused.into());
    let Some(snapshot) = &run.snapshot else {
        return Json::Object(out);
    };
    let at = run.at.unwrap_or_default();
    out.insert("state".into(), state(snapshot).into());
    out.insert("status".into(), snapshot.status().word().into());
    let open = |entry: &Entry| matches!(entry.status, EntryStatus::Open | EntryStatus::Overdue);
    out.insert("open".into(), entries(snapshot, open, obligation));
    let live = |entry: &Entry| entry.status == EntryStatus::Granted && entry.expires.is_none_or(|until| at < until);
    out.insert("live".into(), entries(snapshot, live, permit));
    let machine = judge.machine();
    let stream = machine.definition().stream.as_ref();
    for (key, cel) in stream.iter().flat_map(|stream| &stream.summary) {
        let told = match machine.query(cel) {
            Ok(query) => machine.ask(snapshot, "root", &query, at).unwrap_or_else(|e| json!({"error": e.to_string()})),
            Err(e) => json!({"error": e.message}),
        };
        out.insert(key.clone(), told);
    }
    Json::Object(out)
}

/// By kind, the entries that are wanted.
fn entries(snapshot: &Snapshot, wanted: impl Fn(&Entry) -> bool, show: impl Fn(&str, &Entry) -> Json) -> Json {
    let mut kinds: Map<String, Json> = Map::new();
    for (kind, key, entry) in snapshot.ledger().iter().flat_map(|l| l.entries()) {
        if wanted(entry) {
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
        "due": entry.due.map(moment::text),
        "overdue": entry.status == EntryStatus::Overdue,
    })
}

fn permit(key: &str, entry: &Entry) -> Json {
    json!({"key": key, "uses": entry.uses, "expires": entry.expires.map(moment::text)})
}
