//! Why a message was not answered with a reply.

use std::fmt;

/// The kinds of rejection, as the Internet Computer's interface specification numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectCode {
    /// Fatal error of the system.
    SysFatal = 1,
    /// Try again later.
    SysTransient = 2,
    /// No such canister.
    DestinationInvalid = 3,
    /// The canister said no (`msg_reject`, or no `accept_message`).
    CanisterReject = 4,
    /// The canister trapped, did not answer, has no such method, is stopped ...
    CanisterError = 5,
    /// Nobody knows whether it was done: a deadline passed.
    SysUnknown = 6,
}

impl RejectCode {
    /// The code with this number.
    pub fn from_number(number: u64) -> Option<RejectCode> {
        use RejectCode::{CanisterError, CanisterReject, DestinationInvalid, SysFatal, SysTransient, SysUnknown};
        [SysFatal, SysTransient, DestinationInvalid, CanisterReject, CanisterError, SysUnknown]
            .into_iter()
            .find(|code| *code as u64 == number)
    }
}

/// A rejection: what a caller gets instead of a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Reject {
    /// The kind, which canisters see too.
    pub code: RejectCode,
    /// The Internet Computer's error number: 503 for `IC0503`. Its hundreds are the kind.
    pub error: u16,
    /// For people.
    pub message: String,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IC{:04}: {}", self.error, self.message)
    }
}

impl Reject {
    /// A rejection by its error number.
    pub(crate) fn new(error: u16, message: impl Into<String>) -> Reject {
        let code = RejectCode::from_number(u64::from(error / 100)).unwrap_or(RejectCode::CanisterError);
        Reject { code, error, message: message.into() }
    }
}

/// What comes back for a message: the bytes of the reply, or why there is none.
pub type Answer = Result<Vec<u8>, Reject>;
