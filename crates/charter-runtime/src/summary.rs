//! The summary page of a run, which its charter defines by `meta.page`, a list of `{label, value,
//! when}`. Texts that begin with `= ` are expressions.

use charter_kernel::{Machine, Snapshot, Timestamp};
use serde_json::Value as Json;

/// Returns the rows of the page, each with its label; none if the charter has no page. Empty values
/// are left out. An error does not hide the rest: its row has the error as text.
#[must_use]
pub fn page_rows(machine: &Machine, snapshot: &Snapshot, now: Timestamp) -> Vec<(String, Json)> {
    let ask = |cel: &str| {
        let query = machine.query(cel).map_err(|e| e.message)?;
        let value = machine.ask(snapshot, "root", &query, now);
        value.map_err(|e| e.message().into_owned())
    };
    let mut rows = Vec::new();
    let page = machine.definition().meta.get("page");
    for entry in page.and_then(Json::as_array).into_iter().flatten() {
        let word = |key: &str| entry.get(key).and_then(Json::as_str);
        let holds = word("when").map_or(Ok(Json::Bool(true)), |when| ask(when.trim()));
        let value = match holds {
            Ok(Json::Bool(true)) => match word("value") {
                Some(text) => match text.strip_prefix("= ") {
                    Some(cel) => ask(cel.trim()),
                    None => Ok(text.into()),
                },
                None => Ok(entry.get("value").cloned().unwrap_or_default()),
            },
            Ok(_) => continue,
            Err(why) => Err(why),
        };
        let value = value.unwrap_or_else(|why| format!("(error: {why})").into());
        if !is_blank(&value) {
            rows.push((word("label").unwrap_or_default().to_owned(), value));
        }
    }
    rows
}

/// Whether a value of a page says nothing.
#[must_use]
pub fn is_blank(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.trim().is_empty(),
        Json::Array(list) => list.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    }
}
