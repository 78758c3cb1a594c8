//! What the clients (programs that run agents) send to a hook, and what they understand as its
//! answer.
//!
//! Each client has a shape of its own for both. [`read`] turns a request into a [`Request`], which
//! is the same for all of them; [`answer`] turns a [`Decision`] into what the client understands.
//! Neither does any I/O.

mod answer;
mod fields;
mod shapes;

use std::fmt;
use std::str::FromStr;

use charter_expr::strict_json;
use charter_kernel::Digest;
use serde_json::{Value as Json, json};

pub use answer::{Answer, Decision, Manner, answer, denial, failure};

/// Upper limit of a request in bytes: an agent may write a large file.
pub const MAX_REQUEST_BYTES: usize = 8 << 20;

/// Upper limit of a part of an event id in bytes; a longer one is replaced by its digest.
const MAX_PART_BYTES: usize = 72;

/// A program that runs agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// GitHub Copilot CLI.
    Copilot,
    /// opencode.
    Opencode,
    /// Cursor.
    Cursor,
    /// goose.
    Goose,
}

impl Client {
    /// All clients.
    pub const ALL: [Client; 7] = [
        Client::Claude,
        Client::Codex,
        Client::Gemini,
        Client::Copilot,
        Client::Opencode,
        Client::Cursor,
        Client::Goose,
    ];

    /// The name in commands, principals and event ids.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Copilot => "copilot",
            Client::Opencode => "opencode",
            Client::Cursor => "cursor",
            Client::Goose => "goose",
        }
    }

    /// The name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Client::Claude => "Claude Code",
            Client::Codex => "Codex CLI",
            Client::Gemini => "Gemini CLI",
            Client::Copilot => "Copilot CLI",
            Client::Opencode => "opencode",
            Client::Cursor => "Cursor",
            Client::Goose => "goose",
        }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no client has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown client `{0}`: use claude, codex, gemini, copilot, opencode, cursor or goose")]
pub struct UnknownClient(String);

impl FromStr for Client {
    type Err = UnknownClient;

    fn from_str(name: &str) -> Result<Client, UnknownClient> {
        let found = Client::ALL.into_iter().find(|client| client.name() == name);
        found.ok_or_else(|| UnknownClient(name.chars().take(40).collect()))
    }
}

/// When a client calls a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before a tool is used.
    Before,
    /// After a tool was used.
    After,
    /// Before the agent stops.
    Stop,
}

/// The outcome of using a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Whether it worked; `None` if the client does not say.
    pub ok: Option<bool>,
    /// What the tool returned, as the client gives it.
    pub output: Json,
}

/// What a client asks a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client.
    pub client: Client,
    /// When it asks.
    pub moment: Moment,
    /// The name that the client has for this moment, e.g. `PreToolUse`.
    pub event: String,
    /// The session of the client.
    pub session: String,
    /// The id of the call, if the client has ids for calls.
    pub call: Option<String>,
    /// The tool; empty if the agent is about to stop.
    pub tool: String,
    /// The arguments of the tool.
    pub input: Json,
    /// The working folder of the agent, if the client tells it.
    pub cwd: Option<String>,
    /// The outcome, after the call.
    pub outcome: Option<Outcome>,
    /// Whether the agent goes on because a hook has kept it from stopping before.
    pub kept: bool,
}

impl Request {
    /// The name of the call, in the data of its events: the id that the client gives it, or a
    /// digest of tool and arguments.
    #[must_use]
    pub fn call(&self) -> String {
        match &self.call {
            Some(call) => part(call),
            None => short(&Digest::of_json(&json!([self.tool, self.input]))),
        }
    }

    /// The id of the principal: `agent:CLIENT/SESSION`.
    #[must_use]
    pub fn principal(&self) -> String {
        format!("agent:{}/{}", self.client, part(&self.session))
    }

    /// The id of the event for this call, `CLIENT/SESSION/CALL`. `nonce` tells apart the calls of a
    /// client that has no ids for them: there, each request is a new call.
    #[must_use]
    pub fn event_id(&self, nonce: &str) -> String {
        let id = format!("{}/{}/{}", self.client, part(&self.session), self.call());
        match self.call {
            Some(_) => id,
            None => format!("{id}/{}", part(nonce)),
        }
    }
}

/// A part of an id: the text itself if it is short and plain, else its digest.
fn part(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    match (1..=MAX_PART_BYTES).contains(&text.len()) && text.chars().all(plain) {
        true => text.to_owned(),
        false => short(&Digest::of_bytes(text.as_bytes())),
    }
}

/// The first 128 bits of a digest.
fn short(digest: &Digest) -> String {
    const LENGTH: usize = "sha256:".len() + 32;
    digest.to_string().chars().take(LENGTH).collect()
}

/// Why a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is nothing to read.
    #[error("the request is empty; the client writes it to standard input")]
    Empty,
    /// The request is too large.
    #[error("the request has more than {MAX_REQUEST_BYTES} bytes")]
    TooLarge,
    /// The request is not JSON.
    #[error("the request is not JSON: {0}")]
    NotJson(String),
    /// The request is that of no known client.
    #[error("the request has the shape of no known client; name it with `--client`, and update Charter if it is new")]
    UnknownShape,
    /// The client asks about something that is not the use of a tool.
    #[error("{} asks about `{event}`, which no charter decides; call the hook before and after tools only", .client.title())]
    UnknownEvent {
        /// The client.
        client: Client,
        /// Its name for the event.
        event: String,
    },
    /// A member is missing.
    #[error("the request of {} has no `{member}`, which must be {what}", .client.title())]
    Missing {
        /// The client.
        client: Client,
        /// The member.
        member: &'static str,
        /// What it must be.
        what: &'static str,
    },
}

/// Reads what a client asks. Without a client, the shape of the request tells which one it is.
///
/// # Errors
/// See [`ReadError`]: whatever cannot be read with certainty.
pub fn read(client: Option<Client>, bytes: &[u8]) -> Result<Request, ReadError> {
    if bytes.len() > MAX_REQUEST_BYTES {
        return Err(ReadError::TooLarge);
    }
    // Windows writes a mark of the byte order.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadError::Empty);
    }
    let json = strict_json::from_slice(bytes).map_err(|e| ReadError::NotJson(e.to_string()))?;
    let Json::Object(members) = json else { return Err(ReadError::UnknownShape) };
    let client = client.or_else(|| shapes::detect(&members)).ok_or(ReadError::UnknownShape)?;
    shapes::read(&fields::Fields::new(client, &members))
}
