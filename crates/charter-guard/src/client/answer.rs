//! The answers, in the shapes that the clients understand.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{Client, Moment, Request};

/// Upper limit of a reason in bytes: clients cut off long ones, and models read them.
const MAX_REASON_BYTES: usize = 4_000;

/// What a run says about a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The call is legal, or there is nothing to say.
    Legal,
    /// The call is refused.
    Refused {
        /// Why, what is legal, and how to get there.
        reason: String,
    },
    /// The call becomes legal when a person decides.
    Waits {
        /// What waits, and where it is decided.
        reason: String,
        /// The id of the approval.
        approval: String,
    },
    /// The agent still has to do something before it stops.
    Due {
        /// What.
        reason: String,
    },
}

/// How decisions are told to a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manner {
    /// A legal call is allowed; otherwise the client asks its own questions.
    pub grant: bool,
    /// A call that waits for a person is left to the client's own question, where that works. The
    /// answer to it is no approval.
    pub ask: bool,
    /// The client runs without a person, and can be resumed.
    pub headless: bool,
}

/// What a hook writes, and how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Standard output.
    pub stdout: String,
    /// Standard error; never empty if `exit` is 2.
    pub stderr: String,
    /// The exit code: 0 or 2.
    pub exit: u8,
}

/// The only answer that keeps a tool from being used in every client: exit code 2, with a line on
/// standard error.
#[must_use]
pub fn failure(why: &str) -> Answer {
    let line: Vec<&str> = why.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = match line.is_empty() {
        true => "it could not be decided".to_owned(),
        false => line.join("; "),
    };
    Answer { stdout: String::new(), stderr: format!("charter hook: not allowed: {}\n", cut(&line)), exit: 2 }
}

/// Denies a request that could not be decided, or not even read, where only the shape of the client
/// blocks: an answer over HTTP has no exit code.
#[must_use]
pub fn denial(client: Client, why: &str) -> Answer {
    let event = match client {
        Client::Gemini => "BeforeTool",
        Client::Copilot | Client::Cursor => "preToolUse",
        Client::Opencode => "tool.execute.before",
        Client::Claude | Client::Codex | Client::Goose => "PreToolUse",
    };
    let reason = format!("not decided, so not allowed: {}", cut(why));
    denied(client, event, &reason)
}

/// Puts a decision into the shape that the client understands.
#[must_use]
pub fn answer(request: &Request, decision: &Decision, manner: Manner) -> Answer {
    match (request.moment, decision) {
        (Moment::Before, Decision::Legal) if manner.grant => granted(request),
        // No opinion: the client's own questions are still asked.
        (_, Decision::Legal) | (Moment::After, _) => silent(request.client),
        (Moment::Stop, Decision::Due { reason }) if !request.kept => due(request.client, &cut(reason)),
        (Moment::Stop, _) => silent(request.client),
        (Moment::Before, Decision::Waits { reason, .. }) => waits(request, &cut(reason), manner),
        (Moment::Before, Decision::Refused { reason } | Decision::Due { reason }) => {
            denied(request.client, &request.event, &cut(reason))
        }
    }
}

fn said(json: &Json) -> Answer {
    Answer { stdout: format!("{json}\n"), stderr: String::new(), exit: 0 }
}

fn silent(client: Client) -> Answer {
    match client {
        // There, an object without a decision is not one.
        Client::Goose => Answer { stdout: String::new(), stderr: String::new(), exit: 0 },
        _ => said(&json!({})),
    }
}

/// A decision in the shape of Claude Code.
fn permission(event: &str, decision: &str, reason: &str) -> Answer {
    said(&json!({"hookSpecificOutput": {
        "hookEventName": event, "permissionDecision": decision, "permissionDecisionReason": reason,
    }}))
}

fn granted(request: &Request) -> Answer {
    const REASON: &str = "legal under the charter";
    match request.client {
        Client::Claude => permission(&request.event, "allow", REASON),
        Client::Gemini => said(&json!({"decision": "allow", "reason": REASON})),
        Client::Copilot => said(&json!({"permissionDecision": "allow", "permissionDecisionReason": REASON})),
        Client::Cursor => said(&json!({"permission": "allow"})),
        // Codex does not understand it, opencode and goose have no question to skip.
        client => silent(client),
    }
}

fn denied(client: Client, event: &str, reason: &str) -> Answer {
    match client {
        Client::Claude | Client::Codex => permission(event, "deny", reason),
        Client::Gemini | Client::Opencode => said(&json!({"decision": "deny", "reason": reason})),
        Client::Copilot => said(&json!({"permissionDecision": "deny", "permissionDecisionReason": reason})),
        Client::Cursor => said(&json!({"permission": "deny", "user_message": reason, "agent_message": reason})),
        Client::Goose => said(&json!({"decision": "block", "reason": reason})),
    }
}

fn waits(request: &Request, reason: &str, manner: Manner) -> Answer {
    match request.client {
        Client::Claude if manner.headless => permission(&request.event, "defer", reason),
        Client::Claude if manner.ask => permission(&request.event, "ask", reason),
        Client::Copilot if manner.ask && !manner.headless => {
            said(&json!({"permissionDecision": "ask", "permissionDecisionReason": reason}))
        }
        Client::Cursor if manner.ask && !manner.headless => {
            said(&json!({"permission": "ask", "user_message": reason, "agent_message": reason}))
        }
        // Codex uses the tool after `ask`, and Gemini CLI hangs without a terminal.
        _ => denied(request.client, &request.event, reason),
    }
}

fn due(client: Client, reason: &str) -> Answer {
    match client {
        Client::Claude | Client::Codex | Client::Goose => said(&json!({"decision": "block", "reason": reason})),
        Client::Gemini => said(&json!({"decision": "deny", "reason": reason})),
        Client::Cursor => said(&json!({"followup_message": reason})),
        Client::Copilot | Client::Opencode => silent(client),
    }
}

fn cut(text: &str) -> String {
    match text.len() > MAX_REASON_BYTES {
        true => format!("{}…", text.get(..text.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or_default()),
        false => text.to_owned(),
    }
}
