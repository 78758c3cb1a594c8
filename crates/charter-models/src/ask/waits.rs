//! What a request waits for, and how much its answer may take.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use charter_actors::Fault;

use super::{Asking, MIN_TOKENS, POLL, fault_of};
use crate::codes;
use crate::limits::{Full, Permit};
use crate::transport::TransportError;

/// Detail of a fault: the time of the actor is used up.
pub(crate) const SECONDS: &str = "seconds";

/// The limit of tokens of an answer, and what to do if it is too low.
pub(super) struct Limit {
    pub(super) tokens: u32,
    pub(super) advice: Cow<'static, str>,
}

/// The part of the time of an actor that one of its models has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// The part.
    pub(crate) time: Duration,
    /// The time of all its models.
    pub(crate) all: Duration,
    /// What has to be raised for more.
    pub(crate) raise: &'static str,
}

impl Asking<'_> {
    /// The limit of the next answer, after a question of about so many tokens.
    pub(super) fn limit(&self, question: u64) -> Result<Limit, Fault> {
        let (budget, used) = (self.question.budget.tokens, self.exchange.usage.total());
        let left = budget.saturating_sub(used);
        let room = left.saturating_sub(question);
        if room < MIN_TOKENS {
            let message = format!(
                "the token budget is used up: {left} of {budget} are left, and the question alone takes about {question}; raise `budget.tokens`"
            );
            return Err(Fault::new(codes::BUDGET, message).with("tokens", used));
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let wanted = self.question.settings.max_tokens.unwrap_or(self.question.model.max_tokens);
        let (wanted, advice) = match room < wanted {
            true => (room, "the token budget allows no more; raise `budget.tokens`"),
            false => (wanted, "raise `maxTokens` of the actor; thinking counts, too"),
        };
        let granted = self.watcher.grant(self.question.model, self.exchange.unwritten(), question, wanted)?;
        Ok(Limit { tokens: granted.tokens, advice: granted.short.map_or(Cow::Borrowed(advice), Cow::Owned) })
    }

    pub(super) fn time_left(&self) -> Result<Duration, Fault> {
        let left = self.rest();
        if left.is_zero() { Err(self.time_is_up("there is no answer yet")) } else { Ok(left) }
    }

    /// Whether there is time for a call of a tool, which does not shorten the part of the model.
    pub(super) fn time_for_tools(&self) -> Result<(), Fault> {
        let is_over = self.begun.elapsed() >= self.question.budget.time;
        if is_over { Err(self.time_is_up("there is no answer yet")) } else { Ok(()) }
    }

    /// The rest of the time. What tools take does not shorten the part of a model.
    fn rest(&self) -> Duration {
        let elapsed = self.begun.elapsed();
        let part = self.share.time.saturating_sub(elapsed.saturating_sub(self.acted));
        self.question.budget.time.saturating_sub(elapsed).min(part)
    }

    /// The fault if the time of the model is over.
    pub(super) fn time_is_up(&self, what: &str) -> Fault {
        let Share { time, all, raise } = self.share;
        let (seconds, whole) = (time.as_secs_f32(), all.as_secs_f32());
        let time = match time < all {
            true => format!("the part of `{}`, {seconds:.1} of {whole} s, is used up", self.exchange.model),
            false => format!("the time of {whole} s is used up"),
        };
        Fault::new(codes::BUDGET, format!("{time}: {what}; raise {raise}")).retryable().with(SECONDS, whole)
    }

    /// Waits until the limits of the provider allow a request.
    pub(super) fn permit(&self) -> Result<Option<Permit>, Fault> {
        let model = self.question.model;
        let Some(limits) = &model.limits else {
            return Ok(None);
        };
        let mut told = false;
        loop {
            let full = match limits.enter() {
                Ok(permit) => return Ok(Some(permit)),
                Err(full) => full,
            };
            let left = self.rest();
            let wait = if let Full::Sent(_, wait) = full { wait } else { POLL };
            if wait >= left {
                let message = format!("the limit of this host for `{}` is reached: {full}", model.host);
                return Err(Fault::new(codes::RATE_LIMITED, message).retryable());
            }
            if !told {
                self.watcher.note(&format!("waiting: `{}` has a limit of {full}", model.host));
                told = true;
            }
            self.pause(POLL)?;
        }
    }

    pub(super) fn pause(&self, wait: Duration) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            if !self.watcher.go_on() {
                return Err(fault_of(&TransportError::Cancelled));
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }
}
