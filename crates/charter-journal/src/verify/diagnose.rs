//! Explains why the verification of a record failed. Used only after a difference was found.

use charter_kernel::Digest;
use charter_kernel::digest::canonical;
use serde_json::Value as Json;

use super::Difference;
use super::current::{Current, Wrong};
use crate::error::StoreError;
use crate::record::{Fields, RecordError, RecordInput, json_of, rehash, timestamp};
use crate::replay::ReplayError;
use crate::store::{Row, RunRow};

/// The order in which fields are compared, most informative first.
const FIELDS: [&str; 28] = [
    "v",
    "charter",
    "verdict",
    "refusal",
    "to",
    "from",
    "state",
    "transitions",
    "effects",
    "timers",
    "ledger",
    "approvals",
    "notes",
    "answers",
    "status",
    "snapshot",
    "event",
    "source",
    "by",
    "at",
    "id",
    "expected_seq",
    "unique",
    "forked_from",
    "manifest",
    "run",
    "seq",
    "prev",
];

/// Describes why a charter cannot be used, without the advice to run `charter verify`.
pub(super) fn reason(error: ReplayError) -> String {
    match error {
        ReplayError::Store(StoreError::Damaged(why)) => why,
        error => error.to_string(),
    }
}

/// Describes a row that does not have the next sequence number.
pub(super) fn out_of_place(next: u64, row: &Row<'_>) -> Wrong {
    let text = std::str::from_utf8(row.text).unwrap_or_default();
    match RecordInput::read(text) {
        Ok(input) if input.seq == next => {
            (Difference::Place, format!("the record is stored in the row with `seq` {}", row.seq))
        }
        _ => (Difference::Missing, format!("the record is missing; the next stored one is {}", row.seq)),
    }
}

/// Describes text that is not a record.
pub(super) fn unreadable(text: &str, e: &RecordError) -> Wrong {
    match json_of(text) {
        // The text is JSON, so its hash shows whether it was changed.
        Ok(_) => not_intact(text).unwrap_or((Difference::Unreadable, e.to_string())),
        Err(e) => (Difference::Unreadable, format!("the record is not JSON: {e}")),
    }
}

/// Checks that a record matches its own hash and is canonical.
pub(super) fn not_intact(text: &str) -> Option<Wrong> {
    let json = json_of(text).ok()?;
    let said = json.get("hash").and_then(Json::as_str).unwrap_or_default();
    let given = rehash(text)?.to_string();
    if said != given {
        return Some((
            Difference::Hash,
            format!("its content does not match its hash: `hash` is {said}, but the content has the hash {given}"),
        ));
    }
    (canonical(&json) != text).then(|| (Difference::Canonical, "it is not in canonical form (RFC 8785)".into()))
}

/// Describes a record that belongs to another run or position.
pub(super) fn elsewhere(text: &str, run: &str, seq: u64, input: &RecordInput<'_>) -> Wrong {
    if let Some(wrong) = not_intact(text) {
        return wrong;
    }
    if input.run == run {
        (Difference::Place, format!("the stored text is record {} of this run, not {seq}", input.seq))
    } else {
        (Difference::Place, format!("the stored text is record {} of run `{}`", input.seq, input.run))
    }
}

pub(super) fn wrong_prev(said: Digest, before: Digest) -> Wrong {
    (Difference::Prev, format!("`prev` is {said}, but the previous record has the hash {before}"))
}

/// Explains how the text differs from the one that the chain and the kernel produce.
pub(super) fn why(text: &str, expected: &str) -> Wrong {
    if let Some(wrong) = not_intact(text) {
        return wrong;
    }
    let (Ok(found), Ok(expected)) = (json_of(text), json_of(expected)) else {
        return (Difference::Unreadable, "the record is not JSON".into());
    };
    let digest =
        |json: &Json, key: &str| json.get(key).and_then(Json::as_str).and_then(Digest::parse).unwrap_or_default();
    if found.get("prev") != expected.get("prev") {
        return wrong_prev(digest(&found, "prev"), digest(&expected, "prev"));
    }
    let differs = |key: &&str| found.get(*key) != expected.get(*key);
    let Some(key) = FIELDS.into_iter().find(differs) else {
        let unknown = found
            .as_object()
            .into_iter()
            .flat_map(|m| m.keys())
            .find(|k| k.as_str() != "hash" && !FIELDS.contains(&k.as_str()));
        return (Difference::Replay, format!("it has the unknown field `{}`", unknown.map_or("", String::as_str)));
    };
    let (said, gives) = (shown(found.get(key)), shown(expected.get(key)));
    let what = if key == "charter" { Difference::Charter } else { Difference::Replay };
    (what, format!("`{key}` is {said}; replay gives {gives}"))
}

/// Formats a value for display, truncated if it is long.
fn shown(value: Option<&Json>) -> String {
    const MAX_CHARS: usize = 300;
    let Some(value) = value else {
        return "nothing".into();
    };
    let text = canonical(value);
    if text.chars().count() > MAX_CHARS {
        format!("`{}…`", text.chars().take(MAX_CHARS).collect::<String>())
    } else {
        format!("`{text}`")
    }
}

/// Checks that the columns of a row match its record.
pub(super) fn columns(row: &Row<'_>, r: &Fields<'_>) -> Result<(), Wrong> {
    let wrong = |column: &str, said: &str, is: &str| {
        Err((Difference::Columns, format!("column `{column}` is `{said}`, but the record has `{is}`")))
    };
    // Reuses one buffer: this runs for every record.
    let mut written = String::with_capacity(71);
    r.hash.push_text(&mut written);
    if row.hash != written {
        return wrong("hash", row.hash, &written);
    }
    written.clear();
    timestamp::push(&mut written, r.at);
    if row.at != written {
        return wrong("at", row.at, &written);
    }
    for (column, said, is) in [
        ("id", row.id, r.id.as_ref()),
        ("type", row.r#type, r.event.r#type.as_ref()),
        ("verdict", row.verdict, r.verdict.word()),
    ] {
        if said != is {
            return wrong(column, said, is);
        }
    }
    Ok(())
}

pub(super) enum Head {
    /// The row names a last record that is not verified yet.
    Behind(i64),
    Wrong(String),
}

/// Checks that the row in `runs` matches the first and the last record.
pub(super) fn head(row: &RunRow<'_>, current: &Current) -> Result<(), Head> {
    let last = i64::try_from(current.next).unwrap_or(i64::MAX).saturating_sub(1);
    if row.seq > last {
        return Err(Head::Behind(row.seq));
    }
    if row.seq < last {
        return Err(Head::Wrong(format!(
            "according to `runs`, the last record is {}, but this later one exists",
            row.seq
        )));
    }
    let (hash, started, updated) = (current.hash.to_string(), current.started_text(), current.updated_text());
    let charter = current.machine.as_ref().map(|m| m.digest().to_string()).unwrap_or_default();
    let columns = [
        ("hash", row.hash, hash.as_str()),
        ("status", row.status, current.status),
        ("charter", row.charter, &charter),
        ("started", row.started, &started),
        ("updated", row.updated, &updated),
    ];
    match columns.into_iter().find(|(_, said, is)| said != is) {
        Some((column, said, is)) => {
            Err(Head::Wrong(format!("column `{column}` of its row in `runs` is `{said}`, but the records give `{is}`")))
        }
        None => Ok(()),
    }
}
