//! The inputs of a trace, as a host receives them.

use std::fmt;

use charter_kernel::{EffectId, Principal};
use charter_run::{EventInput, Fault, Input};
use serde_json::Value as Json;

/// An input of a trace.
#[derive(Debug, Clone)]
pub enum TraceInput {
    /// The start of the run.
    Start {
        /// Its input.
        input: Json,
        /// The principal that starts it.
        by: Principal,
    },
    /// Events that arrive at the same moment, in this order; then, before the host has acted on
    /// them, the end of an attempt.
    Batch(Vec<EventInput>, Option<AttemptInput>),
    /// A person answers a task.
    Task {
        /// The effect that requested the task.
        effect: EffectId,
        /// The answer.
        answer: TaskAnswer,
        /// The person.
        by: Principal,
    },
    /// Only time has passed.
    Due,
}

/// The answer of a person to a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskAnswer {
    /// The task is done; its output.
    Done(Json),
    /// The person declines; the reason.
    Declined(String),
}

impl TaskAnswer {
    /// Returns the input of the run for this answer.
    #[must_use]
    pub fn input(&self, effect: EffectId, by: &Principal) -> Input {
        let outcome = match self {
            TaskAnswer::Done(output) => Ok(output.clone()),
            TaskAnswer::Declined(reason) => Err(Fault::declined(reason, by).json()),
        };
        Input::Settled { effect, outcome, by: by.clone() }
    }
}

/// An attempt is over: what the executor returns.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptInput {
    /// The effect that requested the invocation.
    pub effect: EffectId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The output, or the failure before the host has decided whether to retry.
    pub result: Result<Json, Fault>,
}

impl fmt::Display for TraceInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceInput::Start { input, by } => write!(f, "{} starts the run with {input}", who(by)),
            TraceInput::Batch(events, attempt) => {
                for (index, event) in events.iter().enumerate() {
                    let and = if index == 0 { "" } else { " AND " };
                    write!(f, "{and}{} sends {} {}", who(&event.by), event.r#type, event.data)?;
                    if let Some(to) = &event.to {
                        write!(f, " to `{to}`")?;
                    }
                    if let Some(id) = &event.id {
                        write!(f, ", id `{id}`")?;
                    }
                    if let Some(seq) = event.expected_seq {
                        write!(f, ", expecting record {seq}")?;
                    }
                }
                match attempt {
                    Some(attempt) if events.is_empty() => write!(f, "{attempt}"),
                    Some(attempt) => write!(f, " AND {attempt}"),
                    None => Ok(()),
                }
            }
            TraceInput::Task { effect, answer, by } => {
                write!(f, "{} answers task {}/{}: {answer:?}", who(by), effect.seq, effect.index)
            }
            TraceInput::Due => f.write_str("time passes"),
        }
    }
}

impl fmt::Display for AttemptInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EffectId { seq, index } = self.effect;
        write!(f, "attempt {} of {seq}/{index} ends: ", self.attempt)?;
        match &self.result {
            Ok(output) => write!(f, "{output}"),
            Err(fault) => write!(f, "{}{}", fault.code, if fault.retryable { " (may be retried)" } else { "" }),
        }
    }
}

fn who(by: &Principal) -> String {
    format!("{} {:?}", by.id, by.roles)
}
