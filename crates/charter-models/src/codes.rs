//! Fault codes; charters may test them in `event.error.code`.

/// The answer did not match its schema, and neither did the repaired one.
pub const INVALID_ANSWER: &str = "invalid-answer";
/// The answer is larger than the limit.
pub const TOO_LARGE: &str = "too-large";
/// The answer was cut off.
pub const CUT_OFF: &str = "cut-off";
/// The model called tools in more rounds than allowed.
pub const ROUNDS: &str = "rounds";
/// The model refused to answer.
pub const DECLINED: &str = "declined";
/// The token or time budget of the actor is used up.
pub const BUDGET: &str = "budget";
/// The server asks to wait longer than the remaining time.
pub const RATE_LIMITED: &str = "rate-limited";
/// The server fails or cannot be reached.
pub const UNAVAILABLE: &str = "unavailable";
/// The server rejects the key.
pub const AUTHENTICATION: &str = "authentication";
/// The server rejects the request.
pub const REQUEST: &str = "request";
/// The response does not follow the wire format.
pub const PROTOCOL: &str = "protocol";
/// The run no longer waits for the answer.
pub const CANCELLED: &str = "cancelled";
/// The time of the invocation is over.
pub(crate) const TIMEOUT: &str = "timeout";
/// The configuration of the actor is invalid.
pub const CONFIG: &str = "config";
/// The cassette has no answer to this request.
pub const CASSETTE: &str = "cassette";
