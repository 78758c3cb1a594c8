//! Why an attempt gives no reply.

use std::time::Duration;

use charter_actors::Fault;
use serde_json::Value as Json;

use crate::codes;
use crate::transport::TransportError;

/// A failed attempt, and the pause that the server requests.
pub(super) struct Failed {
    pub(super) fault: Fault,
    pub(super) wait: Option<Duration>,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Failed {
        Failed { fault, wait: None }
    }
}

pub(super) fn broken_off() -> Fault {
    Fault::new(codes::UNAVAILABLE, "the stream of the answer ended early").retryable()
}

pub(super) fn fault_of(error: &TransportError) -> Fault {
    let message = error.to_string();
    match error {
        TransportError::Unreachable(_) => Fault::new(codes::UNAVAILABLE, message).retryable(),
        // Another attempt gets the same certificate.
        TransportError::Refused(_) => Fault::new(codes::UNAVAILABLE, message),
        TransportError::Stalled(_) => Fault::new(codes::UNAVAILABLE, message).retryable(),
        TransportError::Protocol(_) => Fault::new(codes::PROTOCOL, message).retryable(),
        TransportError::Timeout(_) => Fault::new(codes::BUDGET, message).retryable(),
        TransportError::TooLarge(_) => Fault::new(codes::TOO_LARGE, message),
        TransportError::Cancelled => Fault::new(codes::CANCELLED, message),
        TransportError::NotRecorded(_) => Fault::new(codes::CASSETTE, message),
    }
}

/// Whether the server rejects the content of a request.
pub(super) fn is_rejected(fault: &Fault) -> bool {
    let status = fault.details.get("status").and_then(Json::as_u64);
    fault.code == codes::REQUEST && matches!(status, Some(400 | 422 | 501))
}
