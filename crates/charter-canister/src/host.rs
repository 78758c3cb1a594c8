//! The canister as a host: keeps the automaton between messages, wakes it on time, and answers each
//! invocation in a separate message.
//!
//! A turn is a chain of messages. Each step is in stable memory before its message ends. An
//! invocation is answered in another message (a call of the canister to itself), so a trap there
//! rolls back only that message, and the rejection becomes the answer. If the chain breaks (a trap
//! in a callback, an upgrade), the turn is ended by the charter's timers (the timeout of the
//! invocation or the lease of the turn) or by [`resume`].

use std::cell::{Cell, RefCell};
use std::time::Duration;

use charter_journal::Record;
use charter_run::{Denied, Fault, Input, InvocationRequest};
use ic_cdk::api::{canister_self, debug_print, time};
use ic_cdk::call::Call;
use ic_cdk_timers::{TimerId, clear_timer, set_timer};
use serde_json::Value as Json;

use crate::api::{Error, Work};
use crate::automaton::{Automaton, Committed};
use crate::error::CanisterError;
use crate::log::Bounds;
use crate::platform::{Memory, memory, set_up, with_sql};
use crate::projection::Projection;

/// Delay before retrying a timer whose message trapped.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// Maximum length of the stored message of a trap, in characters.
const MAX_REASON: usize = 512;

/// The state that the heap holds between messages; it is restored from stable memory after an
/// upgrade.
pub(crate) struct Canister {
    pub(crate) automaton: Automaton<Memory>,
    pub(crate) projection: Projection,
}

thread_local! {
    static CANISTER: RefCell<Option<Canister>> = const { RefCell::new(None) };
    /// The armed timer: due time in milliseconds since 1970, and its id.
    static ARMED: Cell<Option<(i64, TimerId)>> = const { Cell::new(None) };
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    i64::try_from(time() / 1_000_000).unwrap_or(i64::MAX)
}

/// Rolls back the current message by trapping.
fn undo(why: &CanisterError) -> ! {
    ic_cdk::api::trap(format!("the automaton cannot continue: {why}"))
}

/// Accesses the canister; traps if it has not been initialized.
pub(crate) fn with<R>(f: impl FnOnce(&mut Canister) -> R) -> R {
    CANISTER.with_borrow_mut(|canister| match canister {
        Some(canister) => f(canister),
        None => undo(&CanisterError::Stable("it has not been opened".into())),
    })
}

/// Creates the automaton.
pub(crate) fn begin(bounds: Bounds, input: Json, by: charter_kernel::Principal) {
    set_up();
    let run = canister_self().to_text();
    let made = Automaton::start(memory, &run, bounds, now(), input, by);
    hold(made.unwrap_or_else(|e| undo(&e)));
}

/// Restores the automaton after an upgrade, answers interrupted invocations, and sets its timers.
pub(crate) fn resume() {
    set_up();
    let mut automaton = Automaton::open(memory).unwrap_or_else(|e| undo(&e));
    if let Err(e) = automaton.recover(now()) {
        undo(&e);
    }
    hold(automaton);
}

fn hold(mut automaton: Automaton<Memory>) {
    let prepared = Projection::open(&automaton)
        .and_then(|mut projection| with_sql(|sql| projection.prepare(sql, &mut automaton)).map(|()| projection));
    let projection = prepared.unwrap_or_else(|e| undo(&e));
    CANISTER.set(Some(Canister { automaton, projection }));
    settle();
}

/// Passes an input to the automaton; traps if the automaton cannot continue.
fn handle(work: impl FnOnce(&mut Automaton<Memory>) -> Result<Committed, CanisterError>) -> Result<Committed, Denied> {
    match with(|c| work(&mut c.automaton)) {
        Ok(made) => Ok(made),
        Err(CanisterError::Denied(denied)) => Err(denied),
        Err(e) => undo(&e),
    }
}

/// Passes an answer or the passing of time to the automaton. The input has no record if the
/// automaton does not wait for it.
fn pass(work: impl FnOnce(&mut Automaton<Memory>) -> Result<Committed, CanisterError>) {
    if let Err(denied) = handle(work) {
        debug_print(denied.to_string());
    }
}

/// Gives the automaton an input of a caller. Returns its record, which is not a refusal, and
/// whether the event is a repeated one.
pub(crate) fn give(input: Input) -> Result<(Record, bool), Error> {
    let made = handle(|automaton| automaton.handle(now(), input));
    let made = made.map_err(|denied| match denied {
        Denied::NoTask { .. } => Error::NotFound { message: denied.to_string() },
        _ => Error::Denied { message: denied.to_string() },
    })?;
    let Some(record) = made.result else {
        return Err(Error::Denied { message: "the run does not wait for this, so there is no record".into() });
    };
    match with(|c| crate::view::refusal(&record, Some(&c.automaton.charter().machine))) {
        None => Ok((record, made.repeated)),
        Some(refusal) => Err(Error::Refused(refusal)),
    }
}

/// Ends a message: updates the projection and sets the timer.
pub(crate) fn settle() {
    let behind = with(|c| {
        // A turn is projected after it has ended, in one transaction.
        if c.automaton.in_turn() {
            return Ok(false);
        }
        with_sql(|sql| c.projection.catch_up(sql, &mut c.automaton))
    });
    if let Err(e) = &behind {
        debug_print(e.to_string());
    }
    arm(behind.unwrap_or(false));
}

/// Sets the timer: to now if work is left, otherwise to the charter's next timer.
fn arm(at_once: bool) {
    let due = match at_once || with(|c| c.automaton.has_request(now())) {
        true => Some(now()),
        false => with(|c| c.automaton.next_due()),
    };
    let armed = ARMED.get();
    // An overdue timer is set again.
    if armed.map(|(at, _)| at) == due && due.is_some_and(|at| at > now()) {
        return;
    }
    if let Some((_, timer)) = armed {
        clear_timer(timer);
    }
    ARMED.set(due.map(|due| {
        let ns = u128::try_from(due).unwrap_or_default().saturating_mul(1_000_000);
        let left = ns.saturating_sub(time().into());
        let delay = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX / 4));
        (due, set_timer(delay.min(MAX_DELAY), woken()))
    }));
}

/// Maximum delay of a timer; after it, the timer is set again.
const MAX_DELAY: Duration = Duration::from_secs(365 * 86_400);

/// Handles the timer. Another timer is set first, in case anything here traps.
async fn woken() {
    let later = now().saturating_add(i64::try_from(RETRY_DELAY.as_millis()).unwrap_or(60_000));
    ARMED.set(Some((later, set_timer(RETRY_DELAY, again()))));
    match Call::unbounded_wait(canister_self(), "tick").await {
        Ok(_) => drive().await,
        Err(e) => debug_print(format!("the message of the timer failed: {e}")),
    }
}

/// Like [`woken`], but boxed, because the two call each other.
fn again() -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async { woken().await })
}

/// Handles the message of the timer: fires the charter's timers that are due.
pub(crate) fn tick() {
    pass(|automaton| automaton.handle(now(), Input::Due));
}

/// Answers requested invocations one after the other until none is left. The caller of `wake` waits
/// here for the end of the turn.
pub(crate) async fn drive() {
    while let Some(request) = with(|c| c.automaton.take_request(now())) {
        // This message ends at the call; from here on, the timers guard the turn.
        arm(false);
        if let Some(result) = invoke(&request).await {
            pass(|automaton| automaton.attempted(now(), &request, result));
        }
    }
    settle();
}

/// Answers an invocation in a separate message. Returns `None` if the run no longer waits for it.
async fn invoke(request: &InvocationRequest) -> Option<Result<Json, Fault>> {
    let call = Call::unbounded_wait(canister_self(), "work").with_args(&(request.effect.seq, request.effect.index));
    let broke = |what: &str, why: String| {
        let why: String = why.chars().take(MAX_REASON).collect();
        Err(Fault::new("panic", format!("the adapter of `{}` {what}: {why}", request.src)))
    };
    let read = |text: String| serde_json::from_str::<Json>(&text);
    let answer = match call.await {
        Ok(response) => response.candid::<Work>(),
        Err(e) => return Some(broke("failed", e.to_string())),
    };
    match answer {
        Ok(Work::Gone) => None,
        Ok(Work::Done(text)) => Some(match read(text) {
            Ok(output) => Ok(output),
            Err(e) => broke("did not return JSON", e.to_string()),
        }),
        Ok(Work::Error(text)) => Some(match read(text) {
            Ok(error) => Err(Fault::read(&error)),
            Err(e) => broke("did not return JSON", e.to_string()),
        }),
        Err(e) => Some(broke("did not answer", e.to_string())),
    }
}

/// Computes the answer to an effect; writes nothing.
pub(crate) fn work(seq: u64, index: u32) -> Work {
    let effect = charter_kernel::EffectId { seq, index };
    match with(|c| c.automaton.perform(effect)) {
        None => Work::Gone,
        Some(Ok(output)) => Work::Done(output.to_string()),
        Some(Err(fault)) => Work::Error(fault.json().to_string()),
    }
}

/// Drops the projection; timers rebuild it in portions.
pub(crate) fn replay() -> Result<(), Error> {
    let dropped = with(|c| with_sql(|sql| c.projection.anew(sql, &mut c.automaton)));
    dropped.map_err(failed)?;
    settle();
    Ok(())
}

pub(crate) fn failed(e: CanisterError) -> Error {
    Error::Failed { message: e.to_string() }
}
