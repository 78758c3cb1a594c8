//! The arguments of tools that run a command line, besides the command line and its folder: whether
//! they change what runs, and whether the result of the call is that of the command.

use serde_json::Value;

use super::{COMMANDS, FOLDERS};
use crate::data::Description;

/// Arguments that change neither: texts for people, and what the client itself decides with its
/// user.
const HARMLESS: &[&str] = &[
    "description",
    "explanation",
    "justification",
    "reason",
    "title",
    "prefix_rule",
    "sandbox_permissions",
    "with_escalated_permissions",
    "required_permissions",
    "dangerouslyDisableSandbox",
    "max_output_tokens",
    "login",
    "tty",
    "timeout",
    "timeout_ms",
    "timeoutMs",
    "timeout_secs",
    "timeout_seconds",
    // Names of shells that the client keeps.
    "sessionId",
    "session_id",
    "shellId",
    "shell_id",
];
/// Arguments with which the call ends before the command.
const BACKGROUND: &[&str] = &["run_in_background", "background", "is_background", "isBackground", "detach", "async"];
/// Arguments that say how long the call waits for the command.
const WAITS: &[&str] = &["block_until_ms", "yield_time_ms", "initial_wait", "delay_ms"];
/// Shells whose language is read.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash"];

/// Notes the arguments that the guard does not know, and returns whether the result of the call is
/// that of the command line, and of nothing else.
pub(super) fn note(description: &mut Description, input: &Value) -> bool {
    let mut waits = true;
    for (name, value) in input.as_object().into_iter().flatten() {
        let name = name.as_str();
        if says_nothing(value) || COMMANDS.contains(&name) || FOLDERS.contains(&name) || HARMLESS.contains(&name) {
            continue;
        }
        if BACKGROUND.contains(&name) || name == "mode" {
            waits &= name == "mode" && *value == "sync";
        } else if WAITS.contains(&name) {
            waits &= value.as_f64().is_some_and(|time| time > 0.0);
        } else if name != "shell" || !is_shell(value) {
            let name: String = name.chars().take(40).collect();
            description.opaque(format!("argument `{name}` of the tool may change what it runs"));
            waits = false;
        }
    }
    waits
}

/// Whether an argument is as good as none.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Whether a value names a shell of the system.
fn is_shell(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|folder| text.strip_prefix(folder)).unwrap_or(text);
    SHELLS.contains(&name)
}
