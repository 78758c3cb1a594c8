//! `charter explain RUN SEQ`: why an event was accepted or refused.

use charter_journal::{Record, RunInfo, SourceKind, Store, Verdict};
use charter_kernel::{Auth, Cause, Code, Condition, Machine, PrincipalKind, Taken};
use serde_json::{Map, Value as Json, json};

use super::text::{clean, code, count, error, further, is_held, is_log, logged, short, short_digest_text, when};
use super::{Db, delivered, holder};
use crate::io::{Exit, Failure, Io, Paint};

/// Explains a record.
///
/// # Errors
/// The run or the record does not exist.
pub fn run(db: &Db, run: &str, seq: u64, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = db.read_and_warn(io)?;
    let info = db.find(store.as_ref(), run)?;
    let record = store.records(&info.run, seq, 1)?.into_iter().next();
    let Some(record) = record.filter(|r| r.seq == seq) else {
        return Err(Failure::new(format!("run `{}` has no record {seq}: its last record is {}", info.run, info.seq)));
    };
    let machine = charter_journal::machine(store.as_ref(), info.charter).ok();
    let machine = machine.as_ref();
    let condition = machine.and_then(|machine| condition(store.as_ref(), machine, &record));
    let why = machine.map(|machine| why_taken(store.as_ref(), machine, &record)).unwrap_or_default();
    let key = holder::of_key(&record, db, |run| store.run(run).is_ok_and(|run| run.is_some()));
    let more = delivered(store.as_ref(), &record).into_iter().chain(vote(store.as_ref(), &info, &record)).chain(key);
    let more: Vec<String> = more.collect();
    let story = |paint| {
        let mut story = explanation(&record, machine, condition.as_ref(), &why, paint).trim_end().to_owned();
        story.extend(more.iter().map(|line| format!("\n  {line}")));
        story
    };
    if machine_output {
        // Written as it is: a record may be nested more deeply than serde_json reads.
        let (story, why) = (Json::from(story(Paint(false))), json!(why));
        let shown = record.shown(machine.filter(|_| record.refusal.is_some()));
        writeln!(io.out, "{{\"record\":{shown},\"story\":{story},\"taken\":{why}}}")?;
    } else {
        writeln!(io.out, "{}", story(Paint(io.color_out)))?;
    }
    Ok(Exit::Yes)
}

/// Renders the votes after a vote: `1 of 2 votes (ana); needs another director`.
fn vote(store: &dyn Store, run: &RunInfo, record: &Record) -> Option<String> {
    let (machine, after) =
        (record.verdict == Verdict::Vote).then(|| super::at(store, run, Some(record.seq)).ok())??;
    // Somebody else with the same roles, because who has voted cannot vote again.
    let mut next = record.envelope().ok()?.by;
    next.id.clear();
    let demands = machine.demands(&after, &record.to, &record.event.r#type, &next, record.at)?;
    let also = demands.also.iter().map(super::offers::other_votes);
    let all: Vec<String> = demands.quorum.as_ref().map(super::offers::votes).into_iter().chain(also).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns the condition of the transition that refused an event, from the state before the event.
fn condition(store: &dyn Store, machine: &Machine, record: &Record) -> Option<Condition> {
    record.refusal.as_ref().filter(|refusal| refusal.code == Code::Rule)?;
    let before = charter_journal::replay(store, machine, &record.run, Some(record.seq.checked_sub(1)?)).ok()??;
    machine.refusing(&before, &record.envelope().ok()?)
}

/// Returns why the transitions of a record were taken, from the state before it.
fn why_taken(store: &dyn Store, machine: &Machine, record: &Record) -> Vec<Taken> {
    let Some(envelope) = record.envelope().ok().filter(|_| !record.transitions.is_empty()) else {
        return Vec::new();
    };
    match record.seq.checked_sub(1) {
        None => machine.why_started(&record.run, &envelope),
        Some(seq) => match charter_journal::replay(store, machine, &record.run, Some(seq)) {
            Ok(Some(before)) => machine.why_taken(&before, &envelope),
            _ => Vec::new(),
        },
    }
}

fn explanation(
    record: &Record,
    machine: Option<&Machine>,
    condition: Option<&Condition>,
    why: &[Taken],
    paint: Paint,
) -> String {
    let mut out = Vec::new();
    // The host itself has the id and the role `system`.
    let roles = match record.by.roles.as_slice() {
        [] => String::new(),
        [role] if *role == record.by.id => String::new(),
        roles => format!(" ({})", roles.join(", ")),
    };
    let kind = match record.by.kind() {
        PrincipalKind::Person => "",
        PrincipalKind::Agent => ", an agent",
        // The host.
        PrincipalKind::Service if record.by.id == "system" => "",
        PrincipalKind::Service => ", a service",
    };
    let auth = if record.by.auth() == Auth::None { ", not authenticated" } else { "" };
    out.push(format!("record {} of run {}, {}", record.seq, record.run, when(record.at)));
    out.push(format!(
        "{} from {}{}{kind}{auth}{}",
        paint.strong(&format!("`{}`", clean(&record.event.r#type))),
        clean(&record.by.id),
        clean(&roles),
        match record.to.as_ref() {
            "root" => String::new(),
            actor => format!(" to the actor `{}`", clean(actor)),
        }
    ));
    match &record.event.redacted {
        Some(redacted) => out.push(format!("data: redacted ({} bytes)", redacted.size)),
        None if record.event.data.as_ref() == &json!({}) || record.event.data.is_null() => {}
        None => out.push(format!("data: {}", short(&record.event.data, 400))),
    }
    out.push(String::new());
    out.push(verdict(record, paint));
    if let Some(refusal) = record.explanation(machine) {
        // What an interlock has read; no transition was considered for it.
        let read = match record.refusal.as_ref().and_then(|refusal| refusal.cause.as_ref()) {
            Some(Cause::Assertion { read, .. }) => Some(read),
            _ => None,
        };
        refused(&refusal, (condition, read), &clean(&record.by.id), paint, &mut out);
    }
    if let Some(error) = error(record) {
        out.push(format!("  {}", clean(&error)));
    }
    taken(record, why, paint, &mut out);
    out.join("\n")
}

/// Why an event was ignored.
fn ignored(record: &Record) -> String {
    let kind = record.event.r#type.as_ref();
    match record.source.kind {
        SourceKind::External => {
            "no transition accepts this event in this state, and the charter is not strict".to_owned()
        }
        _ => format!("no transition accepts `{}` in this state", clean(kind)),
    }
}

fn verdict(record: &Record, paint: Paint) -> String {
    let (from, to) = (record.from.join(", "), record.state.join(", "));
    // An event for an actor that does not exist has no state.
    let still = match from.is_empty() {
        true => "nothing changed".to_string(),
        false => format!("nothing changed; the state is still {}", paint.strong(&from)),
    };
    match record.verdict {
        Verdict::Accepted if is_held(record) => {
            format!("{}: the run is paused, so the answer is held until the run is resumed", paint.good("accepted"))
        }
        Verdict::Accepted if from.is_empty() => {
            format!("{}: the run starts in {}", paint.good("accepted"), paint.strong(&to))
        }
        Verdict::Accepted if from == to => {
            format!("{}: the state is still {}", paint.good("accepted"), paint.strong(&to))
        }
        Verdict::Accepted => {
            format!("{}: from {} to {}", paint.good("accepted"), paint.strong(&from), paint.strong(&to))
        }
        Verdict::Refused if record.seq == 0 => {
            format!("{}: the run has not started", paint.error("refused"))
        }
        Verdict::Refused => format!("{}: {still}", paint.error("refused")),
        Verdict::Ignored if record.source.kind == SourceKind::Attempt => {
            format!("{}: the invocation stays open; {still}", paint.warning("noted"))
        }
        Verdict::Ignored => format!("{}: {}; {still}", paint.warning("ignored"), ignored(record)),
        Verdict::Vote => format!("{}: counted, but the quorum is not reached yet; {still}", paint.help("vote")),
        Verdict::Late => format!("{}: the invocation is no longer open; {still}", paint.warning("late")),
        other => paint.warning(other.word()),
    }
}

fn refused(
    refusal: &charter_kernel::Explanation,
    (condition, read): (Option<&Condition>, Option<&Map<String, Json>>),
    by: &str,
    paint: Paint,
    out: &mut Vec<String>,
) {
    out.push(format!("  {}: {}", paint.error(&code(refusal)), clean(&refusal.message)));
    let read = read.into_iter().flatten();
    out.extend(read.map(|(path, value)| format!("    {} would be {}", clean(path), short(value, 200))));
    out.extend(further(&refusal.misfits));
    for candidate in &refusal.candidates {
        let name = paint.strong(&clean(&candidate.transition));
        out.push(format!("  {name} was considered: {}", clean(&candidate.message)));
        if let Some(expression) = candidate.expression.as_ref().filter(|_| candidate.does_not_hold) {
            out.push(format!("    `{}` is false", clean(expression)));
        }
        let condition = condition.filter(|condition| condition.transition == candidate.transition);
        out.extend(condition.map(|c| format!("    it refuses, because `{}` is true", clean(&c.condition))));
        let more = condition.into_iter().flat_map(|c| &c.read).filter(|(path, _)| !candidate.read.contains_key(*path));
        for (path, value) in candidate.read.iter().chain(more) {
            out.push(format!("    {} was {}", clean(path), short(value, 200)));
        }
    }
    out.push(String::new());
    out.push(match refusal.legal.is_empty() {
        true => format!("no event was legal for {by} then"),
        false => format!("legal for {by} then: {}", refusal.legal.join(", ")),
    });
    out.push(format!("`charter explain {}` explains the code", refusal.code));
}

/// Renders why a transition could be taken, one line for each reason.
fn reasons(taken: &Taken, by: &str) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(condition) = &taken.condition {
        out.push(format!("because `{}` is true", clean(condition)));
    }
    if !taken.roles.is_empty() {
        out.push(format!("{by} has the role {}", clean(&taken.roles.join(" and "))));
    }
    if !taken.not_by.is_empty() {
        out.push(format!("{by} is somebody else than {}", clean(&taken.not_by.join(" and "))));
    }
    if let Some(quorum) = &taken.quorum {
        let before: Vec<String> = quorum.votes.iter().flatten().map(|id| clean(id)).collect();
        let voters = before.iter().map(String::as_str).chain([by]).collect::<Vec<_>>().join(", ");
        out.push(format!("the quorum of {} is reached: {voters}", quorum.count));
    }
    for met in &taken.requires {
        let name = format!("{} {}", clean(&met.kind), clean(met.key.as_deref().unwrap_or_default()));
        let held = met.condition.as_ref().map(|c| format!(", whose condition `{}` is true", clean(c)));
        let left = met.uses.map(|uses| format!(", which had {} left", count(uses, "use")));
        out.push(match met.demand {
            "use" => format!("uses the permit {name}{}{}", left.unwrap_or_default(), held.unwrap_or_default()),
            "open" => format!("the obligation {name} is open"),
            _ => format!("no {} is open", clean(&met.kind)),
        });
    }
    out.extend(taken.read.iter().map(|(path, value)| format!("{} was {}", clean(path), short(value, 200))));
    out
}

fn taken(record: &Record, why: &[Taken], paint: Paint, out: &mut Vec<String>) {
    let text = |value: &Json, key: &str| value.get(key).and_then(Json::as_str).map(clean).unwrap_or_default();
    for (place, name) in record.transitions.iter().enumerate() {
        out.push(format!("  transition {}", paint.strong(&clean(name))));
        // Both are in the order in which the transitions were taken.
        let Some(taken) = why.get(place) else {
            continue;
        };
        let inner = taken.event.as_ref().filter(|event| **event != *record.event.r#type);
        out.extend(inner.map(|event| format!("    for `{}`, which followed inside the step", clean(event))));
        out.extend(reasons(taken, &clean(&record.by.id)).into_iter().map(|line| format!("    {line}")));
    }
    for approval in &record.approvals {
        out.push(format!(
            "  approved `{}`, digest {}",
            clean(&approval.approves),
            clean(&short_digest_text(&approval.digest))
        ));
    }
    for entry in &record.ledger {
        let left = entry.get("uses").and_then(Json::as_u64).filter(|uses| *uses > 0);
        let left = left.map(|uses| format!(", {} left", count(uses, "use"))).unwrap_or_default();
        let [kind, key, status] = ["kind", "key", "status"].map(|member| text(entry, member));
        out.push(format!("  ledger: {kind} {key} is {status}{left}"));
    }
    for effect in &record.effects {
        let what = match text(effect, "src") {
            _ if is_log(effect) => format!("log {}", logged(effect)),
            // What ends is an invocation; what is emitted is an event.
            src if src.is_empty() => {
                let named = ["invocation", "type"].map(|key| text(effect, key)).into_iter().find(|n| !n.is_empty());
                format!("{} {}", text(effect, "kind"), named.unwrap_or_default()).trim_end().to_owned()
            }
            src => format!("{} {src}", text(effect, "kind")),
        };
        out.push(format!("  effect: {what}"));
    }
    for timer in &record.timers {
        let due = timer.due.map(|due| format!(", due {}", when(due)));
        out.push(format!("  timer {}: {}{}", timer.what.word(), timer.timer, due.unwrap_or_default()));
    }
    for note in record.note_messages() {
        out.push(format!("  {}: {}", paint.warning("note"), clean(&note)));
    }
    if let Some(status) = record.status.filter(|s| s.is_finished()) {
        out.push(format!("  the run is {}", paint.strong(status.word())));
    }
}
