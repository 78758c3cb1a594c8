//! Converts the state of the automaton into the types of the interface.

use charter_journal::{Fields, export_header};
use charter_kernel::{Machine, Principal};
use ic_stable_structures::Memory;
use serde_json::Value as Json;

use crate::api::{
    Check, Events, ExportArgs, ExportPart, LastError, Outcome, PAGE_BYTES, Page, Reason, Record, Refusal, Refused,
    Runtime, Skill, Soul, Task, TurnEnd, TurnInFlight,
};
use crate::automaton::Automaton;
use crate::charter::built_in_digest;
use crate::error::CanisterError;
use crate::projection::duration;
use crate::stable::LastTurn;

/// Maximum number of records that [`check`] reads, before the last one.
const CHECKED: u64 = 100;

fn ms(at: i64) -> u64 {
    u64::try_from(at).unwrap_or_default()
}

/// Returns the refusal of a record, if it has one.
pub(crate) fn refusal(record: &Fields<'_>, machine: Option<&Machine>) -> Option<Refusal> {
    let why = record.explanation(machine)?;
    Some(Refusal {
        seq: record.seq,
        code: why.code.word().into(),
        message: why.message,
        state: record.state.iter().map(ToString::to_string).collect(),
        legal: why.legal,
    })
}

/// Renders the messages of the projection's refusals, which are stored without them.
pub(crate) fn say_refusals<M: Memory + Clone>(a: &Automaton<M>, refused: &mut [Refused]) -> Result<(), CanisterError> {
    for row in refused {
        let record = a.stable.log.record(row.seq)?;
        let why = record.explanation(Some(&a.charter().machine));
        row.message = why.map(|why| why.message).unwrap_or_default();
    }
    Ok(())
}

pub(crate) fn turn_end(turn: &LastTurn) -> TurnEnd {
    TurnEnd {
        number: turn.number,
        id: turn.id.clone(),
        outcome: Outcome::of(&turn.outcome),
        reply: turn.reply.clone(),
        failure: turn.failure.clone(),
        began: turn.began.clone(),
        ended: turn.ended.clone(),
        duration_ms: duration(&turn.began, &turn.ended),
        seq: turn.seq,
    }
}

/// Returns the state of the automaton.
pub(crate) fn runtime<M: Memory + Clone>(a: &Automaton<M>, now: i64, by: &Principal) -> Runtime {
    let view = a.stable.view();
    let machine = &a.charter().machine;
    let legal = a.snapshot().map(|s| machine.legal(s, by, now));
    Runtime {
        run: a.run().chain().run().into(),
        charter: a.charter().stored.digest.to_string(),
        built_in: built_in_digest().to_string(),
        state: view.state.clone(),
        turn: view.turn.as_ref().map(|t| TurnInFlight {
            number: t.number,
            id: t.id.clone(),
            reason: t.reason.clone(),
            began: t.began.clone(),
            until: t.until.clone(),
        }),
        looping: view.looping,
        turns: view.turns,
        last_turn: view.last_turn.as_ref().map(turn_end),
        last_error: view.last_error.as_ref().map(|e| LastError {
            reason: e.reason.clone(),
            turn: e.turn,
            at: e.at.clone(),
        }),
        soul_version: soul(a).version,
        next_due_ms: a.next_due().map(ms),
        first: a.stable.log.first(),
        end: a.stable.log.end(),
        head: a.run().chain().hash().to_string(),
        legal: legal.into_iter().flatten().map(|l| l.r#type).collect(),
    }
}

/// Returns the tasks that wait for a person.
pub(crate) fn tasks<M: Memory + Clone>(a: &Automaton<M>) -> Vec<Task> {
    let tasks = a.tasks().into_iter().map(|task| Task {
        id: task.effect,
        actor: task.actor,
        src: task.src,
        title: task.title,
        roles: task.by,
        input: task.input.to_string(),
        output: task.output.map(|schema| schema.to_string()),
    });
    tasks.collect()
}

/// Shortens a text of a caller for a message.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Reads the soul from the stable map.
pub(crate) fn soul<M: Memory + Clone>(a: &Automaton<M>) -> Soul {
    let version = a.stable.setting("soul.version").and_then(|v| v.parse().ok());
    Soul { text: a.stable.setting("soul.text").unwrap_or_default(), version: version.unwrap_or_default() }
}

/// Reads the skills from the stable map.
pub(crate) fn skills<M: Memory + Clone>(a: &Automaton<M>) -> Vec<Skill> {
    let read = |(name, text): (String, String)| {
        let json: Json = serde_json::from_str(&text).unwrap_or_default();
        let word = |key: &str| {
            let value = json.get(key).and_then(Json::as_str);
            value.unwrap_or_default().to_owned()
        };
        Skill {
            description: word("description"),
            instructions: word("instructions"),
            enabled: json.get("enabled").and_then(Json::as_bool) == Some(true),
            source: word("source"),
            version: word("version"),
            name,
        }
    };
    a.stable.skills().into_iter().map(read).collect()
}

/// Returns a page of the log.
///
/// # Errors
/// A record is damaged.
pub(crate) fn events<M: Memory + Clone>(a: &Automaton<M>, page: &Page) -> Result<Events, CanisterError> {
    let (first, end) = (a.stable.log.first(), a.stable.log.end());
    let begin = page.from.unwrap_or(first).max(first);
    let stop = end.min(begin.saturating_add(page.limit().into()));
    let mut events = Vec::new();
    let mut bytes = 0usize;
    let mut next = begin;
    while next < stop && bytes < PAGE_BYTES {
        let r = a.stable.log.record(next)?;
        bytes = bytes.saturating_add(r.text().len());
        events.push(Record {
            seq: r.seq,
            id: r.id.to_string(),
            at_ms: ms(r.at.0),
            kind: r.event.r#type.to_string(),
            data: charter_kernel::digest::canonical(&r.event.data),
            by: r.by.id.clone(),
            roles: r.by.roles.clone(),
            by_kind: r.by.kind().word().into(),
            by_auth: r.by.auth().word().into(),
            verdict: r.verdict.word().into(),
            from: r.from.iter().map(ToString::to_string).collect(),
            state: r.state.iter().map(ToString::to_string).collect(),
            transitions: r.transitions.iter().map(ToString::to_string).collect(),
            refusal: refusal(&r, Some(&a.charter().machine)).map(|f| Reason { code: f.code, message: f.message }),
            prev: r.prev.to_string(),
            hash: r.hash.to_string(),
        });
        next = next.saturating_add(1);
    }
    Ok(Events { events, next: (next < end).then_some(next), first, end })
}

/// Returns a part of the exported journal.
///
/// # Errors
/// A record is damaged, or was dropped since the export began.
pub fn export<M: Memory + Clone>(a: &Automaton<M>, args: &ExportArgs) -> Result<ExportPart, CanisterError> {
    let log = &a.stable.log;
    let to = args.to.unwrap_or(log.end()).min(log.end());
    let mut text = String::new();
    let mut next = match args.from {
        Some(from) => from,
        None => {
            let anchor = log.anchor()?.map(|a| (a.record, a.snapshot));
            let head = log.record(to.saturating_sub(1))?.hash;
            let run = a.run().chain().run();
            text.push_str(&export_header(run, to, head, &a.charter().stored, anchor));
            text.push('\n');
            log.first()
        }
    };
    while next < to && text.len() < PAGE_BYTES {
        let line = log.text(next).ok_or_else(|| {
            CanisterError::Stable(format!("record {next} is no longer stored; export again from the start"))
        })?;
        text.push_str(&line);
        text.push('\n');
        next = next.saturating_add(1);
    }
    Ok(ExportPart { text, next: (next < to).then_some(next), to })
}

/// Checks whether the stored data agrees with the run.
pub(crate) fn check<M: Memory + Clone>(a: &Automaton<M>) -> Check {
    let log = &a.stable.log;
    let last = log.end().saturating_sub(1);
    let begin = log.first().max(last.saturating_sub(CHECKED));
    let mut chain = true;
    let mut before: Option<charter_kernel::Digest> = None;
    for seq in begin..=last {
        match log.record(seq) {
            Ok(r) if r.is_intact() && before.is_none_or(|hash| r.prev == hash) => {
                before = Some(r.hash);
            }
            _ => chain = false,
        }
    }
    chain &= before == Some(a.run().chain().hash());
    let named = log.record(last).ok().map(|r| r.snapshot);
    let digest = a.snapshot().map(|s| a.charter().machine.snapshot_digest(s));
    let kept = a.stable.snapshot().ok().flatten();
    let kept = kept.map(|text| charter_kernel::Digest::of_bytes(text.as_bytes()));
    Check {
        differences: a.snapshot().map(|s| a.stable.differences(s)).unwrap_or_default(),
        snapshot: named.is_some() && named == digest && named == kept,
        chain,
    }
}

#[cfg(test)]
mod tests {
    use ic_stable_structures::DefaultMemoryImpl;
    use ic_stable_structures::memory_manager::{MemoryId, MemoryManager};
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::log::Bounds;
    use charter_run::{EventInput, Input};

    fn start(input: Json) -> Result<Automaton<impl Memory + Clone>, CanisterError> {
        let memories = MemoryManager::init(DefaultMemoryImpl::default());
        let memory = |id| memories.get(MemoryId::new(id));
        let by = Principal::new("ana", &["controller"]);
        Automaton::start(memory, "a", Bounds::default(), 0, input, by)
    }

    #[test]
    fn schema_errors_are_reported_once() {
        let error = start(json!({"loop": 1})).err().unwrap();
        assert_eq!(
            error.to_string(),
            "the charter refuses to start: the input does not match the charter's `input` schema: \
             at `/loop`: 1 is not of type \"boolean\""
        );
        let mut automaton = start(json!({})).ok().unwrap();
        let ana = Principal::new("ana", &["controller"]);
        let wake = EventInput::new("WakeRequested", json!({"reason": 1}), ana);
        let made = automaton.handle(0, Input::Event(wake)).unwrap();
        assert_eq!(
            refusal(&made.result.unwrap(), None).unwrap().message,
            "the data of `WakeRequested` does not match its schema: at `/reason`: 1 is not of type \"string\""
        );
    }
}
