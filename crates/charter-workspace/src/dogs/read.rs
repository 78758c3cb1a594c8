//! Parses the text form strictly: anything unknown or ambiguous is an error.

use std::collections::BTreeMap;

use charter_kernel::Digest;

use super::content::{content, edits};
use super::lines::Lines;
use super::{FENCE, backticks};
use crate::changeset::{Change, Changeset, MAX_CHANGES, MAX_CONTENT_BYTES, Operation, summary_fault};
use crate::draft::{Draft, DraftChange};
use crate::error::ChangesetError;
use crate::loose::{self, clip};
use crate::path::RelPath;

/// Parses a changeset in the text form.
///
/// `````
/// let text = "\
/// ## Proposal
///
/// **Summary:** Say hello
/// **Changes:** 1
///
/// ---
///
/// ```paws-change
/// operation: CREATE
/// file_path: hello.txt
/// ```
///
/// ```
/// Hello!
/// ```
/// ";
/// let changeset = charter_workspace::dogs::read(text.as_bytes())?;
/// assert_eq!(changeset.changes()[0].content.as_deref(), Some(&b"Hello!\n"[..]));
/// # Ok::<(), charter_workspace::ChangesetError>(())
/// `````
///
/// # Errors
/// A line is unknown or ambiguous; the error says which line, why, and how to correct it. Edits are
/// refused, because there is no file to edit: [`draft`] takes them.
pub fn read(text: &[u8]) -> Result<Changeset, ChangesetError> {
    draft(text)?.on(&BTreeMap::new())
}

/// Parses a changeset in the text form, which may have edits.
///
/// # Errors
/// As [`read`].
pub fn draft(text: &[u8]) -> Result<Draft, ChangesetError> {
    read_with(text, None).map(|(draft, _)| draft)
}

/// Parses what a model has written: like [`draft`], but where only one reading is possible, it
/// takes text around the changes, a missing head, lower-case operations and paths that begin with
/// `/` or `./`. Returns what it has assumed, too.
///
/// # Errors
/// As [`read`]. A fence that is neither a change nor its content is refused, because it may be the
/// rest of a content whose fence was closed too early.
pub fn draft_leniently(text: &[u8]) -> Result<(Draft, Vec<String>), ChangesetError> {
    match draft(text) {
        Ok(draft) => Ok((draft, Vec::new())),
        Err(_) => read_with(text, Some(Vec::new())),
    }
}

fn read_with(text: &[u8], assumed: Option<Vec<String>>) -> Result<(Draft, Vec<String>), ChangesetError> {
    if text.len() > MAX_CONTENT_BYTES.saturating_mul(2) {
        let why = format!("the text has {} bytes; the limit is {}", text.len(), MAX_CONTENT_BYTES.saturating_mul(2));
        return Err(ChangesetError::new(why, "split the changeset"));
    }
    let text = std::str::from_utf8(text).map_err(|e| {
        let before = text.get(..e.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|b| **b == b'\n').count().saturating_add(1);
        ChangesetError::new("the text is not UTF-8", "write binary content with `encoding: base64`").at_line(line)
    })?;
    let mut lines = Lines { rest: text, number: 0, assumed };
    let (summary, counted) = match lines.assumed {
        None => head(&mut lines).map(|(summary, count, at)| (Some(summary), Some((count, at))))?,
        Some(_) => loose_head(&mut lines)?,
    };
    let mut changes = Vec::new();
    while let Some(line) = lines.fence()? {
        let at = lines.number;
        let change = change(&mut lines, line, changes.len()).map_err(|refused| refused.at_line(at))?;
        changes.push(DraftChange { line: Some(at), ..change });
        if changes.len() > MAX_CHANGES {
            return Err(
                ChangesetError::new(format!("more than {MAX_CHANGES} changes"), "split the changeset").at_line(at)
            );
        }
    }
    if let Some((count, counted_at)) = counted.filter(|(count, _)| *count != changes.len()) {
        let why = format!("`**Changes:** {count}`, but the text has {} changes", changes.len());
        return Err(ChangesetError::new(why, "write the number of `paws-change` fences").at_line(counted_at));
    }
    let mut assumed = lines.assumed.unwrap_or_default();
    let summary = summary.map(str::to_owned).unwrap_or_else(|| {
        assumed.push("there is no summary; the first file stands for it".to_owned());
        changes.first().map_or_else(String::new, |first| format!("{} {}", first.change.operation, first.change.path))
    });
    Ok((Draft { summary, changes }, assumed))
}

/// What a head says, as far as there is one: the summary, and the number of changes with its line.
type LooseHead<'t> = (Option<&'t str>, Option<(usize, usize)>);

/// Parses the lines before the first fence: a summary and a number of changes, if they are there.
fn loose_head<'t>(lines: &mut Lines<'t>) -> Result<LooseHead<'t>, ChangesetError> {
    let (mut summary, mut count) = (None, None);
    let twice = |at| Err(ChangesetError::new("the head is there twice", "write one changeset").at_line(at));
    loop {
        let (rest, number) = (lines.rest, lines.number);
        let Some(line) = lines.filled().filter(|line| backticks(line.trim_start()) < 3) else {
            (lines.rest, lines.number) = (rest, number);
            return Ok((summary, count));
        };
        lines.no_cr(line)?;
        if let Some(text) = line.strip_prefix("**Summary:**") {
            if summary.replace(text.trim()).is_some() {
                return twice(lines.number);
            }
        } else if let Some(number) = line.strip_prefix("**Changes:**") {
            let read =
                number.trim().parse().map_err(|_| lines.refuse("the number of changes is not a number", FORM))?;
            if count.replace((read, lines.number)).is_some() {
                return twice(lines.number);
            }
        }
    }
}

/// Parses the heading, the summary, the number of changes (with its line), and the rule.
fn head<'t>(lines: &mut Lines<'t>) -> Result<(&'t str, usize, usize), ChangesetError> {
    let mut want = |what: &str| {
        let Some(line) = lines.filled() else {
            return Err(lines.refuse(format!("unexpected end of text: expected {what}"), FORM));
        };
        lines.no_cr(line)?;
        Ok((line, lines.number))
    };
    let refuse = |line: &str, at, what: &str| {
        Err(ChangesetError::new(format!("expected {what}, found `{}`", clip(line)), FORM).at_line(at))
    };
    let (line, at) = want("a heading")?;
    let title = line.trim_start_matches('#');
    let level = line.len().saturating_sub(title.len());
    if !(1..=6).contains(&level) || !title.starts_with(' ') || title.trim().is_empty() {
        return refuse(line, at, "a heading (`# Changeset`)");
    }
    let (line, at) = want("`**Summary:**`")?;
    let Some(summary) = line.strip_prefix("**Summary:** ") else {
        return refuse(line, at, "`**Summary:** ` and a summary");
    };
    if let Some(why) = summary_fault(summary) {
        return Err(ChangesetError::new(why, "describe the changes in one line").at_line(at));
    }
    let (line, counted_at) = want("`**Changes:**`")?;
    let count = line.strip_prefix("**Changes:** ").filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let Some(count) = count.and_then(|n| n.parse().ok()) else {
        return refuse(line, counted_at, "`**Changes:** ` and their number");
    };
    let (line, at) = want("a rule (`---`)")?;
    if line.len() < 3 || line.bytes().any(|b| b != b'-') {
        return refuse(line, at, "a rule (`---`)");
    }
    Ok((summary, count, counted_at))
}

const FORM: &str = "a changeset is a heading, `**Summary:** ...`, `**Changes:** n`, `---`, then per change a `paws-change` fence and a fence with the content";

/// The fields of a `paws-change` fence.
#[derive(Default)]
pub(super) struct Head<'t> {
    operation: Option<Operation>,
    path: Option<RelPath>,
    old_sha256: Option<Digest>,
    pub(super) base64: Option<bool>,
    pub(super) final_newline: Option<bool>,
    edits: Option<usize>,
    executable: Option<bool>,
    place: &'t str,
}

fn change(lines: &mut Lines<'_>, opening: &str, index: usize) -> Result<DraftChange, ChangesetError> {
    let opened_at = lines.number;
    let fence = backticks(opening);
    lines.no_cr(opening)?;
    if fence < 3 || opening.get(fence..) != Some(FENCE) {
        let help = "a change starts with the line ```paws-change; remove other text between changes";
        return Err(lines.refuse(format!("expected the start of a change, found `{}`", clip(opening)), help));
    }
    let mut head = Head::default();
    loop {
        let Some(line) = lines.next() else {
            let help = format!("close it with a line of {fence} backticks");
            return Err(ChangesetError::new("the `paws-change` fence is not closed", help).at_line(opened_at));
        };
        lines.no_cr(line)?;
        if backticks(line) == line.len() && line.len() == fence {
            break;
        }
        field(lines, line, &mut head).map_err(|refused| refused.at_change(index, head.place))?;
    }
    let missing = |key: &str| {
        let why = format!("the change has no `{key}`");
        Err(ChangesetError::new(why, "write `operation` and `file_path`")
            .at_line(opened_at)
            .at_change(index, head.place))
    };
    let Some(operation) = head.operation else {
        return missing("operation");
    };
    let Some(path) = head.path.clone() else {
        return missing("file_path");
    };
    let refuse =
        |why: &str| Err(ChangesetError::new(why, "remove it").at_line(opened_at).at_change(index, path.as_str()));
    let written = head.base64.is_some() || head.final_newline.is_some();
    let (content, edits) = match (operation, head.edits) {
        (Operation::Delete, None) if written => {
            return refuse("DELETE has no content, but `encoding` or `final_newline` is set");
        }
        (Operation::Delete, None) => (None, None),
        (Operation::Modify, Some(_)) if written => {
            return refuse("the change is edits, but `encoding` or `final_newline` is set");
        }
        (Operation::Modify, Some(count)) => {
            (None, Some(edits(lines, count).map_err(|refused| refused.at_change(index, path.as_str()))?))
        }
        (_, Some(_)) => return refuse("`edits` is set, but only MODIFY has edits"),
        (_, None) => (Some(content(lines, &head).map_err(|refused| refused.at_change(index, path.as_str()))?), None),
    };
    let change = Change { operation, path, old_sha256: head.old_sha256, content, executable: head.executable };
    Ok(DraftChange { change, edits, line: None })
}

fn field<'t>(lines: &mut Lines<'t>, line: &'t str, head: &mut Head<'t>) -> Result<(), ChangesetError> {
    const KEYS: &str = "the keys are `operation`, `file_path`, `old_sha256`, `encoding`, `final_newline`, `executable` and `edits`, each written `key: value` with one space";
    let Some((key, value)) = line.split_once(": ") else {
        return Err(lines.refuse(format!("expected `key: value`, found `{}`", clip(line)), KEYS));
    };
    let (mut value, mut operation, number) = (value, value.to_owned(), lines.number.max(1));
    if lines.assumed.is_some() {
        value = value.trim();
        operation = value.to_owned();
        if let Some((meant, assumed)) = loose::path(value).filter(|_| key == "file_path") {
            lines.assume(assumed);
            value = meant;
        }
        if let Some((meant, assumed)) = loose::operation(value).filter(|_| key == "operation") {
            lines.assume(assumed);
            operation = meant;
        }
    }
    let wrong = |help: &str| ChangesetError::new(format!("invalid `{key}`: `{}`", clip(value)), help).at_line(number);
    let twice = match key {
        "operation" => {
            let read = Operation::parse(&operation).ok_or_else(|| wrong("write CREATE, MODIFY or DELETE"))?;
            head.operation.replace(read).is_some()
        }
        "file_path" => {
            head.place = value;
            let read = RelPath::parse(value).map_err(|fault| {
                lines.refuse(format!("the path `{}` {fault}", clip(value)), "name a file inside the workspace")
            })?;
            head.path.replace(read).is_some()
        }
        "old_sha256" => {
            let lower = !value.bytes().any(|b| b.is_ascii_uppercase());
            let read = Digest::parse(value)
                .filter(|_| lower)
                .ok_or_else(|| wrong("write the SHA-256 as 64 lowercase hex digits"))?;
            head.old_sha256.replace(read).is_some()
        }
        "encoding" => {
            let read = match value {
                "base64" => true,
                "utf-8" => false,
                _ => return Err(wrong("write `base64` or `utf-8` (the default)")),
            };
            head.base64.replace(read).is_some()
        }
        "final_newline" => {
            let read = value.parse().map_err(|_| wrong("write `true` (the default) or `false`"))?;
            head.final_newline.replace(read).is_some()
        }
        "executable" => {
            let read =
                value.parse().map_err(|_| wrong("write `true` or `false`; without it, the mode stays as it was"))?;
            head.executable.replace(read).is_some()
        }
        "edits" => {
            let read = value.parse().map_err(|_| wrong("write how many edits follow, such as `edits: 2`"))?;
            head.edits.replace(read).is_some()
        }
        _ => return Err(lines.refuse(format!("unknown key `{}`", clip(key)), KEYS)),
    };
    if twice {
        return Err(lines.refuse(format!("`{key}` is given twice"), "write it once"));
    }
    Ok(())
}
