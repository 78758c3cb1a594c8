//! Rejections of messages.

use std::fmt;

/// The kinds of rejection, numbered as in the Internet Computer's interface specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectCode {
    /// A fatal error of the system.
    SysFatal = 1,
    /// A temporary error; try again later.
    SysTransient = 2,
    /// The canister does not exist.
    DestinationInvalid = 3,
    /// The canister rejected the message (`msg_reject`, or no `accept_message`).
    CanisterReject = 4,
    /// The canister trapped, did not answer, does not have the method, or is stopped.
    CanisterError = 5,
    /// It is unknown whether the message was executed: a deadline passed.
    SysUnknown = 6,
}

impl RejectCode {
    /// Returns the code with this number.
    pub fn from_number(number: u64) -> Option<RejectCode> {
        use RejectCode::{CanisterError, CanisterReject, DestinationInvalid, SysFatal, SysTransient, SysUnknown};
        [SysFatal, SysTransient, DestinationInvalid, CanisterReject, CanisterError, SysUnknown]
            .into_iter()
            .find(|code| *code as u64 == number)
    }
}

/// A rejection, which a caller receives instead of a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Reject {
    /// The kind, which canisters also see.
    pub code: RejectCode,
    /// The error number of the Internet Computer: 503 for `IC0503`. Its hundreds digit is the
    /// reject code.
    pub error: u16,
    /// The message, for people.
    pub message: String,
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IC{:04}: {}", self.error, self.message)
    }
}

impl Reject {
    /// Creates the rejection with an error number.
    pub(crate) fn new(error: u16, message: impl Into<String>) -> Reject {
        let code = RejectCode::from_number(u64::from(error / 100)).unwrap_or(RejectCode::CanisterError);
        Reject { code, error, message: message.into() }
    }
}

/// The answer to a message: the bytes of the reply, or the rejection.
pub type Answer = Result<Vec<u8>, Reject>;
