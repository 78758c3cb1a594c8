//! The methods of the canister. Only controllers may change its state; anyone may read it. Other
//! callers are rejected before any work.
//!
//! Each method checks the caller and the size of the input, then calls [`crate::host`] or
//! [`crate::view`].

mod queries;
mod updates;

use charter_kernel::{Auth, Principal, PrincipalKind};
use ic_cdk::api::{accept_message, canister_self, is_controller, msg_caller, msg_method_name};
use ic_cdk::{init, inspect_message, post_upgrade, update};
use serde_json::Value as Json;

// `export_candid` names the types of all methods.
use crate::api::{
    Check, Error, Events, ExportArgs, ExportPart, History, Inference, InitArgs, MAX_INPUT_BYTES, NewSkill, Page,
    Projection, Receipt, Refusals, Runtime, Setting, Skill, Soul, Task, TurnEnd, Turns, TurnsQuery, WakeArgs, Work,
};
use crate::host;
use crate::log::Bounds;

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
    limited(what, parts, MAX_INPUT_BYTES)
}

fn limited(what: &str, parts: &[&str], most: usize) -> Result<(), Error> {
    let bytes = parts.iter().fold(0usize, |n, p| n.saturating_add(p.len()));
    match bytes <= most {
        true => Ok(()),
        false => Err(Error::TooLarge {
            what: what.into(),
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            most: u64::try_from(most).unwrap_or(u64::MAX),
        }),
    }
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
        let kept = include_str!("../../automaton.did");
        assert!(kept.lines().eq(made.lines()), "run `scripts/canister.sh did --write`; the interface is:\n{made}");
    }
}
