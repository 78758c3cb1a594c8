//! The text form of a changeset, "DOGS": a heading, `**Summary:**`, `**Changes:** n` and a rule;
//! then, for each change, a `paws-change` fence with the operation and the path, and a second fence
//! with the whole new content. With `edits: n` in the first fence, n pairs of fences follow it:
//! `search` with text of the file, which it has exactly once, and `replace` with what takes its
//! place, both without the line feed of their last line.
//!
//! Lines end with LF. Content is taken byte by byte, so a file with CRLF keeps it. A line of the
//! *form* itself that ends with CRLF is refused: line endings were converted in transit, so the
//! original line endings of the content are unknown. Content that does not end with a line feed has
//! `final_newline: false`; binary content has `encoding: base64`. `executable: true` makes a file
//! executable.

mod content;
mod lines;
mod read;
mod write;

pub use read::{draft, draft_leniently, read};
pub use write::write;

/// Info string of the fence that describes a change.
const FENCE: &str = "paws-change";

/// Counts the leading backticks.
fn backticks(text: &str) -> usize {
    text.len().saturating_sub(text.trim_start_matches('`').len())
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut rest) = (0, text);
    while let Some(at) = rest.find('`') {
        let tail = rest.get(at..).unwrap_or_default();
        let run = backticks(tail);
        longest = longest.max(run);
        rest = tail.get(run..).unwrap_or_default();
    }
    longest
}
