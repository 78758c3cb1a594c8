//! Tools that search the contents of files.

use serde_json::Value;

use super::{LISTS, PATHS, files, pattern, strings};
use crate::ToolCall;
use crate::data::{Description, Usage};
use crate::path::{self, Depth};
use crate::workspace::Workspace;

/// Keys of patterns for the names of files. Such a pattern brings back what is ignored.
const PATTERNS: &[&str] = &["glob", "include", "include_pattern", "includePattern"];

/// Other keys with which a tool searches no file that it would not search without them. What is not
/// on this list may make it read what is ignored.
const HARMLESS: &[&str] = &[
    "pattern",
    "query",
    "regex",
    "search",
    "description",
    "explanation",
    "type",
    "output_mode",
    "-A",
    "-B",
    "-C",
    "-i",
    "-n",
    "-o",
    "after",
    "before",
    "context",
    "multiline",
    "head_limit",
    "offset",
    "limit",
    "max_results",
    "total_max_matches",
    "max_matches_per_file",
    "names_only",
    "fixed_strings",
    "case_sensitive",
    "caseSensitive",
    "ignore_case",
    "exclude",
    "exclude_pattern",
];

/// Whether a value is the same as none.
fn is_none(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Bool(false) => matches!(key, "no_ignore" | "noIgnore"),
        _ => false,
    }
}

pub(super) fn contents(description: &mut Description, workspace: &Workspace, call: &ToolCall) {
    let known = |key: &str| [PATHS, LISTS, PATTERNS, HARMLESS].iter().any(|keys| keys.contains(&key));
    let fields = call.input.as_object();
    let reads_ignored =
        fields.is_some_and(|fields| fields.iter().any(|(key, value)| !known(key) && !is_none(key, value)));
    let depth = if reads_ignored { Depth::All } else { Depth::Tracked };
    files(description, workspace, call, Usage::Read, depth, true);
    for key in PATTERNS {
        pattern(description, workspace, call, key);
    }
    let patterns = strings(call, PATTERNS);
    if patterns.is_empty() {
        return;
    }
    let mut folders = [strings(call, PATHS), strings(call, LISTS)].concat();
    if folders.iter().any(|folder| path::is_glob(folder)) {
        description.opaque("a pattern of folders that are searched");
        return;
    }
    if folders.is_empty() {
        folders.push(".");
    }
    for folder in folders {
        path::add_ignored_secrets(description, workspace, &call.cwd, folder, &patterns);
    }
}
