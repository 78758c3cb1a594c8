//! Keys that at most one event may have, across all runs of a journal: `unique` of an event. The
//! host looks the key up before the step and reserves it with the record; the kernel computes it
//! again, so that no event passes with another key or without an answer of the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_expr::{Env, Program, RootId, Scope, Type, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::budget::Budget;
use crate::envelope::{Envelope, Event};
use crate::event::Ev;
use crate::machine::{EventInfo, Machine};
use crate::principal::Principal;
use crate::refusal::{Cause, Code, ExpressionError, Refusal};
use crate::step::{Step, Verdict};
use crate::validate;

/// Maximum length of a key that is a string, in bytes.
pub const MAX_KEY_BYTES: usize = 256;

/// The largest integer that every JSON reader represents exactly.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// What a host knows about the unique key of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object with `key`")]
pub struct Unique {
    /// The key ([`Machine::unique_key`]): a string, an integer or a boolean.
    pub key: Json,
    /// The run that has the key; `None`: no run has it, and the host reserves it with the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<String>,
}

/// Returns the environment of keys.
pub(crate) fn env() -> Env {
    let mut env = Env::new();
    for name in ["event", "by"] {
        env.root(name, Type::Dyn);
    }
    env
}

/// What the expression of a key reads.
struct KeyScope<'a> {
    event: &'a Ev<'a>,
    by: &'a Principal,
}

impl<'a> Scope<'a> for KeyScope<'a> {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        match id.0 {
            0 => Some(Value::object(self.event)),
            1 => Some(Value::object(self.by)),
            _ => None,
        }
    }
}

impl Machine {
    /// The type of the first event that has a key which is unique across runs. A host that cannot
    /// reserve keys does not run such a charter.
    #[must_use]
    pub fn unique_event(&self) -> Option<&str> {
        self.events.list.iter().find(|i| i.unique.is_some()).map(|i| i.name.as_ref())
    }

    /// Computes the unique key of an event. `None` if events of its type have none, or if it cannot
    /// be computed: then the kernel refuses the event.
    #[must_use]
    pub fn unique_key(&self, event: &str, data: &Json, by: &Principal) -> Option<Json> {
        let id = self.events.id(event);
        let program = self.events.info(id)?.unique.as_ref()?;
        let budget = Budget::new(&self.definition.limits);
        let data = validate::validate_event(data, &self.definition.limits, &budget).ok()?;
        self.key(program, &Ev::external(&self.events, id, event, &data), by, &budget).ok()
    }

    /// Whether events of a type have a unique key.
    pub(crate) fn has_key(&self, event: &str) -> bool {
        self.events.info(self.events.id(event)).is_some_and(|info| info.unique.is_some())
    }

    /// Checks that the host has looked up the key of an event, and that no run has it.
    pub(crate) fn check_unique(
        &self,
        info: Option<&EventInfo>,
        envelope: &Envelope,
        ev: &Ev<'_>,
        budget: &Budget,
    ) -> Result<(), Refusal> {
        match (info.and_then(|i| i.unique.as_ref()), &envelope.unique) {
            (None, _) => no_key(envelope),
            (Some(program), known) => {
                let key = self.key(program, ev, &envelope.by, budget)?;
                match known {
                    Some(Unique { key: same, taken_by: None }) if *same == key => Ok(()),
                    Some(Unique { key: same, taken_by: Some(run) }) if *same == key => {
                        Err(Refusal::because(Code::Taken, Cause::Taken { key, run: run.clone() }))
                    }
                    _ => Err(Code::Unreserved.into()),
                }
            }
        }
    }

    fn key(&self, program: &Program, event: &Ev<'_>, by: &Principal, budget: &Budget) -> Result<Json, Refusal> {
        let limit = self.definition.limits.expression;
        let mut fuel = budget.lend(limit);
        let result = program.eval(&KeyScope { event, by }, &mut fuel);
        budget.settle(limit, &fuel, result.is_err());
        budget.check()?;
        let cause = |error, found| {
            let cause = Cause::Key { expression: program.source().to_owned(), error, found };
            Err(Refusal::because(Code::Schema, cause))
        };
        match result {
            Err(e) => cause(Some(ExpressionError::from(&e)), None),
            Ok(value) => match key_of(&value) {
                Ok(key) => Ok(key),
                Err(found) => cause(None, Some(found)),
            },
        }
    }
}

/// Refuses an event that has no unique key, but for which the host names one: the journal would
/// reserve it with the record.
pub(crate) fn no_key(envelope: &Envelope) -> Result<(), Refusal> {
    match &envelope.unique {
        None => Ok(()),
        Some(_) => Err(Code::Unreserved.into()),
    }
}

/// Returns the key that a value is, or what it is instead.
fn key_of(value: &Value<'_>) -> Result<Json, String> {
    let integer = |n: i64| match n.checked_abs().is_some_and(|n| n <= MAX_INTEGER) {
        true => Ok(Json::from(n)),
        false => Err(format!("the integer {n}, which is beyond 2^53-1")),
    };
    match value {
        Value::Bool(b) => Ok(Json::Bool(*b)),
        Value::Int(n) => integer(*n),
        Value::Uint(n) => integer(i64::try_from(*n).unwrap_or(i64::MAX)),
        other => match other.as_str() {
            Some(text) if (1..=MAX_KEY_BYTES).contains(&text.len()) => Ok(text.into()),
            Some(text) => Err(format!("a string of {} bytes", text.len())),
            None => Err(format!("of type {}", other.type_name())),
        },
    }
}

/// The keys that runs have: what hosts without a store, such as scenarios, look up and reserve.
/// Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenKeys {
    /// Event type and key as canonical JSON -> run.
    runs: Arc<BTreeMap<(String, String), String>>,
}

impl TakenKeys {
    /// Looks up the key of an event, for [`Envelope::unique`].
    #[must_use]
    pub fn look_up(&self, machine: &Machine, event: &Event, by: &Principal) -> Option<Unique> {
        let Event::External { r#type, data } = event else {
            return None;
        };
        let key = machine.unique_key(r#type, data, by)?;
        let taken_by = self.run(r#type, &key).map(str::to_owned);
        Some(Unique { key, taken_by })
    }

    /// Returns the run that has a key.
    #[must_use]
    pub fn run(&self, event: &str, key: &Json) -> Option<&str> {
        self.runs.get(&(event.to_owned(), crate::digest::canonical(key))).map(String::as_str)
    }

    /// Gives a key to a run, unless another run has it.
    pub fn insert(&mut self, event: &str, key: &Json, run: &str) {
        let entry = Arc::make_mut(&mut self.runs).entry((event.to_owned(), crate::digest::canonical(key)));
        entry.or_insert_with(|| run.to_owned());
    }

    /// Gives the key of an event to the run that has accepted it.
    pub fn note(&mut self, run: &str, envelope: &Envelope, outcome: &Result<Step, Refusal>) {
        if outcome.as_ref().is_ok_and(|step| step.verdict == Verdict::Accepted) {
            self.take(run, envelope);
        }
    }

    /// Gives the key of an accepted event to its run.
    pub fn take(&mut self, run: &str, envelope: &Envelope) {
        if let (Event::External { r#type, .. }, Some(unique)) = (&envelope.event, &envelope.unique) {
            self.insert(r#type, &unique.key, run);
        }
    }
}
