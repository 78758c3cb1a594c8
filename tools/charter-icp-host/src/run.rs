//! The inputs and results of one execution of an entry point.

use std::collections::BTreeMap;
use std::fmt;

use candid::Principal;

use crate::Reject;
use crate::entry::Entry;

/// Everything on which an execution depends besides heap and stable memory. The same input on the
/// same state gives the same result; this is how the state is restored after a trap.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) call: Call,
    pub(crate) facts: Facts,
}

/// The entry point that an execution calls, and its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) entry: Entry,
    pub(crate) target: Target,
    pub(crate) arg: Vec<u8>,
    pub(crate) caller: Principal,
    /// The method of the message, or of the inspected one.
    pub(crate) method: String,
    /// The reject code and message, for reject callbacks and their cleanup.
    pub(crate) reject: Option<(u32, String)>,
    pub(crate) time: u64,
    pub(crate) deadline: u64,
    /// Whether the caller still waits for an answer.
    pub(crate) answerable: bool,
    /// Instructions of the same call before this execution.
    pub(crate) before: u64,
    pub(crate) limit: u64,
}

/// The properties of a canister that it can query.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) id: Principal,
    pub(crate) controllers: Vec<Principal>,
    pub(crate) version: u64,
    pub(crate) status: u32,
    pub(crate) timer: u64,
    pub(crate) variables: BTreeMap<String, String>,
}

/// The function to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An exported function without parameters.
    Export(String),
    /// A function in the table with one parameter.
    Table(Closure),
}

/// A callback: the index of a function in the table, and its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closure {
    pub(crate) function: u32,
    pub(crate) environment: u32,
}

/// The effects of an execution; dropped if it traps.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) answer: Option<Said>,
    pub(crate) calls: Vec<NewCall>,
    pub(crate) timer: Option<u64>,
    pub(crate) certified: Option<Vec<u8>>,
    pub(crate) accepted: bool,
}

/// The answer of a canister.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Reply(Vec<u8>),
    Reject(String),
}

/// A call to a canister.
#[derive(Debug, Clone)]
pub(crate) struct NewCall {
    pub(crate) callee: Principal,
    pub(crate) method: String,
    pub(crate) arg: Vec<u8>,
    pub(crate) reply: Closure,
    pub(crate) reject: Closure,
    pub(crate) cleanup: Option<Closure>,
    /// Seconds after which the caller stops waiting.
    pub(crate) timeout: Option<u32>,
}

/// How an execution ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: Result<Effects, Trap>,
    pub(crate) instructions: u64,
    /// What the canister printed; a trap does not roll it back.
    pub(crate) printed: Vec<String>,
}

/// Why an execution trapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trap {
    /// The canister called `ic0.trap` with this message.
    Called(String),
    /// A system function was used in a forbidden way.
    Contract(String),
    /// The table has no callable function at this index.
    Function(u32),
    /// The instruction limit was exceeded.
    Instructions(u64),
    /// A trap of WebAssembly itself.
    Wasm(String),
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trap::Called(message) => {
                write!(f, "Canister called `ic0.trap` with message: '{message}'")
            }
            Trap::Contract(message) => write!(f, "Canister violated contract: {message}"),
            Trap::Function(index) => {
                write!(
                    f,
                    "Canister has no function at index {index} of its table that takes one i32 and returns nothing"
                )
            }
            Trap::Instructions(limit) => {
                write!(f, "Canister exceeded the limit of {limit} instructions for single message execution")
            }
            Trap::Wasm(message) => write!(f, "Canister trapped: {message}"),
        }
    }
}

impl wasmi::errors::HostError for Trap {}

impl Trap {
    /// Returns the rejection that the caller receives.
    pub(crate) fn reject(&self, canister: Principal) -> Reject {
        let error = match self {
            Trap::Called(_) => 503,
            Trap::Contract(_) => 504,
            Trap::Function(_) => 513,
            Trap::Instructions(_) => 522,
            Trap::Wasm(_) => 502,
        };
        Reject::new(error, format!("Error from Canister {canister}: {self}."))
    }

    /// Converts an error of the interpreter.
    pub(crate) fn of(error: &wasmi::Error, limit: u64) -> Trap {
        if let Some(trap) = error.downcast_ref::<Trap>() {
            return trap.clone();
        }
        match error.as_trap_code() {
            Some(wasmi::TrapCode::OutOfFuel) => Trap::Instructions(limit),
            Some(wasmi::TrapCode::UnreachableCodeReached) => Trap::Wasm("unreachable".to_string()),
            Some(wasmi::TrapCode::MemoryOutOfBounds) => Trap::Wasm("heap out of bounds".to_string()),
            _ => Trap::Wasm(error.to_string()),
        }
    }
}
