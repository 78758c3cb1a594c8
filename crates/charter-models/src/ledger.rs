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

impl Budgets {
    /// Says which of these models needs a price, if there is a budget of money.
    pub(crate) fn lacks_price(&self, models: &[Model]) -> Option<String> {
        let scopes = [("actor", self.actor), ("run", self.run), ("day", self.day)];
        let (scope, _) = scopes.into_iter().find(|(_, allowance)| allowance.cost.is_some())?;
        models.iter().find(|model| model.price.is_none()).map(|model| without_price(scope, model))
    }
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
    /// What the question has spent and is not in the journal yet.
    spent: Amount,
    /// The most that its present request may take.
    reserved: Amount,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    tokens: u64,
    cost: u64,
}

impl Amount {
    fn of(model: &Model, usage: Usage) -> Amount {
        Amount { tokens: usage.total(), cost: model.price.map_or(0, |price| price.cost(usage)) }
    }

    fn plus(self, other: Amount) -> Amount {
        Amount { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.saturating_add(other.cost) }
    }
}

/// The questions of one attempt of an actor. Once dropped, they claim nothing any more.
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

/// A request for which tokens are wanted.
#[derive(Clone, Copy)]
pub(crate) struct TokenRequest<'a> {
    /// Index among the parallel calls of the actor.
    pub(crate) call: usize,
    pub(crate) model: &'a Model,
    /// What earlier requests of the question took that is not in the journal yet.
    pub(crate) spent: Usage,
    /// The estimated tokens of this request.
    pub(crate) question: u64,
    /// Tokens for its answer.
    pub(crate) tokens: u32,
}

impl Account<'_> {
    /// Grants tokens for the answer to a request, and reserves what it may cost; `None`: other open
    /// questions have reserved a part, which they may leave over.
    pub(crate) fn grant(&self, wanted: TokenRequest<'_>) -> Result<Option<Granted>, Fault> {
        let mut claims = self.ledger.lock();
        let own = self.key(&wanted);
        let spent = Amount::of(wanted.model, wanted.spent);
        let (mut least, mut most) = (wanted.granted(), wanted.granted());
        for (scope, allowance, filter) in self.scopes() {
            let totals = self.call.host().usage(&filter).map_err(|e| Fault::new("journal", e.to_string()))?;
            let Some(totals) = totals else {
                let message = format!("this host does not count tokens, so that `budget.{scope}` cannot be kept");
                return Err(Fault::new(codes::CONFIG, message));
            };
            let mut gone = spent.plus(Amount { tokens: totals.tokens(), cost: totals.cost });
            let mut reserved = Amount::default();
            let others = claims.open.iter().filter(|(key, claim)| {
                **key != own
                    && filter.run.as_ref().is_none_or(|run| *run == claim.run)
                    && filter.actor.as_ref().is_none_or(|actor| *actor == claim.actor)
            });
            for (_, claim) in others {
                gone = gone.plus(claim.spent);
                reserved = reserved.plus(claim.reserved);
            }
            most.lower(scope, allowance, &wanted, gone)?;
            // Its error only says that others have reserved everything.
            if least.lower(scope, allowance, &wanted, gone.plus(reserved)).is_err() {
                least.tokens = 0;
            }
        }
        let is_settled = least.tokens == most.tokens;
        let answer = Usage { input: wanted.question, output: most.tokens.into(), ..Usage::default() };
        let reserved = if is_settled { Amount::of(wanted.model, answer) } else { Amount::default() };
        claims.open.insert(own, self.claim(spent, reserved));
        Ok(is_settled.then_some(most))
    }

    /// The budgets that are set, and the questions that count.
    fn scopes(&self) -> impl Iterator<Item = (&'static str, &Allowance, UsageFilter)> {
        let of_run = UsageFilter { run: Some(self.call.run.clone()), ..UsageFilter::default() };
        let now = self.call.clock().now();
        let midnight = Timestamp(now.0.saturating_sub(now.0.rem_euclid(DAY)));
        let scopes = [
            ("actor", &self.budgets.actor, UsageFilter { actor: Some(self.actor.clone()), ..of_run.clone() }),
            ("run", &self.budgets.run, of_run),
            ("day", &self.budgets.day, UsageFilter { since: Some(midnight), ..UsageFilter::default() }),
        ];
        scopes.into_iter().filter(|(_, allowance, _)| !allowance.is_none())
    }

    /// Claims nothing any more for a question: what it took is in the journal.
    pub(crate) fn written(&self, call: usize, model: &Model) {
        self.ledger.lock().open.remove(&(self.number, call, model.title()));
    }

    fn key(&self, wanted: &TokenRequest<'_>) -> (u64, usize, String) {
        (self.number, wanted.call, wanted.model.title())
    }

    fn claim(&self, spent: Amount, reserved: Amount) -> Claim {
        Claim { run: self.call.run.clone(), actor: self.actor.clone(), spent, reserved }
    }
}

/// Says that a budget of money cannot be kept, and what to add.
fn without_price(scope: &str, model: &Model) -> String {
    let title = model.title();
    format!(
        "`budget.{scope}.usd` is set, and the price of `{title}` is unknown: add `[prices.\"{title}\"]` with `input` and `output` to the file of `--models`"
    )
}

impl TokenRequest<'_> {
    fn granted(&self) -> Granted {
        Granted { tokens: self.tokens, short: None }
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.ledger.lock().open.retain(|(number, ..), _| *number != self.number);
    }
}

impl Granted {
    /// Lowers the grant to what a budget leaves for the answer if `gone` is spent.
    fn lower(
        &mut self,
        scope: &str,
        allowance: &Allowance,
        wanted: &TokenRequest<'_>,
        gone: Amount,
    ) -> Result<(), Fault> {
        if let Some(limit) = allowance.tokens {
            let (left, question) = (limit.saturating_sub(gone.tokens), wanted.question);
            let what = format!("{left} of {limit} tokens are left, and the question alone takes about {question}");
            self.at_most(left.saturating_sub(question), &format!("budget.{scope}.tokens"), &what)?;
        }
        if let Some(limit) = allowance.cost {
            let raise = format!("budget.{scope}.usd");
            let Some(price) = wanted.model.price else {
                return Err(Fault::new(codes::CONFIG, without_price(scope, wanted.model)));
            };
            let left = limit.saturating_sub(gone.cost);
            let takes = price.cost(Usage { input: wanted.question, ..Usage::default() });
            let rest = left.checked_sub(takes).map(|rest| rest.checked_div(price.output).unwrap_or(u64::MAX));
            let [left, limit, takes] = [left, limit, takes].map(show);
            let what = format!("{left} of {limit} is left, and the question alone takes about {takes}");
            self.at_most(rest.unwrap_or(0), &raise, &what)?;
        }
        Ok(())
    }

    fn at_most(&mut self, room: u64, raise: &str, what: &str) -> Result<(), Fault> {
        if room < MIN_TOKENS {
            let message = format!("the budget is used up: {what}; raise `{raise}` in the file of `--models`");
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
