//! The shapes of the requests.

use serde_json::{Map, Value as Json, json};

use super::fields::Fields;
use super::{Client, Moment, Outcome, ReadError, Request};

/// Names of the moments at which Gemini CLI calls a hook; no other client has them.
const GEMINI: [&str; 3] = ["BeforeTool", "AfterTool", "AfterAgent"];

/// Tells a client by the shape of its request.
pub(super) fn detect(members: &Map<String, Json>) -> Option<Client> {
    let has = |member: &str| members.contains_key(member);
    let event = members.get("hook_event_name").and_then(Json::as_str);
    if has("cursor_version") {
        Some(Client::Cursor)
    } else if has("toolName") {
        Some(Client::Copilot)
    } else if event.is_some_and(|event| GEMINI.contains(&event)) {
        Some(Client::Gemini)
    } else if has("turn_id") {
        Some(Client::Codex)
    } else if has("event") && has("session_id") && !has("hook_event_name") {
        Some(Client::Goose)
    } else if event.is_some() && has("session_id") {
        Some(Client::Claude)
    } else {
        None
    }
}

/// Reads a request in the shape of its client.
pub(super) fn read(fields: &Fields<'_>) -> Result<Request, ReadError> {
    match fields.client {
        Client::Claude | Client::Codex => claude(fields),
        Client::Gemini => gemini(fields),
        Client::Copilot => copilot(fields),
        Client::Opencode => opencode(fields),
        Client::Cursor => cursor(fields),
        Client::Goose => goose(fields),
    }
}

fn unknown(fields: &Fields<'_>, event: String) -> ReadError {
    let event = event.chars().take(80).collect();
    ReadError::UnknownEvent { client: fields.client, event }
}

/// What all clients have; the rest is that of a stop.
fn request(fields: &Fields<'_>, moment: Moment, event: String, session: String) -> Request {
    Request {
        client: fields.client,
        moment,
        event,
        session,
        call: None,
        tool: String::new(),
        input: Json::Null,
        cwd: fields.maybe("cwd"),
        outcome: None,
        kept: fields.flag("stop_hook_active"),
    }
}

/// Claude Code, and Codex, which has the same shape.
fn claude(fields: &Fields<'_>) -> Result<Request, ReadError> {
    let event = fields.text("hook_event_name")?;
    let moment = match event.as_str() {
        "PreToolUse" => Moment::Before,
        "PostToolUse" | "PostToolUseFailure" => Moment::After,
        "Stop" | "SubagentStop" => Moment::Stop,
        _ => return Err(unknown(fields, event)),
    };
    let failed = event == "PostToolUseFailure";
    let request = request(fields, moment, event, fields.text("session_id")?);
    if moment == Moment::Stop {
        return Ok(request);
    }
    let outcome = (moment == Moment::After).then(|| {
        let output = fields.get("tool_response").or_else(|| fields.get("error")).cloned().unwrap_or_default();
        // Claude Code calls another hook after a failure; a command in the background is not over.
        let over = fields.client == Client::Claude && claude_says(&fields.maybe("tool_name"), &output);
        let ok = if failed { Some(false) } else { worked(&output).or(over.then_some(true)) };
        Outcome { ok, output }
    });
    let (tool, input) = (fields.text("tool_name")?, fields.input("tool_input")?);
    Ok(Request { call: fields.maybe("tool_use_id"), tool, input, outcome, ..request })
}

/// Whether a result is one that Claude Code gives for a tool that has worked. That of a command has
/// its output; it is not over in the background, and a command like `grep` may have failed if there
/// is an explanation of its exit code.
fn claude_says(tool: &Option<String>, output: &Json) -> bool {
    let Some(members) = output.as_object() else { return output.as_array().is_some_and(|items| !items.is_empty()) };
    let has = |member: &str| members.get(member).is_some_and(|value| !value.is_null());
    if has("backgroundTaskId") || has("returnCodeInterpretation") {
        return false;
    }
    match tool.as_deref() {
        Some("Bash") => {
            let whole = matches!(members.get("interrupted"), None | Some(Json::Bool(false)));
            members.get("stdout").is_some_and(Json::is_string) && whole
        }
        _ => !members.is_empty(),
    }
}

fn gemini(fields: &Fields<'_>) -> Result<Request, ReadError> {
    let event = fields.text("hook_event_name")?;
    let moment = match event.as_str() {
        "BeforeTool" => Moment::Before,
        "AfterTool" => Moment::After,
        "AfterAgent" => Moment::Stop,
        _ => return Err(unknown(fields, event)),
    };
    let request = request(fields, moment, event, fields.text("session_id")?);
    if moment == Moment::Stop {
        return Ok(request);
    }
    let outcome = (moment == Moment::After).then(|| {
        let output = fields.get("tool_response").cloned().unwrap_or_default();
        Outcome { ok: worked(&output), output }
    });
    Ok(Request { tool: fields.text("tool_name")?, input: fields.input("tool_input")?, outcome, ..request })
}

/// Copilot CLI does not name the moment: after a call there is a result or an error.
fn copilot(fields: &Fields<'_>) -> Result<Request, ReadError> {
    let (result, error) = (fields.get("toolResult"), fields.get("error"));
    let (moment, event) = match (result, error) {
        (Some(_), _) => (Moment::After, "postToolUse"),
        (None, Some(_)) => (Moment::After, "postToolUseFailure"),
        (None, None) => (Moment::Before, "preToolUse"),
    };
    // One session at a time has a folder, and older versions do not name it.
    let session = fields.maybe("sessionId").or_else(|| fields.maybe("cwd"));
    let session = session.map_or_else(|| fields.text("sessionId"), Ok)?;
    let (tool, input) = (fields.text("toolName")?, fields.input("toolArgs")?);
    let outcome = match result {
        Some(output) => Some(Outcome { ok: copilot_worked(&tool, output), output: output.clone() }),
        None => error.map(|error| Outcome { ok: Some(false), output: error.clone() }),
    };
    Ok(Request { tool, input, outcome, ..request(fields, moment, event.to_owned(), session) })
}

/// What our plugin for opencode writes.
fn opencode(fields: &Fields<'_>) -> Result<Request, ReadError> {
    let event = fields.text("event")?;
    let moment = match event.as_str() {
        "tool.execute.before" => Moment::Before,
        "tool.execute.after" => Moment::After,
        _ => return Err(unknown(fields, event)),
    };
    let outcome = (moment == Moment::After).then(|| {
        let output = fields.get("output").cloned().unwrap_or_default();
        Outcome { ok: worked(&output), output }
    });
    let (tool, input) = (fields.text("tool")?, fields.input("args")?);
    let request = request(fields, moment, event, fields.text("sessionID")?);
    Ok(Request { call: fields.maybe("callID"), tool, input, outcome, ..request })
}

fn cursor(fields: &Fields<'_>) -> Result<Request, ReadError> {
    let event = fields.text("hook_event_name")?;
    let (moment, tool, input) = match event.as_str() {
        "preToolUse" => (Moment::Before, fields.text("tool_name")?, fields.input("tool_input")?),
        "postToolUse" | "postToolUseFailure" => (Moment::After, fields.text("tool_name")?, fields.input("tool_input")?),
        "beforeShellExecution" => (Moment::Before, "Shell".into(), json!({"command": fields.text("command")?})),
        "afterShellExecution" => (Moment::After, "Shell".into(), json!({"command": fields.text("command")?})),
        "beforeMCPExecution" => {
            (Moment::Before, format!("MCP:{}", fields.text("tool_name")?), fields.input("tool_input")?)
        }
        "afterMCPExecution" => {
            (Moment::After, format!("MCP:{}", fields.text("tool_name")?), fields.input("tool_input")?)
        }
        "beforeReadFile" => (Moment::Before, "Read".into(), json!({"file_path": fields.text("file_path")?})),
        "stop" => (Moment::Stop, String::new(), Json::Null),
        _ => return Err(unknown(fields, event)),
    };
    let outcome = (moment == Moment::After).then(|| {
        let mut output = ["tool_output", "output", "result_json", "error_message"].into_iter();
        let output = output.find_map(|member| fields.get(member)).cloned().unwrap_or_default();
        let ok = if event == "postToolUseFailure" { Some(false) } else { worked(&output) };
        Outcome { ok, output }
    });
    let roots = fields.get("workspace_roots").and_then(|roots| roots.get(0)).and_then(Json::as_str);
    let request = request(fields, moment, event, fields.text("conversation_id")?);
    let cwd = request.cwd.clone().or_else(|| roots.map(str::to_owned));
    // A loop that a hook keeps going is counted.
    let kept = fields.get("loop_count").and_then(Json::as_u64).is_some_and(|count| count > 0);
    Ok(Request { call: fields.maybe("tool_use_id"), tool, input, cwd, outcome, kept, ..request })
}

fn goose(fields: &Fields<'_>) -> Result<Request, ReadError> {
    let event = fields.text("event")?;
    let moment = match event.as_str() {
        "PreToolUse" => Moment::Before,
        "PostToolUse" | "PostToolUseFailure" => Moment::After,
        "Stop" => Moment::Stop,
        _ => return Err(unknown(fields, event)),
    };
    let failed = event == "PostToolUseFailure";
    let request = request(fields, moment, event, fields.text("session_id")?);
    if moment == Moment::Stop {
        return Ok(request);
    }
    let outcome = (moment == Moment::After).then(|| {
        let output = fields.get("tool_output").or_else(|| fields.get("tool_response"));
        let output = output.or_else(|| fields.get("error")).cloned().unwrap_or_default();
        Outcome { ok: if failed { Some(false) } else { worked(&output) }, output }
    });
    let (tool, input) = (fields.text("tool_name")?, fields.input("tool_input")?);
    let cwd = request.cwd.clone().or_else(|| fields.maybe("working_dir"));
    Ok(Request { call: fields.maybe("tool_call_id"), tool, input, cwd, outcome, ..request })
}

/// Whether a tool worked, as far as its result says so in one of the ways of the clients.
fn worked(output: &Json) -> Option<bool> {
    // Some clients write JSON as a text.
    let inner = output.as_str().and_then(|text| charter_expr::strict_json::from_str(text).ok());
    let output = inner.as_ref().filter(|inner| inner.is_object()).unwrap_or(output);
    let code = [output.get("exit_code"), output.get("exitCode"), output.pointer("/metadata/exit")];
    if let Some(code) = code.into_iter().flatten().find_map(Json::as_i64) {
        return Some(code == 0);
    }
    if let Some(kind) = output.get("resultType").and_then(Json::as_str) {
        return Some(kind == "success");
    }
    let failed = ["is_error", "isError", "interrupted"].into_iter();
    if failed.filter_map(|member| output.get(member)?.as_bool()).any(|failed| failed) {
        return Some(false);
    }
    if output.get("error").is_some_and(|error| !error.is_null()) {
        return Some(false);
    }
    output.get("llmContent").and_then(Json::as_str).and_then(gemini_worked)
}

/// Gemini CLI says how a command ended in the text for its model, behind the output, which can say
/// anything. It leaves out the exit code 0; the last line is there only if the command has ended.
fn gemini_worked(text: &str) -> Option<bool> {
    let text = text.strip_prefix("<untrusted_context>\n").unwrap_or(text);
    let text = text.strip_suffix("\n</untrusted_context>").unwrap_or(text);
    let mut lines = text.strip_prefix("Output: ")?.lines().rev();
    lines.next()?.strip_prefix("Process Group PGID: ")?;
    let line = lines.find(|line| !line.starts_with("Background PIDs: ")).unwrap_or_default();
    let code = line.strip_prefix("Exit Code: ").map(|code| code.trim() == "0");
    Some(code.unwrap_or(!line.starts_with("Signal: ")))
}

/// Copilot CLI calls a command that failed a success: how it ended is in the last line of the text
/// for its model, if it has ended.
fn copilot_worked(tool: &str, output: &Json) -> Option<bool> {
    let ok = worked(output);
    if ok == Some(false) || !(tool.ends_with("bash") || tool.ends_with("powershell")) {
        return ok;
    }
    let line = output.get("textResultForLlm")?.as_str()?.lines().last()?;
    let (_, code) = line.strip_prefix("<shellId: ")?.strip_suffix('>')?.split_once(" completed with exit code ")?;
    Some(code == "0")
}
