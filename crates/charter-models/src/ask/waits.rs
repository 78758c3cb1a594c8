//! What a request waits for, and how much its answer may take.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use charter_actors::Fault;

use super::{Asking, MIN_TOKENS, POLL, fault_of};
use crate::codes;
use crate::limits::{Full, Permit};
use crate::transport::TransportError;

/// The limit of tokens of an answer, and what to do if it is too low.
pub(super) struct Limit {
    pub(super) tokens: u32,
    pub(super) advice: Cow<'static, str>,
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
        let left = self.question.budget.time.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            let seconds = self.question.budget.time.as_secs_f32();
            return Err(Fault::new(codes::BUDGET, format!("the time budget of {seconds} s is used up")).retryable());
        }
        Ok(left)
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
            let left = self.question.budget.time.saturating_sub(self.begun.elapsed());
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
