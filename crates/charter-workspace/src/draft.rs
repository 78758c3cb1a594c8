//! A changeset as it was written: a change may be edits of a file that the proposer was shown.

use std::collections::BTreeMap;

use charter_kernel::Digest;

use crate::changeset::{Change, Changeset, Operation, other_content, unshown};
use crate::error::ChangesetError;
use crate::loose::clip;
use crate::path::RelPath;

/// Maximum number of edits of a file.
pub(crate) const MAX_EDITS: usize = 1_000;

/// The replacement of one place in a file. `search` occurs there, and nowhere else in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) search: String,
    pub(crate) replace: String,
}

/// One change as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftChange {
    pub(crate) change: Change,
    /// Edits that take the place of the content.
    pub(crate) edits: Option<Vec<Edit>>,
    /// Line of the text form.
    pub(crate) line: Option<usize>,
}

/// A changeset as it was written. [`Draft::on`] makes the changeset of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub(crate) summary: String,
    pub(crate) changes: Vec<DraftChange>,
}

impl Draft {
    /// Makes the changeset: applies its edits to `files`, the contents that the proposer was shown.
    /// Each edit must find its text exactly once, in the content as it was shown; edits of a file
    /// do not see each other. The changeset has the whole new contents.
    ///
    /// # Errors
    /// An edit cannot be made, or the changes are inconsistent; nothing of the draft is taken then.
    pub fn on(self, files: &BTreeMap<RelPath, Vec<u8>>) -> Result<Changeset, ChangesetError> {
        let lines: Vec<Option<usize>> = self.changes.iter().map(|change| change.line).collect();
        let changes = self.changes.into_iter().enumerate().map(|(i, DraftChange { mut change, edits, .. })| {
            if let Some(edits) = edits {
                let edited = edited(&change, &edits, files);
                change.content = Some(edited.map_err(|refused| refused.at_change(i, change.path.as_str()))?);
            }
            Ok(change)
        });
        let made = changes.collect::<Result<_, _>>().and_then(|changes| Changeset::new(self.summary, changes));
        made.map_err(|refused| {
            let line = refused.change.as_ref().and_then(|(n, _)| lines.get(n.saturating_sub(1)).copied().flatten());
            match line {
                Some(line) => refused.at_line(line),
                None => refused,
            }
        })
    }
}

/// Returns the content of a file after its edits.
fn edited(change: &Change, edits: &[Edit], files: &BTreeMap<RelPath, Vec<u8>>) -> Result<Vec<u8>, ChangesetError> {
    if change.operation != Operation::Modify {
        let why = format!("{} has edits", change.operation);
        return Err(ChangesetError::new(why, "write MODIFY, or the whole content instead of edits"));
    }
    if edits.is_empty() || edits.len() > MAX_EDITS {
        let why = format!("the change has {} edits; it has 1 to {MAX_EDITS}", edits.len());
        return Err(ChangesetError::new(why, "write the whole new content instead"));
    }
    let old = files.get(&change.path).ok_or_else(|| unshown(change.operation))?;
    let digest = Digest::of_bytes(old);
    if let Some(expected) = change.old_sha256.filter(|expected| *expected != digest) {
        return Err(other_content(expected, digest));
    }
    let old = std::str::from_utf8(old).map_err(|_| {
        ChangesetError::new("the file is not text, so it cannot be edited", "write its whole new content")
    })?;
    let mut places = Vec::with_capacity(edits.len());
    for (i, edit) in edits.iter().enumerate() {
        let at = place(old, &edit.search).map_err(|(why, help)| {
            let number = i.saturating_add(1);
            let first = edit.search.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            ChangesetError::new(format!("edit {number} (`{}`): {why}", clip(first.trim())), help)
        })?;
        places.push((at, i, edit));
    }
    places.sort_unstable_by_key(|(at, ..)| *at);
    let (mut new, mut end, mut last) = (String::with_capacity(old.len()), 0usize, 0usize);
    for (at, i, edit) in places {
        // The text between this edit and the one before; none if they overlap.
        let Some(between) = old.get(end..at) else {
            let (one, other) = (i.min(last).saturating_add(1), i.max(last).saturating_add(1));
            let why = format!("the texts of edit {one} and edit {other} overlap in the file");
            return Err(ChangesetError::new(why, "make one edit of them"));
        };
        new.push_str(between);
        new.push_str(&edit.replace);
        (end, last) = (at.saturating_add(edit.search.len()), i);
    }
    new.push_str(old.get(end..).unwrap_or_default());
    Ok(new.into_bytes())
}

/// Returns where a text is in a file, if it is there exactly once; otherwise why not, and what
/// helps.
fn place(old: &str, search: &str) -> Result<usize, (String, &'static str)> {
    let Some(first) = search.chars().next() else {
        return Err(("its old text is empty".into(), "quote the text that is replaced"));
    };
    let (mut found, mut count, mut from) = (None, 0usize, 0usize);
    // Overlapping places count, too: any of them could be meant.
    while let Some(at) = old.get(from..).and_then(|rest| rest.find(search)) {
        let at = from.saturating_add(at);
        found.get_or_insert(at);
        count = count.saturating_add(1);
        from = at.saturating_add(first.len_utf8());
    }
    match (found, count) {
        (Some(at), 1) => Ok(at),
        (None, _) => Err((
            "its old text is not in the file".into(),
            "copy it from the context exactly, with its spaces and line ends",
        )),
        _ => Err((
            format!("its old text is in the file {count} times"),
            "quote more of the lines around it, so that it is there exactly once",
        )),
    }
}
