//! Writes a changeset as text, so that any content survives the round trip.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{FENCE, longest_run};
use crate::changeset::{Change, Changeset};

/// Base64 characters per line.
const LINE: usize = 76;

/// Renders the text form; [`read`](super::read()) restores the same changeset.
#[must_use]
pub fn write(changeset: &Changeset) -> String {
    let size: usize = changeset.changes().iter().filter_map(|c| c.content.as_ref()).map(Vec::len).sum();
    let mut out = String::with_capacity(size.saturating_add(256));
    out.push_str("# Changeset\n\n**Summary:** ");
    out.push_str(changeset.summary());
    out.push_str("\n**Changes:** ");
    out.push_str(&changeset.changes().len().to_string());
    out.push_str("\n\n---\n");
    for change in changeset.changes() {
        write_change(&mut out, change);
    }
    out
}

fn write_change(out: &mut String, change: &Change) {
    out.push_str("\n```");
    out.push_str(FENCE);
    let mut field = |key: &str, value: &str| {
        out.push('\n');
        out.push_str(key);
        out.push_str(": ");
        out.push_str(value);
    };
    field("operation", change.operation.as_str());
    field("file_path", change.path.as_str());
    if let Some(old) = change.old_sha256 {
        field("old_sha256", &old.hex());
    }
    if let Some(executable) = change.executable {
        field("executable", if executable { "true" } else { "false" });
    }
    let text = match change.content.as_deref().map(std::str::from_utf8) {
        None => {
            out.push_str("\n```\n");
            return;
        }
        Some(Ok(text)) => {
            if !text.is_empty() && !text.ends_with('\n') {
                field("final_newline", "false");
            }
            text.to_owned()
        }
        Some(Err(_)) => {
            field("encoding", "base64");
            wrapped(change.content.as_deref().unwrap_or_default())
        }
    };
    out.push_str("\n```\n\n");
    let fence = "`".repeat(longest_run(&text).saturating_add(1).max(3));
    out.push_str(&fence);
    out.push('\n');
    out.push_str(&text);
    if !text.is_empty() && !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&fence);
    out.push('\n');
}

fn wrapped(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = String::with_capacity(text.len().saturating_add(text.len() / LINE));
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out
}
