//! `step` sessions: a run in memory that reads lines of JSON and writes one output line for each.

mod input;
mod keys;
mod output;
mod principal;

use charter_kernel::{Event, Explanation, Machine, Timestamp};
use serde_json::Value as Json;

use crate::lines::{self, RawLine};
use crate::session::{EndlessTimers, RoundTripError, Session, StepOutcome};
use input::{InputError, InputLine};
use keys::{IdempotencyKeys, KeyUse};

/// A run in memory that reads and writes lines of JSON.
pub struct StepSession<'m> {
    session: Session<'m>,
    keys: IdempotencyKeys,
}

/// The result of one input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineResult {
    /// The input was accepted or ignored, or is a vote or a late answer. A repeated id is always
    /// accepted, regardless of the first result.
    Accepted,
    /// The input was refused.
    Refused,
    /// The input line is not valid; nothing has changed.
    Invalid,
}

#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error("the line is longer than {} MiB", lines::MAX_BYTES >> 20)]
    TooLong,
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    EventId(#[from] charter_run::Denied),
    #[error(transparent)]
    Timers(#[from] EndlessTimers),
    #[error(transparent)]
    Restore(#[from] RoundTripError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl<'m> StepSession<'m> {
    /// Starts a run. Appends the output line of the start, accepted or refused, to `out`.
    ///
    /// # Errors
    /// Returns the explanation of the refusal if the start is refused.
    pub fn start(
        machine: &'m Machine,
        run: &str,
        input: Json,
        at: impl Into<Timestamp>,
        out: &mut Vec<u8>,
    ) -> Result<StepSession<'m>, Box<Explanation>> {
        match Session::start(machine, run, input, at) {
            Ok((session, outcome)) => {
                // Writing to memory fails only for values that cannot be converted to JSON, and
                // there are none here.
                drop(output::write(out, &outcome, None, session.snapshot()));
                Ok(StepSession { session, keys: IdempotencyKeys::default() })
            }
            Err(explanation) => {
                drop(output::write_refused_start(out, &explanation));
                Err(explanation)
            }
        }
    }

    /// Applies an input line. `number` is the number of the line, counted from 1. Appends the
    /// output line to `out`.
    pub fn line(&mut self, number: u64, line: &RawLine<'_>, out: &mut Vec<u8>) -> LineResult {
        let before = out.len();
        let result = match line {
            RawLine::Bytes(bytes) => self.apply(bytes, out),
            RawLine::TooLong => Err(LineError::TooLong),
        };
        result.unwrap_or_else(|error| {
            out.truncate(before);
            output::write_error(out, number, &error.to_string());
            LineResult::Invalid
        })
    }

    /// The run.
    #[must_use]
    pub fn session(&self) -> &Session<'m> {
        &self.session
    }

    /// Fires timers on a virtual clock until the run is finished or has no timers left.
    ///
    /// # Errors
    /// Returns an error if the timers of the run never settle.
    pub fn run_out(&mut self) -> Result<(), EndlessTimers> {
        self.session.run_out().map(drop)
    }

    /// Applies one line. If it returns an error, nothing has changed.
    fn apply(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<LineResult, LineError> {
        let mut line = InputLine::parse(bytes)?;
        let session = &mut self.session;
        if let InputLine::Event { event, has_data: false, .. } = &mut line
            && let Event::External { r#type, data } = &mut event.event
        {
            *data = session.machine().absent_data(r#type);
        }
        if let InputLine::Event { id: Some(id), .. } = &line {
            charter_run::check_event_id(session.snapshot().run(), id, false)?;
        }
        let before = session.snapshot().clone();
        let start = out.len();
        let mut new_key = None;
        let outcome = match line {
            InputLine::Tick(until) => session.tick(until)?,
            InputLine::Restore => session.restore()?,
            InputLine::Event { event, id: None, .. } => session.apply(*event),
            InputLine::Event { event, id: Some(id), .. } => match self.keys.look_up(&id, &event) {
                KeyUse::Repeated(line) => {
                    out.extend_from_slice(line);
                    return Ok(LineResult::Accepted);
                }
                KeyUse::Conflict(seq) => session.refuse_reused_id(*event, &id, seq),
                KeyUse::New(content) => {
                    new_key = Some((id, content));
                    session.apply(*event)
                }
            },
        };
        output::write(out, &outcome, Some(&before), session.snapshot())?;
        if let Some((id, content)) = new_key {
            self.keys.insert(id, content, outcome.seq, out.get(start..).unwrap_or_default());
        }
        Ok(result_of(&outcome))
    }
}

fn result_of(outcome: &StepOutcome<'_>) -> LineResult {
    match outcome.refusal {
        Some(_) => LineResult::Refused,
        None => LineResult::Accepted,
    }
}
