//! The canister as a host: holds the automaton between messages, wakes it in time, and has its work done in messages of its own.
//!
//! A turn is a chain of messages. Each step ends in stable memory before the message that made it ends; the work that it asks for is done
//! in another one (a call of the canister to itself), so a trap there undoes nothing but itself, and its rejection is the run's answer.
//! Nobody drives a turn whose chain breaks in the middle (a trap in a callback, an upgrade): then the charter's timers end it (the time of
//! an invocation, the lease of the turn), or [`resume`] does.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use charter_journal::Record;
use ic_cdk::api::{canister_self, debug_print, time};
use ic_cdk::call::Call;
use ic_cdk_timers::{TimerId, clear_timer, set_timer};
use serde_json::Value as Json;

use crate::api::{Error, Work};
use crate::automaton::{Asked, Automaton, Mail};
use crate::error::Broken;
use crate::log::Bounds;
use crate::platform::{Memory, memory, set_up, with_sql};
use crate::projection::Projection;
use crate::work::fault;

/// After this time a timer's work is tried again if it trapped.
const AGAIN: Duration = Duration::from_secs(60);

/// How much of a trap's message is kept.
const MAX_REASON: usize = 512;

/// What the heap holds between messages; all of it is made again from stable memory after an upgrade.
pub(crate) struct Canister {
    pub(crate) automaton: Automaton<Memory>,
    pub(crate) projection: Projection,
}

thread_local! {
    static CANISTER: RefCell<Option<Canister>> = const { RefCell::new(None) };
    /// The timer that is set: for when (milliseconds since 1970), and which.
    static ARMED: Cell<Option<(i64, TimerId)>> = const { Cell::new(None) };
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    i64::try_from(time() / 1_000_000).unwrap_or(i64::MAX)
}

/// Undoes the message.
fn undo(why: &Broken) -> ! {
    ic_cdk::api::trap(format!("the automaton cannot go on: {why}"))
}

/// The canister; a message that finds none is undone.
pub(crate) fn with<R>(f: impl FnOnce(&mut Canister) -> R) -> R {
    CANISTER.with_borrow_mut(|canister| match canister {
        Some(canister) => f(canister),
        None => undo(&Broken::Stable("it has not been opened".into())),
    })
}

/// A new automaton.
pub(crate) fn begin(bounds: Bounds, input: Json, by: charter_kernel::Principal) {
    set_up();
    let run = canister_self().to_text();
    let made = Automaton::start(memory, &run, bounds, now(), input, by);
    hold(made.unwrap_or_else(|e| undo(&e)));
}

/// The automaton after an upgrade: as it was, what was at work answered for, its timers set again.
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

/// Gives something to the automaton.
fn handle(mail: Mail) -> Vec<Record> {
    let made = with(|c| c.automaton.handle(now(), mail));
    made.unwrap_or_else(|e| undo(&e))
}

/// Gives an event to the automaton, in the name of a caller.
pub(crate) fn send(r#type: &str, data: Json, by: charter_kernel::Principal) -> Result<Record, Error> {
    let r#type = r#type.to_owned();
    let made = handle(Mail::Event { r#type, data, by });
    let Some(record) = made.into_iter().next_back() else {
        return Err(Error::Failed { message: "nothing was written".into() });
    };
    match with(|c| crate::view::refusal(&record, Some(&c.automaton.charter().machine))) {
        None => Ok(record),
        Some(refusal) => Err(Error::Refused(refusal)),
    }
}

/// What every message ends with: the projection is brought up to date, the timer is set.
pub(crate) fn settle() {
    let behind = with(|c| {
        // A turn is projected when it has ended, in one transaction.
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

/// Sets the timer for what comes next: at once if something is left to do, else when the charter's next timer is due.
fn arm(at_once: bool) {
    let due = match at_once || with(|c| c.automaton.has_work()) {
        true => Some(now()),
        false => with(|c| c.automaton.next_due()),
    };
    let armed = ARMED.get();
    // One that should have fired already is set anew.
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
        (due, set_timer(delay.min(AN_AGE), woken()))
    }));
}

/// No timer is set for later than this; it is set anew then.
const AN_AGE: Duration = Duration::from_secs(365 * 86_400);

/// The timer has fired. First another one is set, which is what is left if anything here traps.
async fn woken() {
    let later = now().saturating_add(i64::try_from(AGAIN.as_millis()).unwrap_or(60_000));
    ARMED.set(Some((later, set_timer(AGAIN, again()))));
    match Call::unbounded_wait(canister_self(), "tick").await {
        Ok(_) => drive().await,
        Err(e) => debug_print(format!("the timer could not do its work: {e}")),
    }
}

/// As [`woken`]; boxed, because one leads to the other.
fn again() -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async { woken().await })
}

/// The timer's own message: fires what is due.
pub(crate) fn tick() {
    handle(Mail::Due);
}

/// Has the work done that was asked for, one after the other, until there is none. Who asked for a turn waits here for its end.
pub(crate) async fn drive() {
    while let Some(asked) = with(|c| c.automaton.take_work()) {
        // This message ends at the call: from here on the timers watch over the turn.
        arm(false);
        if let Some(outcome) = ask(&asked).await {
            handle(Mail::Answer { invocation: asked.invocation, effect: asked.effect, outcome });
        }
    }
    settle();
}

/// Has a piece of work done in a message of its own. None: nobody waits for it any more.
async fn ask(asked: &Asked) -> Option<Result<Json, Json>> {
    let call = Call::unbounded_wait(canister_self(), "work").with_args(&(asked.effect.seq, asked.effect.index));
    let broke = |what: &str, why: String| {
        let why: String = why.chars().take(MAX_REASON).collect();
        Err(fault("panic", &format!("the adapter of `{}` {what}: {why}", asked.actor)))
    };
    let read = |text: String| serde_json::from_str::<Json>(&text);
    let answer = match call.await {
        Ok(response) => response.candid::<Work>(),
        Err(e) => return Some(broke("broke down", e.to_string())),
    };
    match answer {
        Ok(Work::Gone) => None,
        Ok(Work::Done(text)) => Some(match read(text) {
            Ok(output) => Ok(output),
            Err(e) => broke("gave no JSON", e.to_string()),
        }),
        Ok(Work::Error(text)) => Some(match read(text) {
            Ok(error) => Err(error),
            Err(e) => broke("gave no JSON", e.to_string()),
        }),
        Err(e) => Some(broke("gave no answer", e.to_string())),
    }
}

/// The work of an effect; nothing is written here.
pub(crate) fn work(seq: u64, index: u32) -> Work {
    let effect = charter_kernel::EffectId { seq, index };
    match with(|c| c.automaton.perform(effect)) {
        None => Work::Gone,
        Some(Ok(output)) => Work::Done(output.to_string()),
        Some(Err(error)) => Work::Error(error.to_string()),
    }
}

/// Makes the projection anew: drops it; timers fill it in portions.
pub(crate) fn replay() -> Result<(), Error> {
    let dropped = with(|c| with_sql(|sql| c.projection.anew(sql, &mut c.automaton)));
    dropped.map_err(failed)?;
    settle();
    Ok(())
}

pub(crate) fn failed(e: Broken) -> Error {
    Error::Failed { message: e.to_string() }
}
