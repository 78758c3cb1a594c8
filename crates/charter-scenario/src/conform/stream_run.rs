//! One run of a stream. Checks an item against the run's snapshot, which a refused item does not
//! change.

use std::collections::HashMap;

use charter_expr::EvalError;
use charter_kernel::{
    Effect, EffectKind, Event, Explanation, Machine, Refusal, Snapshot, TakenKeys, Timestamp, Verdict,
};
use charter_run::{Incoming, Position};
use rustc_hash::FxHasher;
use serde_json::Value as Json;

use super::item::Item;
use crate::session::MAX_FIRINGS;

/// A run of the stream.
#[derive(Debug, Default)]
pub struct StreamRun {
    /// The position of the run; its snapshot is `None` until an item is accepted.
    pub(crate) position: Position,
    /// The keys of the ids of accepted items, each with a hash of the content; see `Judge::key`.
    ids: HashMap<(u64, u64), u64, std::hash::BuildHasherDefault<FxHasher>>,
    /// The number of accepted items.
    pub accepted: u64,
    /// The number of refused items.
    pub refused: u64,
}

/// The result of an accepted item.
pub(super) struct Accepted {
    /// The states of the run before and after the item.
    pub(super) from: String,
    pub(super) to: String,
    pub(super) at: Timestamp,
    pub(super) logs: Vec<String>,
}

/// The result of a refused item.
pub(super) struct Refused {
    pub(super) from: Option<String>,
    pub(super) code: String,
    pub(super) message: String,
}

/// The properties of the stream that are needed to check an item.
pub(super) struct ItemContext<'m> {
    pub(super) machine: &'m Machine,
    pub(super) fixed: Option<Timestamp>,
    pub(super) last: Timestamp,
}

impl ItemContext<'_> {
    /// Checks an item against the snapshot of its run. `key` contains the id of the item and a hash
    /// of its content; `keys` are the unique keys of all runs of the stream.
    pub(super) fn judge(
        &self,
        run: &mut StreamRun,
        item: Item,
        input: Result<Json, EvalError>,
        key: Option<((u64, u64), u64)>,
        keys: &mut TakenKeys,
        fast: bool,
    ) -> Result<Accepted, Refused> {
        let own_time = match self.fixed {
            Some(at) => Ok(Some(at)),
            None => item.at,
        };
        let at = match own_time {
            Ok(Some(at)) => at,
            // An item without a time gets the time of the previous item.
            _ => run.position.snapshot().map_or(self.last, |_| run.position.last()),
        };
        let mut position = match run.position.snapshot() {
            Some(_) => run.position.clone(),
            None => self.start(&item.run, input, at)?,
        };
        let mut logs = Vec::new();
        self.fire(&mut position, &item.run, at, &mut logs);
        let Some(snapshot) = position.snapshot() else {
            return Err(Refused { from: None, code: "finished".into(), message: "the run has not started".into() });
        };
        let from = state(snapshot);
        let event = Event::External { r#type: item.kind, data: item.data };
        let unique = keys.look_up(self.machine, &event, &item.by);
        let envelope = position.envelope(Incoming { to: item.to, event, by: item.by, expected_seq: None, unique }, at);
        let refused =
            |code: &str, message: String| Refused { from: Some(from.clone()), code: code.to_owned(), message };
        let known = key.and_then(|(key, content)| run.ids.get(&key).map(|old| *old == content));
        let done = match fast {
            true => self.machine.step_checked(snapshot, &envelope),
            false => self.machine.step(snapshot, &envelope),
        };
        // An event that fails validation is not a duplicate of an event that passed it.
        let fails_validation = |refusal: &Refusal| {
            use charter_kernel::Code::{Authority, Schema, TooLarge, UnknownEvent};
            matches!(refusal.code, Authority | Schema | TooLarge | UnknownEvent)
        };
        if let Some(same) = known.filter(|_| !done.as_ref().is_err_and(fails_validation)) {
            let stream = self.machine.definition().stream.as_ref();
            let rule = stream.and_then(|s| s.duplicate.as_deref());
            let said = rule.and_then(|rule| self.machine.say(rule, snapshot, &envelope));
            let content = match same {
                true => "same content",
                false => "different content",
            };
            let said = said.unwrap_or_else(|| "duplicate id: an item with this id was accepted before".into());
            return Err(refused(rule.unwrap_or("duplicate"), format!("{said} ({content})")));
        }
        let step = done.map_err(|refusal| {
            if fast {
                // The slow path will check the item again and explain the refusal.
                return refused(refusal.code.word(), String::new());
            }
            let explanation = self.machine.explain_briefly(Some(snapshot), &envelope, &refusal);
            let Explanation { code, message, rule, .. } = explanation;
            refused(rule.as_deref().unwrap_or(code.word()), message)
        })?;
        if let Err(error) = own_time {
            return Err(refused("schema", error.to_string()));
        }
        if step.verdict == Verdict::Accepted {
            keys.take(&item.run, &envelope);
        }
        log(&step.effects, &mut logs);
        let to = state(&step.snapshot);
        position.advance(&envelope, Ok(step.snapshot));
        run.position = position;
        if let Some((key, content)) = key {
            run.ids.insert(key, content);
        }
        Ok(Accepted { from, to, at, logs })
    }

    fn start(&self, run: &str, input: Result<Json, EvalError>, at: Timestamp) -> Result<Position, Refused> {
        let refused = |code: &str, message: String| Refused { from: None, code: code.to_owned(), message };
        let input = input.map_err(|m| refused("schema", format!("cannot determine the input of the run: {m}")))?;
        let mut position = Position::new();
        let (envelope, step) = position.take(self.machine, run, Incoming::host(Event::Start { input }), at);
        match step {
            Ok(_) => Ok(position),
            Err(refusal) => {
                let explanation = self.machine.explain(None, &envelope, &refusal);
                let message = format!("the run cannot start: {}", explanation.message);
                Err(refused(explanation.code.word(), message))
            }
        }
    }

    /// Fires the timers that are due by the time of the item, each at its own time.
    fn fire(&self, position: &mut Position, run: &str, at: Timestamp, logs: &mut Vec<String>) {
        for _ in 0..=MAX_FIRINGS {
            let Some((due, incoming)) = position.due(at) else {
                return;
            };
            if let Ok(step) = position.take(self.machine, run, incoming, due).1 {
                log(&step.effects, logs);
            }
        }
    }
}

/// Appends the values that the charter logs, as text.
fn log(effects: &[Effect], logs: &mut Vec<String>) {
    for effect in effects {
        if let EffectKind::Log { label, value } = &effect.kind {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            logs.push(match label {
                Some(label) => format!("{label}: {text}"),
                None => text,
            });
        }
    }
}

/// The active states, as text.
pub(crate) fn state(snapshot: &Snapshot) -> String {
    let root = snapshot.actor("root");
    let mut states = root.iter().flat_map(|actor| actor.state());
    let mut text = states.next().unwrap_or_default().to_owned();
    for state in states {
        text.push_str(", ");
        text.push_str(state);
    }
    text
}
