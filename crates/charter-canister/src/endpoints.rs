//! The methods of the canister. Only controllers may change its state; anyone may read it. Other
//! callers are rejected before any work.
//!
//! Each method checks the caller and the size of the input, then calls [`crate::host`] or
//! [`crate::view`].

use charter_kernel::{Auth, Principal, PrincipalKind};
use ic_cdk::api::{accept_message, canister_self, is_controller, msg_caller, msg_method_name};
use ic_cdk::{init, inspect_message, post_upgrade, query, update};
use serde_json::{Value as Json, json};

use crate::api::{
    Check, Error, Events, ExportArgs, ExportPart, History, Inference, InitArgs, MAX_INPUT_BYTES, NewSkill, Page,
    Projection, Receipt, Refusals, Runtime, Setting, Skill, Soul, TurnEnd, Turns, TurnsQuery, WakeArgs, Work, limit,
};
use crate::host::{self, drive, failed, send, settle, with};
use crate::log::Bounds;
use crate::platform::with_sql;
use crate::view;

/// Methods that only the canister itself may call.
const OWN: [&str; 2] = ["work", "tick"];

/// Minimum number of records in a segment of the log.
const MIN_SEGMENT_RECORDS: u64 = 16;

/// Returns a caller as a principal. The network checks the signature of every call; only the
/// anonymous caller has none.
fn controller(caller: candid::Principal) -> Principal {
    let by = Principal::new(&caller.to_text(), &["controller"]);
    let auth = if caller == candid::Principal::anonymous() { Auth::None } else { Auth::Key };
    by.of_kind(kind_of(caller)).authenticated(auth)
}

/// Returns what a caller is: its id says whether it belongs to a canister or to a key, and keys
/// count as persons.
fn kind_of(caller: candid::Principal) -> PrincipalKind {
    /// The last byte of the ids that the network gives to canisters.
    const OPAQUE: u8 = 1;
    match caller.as_slice().last() {
        Some(&OPAQUE) => PrincipalKind::Service,
        _ => PrincipalKind::Person,
    }
}

/// Returns the caller as a principal. Fails if it is not a controller.
fn authorized() -> Result<Principal, Error> {
    let caller = msg_caller();
    match is_controller(&caller) {
        true => Ok(controller(caller)),
        false => Err(Error::Unauthorized { caller }),
    }
}

/// Fails unless the canister calls itself.
fn own() -> Result<(), Error> {
    let caller = msg_caller();
    match caller == canister_self() {
        true => Ok(()),
        false => Err(Error::Unauthorized { caller }),
    }
}

fn within(what: &str, parts: &[&str]) -> Result<(), Error> {
    let bytes = parts.iter().fold(0usize, |n, p| n.saturating_add(p.len()));
    match bytes <= MAX_INPUT_BYTES {
        true => Ok(()),
        false => Err(Error::TooLarge {
            what: what.into(),
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            most: u64::try_from(MAX_INPUT_BYTES).unwrap_or(u64::MAX),
        }),
    }
}

/// Sends an event that does not start a turn.
fn change(what: &str, by: Principal, data: Json) -> Result<Receipt, Error> {
    let sent = send(what, data, by);
    settle();
    let record = sent?;
    Ok(Receipt {
        seq: record.seq,
        hash: record.hash.to_string(),
        state: record.state.iter().map(ToString::to_string).collect(),
    })
}

#[init]
fn init(args: Option<InitArgs>) {
    let InitArgs { soul, wake, looping, inference, history } = args.unwrap_or_default();
    let mut input = serde_json::Map::new();
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            input.insert(key.into(), value);
        }
    };
    put("soul", soul.map(Json::from));
    put("wake", wake.map(Json::from));
    put("loop", looping.map(Json::from));
    let adapter = inference.map(|i| match i {
        Inference::Mock => "mock",
        Inference::Stub => "stub",
    });
    put("inference", adapter.map(Json::from));
    let usual = Bounds::default();
    let bounds = history.map_or(usual, |h: History| Bounds {
        records: h.segment_records.clamp(MIN_SEGMENT_RECORDS, usual.records.saturating_mul(64)),
        bytes: h.segment_bytes.clamp(1 << 16, usual.bytes.saturating_mul(64)),
    });
    host::begin(bounds, Json::Object(input), controller(msg_caller()));
}

#[post_upgrade]
fn post_upgrade() {
    host::resume();
}

/// Accepts ingress messages only from controllers, so that others cost nothing. (Queries are not
/// inspected here.)
#[inspect_message]
fn inspect_message() {
    if is_controller(&msg_caller()) && !OWN.contains(&msg_method_name().as_str()) {
        accept_message();
    }
}

/// Starts a turn and answers when it has ended. The turn continues even if the caller stops
/// waiting.
#[update]
async fn wake(args: WakeArgs) -> Result<TurnEnd, Error> {
    let by = authorized()?;
    let reason = args.reason.as_deref().unwrap_or("by hand");
    let input = args.input.as_deref();
    within("reason and input", &[reason, input.unwrap_or_default()])?;
    let mut data = json!({"reason": reason});
    if let (Some(input), Some(map)) = (input, data.as_object_mut()) {
        map.insert("input".into(), input.into());
    }
    if let Err(e) = send("WakeRequested", data, by) {
        settle();
        return Err(e);
    }
    let number = with(|c| c.automaton.stable.view().turn.as_ref().map(|t| t.number));
    drive().await;
    ended(number)
}

/// Returns the end of a turn that is not necessarily the last one.
fn ended(number: Option<u64>) -> Result<TurnEnd, Error> {
    let message = |message: &str| Error::Failed { message: message.into() };
    let Some(number) = number else {
        return Err(message("the turn has not begun"));
    };
    let last = with(|c| c.automaton.stable.view().last_turn.clone());
    if let Some(last) = last.filter(|t| t.number == number) {
        return Ok(view::turn_end(&last));
    }
    let query = TurnsQuery { after: number.checked_sub(1), ..TurnsQuery::default() };
    let found = with(|c| with_sql(|sql| c.projection.turns(sql, &query, 1)));
    let found = found.map_err(failed)?.into_iter().find(|t| t.turn == number);
    let turn = found.ok_or_else(|| message("the turn has not ended; call `turns` later"))?;
    Ok(TurnEnd {
        number,
        id: turn.id,
        outcome: turn.outcome,
        reply: turn.reply,
        failure: turn.failure,
        began: turn.began,
        ended: turn.ended,
        duration_ms: turn.duration_ms,
        seq: turn.seq,
    })
}

/// Puts the automaton to sleep.
#[update]
fn sleep() -> Result<Receipt, Error> {
    change("SleepRequested", authorized()?, json!({}))
}

/// Sets whether a timer wakes the automaton.
#[update]
fn set_loop(enabled: bool) -> Result<Receipt, Error> {
    change("SetLoop", authorized()?, json!({"enabled": enabled}))
}

/// Resets a fault after a controller has looked at it.
#[update]
fn reset_fault() -> Result<Receipt, Error> {
    change("ResetFault", authorized()?, json!({}))
}

/// Changes the soul, from the next turn on.
#[update]
fn update_soul(text: String) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("the soul", &[&text])?;
    change("UpdateSoul", by, json!({"text": text}))
}

/// Changes a setting; the keys of the soul and the system are protected.
#[update]
fn config_set(key: String, value: String) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("key and value", &[&key, &value])?;
    change("SetConfig", by, json!({"key": key, "value": value}))
}

/// Installs a skill, new or in a new version.
#[update]
fn skill_install(skill: NewSkill) -> Result<Receipt, Error> {
    let by = authorized()?;
    let version = skill.version.as_deref();
    let parts = [skill.name.as_str(), &skill.description, &skill.instructions, version.unwrap_or_default()];
    within("the skill", &parts)?;
    let mut data = json!({
        "name": skill.name,
        "description": skill.description,
        "instructions": skill.instructions,
    });
    if let Some(map) = data.as_object_mut() {
        if let Some(enabled) = skill.enabled {
            map.insert("enabled".into(), enabled.into());
        }
        if let Some(version) = version {
            map.insert("version".into(), version.into());
        }
    }
    change("InstallSkill", by, data)
}

/// Sets whether a skill is part of the context of a turn.
#[update]
fn skill_enable(name: String, enabled: bool) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("the name", &[&name])?;
    change("EnableSkill", by, json!({"name": name, "enabled": enabled}))
}

/// Drops the SQL projection and rebuilds it from the log, in portions.
#[update]
fn replay() -> Result<Projection, Error> {
    authorized()?;
    host::replay()?;
    projection()
}

/// The state of the automaton.
#[query]
fn runtime() -> Runtime {
    let by = controller(msg_caller());
    with(|c| view::runtime(&c.automaton, host::now(), &by))
}

/// The soul.
#[query]
fn soul() -> Soul {
    with(|c| view::soul(&c.automaton))
}

/// All settings, including the keys of the soul and the system.
#[query]
fn config() -> Vec<Setting> {
    let all = with(|c| c.automaton.stable.settings()).into_iter();
    all.map(|(key, value)| Setting { key, value }).collect()
}

/// A setting.
#[query]
fn config_get(key: String) -> Result<String, Error> {
    let found = with(|c| c.automaton.stable.setting(&key));
    found.ok_or_else(|| Error::NotFound { message: format!("no setting `{key}`") })
}

/// The skills.
#[query]
fn skills() -> Vec<Skill> {
    with(|c| view::skills(&c.automaton))
}

/// Turns that ended, from the projection.
#[query]
fn turns(query: TurnsQuery) -> Result<Turns, Error> {
    let most = limit(query.limit);
    let found = with(|c| with_sql(|sql| c.projection.turns(sql, &query, most)));
    let mut turns = found.map_err(failed)?;
    let more = turns.len() > most as usize;
    turns.truncate(most as usize);
    // Limit the page by size as well as by count: the Internet Computer limits the size of a
    // response.
    let mut bytes = 0usize;
    let size = |t: &crate::api::Turn| {
        let parts = [&t.input, &t.failure, &t.thought, &t.reply, &t.actions, &t.results];
        parts.into_iter().flatten().fold(512usize, |n, p| n.saturating_add(p.len()))
    };
    let fit = turns.iter().take_while(|t| {
        let fits = bytes < crate::api::PAGE_BYTES;
        bytes = bytes.saturating_add(size(t));
        fits
    });
    let fit = fit.count();
    let cut = fit < turns.len();
    turns.truncate(fit);
    let next = turns.last().map(|t| t.turn).filter(|_| more || cut);
    Ok(Turns { turns, next })
}

/// Records of the log.
#[query]
fn events(page: Page) -> Result<Events, Error> {
    with(|c| view::events(&c.automaton, &page)).map_err(failed)
}

/// Refused events, from the projection.
#[query]
fn refusals(page: Page) -> Result<Refusals, Error> {
    let most = page.limit();
    let from = page.from.unwrap_or_default();
    let found = with(|c| with_sql(|sql| c.projection.refusals(sql, from, most)));
    let mut refusals = found.map_err(failed)?;
    let next = refusals.get(most as usize).map(|r| r.seq);
    refusals.truncate(most as usize);
    with(|c| view::say_refusals(&c.automaton, &mut refusals)).map_err(failed)?;
    Ok(Refusals { refusals, next })
}

/// The state of the SQL projection.
#[query]
fn projection() -> Result<Projection, Error> {
    with(|c| {
        let (first, end) = (c.automaton.stable.log.first(), c.automaton.stable.log.end());
        let ([turns, transitions, refusals], digest) = with_sql(|sql| c.projection.rows(sql)).map_err(failed)?;
        let progress = c.projection.progress();
        Ok(Projection {
            schema: progress.schema.clone(),
            from: progress.from,
            to: progress.to,
            first,
            end,
            current: progress.error.is_none() && !c.projection.is_behind(first, end),
            replays: progress.replays,
            turns,
            transitions,
            refusals,
            digest,
            error: progress.error.clone(),
        })
    })
}

/// Whether the stored data agrees with the run.
#[query]
fn check() -> Check {
    with(|c| view::check(&c.automaton))
}

/// The journal in parts; concatenated, they are a file that `charter verify` reads.
#[query]
fn export(args: ExportArgs) -> Result<ExportPart, Error> {
    with(|c| view::export(&c.automaton, &args)).map_err(failed)
}

/// Answers an invocation; only for the canister itself.
#[update(hidden = true)]
fn work(seq: u64, index: u32) -> Work {
    match own() {
        Ok(()) => host::work(seq, index),
        Err(_) => ic_cdk::api::trap("`work` is for the canister itself"),
    }
}

/// Fires the timers that are due; only for the canister itself.
#[update(hidden = true)]
fn tick() {
    match own() {
        Ok(()) => host::tick(),
        Err(_) => ic_cdk::api::trap("`tick` is for the canister itself"),
    }
}

ic_cdk::export_candid!();

#[cfg(test)]
mod tests {
    /// The committed interface is the one that the code exports.
    #[test]
    fn the_committed_interface_is_current() {
        let made = super::__export_service();
        let kept = include_str!("../automaton.did");
        assert!(kept.lines().eq(made.lines()), "run `scripts/canister.sh did --write`; the interface is:\n{made}");
    }
}
