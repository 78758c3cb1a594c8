//! Parses the input of a workspace actor and the answers of the actors that it asks.

use std::collections::BTreeMap;

use charter_journal::Record;
use charter_kernel::Digest;
use charter_workspace::{Bundle, Draft, Insight, ListedFile, RelPath, dogs, json as form};
use serde_json::{Map, Value as Json, json};

use crate::call::Call;
use crate::executor::Fault;

/// Returns the kind of the other actor, if any.
pub(super) fn by(call: &Call) -> Option<&str> {
    call.config("by").and_then(Json::as_str)
}

/// Sets a member of an object.
pub(super) fn set(value: &mut Json, key: &str, to: Json) {
    match value {
        Json::Object(map) => drop(map.insert(key.to_owned(), to)),
        other => *other = Json::Object(Map::from_iter([(key.to_owned(), to)])),
    }
}

/// Returns a numeric limit from the configuration, or the default.
pub(super) fn limit<T: TryFrom<u64>>(call: &Call, key: &str, default: T) -> T {
    let given = call.config(key).and_then(Json::as_u64);
    given.and_then(|n| T::try_from(n).ok()).unwrap_or(default)
}

/// Returns a record of the run.
pub(super) async fn record(call: &Call, seq: u64) -> Result<Record, Fault> {
    let (host, run) = (call.host().clone(), call.run.clone());
    let read = move || host.records(&run, seq, 1).map_err(|e| Fault::new("journal", e.to_string()));
    let records = crate::executors::blocking(read).await?;
    let record = records.into_iter().next().filter(|r| r.seq == seq);
    record.ok_or_else(|| Fault::new("journal", format!("record {seq} is not in the journal")))
}

/// Returns the key of an apply and of its rollback: run and cycle, and the hash of the first record
/// of the run, because a run of another journal may have the same id.
pub(super) async fn key(call: &Call) -> Result<String, Fault> {
    match call.input.get("cycle").and_then(Json::as_u64) {
        Some(cycle) => Ok(format!("{}/{cycle}/{}", call.run, record(call, 0).await?.hash.hex())),
        None => Err(Fault::new("config", "the input has no `cycle`: the number of the cycle")),
    }
}

/// Parses the files of an input: path and digest of each.
pub(super) fn approved(input: &Json) -> Result<Vec<(RelPath, Digest)>, Fault> {
    let wrong = |why: String| Fault::new("config", &why);
    let files = input.get("files").and_then(Json::as_array).ok_or_else(|| wrong("the input has no `files`".into()))?;
    let one = |file: &Json| {
        let text = |key: &str| file.get(key).and_then(Json::as_str).unwrap_or_default();
        let path =
            RelPath::parse(text("path")).map_err(|fault| wrong(format!("the path `{}` {fault}", text("path"))))?;
        let digest = Digest::parse(text("sha256")).ok_or_else(|| wrong(format!("`{path}` has no `sha256`")))?;
        Ok((path, digest))
    };
    files.iter().map(one).collect()
}

/// Files as actors are shown them: path, size, digest and, if it is text, content.
pub(super) fn contents(bundle: &Bundle) -> Vec<Json> {
    let described = |(path, bytes): (&RelPath, &Vec<u8>)| {
        let mut file = json!({"path": path.as_str(), "size": bytes.len(), "sha256": Digest::of_bytes(bytes).hex()});
        if let Ok(text) = std::str::from_utf8(bytes) {
            set(&mut file, "content", text.into());
        }
        file
    };
    bundle.files.iter().map(described).collect()
}

/// The texts in `feedback` that are about the context.
pub(super) fn wishes(input: &Json) -> Vec<&str> {
    let all = input.get("feedback").and_then(Json::as_array).into_iter().flatten();
    let about = all.filter(|one| one.get("about").and_then(Json::as_str) == Some("context"));
    about.filter_map(|one| one.get("text").and_then(Json::as_str)).collect()
}

/// Returns the listed files that an answer selects.
pub(super) fn selected(files: &[ListedFile], answer: &Json) -> Result<Vec<ListedFile>, Fault> {
    let wrong = |why: String| Fault::new("selection", &why).retryable();
    let paths = answer
        .get("select")
        .and_then(Json::as_array)
        .ok_or_else(|| wrong("the answer has no `select`, a list of paths".into()))?;
    let mut chosen = BTreeMap::new();
    for path in paths {
        let file = files.iter().find(|f| path.as_str() == Some(&f.path));
        let file = file.ok_or_else(|| wrong(format!("`{path}` is not among the listed files")))?;
        chosen.insert(file.path.clone(), file.clone());
    }
    Ok(chosen.into_values().collect())
}

/// Parses the insights of an answer or an input.
pub(super) fn insights(value: &Json) -> Result<Vec<Insight>, Fault> {
    let list = value.get("insights").cloned().unwrap_or_else(|| json!([]));
    serde_json::from_value(list).map_err(|e| Fault::new("insight", format!("invalid `insights`: {e}")))
}

/// Parses a changeset that an actor wrote: the JSON form, or the text form as a string or as the
/// member `text`. Returns what was assumed, too.
pub(super) fn read_draft(answer: &Json) -> Result<(Draft, Vec<String>), charter_workspace::ChangesetError> {
    match answer.as_str().or_else(|| answer.get("text").and_then(Json::as_str)) {
        Some(text) => dogs::draft_leniently(text.as_bytes()),
        None => form::draft_leniently(answer),
    }
}
