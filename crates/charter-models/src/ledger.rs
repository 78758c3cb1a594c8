//! Budgets of a host: what all questions of an actor, of a run and of a day may take together. The
//! journal tells what was spent; the ledger adds what open questions may still spend.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use charter_actors::{Call, Fault, PICODOLLARS, UsageFilter};
use charter_kernel::Timestamp;

use crate::ask::MIN_TOKENS;
use crate::codes;
use crate::exchange::Usage;
use crate::model::Model;
use crate::price::show;
use crate::watcher::Granted;

/// Milliseconds in a day.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// A limit of tokens and money; `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowance {
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money, in picodollars.
    pub cost: Option<u64>,
}

impl Allowance {
    fn is_none(&self) -> bool {
        self.tokens.is_none() && self.cost.is_none()
    }
}

/// The budgets of a host, across retries, restarts and all processes that have had its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budgets {
    /// Of each actor in each run.
    pub actor: Allowance,
    /// Of each run.
    pub run: Allowance,
    /// Of all runs in a day (UTC).
    pub day: Allowance,
}

/// What open questions may spend.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    claims: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    next: u64,
    open: BTreeMap<(u64, usize, String), Claim>,
}

#[derive(Debug, Clone)]
struct Claim {
    run: Arc<str>,
    actor: Arc<str>,
    tokens: u64,
    cost: u64,
}

/// The questions of one attempt of an actor. Once dropped, they claim nothing any more: what they
/// spent must be in the journal by then.
pub(crate) struct Account<'a> {
    ledger: &'a Ledger,
    budgets: &'a Budgets,
    call: &'a Call,
    actor: Arc<str>,
    number: u64,
}

impl Ledger {
    pub(crate) fn account<'a>(&'a self, budgets: &'a Budgets, call: &'a Call) -> Account<'a> {
        let mut claims = self.lock();
        claims.next = claims.next.wrapping_add(1);
        Account { ledger: self, budgets, call, actor: call.name().into(), number: claims.next }
    }

    fn lock(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account<'_> {
    /// Grants tokens for the answer to a request, at most `wanted`, and claims what it may cost.
    /// `spent` is what the earlier requests of the question took, and `question` the estimated
    /// tokens of this one.
    pub(crate) fn grant(
        &self,
        call: usize,
        model: &Model,
        spent: Usage,
        question: u64,
        wanted: u32,
    ) -> Result<Granted, Fault> {
        let mut granted = Granted { tokens: wanted, short: None };
        let mut claims = self.ledger.lock();
        let own = (self.number, call, model.title());
        let run = self.call.run.clone();
        let now = self.call.clock().now();
        let midnight = Timestamp(now.0.saturating_sub(now.0.rem_euclid(DAY)));
        let of_run = UsageFilter { run: Some(run.clone()), ..UsageFilter::default() };
        let scopes = [
            ("actor", &self.budgets.actor, UsageFilter { actor: Some(self.actor.clone()), ..of_run.clone() }),
            ("run", &self.budgets.run, of_run),
            ("day", &self.budgets.day, UsageFilter { since: Some(midnight), ..UsageFilter::default() }),
        ];
        for (scope, allowance, filter) in scopes.into_iter().filter(|(_, allowance, _)| !allowance.is_none()) {
            let totals = self.call.host().usage(&filter).map_err(|e| Fault::new("journal", e.to_string()))?;
            let Some(totals) = totals else {
                let message = format!("this host does not count tokens, so that `budget.{scope}` cannot be kept");
                return Err(Fault::new(codes::CONFIG, message));
            };
            let (mut tokens, mut cost) = (totals.tokens().saturating_add(spent.total()), totals.cost);
            let others = claims.open.iter().filter(|(key, claim)| {
                **key != own
                    && filter.run.as_ref().is_none_or(|run| *run == claim.run)
                    && filter.actor.as_ref().is_none_or(|actor| *actor == claim.actor)
            });
            for (_, claim) in others {
                tokens = tokens.saturating_add(claim.tokens);
                cost = cost.saturating_add(claim.cost);
            }
            if let Some(limit) = allowance.tokens {
                let left = limit.saturating_sub(tokens);
                let what =
                    || format!("{left} of {limit} tokens are left, and the question alone takes about {question}");
                let raise = format!("budget.{scope}.tokens");
                granted.lower(left.saturating_sub(question), &raise, what)?;
            }
            if let Some(limit) = allowance.cost {
                let raise = format!("budget.{scope}.usd");
                let Some(price) = model.price else {
                    let message = format!(
                        "`{raise}` is set, and the price of `{title}` is unknown: add `[prices.\"{title}\"]` to the file of `--models`",
                        title = model.title()
                    );
                    return Err(Fault::new(codes::CONFIG, message));
                };
                let left = limit.saturating_sub(cost.saturating_add(price.cost(spent)));
                let takes = price.cost(Usage { input: question, ..Usage::default() });
                let what = || {
                    let [left, limit, takes] = [left, limit, takes].map(show);
                    format!("{left} of {limit} is left, and the question alone takes about {takes}")
                };
                let affordable = match left.checked_sub(takes) {
                    None => 0,
                    Some(rest) => rest.checked_div(price.output).unwrap_or(u64::MAX),
                };
                granted.lower(affordable, &raise, what)?;
            }
        }
        let most = Usage { input: question, output: granted.tokens.into(), ..Usage::default() };
        self.claim(&mut claims, own, model, [spent, most]);
        Ok(granted)
    }

    /// Claims only what a question has spent: it has ended, and is not in the journal yet.
    pub(crate) fn settle(&self, call: usize, model: &Model, spent: Usage) {
        let own = (self.number, call, model.title());
        self.claim(&mut self.ledger.lock(), own, model, [spent, Usage::default()]);
    }

    fn claim(&self, claims: &mut Claims, own: (u64, usize, String), model: &Model, parts: [Usage; 2]) {
        let mut claim = Claim { run: self.call.run.clone(), actor: self.actor.clone(), tokens: 0, cost: 0 };
        for usage in parts {
            claim.tokens = claim.tokens.saturating_add(usage.total());
            claim.cost = claim.cost.saturating_add(model.price.map_or(0, |price| price.cost(usage)));
        }
        claims.open.insert(own, claim);
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.ledger.lock().open.retain(|(number, ..), _| *number != self.number);
    }
}

impl Granted {
    /// Lowers the grant to the tokens that a budget leaves for the answer.
    fn lower(&mut self, room: u64, raise: &str, what: impl Fn() -> String) -> Result<(), Fault> {
        if room < MIN_TOKENS {
            let message = format!("the budget is used up: {}; raise `{raise}` in the file of `--models`", what());
            return Err(Fault::new(codes::BUDGET, message).with("budget", raise));
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        if room < self.tokens {
            self.tokens = room;
            self.short = Some(format!("the budget allows no more; raise `{raise}` in the file of `--models`"));
        }
        Ok(())
    }
}

/// The largest amount of a budget, in picodollars.
pub const MAX_COST: u64 = 1_000_000 * PICODOLLARS;
