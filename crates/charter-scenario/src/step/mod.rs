//! `step` sessions: a run in memory that reads lines of JSON and writes one output line for each.

mod input;
mod keys;
mod output;
mod principal;
mod start;

use charter_kernel::{Event, Explanation, Machine, Principal, Timestamp};
use serde_json::{Value as Json, json};

use crate::lines::{self, RawLine};
use crate::session::{EndlessTimers, RoundTripError, Session, StepOutcome};
use input::{InputError, InputLine};
use keys::{IdempotencyKeys, KeyUse};
pub use start::StartLine;

/// A run in memory that reads and writes lines of JSON.
pub struct StepSession<'m> {
    session: Session<'m>,
    keys: IdempotencyKeys,
    /// Whether no line was applied yet.
    is_new: bool,
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
    /// Reads how a run starts from the first line of its input, `{"start": {input, by, at}}`;
    /// `None` if the line is another one.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn start_line(line: &RawLine<'_>) -> Result<Option<StartLine>, String> {
        let RawLine::Bytes(bytes) = line else { return Ok(None) };
        // Any other mistake is reported with the line.
        if !bytes.trim_ascii_start().starts_with(b"{") || !bytes.windows(7).any(|part| part == b"\"start\"") {
            return Ok(None);
        }
        match InputLine::parse(bytes) {
            Ok(InputLine::Start(start)) => Ok(Some(start)),
            Ok(_) => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    }

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
        let start = StartLine { input: Some(input), by: None, at: Some(at.into()) };
        StepSession::start_as(machine, run, start, out)
    }

    /// Starts a run as a line says: without an input with `{}`, without a time in 1970, and without
    /// a sender by the system.
    ///
    /// # Errors
    /// As [`StepSession::start`].
    pub fn start_as(
        machine: &'m Machine,
        run: &str,
        start: StartLine,
        out: &mut Vec<u8>,
    ) -> Result<StepSession<'m>, Box<Explanation>> {
        let input = start.input.unwrap_or_else(|| json!({}));
        let (by, at) = (start.by.unwrap_or_else(Principal::system), start.at.unwrap_or(Timestamp(0)));
        match Session::start_by(machine, run, input, by, at) {
            Ok((session, outcome)) => {
                // Writing to memory fails only for values that cannot be converted to JSON, and
                // there are none here.
                drop(output::write(out, &outcome, None, session.snapshot()));
                Ok(StepSession { session, keys: IdempotencyKeys::default(), is_new: true })
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

    /// Starts the run as the first line says, instead of as it was started.
    fn start_again(&mut self, start: StartLine, out: &mut Vec<u8>) -> Result<LineResult, LineError> {
        if !self.is_new {
            return Err(InputError::Started.into());
        }
        let (machine, run) = (self.session.machine(), self.session.snapshot().run().to_owned());
        let start = StartLine { at: start.at.or(Some(self.session.at())), ..start };
        match StepSession::start_as(machine, &run, start, out) {
            Ok(session) => {
                *self = StepSession { is_new: false, ..session };
                Ok(LineResult::Accepted)
            }
            Err(_) => Ok(LineResult::Refused),
        }
    }

    /// Applies one line. If it returns an error, nothing has changed.
    fn apply(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<LineResult, LineError> {
        let mut line = InputLine::parse(bytes)?;
        if let InputLine::Start(start) = line {
            return self.start_again(start, out);
        }
        self.is_new = false;
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
            // It was handled above.
            InputLine::Start(_) => return Err(InputError::Started.into()),
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
