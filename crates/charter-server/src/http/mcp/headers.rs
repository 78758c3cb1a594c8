//! What the headers of MCP have to say, and that they agree with the message.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_mcp::{META_VERSION, Message, Request, RpcError, Version};
use serde_json::Value as Json;

/// The header with the generation of the protocol.
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The value of a header, if it is there once and is text.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(|value| Some(value.trim()))
            .map_err(|_| RpcError::new(RpcError::HEADER, format!("the header `{name}` is not text"))),
        _ => Err(RpcError::new(RpcError::HEADER, format!("the header `{name}` is there more than once"))),
    }
}

/// The generation that a request without a body names.
pub(super) fn named(headers: &HeaderMap) -> Result<Option<Version>, RpcError> {
    match text(headers, VERSION)? {
        None => Ok(None),
        Some(value) => Version::parse(value).map(Some).ok_or_else(|| RpcError::version(value)),
    }
}

/// The generation of a message, which the header and the message name alike.
pub(super) fn version(headers: &HeaderMap, message: &Message) -> Result<Option<Version>, RpcError> {
    let header = text(headers, VERSION)?;
    let Message::Request(request) = message else { return named(headers) };
    let own = match request.meta(META_VERSION) {
        None => None,
        Some(Json::String(own)) => Some(own.as_str()),
        Some(_) => return Err(RpcError::params(format!("`_meta` has `{META_VERSION}`, but not as text"))),
    };
    match (header, own) {
        (Some(header), Some(own)) if header != own => Err(RpcError::new(
            RpcError::HEADER,
            "`MCP-Protocol-Version` is not the protocol version that `_meta` names",
        )),
        (None, Some(_)) => Err(RpcError::new(
            RpcError::HEADER,
            "the header `MCP-Protocol-Version` is missing; `_meta` names a version",
        )),
        (None, None) if request.method == "server/discover" => {
            Err(RpcError::new(RpcError::HEADER, "the header `MCP-Protocol-Version` is missing"))
        }
        _ => named(headers),
    }
}

/// Checks a request without a session: what it says of itself, and that the headers say the same.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    request.check_meta()?;
    match text(headers, METHOD)? {
        None => return Err(RpcError::new(RpcError::HEADER, "the header `Mcp-Method` is missing")),
        Some(method) if method != request.method => {
            return Err(RpcError::new(RpcError::HEADER, "`Mcp-Method` is not the method of the request"));
        }
        Some(_) => {}
    }
    let member = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let Some(named) = request.params.get(member).and_then(Json::as_str) else { return Ok(()) };
    let Some(header) = text(headers, NAME)? else {
        return Err(RpcError::new(RpcError::HEADER, "the header `Mcp-Name` is missing"));
    };
    match decoded(header) {
        Some(header) if header == named => Ok(()),
        _ => Err(RpcError::new(RpcError::HEADER, format!("`Mcp-Name` is not the `{member}` of the request"))),
    }
}

/// A value that cannot stand in a header is written as `=?base64?...?=`.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// Whether the client takes server-sent events.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = values.flat_map(|value| value.split(',')).filter_map(|kind| kind.split(';').next());
    kinds.any(|kind| matches!(kind.trim().to_ascii_lowercase().as_str(), "text/event-stream" | "text/*" | "*/*"))
}
