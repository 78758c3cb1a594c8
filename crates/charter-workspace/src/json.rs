//! The JSON form of a changeset, parsed as strictly as the text form.
//!
//! `{"summary": "...", "changes": [{"operation": "MODIFY", "file_path": "...", "old_sha256": "...",
//! "content": "..."}]}`; binary content is written as `content_base64`. `"executable": true` makes
//! a file executable, `false` makes it not executable; without it, its mode stays as it was.
//! `"edits": [{"search": "...", "replace": "..."}]` in place of the content replaces places in the
//! file; each `search` is text that the file has exactly once.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use charter_kernel::Digest;
use serde::{Deserialize, Serialize};

use crate::changeset::{Change, Changeset, Operation};
use crate::draft::{Draft, DraftChange, Edit};
use crate::error::ChangesetError;
use crate::loose;
use crate::path::RelPath;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    summary: String,
    changes: Vec<FormChange>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormChange {
    operation: String,
    file_path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    old_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edits: Option<Vec<FormEdit>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    executable: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormEdit {
    search: String,
    replace: String,
}

/// Parses a changeset in the JSON form. Unknown and duplicate keys are errors.
///
/// # Errors
/// The changeset is invalid; the error says what is wrong and how to correct it, with the line
/// (JSON errors) or the number of the change. Edits are refused, because there is no file to edit:
/// [`draft_leniently()`] takes them.
pub fn read(text: &[u8]) -> Result<Changeset, ChangesetError> {
    let form: Form = serde_json::from_slice(text).map_err(|e| unreadable(&e))?;
    of_form(form)?.on(&BTreeMap::new())
}

/// Like [`read()`], for a value that is already parsed (an actor's answer), in which duplicate keys
/// can no longer be detected.
///
/// # Errors
/// See [`read()`].
pub fn of_value(value: &serde_json::Value) -> Result<Changeset, ChangesetError> {
    of_form(Form::deserialize(value).map_err(|e| unreadable(&e))?)?.on(&BTreeMap::new())
}

/// Like [`of_value()`], for what a model has written: takes edits, operations in lower case, and
/// paths that begin with `/` or `./`. Returns what it has assumed, too.
///
/// # Errors
/// See [`read()`].
pub fn draft_leniently(value: &serde_json::Value) -> Result<(Draft, Vec<String>), ChangesetError> {
    let mut form = Form::deserialize(value).map_err(|e| unreadable(&e))?;
    let mut all = Vec::new();
    for change in &mut form.changes {
        if let Some((meant, assumed)) = loose::operation(&change.operation) {
            change.operation = meant;
            all.push(assumed);
        }
        if let Some((meant, assumed)) = loose::path(&change.file_path) {
            change.file_path = meant.to_owned();
            all.push(assumed);
        }
    }
    Ok((of_form(form)?, all))
}

fn unreadable(e: &serde_json::Error) -> ChangesetError {
    let message = e.to_string();
    let why = message.split(" at line ").next().unwrap_or_default().replace("field", "key");
    let help =
        "expected {\"summary\": \"...\", \"changes\": [{\"operation\", \"file_path\", \"old_sha256\", \"content\"}]}";
    let refused = ChangesetError::new(format!("invalid changeset: {why}"), help);
    if e.line() > 0 { refused.at_line(e.line()) } else { refused }
}

fn of_form(form: Form) -> Result<Draft, ChangesetError> {
    let mut changes = Vec::with_capacity(form.changes.len());
    for (i, change) in form.changes.into_iter().enumerate() {
        let place = change.file_path.clone();
        changes.push(change_of(change).map_err(|refused| refused.at_change(i, &place))?);
    }
    Ok(Draft { summary: form.summary, changes })
}

fn change_of(change: FormChange) -> Result<DraftChange, ChangesetError> {
    let operation = Operation::parse(&change.operation).ok_or_else(|| {
        ChangesetError::new(format!("invalid `operation`: `{}`", change.operation), "write CREATE, MODIFY or DELETE")
    })?;
    let path = RelPath::parse(&change.file_path)
        .map_err(|fault| ChangesetError::new(format!("the path {fault}"), "name a file inside the workspace"))?;
    let old_sha256 = match change.old_sha256 {
        None => None,
        Some(text) => {
            Some(Digest::parse(&text).filter(|_| !text.bytes().any(|b| b.is_ascii_uppercase())).ok_or_else(|| {
                ChangesetError::new(
                    format!("invalid `old_sha256`: `{text}`"),
                    "write the SHA-256 as 64 lowercase hex digits",
                )
            })?)
        }
    };
    let content = match (change.content, change.content_base64) {
        (Some(_), Some(_)) => {
            return Err(ChangesetError::new("both `content` and `content_base64` are given", "provide one of them"));
        }
        (Some(text), None) => Some(text.into_bytes()),
        (None, Some(text)) => Some(STANDARD.decode(text).map_err(|e| {
            ChangesetError::new(format!("invalid `content_base64`: {e}"), "use the standard alphabet, with padding")
        })?),
        (None, None) => None,
    };
    if content.is_some() && change.edits.is_some() {
        return Err(ChangesetError::new("both the content and `edits` are given", "provide one of them"));
    }
    let edits = change.edits.map(|edits| edits.into_iter().map(|e| Edit { search: e.search, replace: e.replace }));
    let edits = edits.map(Iterator::collect);
    let change = Change { operation, path, old_sha256, content, executable: change.executable };
    Ok(DraftChange { change, edits, line: None })
}

/// Renders the JSON form, indented; [`read()`] restores the same changeset.
#[must_use]
pub fn write(changeset: &Changeset) -> String {
    let changes = changeset.changes().iter().map(|change| {
        let (mut content, mut content_base64) = (None, None);
        match change.content.as_deref().map(std::str::from_utf8) {
            Some(Ok(text)) => content = Some(text.to_owned()),
            Some(Err(_)) => content_base64 = change.content.as_deref().map(|bytes| STANDARD.encode(bytes)),
            None => {}
        }
        FormChange {
            operation: change.operation.as_str().to_owned(),
            file_path: change.path.as_str().to_owned(),
            old_sha256: change.old_sha256.map(|d| d.hex()),
            content,
            content_base64,
            edits: None,
            executable: change.executable,
        }
    });
    let form = Form { summary: changeset.summary().to_owned(), changes: changes.collect() };
    // Serializing strings and lists cannot fail.
    serde_json::to_string_pretty(&form).unwrap_or_default()
}
