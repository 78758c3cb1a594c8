//! Several models, one after another: the next one answers if a server is unavailable, limits the
//! rate, refuses every output mode, or uses up its part of the time.

use std::time::Instant;

use charter_actors::Fault;
use serde_json::Value as Json;

use crate::ask::{Budget, Question, REFUSED_MODES, SECONDS, Share, ask_after};
use crate::codes;
use crate::exchange::Exchange;
use crate::model::Model;
use crate::transport::Transport;
use crate::watcher::Watcher;

/// Asks the models until one answers, within the one budget of the question. The time is shared
/// among the models that are left, so that a server that does not answer leaves some for the next.
/// `raise` is what gives them more.
pub(crate) fn ask_in_turn(
    first: &Question<'_>,
    fallback: &[Model],
    raise: &'static str,
    transport: &dyn Transport,
    watcher: &dyn Watcher,
) -> (Result<Json, Fault>, Vec<Exchange>) {
    let (begun, whole) = (Instant::now(), first.budget);
    let (mut question, mut next) = (*first, fallback.iter());
    let mut exchanges: Vec<Exchange> = Vec::new();
    loop {
        let earlier = match watcher.earlier() {
            Ok(earlier) => earlier,
            Err(fault) => return (Err(fault), exchanges),
        };
        if exchanges.is_empty() {
            question.budget.tokens = question.budget.tokens.saturating_sub(earlier.taken.total());
        }
        // The model of a cassette takes no time.
        let further = next.as_slice().iter().filter(|model| !model.recorded).count();
        let shares = u32::try_from(further).unwrap_or(u32::MAX).saturating_add(1);
        let time = question.budget.time.checked_div(shares).unwrap_or_default();
        let share = Share { time, all: whole.time, raise };
        let (answer, exchange) = ask_after(&earlier, share, &question, transport, watcher);
        question.budget.tokens = question.budget.tokens.saturating_sub(exchange.usage.total());
        exchanges.push(exchange);
        let fault = match answer {
            Err(fault) if passes_on(&fault) && watcher.go_on() => fault,
            answer => return (answer, exchanges),
        };
        let Some(model) = next.next() else {
            return (Err(fault), exchanges);
        };
        watcher.note(&format!("{}; asking `{}` instead", fault.message, model.title()));
        question.model = model;
        question.budget = Budget { time: whole.time.saturating_sub(begun.elapsed()), ..question.budget };
    }
}

/// Whether another model should be asked after this fault.
fn passes_on(fault: &Fault) -> bool {
    match fault.code.as_str() {
        // A cassette lacks what could not be recorded: servers that could not be reached.
        codes::UNAVAILABLE | codes::RATE_LIMITED | codes::PROTOCOL | codes::CASSETTE => true,
        codes::BUDGET => fault.details.contains_key(SECONDS),
        codes::REQUEST => fault.details.contains_key(REFUSED_MODES),
        _ => false,
    }
}
