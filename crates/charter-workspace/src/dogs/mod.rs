//! The text form of a changeset, "DOGS": a heading, `**Summary:**`, `**Changes:** n`, a rule, then
//! per change a `paws-change` fence with the operation and the path, and the whole new content in a
//! second fence.
//!
//! Lines end with LF. Content is taken byte by byte, so a file with CRLF keeps it. A line of the
//! *form* that ends with CRLF is refused: line endings were converted in transit, and the original
//! ones of the content are unknown. Content that does not end with a line feed has `final_newline:
//! false`; binary content has `encoding: base64`.

mod read;
mod write;

pub use read::read;
pub use write::write;

/// Info string of the fence that describes a change.
const FENCE: &str = "paws-change";

/// The number of leading backticks.
fn backticks(text: &str) -> usize {
    text.len().saturating_sub(text.trim_start_matches('`').len())
}

/// The longest run of backticks.
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
