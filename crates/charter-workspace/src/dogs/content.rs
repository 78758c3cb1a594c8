//! The fences behind a `paws-change` fence: the whole new content of a file, or edits of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::lines::Lines;
use super::read::Head;
use super::{FENCE, backticks, longest_run};
use crate::draft::{Edit, MAX_EDITS};
use crate::error::ChangesetError;
use crate::loose::clip;

/// Info strings of the fences of an edit.
const EDIT: [&str; 2] = ["search", "replace"];

/// The text of a fence, with the line feed of its last line.
struct Fenced<'t> {
    opened_at: usize,
    language: &'t str,
    text: &'t str,
}

/// Parses a fence: the lines up to the next line that equals the opening one. `what` it has to be,
/// and the help if it is not there.
fn fenced<'t>(lines: &mut Lines<'t>, what: &str, help: &str) -> Result<Fenced<'t>, ChangesetError> {
    let Some(opening) = lines.fence()? else {
        return Err(lines.refuse(format!("unexpected end of text: expected {what}"), help));
    };
    lines.no_cr(opening)?;
    let opened_at = lines.number;
    let fence = backticks(opening);
    let language = opening.get(fence..).unwrap_or_default();
    if fence < 3 || language == FENCE {
        return Err(lines.refuse(format!("expected {what}, found `{}`", clip(opening)), help));
    }
    if language.contains('`') || language.chars().any(char::is_control) {
        return Err(lines.refuse(format!("invalid content fence `{}`", clip(opening)), help));
    }
    let start = lines.rest;
    let mut length = 0usize;
    loop {
        let Some(line) = lines.next() else {
            let help = format!("close it with a line of {fence} backticks");
            return Err(ChangesetError::new("the content fence is not closed", help).at_line(opened_at));
        };
        let run = longest_run(line);
        if run >= fence {
            if line.len() == fence {
                break;
            }
            lines.no_cr(line)?;
            let why = format!("ambiguous content: {run} backticks in a row inside a fence of {fence}");
            let help = format!("use a fence of {} or more backticks for this content", run.saturating_add(1));
            return Err(lines.refuse(why, help));
        }
        length = length.saturating_add(line.len()).saturating_add(1);
    }
    Ok(Fenced { opened_at, language, text: start.get(..length).unwrap_or_default() })
}

/// Parses the whole content.
pub(super) fn content(lines: &mut Lines<'_>, head: &Head<'_>) -> Result<Vec<u8>, ChangesetError> {
    const HELP: &str = "write the whole new content of the file in a fence of backticks after the `paws-change` fence";
    let Fenced { opened_at, mut text, .. } = fenced(lines, "the content", HELP)?;
    if head.base64 == Some(true) {
        if head.final_newline.is_some() {
            return Err(ChangesetError::new("`final_newline` does not apply to base64", "remove it").at_line(opened_at));
        }
        let joined: String = text.split('\n').collect();
        return STANDARD.decode(joined).map_err(|e| {
            ChangesetError::new(format!("invalid base64 content: {e}"), "use the standard alphabet, with padding")
                .at_line(opened_at)
        });
    }
    if head.final_newline == Some(false) {
        text = text.strip_suffix('\n').ok_or_else(|| {
            ChangesetError::new("`final_newline: false`, but the content is empty", "remove `final_newline`")
                .at_line(opened_at)
        })?;
        if text.is_empty() || text.ends_with('\n') {
            let why = "`final_newline: false`, but the content ends with an empty line";
            return Err(ChangesetError::new(why, "remove one of them").at_line(opened_at));
        }
    }
    Ok(text.as_bytes().to_vec())
}

/// Parses so many edits: for each, a fence with the old text and one with the new text, both
/// without the line feed of their last line.
pub(super) fn edits(lines: &mut Lines<'_>, count: usize) -> Result<Vec<Edit>, ChangesetError> {
    const HELP: &str = "write for each edit a fence ```search with the exact old text and a fence ```replace with the new text, as many as `edits` says";
    if !(1..=MAX_EDITS).contains(&count) {
        let why = format!("`edits` is {count}; a change has 1 to {MAX_EDITS}");
        return Err(lines.refuse(why, "write the whole new content instead"));
    }
    let mut all = Vec::new();
    for number in 1..=count {
        let mut text = |name: &str| {
            let what = format!("the fence `{name}` of edit {number}");
            let Fenced { opened_at, language, text } = fenced(lines, &what, HELP)?;
            if language != name {
                let why = format!("expected {what}, found a fence `{}`", clip(language));
                return Err(ChangesetError::new(why, HELP).at_line(opened_at));
            }
            Ok(text.strip_suffix('\n').unwrap_or(text).to_owned())
        };
        let [search, replace] = EDIT;
        all.push(Edit { search: text(search)?, replace: text(replace)? });
    }
    Ok(all)
}
