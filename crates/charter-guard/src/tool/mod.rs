//! What the tools of clients do with their arguments.

mod arguments;
mod names;
mod patch;
mod search;
mod unread;

use std::borrow::Cow;

use serde_json::Value;

use crate::ToolCall;
use crate::command;
use crate::data::{Act, Description, Usage};
use crate::path::{self, Depth};
use crate::tree::tree_digest;
use crate::workspace::Workspace;
use names::Tool;
pub(crate) use patch::changed_paths;

/// Keys under which tools name one file or folder.
const PATHS: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "notebook_path",
    "target_file",
    "targetFile",
    "file",
    "filename",
    "dir_path",
    "dirPath",
    "directory",
    "relative_workspace_path",
    "target_directory",
    "relative_path",
];
/// Keys under which tools name several.
const LISTS: &[&str] = &["paths", "file_paths", "files"];
/// Keys of a command line, and of the folder that it runs in.
const COMMANDS: &[&str] = &["command", "cmd", "script", "commandLine"];
const FOLDERS: &[&str] = &["workdir", "cwd", "dir_path", "directory", "working_directory", "workingDirectory"];
const PATCHES: &[&str] = &["input", "patch", "command", "patchText", "patch_text", "diff"];

/// Describes what a tool call would do in a workspace. It looks at the file system to find out
/// where links lead, and changes nothing.
#[must_use]
pub fn describe(call: &ToolCall, workspace: &Workspace) -> Description {
    let tool = names::find(&call.tool);
    let mut description = Description::new(call, tool.act());
    match tool {
        Tool::Shell => shell(&mut description, workspace, call),
        Tool::Read => files(&mut description, workspace, call, Usage::Read, Depth::One, false),
        Tool::List => files(&mut description, workspace, call, Usage::Search, Depth::One, true),
        Tool::Find => {
            files(&mut description, workspace, call, Usage::Search, Depth::All, true);
            for key in ["pattern", "include"] {
                pattern(&mut description, workspace, call, key);
            }
        }
        Tool::Grep => search::contents(&mut description, workspace, call),
        Tool::Write => files(&mut description, workspace, call, Usage::Write, Depth::One, false),
        Tool::Delete => files(&mut description, workspace, call, Usage::Delete, Depth::All, false),
        Tool::Move => {
            files(&mut description, workspace, call, Usage::Delete, Depth::All, true);
            for key in ["source", "source_path", "from", "old_path"] {
                one(&mut description, workspace, call, key, Usage::Delete, Depth::All);
            }
            for key in ["destination", "destination_path", "to", "new_path"] {
                one(&mut description, workspace, call, key, Usage::Write, Depth::All);
            }
        }
        Tool::Editor => editor(&mut description, workspace, call),
        Tool::Patch => patch(&mut description, workspace, call),
        Tool::Network => network(&mut description, call),
        Tool::Ask => description.does.ask = true,
        Tool::Input => description.opaque("input for a running command"),
        Tool::ForeignShell => {
            description.does.command = true;
            description.opaque("a command line of another shell");
        }
        Tool::Other => description.does.other = true,
    }
    unread::note(&mut description, &tool, &call.input);
    if description.does.commit || description.does.test {
        description.tree = tree_digest(workspace.root());
    }
    description
}

/// The part of a tool's input that decides what the call does. What a client shows its user about a
/// command is none.
pub(crate) fn decided_by(call: &ToolCall) -> Cow<'_, Value> {
    match &call.input {
        Value::Object(fields) if names::find(&call.tool) == Tool::Shell && fields.contains_key("description") => {
            let mut fields = fields.clone();
            fields.remove("description");
            Cow::Owned(Value::Object(fields))
        }
        input => Cow::Borrowed(input),
    }
}

/// The text under one of these keys, with which of them it is.
fn text<'a>(call: &'a ToolCall, keys: &[&'static str]) -> Option<(&'static str, &'a Value)> {
    keys.iter().find_map(|key| call.input.get(*key).filter(|value| !value.is_null()).map(|value| (*key, value)))
}

/// All texts under these keys.
fn strings<'a>(call: &'a ToolCall, keys: &[&'static str]) -> Vec<&'a str> {
    let values = keys.iter().filter_map(|key| call.input.get(*key));
    let items = values.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
    items.filter_map(Value::as_str).collect()
}

fn one(
    description: &mut Description,
    workspace: &Workspace,
    call: &ToolCall,
    key: &str,
    usage: Usage,
    depth: Depth,
) -> bool {
    match call.input.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(given)) => {
            path::add(description, workspace, &call.cwd, given, usage, depth);
            true
        }
        Some(_) => {
            description.opaque(format!("`{key}` of the tool is not a string"));
            true
        }
    }
}

fn files(
    description: &mut Description,
    workspace: &Workspace,
    call: &ToolCall,
    usage: Usage,
    depth: Depth,
    or_here: bool,
) {
    let mut found = false;
    for key in PATHS {
        found |= one(description, workspace, call, key, usage, depth);
    }
    // Tools that search take it as a pattern.
    let include = (!or_here).then_some("include");
    for key in LISTS.iter().copied().chain(include) {
        let items = match call.input.get(key) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        for item in items {
            found = true;
            match item.as_str() {
                Some(given) if path::is_glob(given) => {
                    path::add_glob(description, workspace, &call.cwd, given, usage, depth);
                }
                Some(given) => path::add(description, workspace, &call.cwd, given, usage, depth),
                None => description.opaque(format!("`{key}` of the tool is not a list of strings")),
            }
        }
    }
    if !found && or_here {
        path::add(description, workspace, &call.cwd, ".", usage, depth);
    } else if !found {
        description.opaque("the tool's input does not say which file");
    }
}

/// A pattern may start in another folder than the tool's.
fn pattern(description: &mut Description, workspace: &Workspace, call: &ToolCall, key: &str) {
    let patterns = match call.input.get(key) {
        None | Some(Value::Null) => return,
        Some(Value::Array(patterns)) => patterns.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    for given in patterns {
        match given.as_str() {
            Some(pattern) => one_pattern(description, workspace, call, key, pattern),
            None => description.opaque(format!("`{key}` of the tool is not a string")),
        }
    }
}

fn one_pattern(description: &mut Description, workspace: &Workspace, call: &ToolCall, key: &str, pattern: &str) {
    let fixed = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    let folder = fixed.rsplit_once('/').map_or("", |(folder, _)| folder);
    let leaves = pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part.contains(".."));
    if !leaves {
        return;
    }
    let usage = if key == "pattern" { Usage::Search } else { Usage::Read };
    if fixed.is_empty() || pattern.get(fixed.len()..).is_some_and(|rest| rest.contains("..")) {
        description.opaque("a pattern that leaves its folder");
        return;
    }
    path::add(description, workspace, &call.cwd, if folder.is_empty() { "/" } else { folder }, usage, Depth::All);
}

fn shell(description: &mut Description, workspace: &Workspace, call: &ToolCall) {
    description.does.command = true;
    let mut cwd = call.cwd.clone();
    if let Some((key, folder)) = text(call, FOLDERS) {
        match folder.as_str().map(|folder| path::folder(workspace, &call.cwd, folder)) {
            Some(Ok(folder)) => cwd = folder,
            Some(Err(reason)) => description.opaque(format!("folder `{key}`: {reason}")),
            None => description.opaque(format!("`{key}` of the tool is not a string")),
        }
    }
    if !cwd.is_absolute() {
        description.opaque("the folder of the call is not absolute");
    }
    let waits = arguments::note(description, &call.input);
    match text(call, COMMANDS) {
        Some((_, Value::String(line))) => command::describe(description, workspace, &cwd, line, waits),
        Some((_, Value::Array(words))) => {
            let words: Option<Vec<String>> = words.iter().map(|word| word.as_str().map(quoted)).collect();
            match words {
                Some(words) => command::describe(description, workspace, &cwd, &words.join(" "), waits),
                None => description.opaque("the command is not a list of strings"),
            }
        }
        _ => description.opaque("the tool's input has no command"),
    }
}

/// A word as a shell reads it literally.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn editor(description: &mut Description, workspace: &Workspace, call: &ToolCall) {
    let usage = match call.input.get("command").and_then(Value::as_str) {
        Some("view" | "read") => Usage::Read,
        _ => Usage::Write,
    };
    files(description, workspace, call, usage, Depth::One, false);
    description.act = if usage == Usage::Read { Act::Read } else { Act::Write };
}

fn patch(description: &mut Description, workspace: &Workspace, call: &ToolCall) {
    let value = match &call.input {
        Value::String(_) => Some(&call.input),
        _ => text(call, PATCHES).map(|(_, value)| value),
    };
    let text = match value {
        Some(Value::String(text)) => Some(text.clone()),
        // `["apply_patch", "*** Begin Patch ..."]`
        Some(Value::Array(words)) => words.last().and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    match text.as_deref().and_then(changed_paths) {
        Some(paths) => {
            for (given, usage) in paths {
                path::add(description, workspace, &call.cwd, &given, usage, Depth::One);
            }
        }
        None => description.opaque("a patch that cannot be read"),
    }
}

/// An address beside `url` may be fetched as well, as Gemini does with those of its prompt. That of
/// Claude Code is for its model.
fn network(description: &mut Description, call: &ToolCall) {
    let url = call.input.get("url").and_then(Value::as_str);
    let is_shown =
        |field: &str| field == "url" || field == "prompt" && call.client == "claude" && call.tool == "WebFetch";
    let others = call.input.as_object().is_some_and(|fields| {
        fields.iter().any(|(field, value)| !is_shown(field) && value.to_string().contains("://"))
    });
    let host = url.filter(|_| !others).and_then(command::host);
    description.network(host.as_deref());
}
