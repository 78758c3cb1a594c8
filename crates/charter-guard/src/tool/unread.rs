//! Arguments that say which files or commands, at places where the tool's own are not: what another
//! version of a client may send, or somebody who wants them not to be seen.

use serde_json::Value;

use super::names::Tool;
use super::{COMMANDS, FOLDERS, LISTS, PATCHES, PATHS};
use crate::data::Description;

/// Keys of texts that are searched for, in which a path means nothing.
const SOUGHT: &[&str] = &["pattern", "query", "regex", "glob", "include", "search", "description"];

/// Makes a call opaque whose files or commands are not all known.
pub(super) fn note(description: &mut Description, tool: &Tool, input: &Value) {
    let (keys, alternatives): (&[&[&str]], &[&[&str]]) = match tool {
        Tool::Shell => (&[COMMANDS, FOLDERS], &[COMMANDS, FOLDERS]),
        Tool::Patch => (&[PATCHES, PATHS, LISTS], &[PATCHES]),
        Tool::Read | Tool::List | Tool::Find | Tool::Grep | Tool::Write | Tool::Delete | Tool::Move | Tool::Editor => {
            (&[PATHS, LISTS], &[])
        }
        _ => return,
    };
    for alternative in alternatives {
        let mut given = alternative.iter().filter_map(|key| Some((key, input.get(*key).filter(|v| !v.is_null())?)));
        let Some((first, value)) = given.next() else { continue };
        if let Some((other, _)) = given.find(|(_, other)| *other != value) {
            description.opaque(format!("the tool's input has both `{first}` and `{other}`"));
        }
    }
    let fields = match input {
        Value::Object(fields) => fields,
        Value::Null => return,
        Value::String(_) if matches!(tool, Tool::Patch) => return,
        _ => return description.opaque("the tool's input is not an object"),
    };
    for (field, value) in fields {
        if let Some(key) = within(value, keys) {
            description.opaque(format!("`{key}` within `{field}` of the tool's input"));
        }
    }
    // Without a file, these tools take the folder that they are in.
    let or_here = matches!(tool, Tool::List | Tool::Find | Tool::Grep | Tool::Move);
    if or_here {
        let others = fields.iter().filter(|(field, _)| {
            let read = [PATHS, LISTS, SOUGHT, MOVED].iter().any(|keys| keys.contains(&field.as_str()));
            !read
        });
        for (field, value) in others {
            if names_a_place(value) {
                description.opaque(format!("`{field}` of the tool's input may be a file or folder"));
            }
        }
    }
}

/// Keys of tools that move, which [`super::describe`] reads.
const MOVED: &[&str] =
    &["source", "source_path", "from", "old_path", "destination", "destination_path", "to", "new_path"];

/// One of the keys that a value has anywhere in it.
fn within<'k>(value: &Value, keys: &[&[&'k str]]) -> Option<&'k str> {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                let known = |field: &String| keys.iter().copied().flatten().find(|key| **key == field.as_str());
                if let Some(key) = fields.keys().find_map(known) {
                    return Some(key);
                }
                left.extend(fields.values());
            }
            _ => {}
        }
    }
    None
}

/// Whether a text in a value may lead out of the folder.
fn names_a_place(value: &Value) -> bool {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values()),
            Value::String(text) => {
                let leads =
                    text.starts_with(['/', '~', '\\']) || text.get(1..3).is_some_and(|c| [":\\", ":/"].contains(&c));
                if leads || text.starts_with("file:") || text.split(['/', '\\']).any(|part| part == "..") {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}
