//! The text form of a changeset, "DOGS": a heading, `**Summary:**`, `**Changes:** n`, a rule, then per change a `paws-change` fence
//! with what is done to which file, and the full new content in a fence of its own.
//!
//! Lines end with a line feed. Content is taken byte by byte, so a file with CRLF keeps it; CRLF at the end of a line of the *form*
//! is refused, because then somebody has changed line ends on the way, and nobody can say which of the content's were meant.
//! A content without a line feed at its end has `final_newline: false`; content that is no UTF-8 has `encoding: base64`.

mod read;
mod write;

pub use read::read;
pub use write::write;

/// Language of the fence that says what is done.
const FENCE: &str = "paws-change";

/// How many backticks stand at the beginning.
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
