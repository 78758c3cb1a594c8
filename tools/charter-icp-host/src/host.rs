//! What every host can do: the one that comes with this crate, and PocketIC.

use std::time::Duration;

use candid::utils::{ArgumentEncoder, encode_args};
use candid::{CandidType, Principal};
use serde::de::DeserializeOwned;

use crate::reject::{Answer, Reject};

/// A message that was submitted, and its answer to come.
#[derive(Debug, Clone)]
pub struct CallId(pub(crate) Inner);

#[derive(Debug, Clone)]
pub(crate) enum Inner {
    Local(u64),
    #[cfg(feature = "pocket-ic")]
    Pocket(pocket_ic::common::rest::RawMessageId),
}

/// An Internet Computer for tests. Time stands still unless it is advanced; nothing happens by itself.
///
/// Methods that only a controller may use take the `sender`. Arguments and replies are bytes; [`call`] and [`ask`] speak Candid.
pub trait Host {
    /// Which host this is, for messages.
    fn name(&self) -> &'static str;

    /// Creates an empty, running canister with cycles.
    ///
    /// # Errors
    /// If the host cannot.
    fn create(&mut self, controllers: &[Principal]) -> Result<Principal, Reject>;

    /// Installs a module (`.wasm` or `.wasm.gz`) into an empty canister and runs `canister_init`.
    ///
    /// # Errors
    /// If the sender is no controller, the module is none, the canister is not empty, or it traps: then it stays empty.
    fn install(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject>;

    /// Installs a module afresh: heap and stable memory are gone.
    ///
    /// # Errors
    /// As with [`Host::install`]; then everything is as before.
    fn reinstall(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject>;

    /// Puts another module in the place of the present one; stable memory stays, the heap does not. `canister_pre_upgrade` of the
    /// old, then `canister_post_upgrade` of the new one: a single transaction.
    ///
    /// # Errors
    /// As with [`Host::install`]; then everything is as before.
    fn upgrade(&mut self, canister: Principal, sender: Principal, module: &[u8], arg: &[u8]) -> Result<(), Reject>;

    /// Asks without an effect.
    ///
    /// # Errors
    /// What the canister answered instead of a reply, or why it could not.
    fn query(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Answer;

    /// Hands a message in; it waits until [`Host::tick`] or [`Host::await_call`] comes to it.
    ///
    /// # Errors
    /// If it is not taken: no such canister, stopped, or `canister_inspect_message` does not accept it.
    fn submit(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Result<CallId, Reject>;

    /// The answer to a message, if there is one by now.
    fn answer(&mut self, call: &CallId) -> Option<Answer>;

    /// Ticks until the message is answered.
    ///
    /// # Errors
    /// The rejection, or `SysUnknown` if nothing is left to do and there is no answer.
    fn await_call(&mut self, call: &CallId) -> Answer;

    /// Does the next piece of work: a message here, a round (which may be several) with PocketIC. Timers that are due are work.
    fn tick(&mut self);

    /// Ticks until nothing is left to do at the present time.
    fn settle(&mut self);

    /// Lets time pass. Timers that become due run with the next ticks.
    fn advance(&mut self, time: Duration);

    /// The time: since 1970.
    fn now(&mut self) -> Duration;

    /// Stops a canister: it takes no messages any more, gets the answers it waits for, and is then stopped.
    ///
    /// # Errors
    /// If the sender is no controller, or an answer it waits for does not come.
    fn stop(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject>;

    /// Starts it again.
    ///
    /// # Errors
    /// If the sender is no controller.
    fn start(&mut self, canister: Principal, sender: Principal) -> Result<(), Reject>;

    /// Who controls it.
    ///
    /// # Errors
    /// If there is no such canister.
    fn controllers(&mut self, canister: Principal) -> Result<Vec<Principal>, Reject>;

    /// Sets who controls it.
    ///
    /// # Errors
    /// If the sender is no controller.
    fn set_controllers(
        &mut self,
        canister: Principal,
        sender: Principal,
        controllers: &[Principal],
    ) -> Result<(), Reject>;

    /// [`Host::submit`] and [`Host::await_call`].
    ///
    /// # Errors
    /// As with these two.
    fn update(&mut self, canister: Principal, sender: Principal, method: &str, arg: &[u8]) -> Answer {
        let call = self.submit(canister, sender, method, arg)?;
        self.await_call(&call)
    }
}

/// Why a call in Candid gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The canister or the system said no.
    #[error(transparent)]
    Rejected(#[from] Reject),
    /// The arguments cannot be written, or the reply is of another type.
    #[error("Candid: {0}")]
    Candid(String),
}

impl CallError {
    fn candid(error: impl std::fmt::Display) -> CallError {
        CallError::Candid(error.to_string())
    }

    /// The rejection, if it is one.
    pub fn rejected(&self) -> Option<&Reject> {
        match self {
            CallError::Rejected(reject) => Some(reject),
            CallError::Candid(_) => None,
        }
    }
}

/// Calls an update method in Candid: arguments as a tuple, one value back.
///
/// # Errors
/// If it is rejected, or does not fit the types.
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

/// Asks a query method in Candid: arguments as a tuple, one value back.
///
/// # Errors
/// If it is rejected, or does not fit the types.
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
