//! The interface of both hosts: the host of this crate, and PocketIC.

use std::time::Duration;

use candid::utils::{ArgumentEncoder, encode_args};
use candid::{CandidType, Principal};
use serde::de::DeserializeOwned;

use crate::reject::{Answer, Reject};

/// A submitted message.
#[derive(Debug, Clone)]
pub struct CallId(pub(crate) Inner);

#[derive(Debug, Clone)]
pub(crate) enum Inner {
    Local(u64),
    #[cfg(feature = "pocket-ic")]
    Pocket(pocket_ic::common::rest::RawMessageId),
}

/// An Internet Computer for tests. Time passes only when a test advances it, and nothing happens
/// without a call.
///
/// Methods that only a controller may use take the `sender`. Arguments and replies are bytes;
/// [`call`] and [`ask`] use Candid.
pub trait Host {
    /// The name of the host, for messages.
    fn name(&self) -> &'static str;

    /// Creates an empty, running canister with cycles.
    ///
    /// # Errors
    /// The host fails.
    fn create(&mut self, controllers: &[Principal]) -> Result<Principal, Reject>;

    /// Installs a module (`.wasm` or `.wasm.gz`) into an empty canister and runs `canister_init`.
    ///
    /// # Errors
    /// The sender is not a controller, the module is invalid, the canister is not empty, or it
    /// traps. The canister then stays empty.
    fn install(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject>;

    /// Installs a module again; heap and stable memory are lost.
    ///
    /// # Errors
    /// See [`Host::install`]; after an error, nothing has changed.
    fn reinstall(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject>;

    /// Replaces the module; stable memory is kept, the heap is lost. Runs `canister_pre_upgrade` of
    /// the old module and `canister_post_upgrade` of the new one, as one transaction.
    ///
    /// # Errors
    /// See [`Host::install`]; after an error, nothing has changed.
    fn upgrade(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject>;

    /// Executes a query; its changes are dropped.
    ///
    /// # Errors
    /// The query is rejected.
    fn query(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Answer;

    /// Submits a message; [`Host::tick`] or [`Host::await_call`] executes it.
    ///
    /// # Errors
    /// The message is not accepted: the canister does not exist, is stopped, or its
    /// `canister_inspect_message` does not accept the message.
    fn submit(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Result<CallId, Reject>;

    /// Returns the answer to a message, if there is one.
    fn answer(&mut self, call: &CallId) -> Option<Answer>;

    /// Ticks until the message is answered.
    ///
    /// # Errors
    /// The message is rejected, with `SysUnknown` if nothing is left to do and there is no answer.
    fn await_call(&mut self, call: &CallId) -> Answer;

    /// Executes the next message or due timer; with PocketIC, executes a round, which may include
    /// several.
    fn tick(&mut self);

    /// Ticks until nothing is left to do at the current time.
    fn settle(&mut self);

    /// Advances the time. Timers that become due run with the next ticks.
    fn advance(&mut self, time: Duration);

    /// The time since 1970.
    fn now(&mut self) -> Duration;

    /// Stops a canister: it accepts no more messages, receives the answers for which it waits, and
    /// is then stopped.
    ///
    /// # Errors
    /// The sender is not a controller, or an answer for which the canister waits does not arrive.
    fn stop(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject>;

    /// Starts a stopped canister.
    ///
    /// # Errors
    /// The sender is not a controller.
    fn start(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject>;

    /// Returns the controllers of a canister.
    ///
    /// # Errors
    /// The canister does not exist.
    fn controllers(&mut self, canister: Principal) -> Result<Vec<Principal>, Reject>;

    /// Sets the controllers of a canister.
    ///
    /// # Errors
    /// The sender is not a controller.
    fn set_controllers(
        &mut self,
        canister: Principal,
        sender: Principal,
        controllers: &[Principal],
    ) -> Result<(), Reject>;

    /// Calls [`Host::submit`] and [`Host::await_call`].
    ///
    /// # Errors
    /// See [`Host::submit`] and [`Host::await_call`].
    fn update(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Answer {
        let call = self.submit(canister, sender, method, arg)?;
        self.await_call(&call)
    }
}

/// Why a call in Candid returned no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The canister or the system rejected it.
    #[error(transparent)]
    Rejected(#[from] Reject),
    /// The arguments cannot be encoded, or the reply has a different type.
    #[error("Candid: {0}")]
    Candid(String),
}

impl CallError {
    fn candid(error: impl std::fmt::Display) -> CallError {
        CallError::Candid(error.to_string())
    }

    /// Returns the rejection, if the error is one.
    pub fn rejected(&self) -> Option<&Reject> {
        match self {
            CallError::Rejected(reject) => Some(reject),
            CallError::Candid(_) => None,
        }
    }
}

/// Calls an update method in Candid: arguments as a tuple, one return value.
///
/// # Errors
/// The call is rejected, or the types do not match.
pub fn call<A: ArgumentEncoder, R: CandidType + DeserializeOwned>(
    host: &mut (impl Host + ?Sized),
    canister: Principal,
    sender: Principal,
    method: &str,
    arguments: A,
) -> Result<R, CallError> {
    let arg = encode_args(arguments).map_err(CallError::candid)?;
    let reply = host.update(canister, sender, method, &arg)?;
    candid::decode_one(&reply).map_err(CallError::candid)
}

/// Calls a query method in Candid: arguments as a tuple, one return value.
///
/// # Errors
/// The query is rejected, or the types do not match.
pub fn ask<A: ArgumentEncoder, R: CandidType + DeserializeOwned>(
    host: &mut (impl Host + ?Sized),
    canister: Principal,
    sender: Principal,
    method: &str,
    arguments: A,
) -> Result<R, CallError> {
    let arg = encode_args(arguments).map_err(CallError::candid)?;
    let reply = host.query(canister, sender, method, &arg)?;
    candid::decode_one(&reply).map_err(CallError::candid)
}
