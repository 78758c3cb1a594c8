//! The tools of an agent.

mod answer;
mod call;
mod names;
mod schema;

use serde_json::{Map, Value as Json, json};

use crate::endpoint::{Endpoint, failed};
use crate::look::Offer;
use crate::message::RpcError;

pub(crate) use call::{call, details};
pub(crate) use names::ToolNames;

/// The tools that are always there.
pub(crate) const STATIC: [&str; 4] = ["send", "legal", "status", "why_not"];

/// Tools of a page, and about how many bytes they have together.
const PAGE: usize = 100;
const PAGE_BYTES: usize = 512 << 10;
/// Characters of a description.
const MAX_DESCRIPTION: usize = 1_000;

/// `tools/list`.
pub(crate) async fn list(endpoint: &Endpoint, params: &Map<String, Json>) -> Result<Map<String, Json>, RpcError> {
    // The place of the first tool of the page: those that are always there, then events in the
    // order of the charter, so that the list may change between two pages.
    let from = match params.get("cursor") {
        None => 0usize,
        Some(cursor) => {
            let number = cursor.as_str().and_then(|text| text.parse().ok());
            number.ok_or_else(|| RpcError::params("the `cursor` is not one that this server has given"))?
        }
    };
    let mut all: Vec<(usize, Json)> = Vec::new();
    if endpoint.tools.has_static() {
        let mut events = endpoint.machine().definition().events.values();
        let objects = events.all(|event| schema::is_flat(event.data.as_ref()));
        all.extend(STATIC.iter().enumerate().map(|(place, name)| (place, always(name, objects))));
    }
    if endpoint.tools.has_events() {
        let look = endpoint.look().await.map_err(|e| failed(&e))?;
        for offer in &look.offers {
            if let Some(tool) = &offer.tool {
                let place = endpoint.names.place(&offer.event.r#type).saturating_add(STATIC.len());
                all.push((place, of_event(offer, tool)));
            }
        }
    }
    all.sort_by_key(|(place, _)| *place);
    let mut page: Vec<Json> = Vec::new();
    let mut bytes = 0usize;
    let mut next = None;
    for (place, tool) in all.into_iter().filter(|(place, _)| *place >= from) {
        let size = tool.to_string().len();
        if page.len() >= PAGE || (!page.is_empty() && bytes.saturating_add(size) > PAGE_BYTES) {
            next = Some(place);
            break;
        }
        bytes = bytes.saturating_add(size);
        page.push(tool);
    }
    let mut result = Map::new();
    result.insert("tools".to_owned(), page.into());
    if let Some(next) = next {
        result.insert("nextCursor".to_owned(), next.to_string().into());
    }
    Ok(result)
}

fn always(name: &str, objects: bool) -> Json {
    let (title, description) = match name {
        "send" => (
            "Send an event",
            "Sends an event to the run. The charter decides: it is accepted, and the run moves on, or it is refused with the reason. Both are recorded. Only what `legal` lists is accepted.",
        ),
        "legal" => {
            ("List legal events", "Lists the events that you may send now, each with the JSON Schema of its data.")
        }
        "status" => (
            "Show the run",
            "Shows the state and the data of the run, what is legal for you now, and what the run waits for besides you: decisions of people, actors, timers.",
        ),
        _ => (
            "Explain why not",
            "Explains why an event would be refused now, and what would have to be different. Sends and records nothing.",
        ),
    };
    let changes = name == "send";
    json!({
        "name": name, "title": title, "description": description,
        "inputSchema": schema::of_static(name, objects), "outputSchema": schema::of_results(),
        "annotations": {"title": title, "readOnlyHint": !changes, "idempotentHint": !changes, "openWorldHint": changes},
    })
}

fn of_event(offer: &Offer, tool: &str) -> Json {
    let event = &offer.event;
    let mut description = format!("Sends the event `{}` to the run.", event.r#type);
    if let Some(own) = &event.description {
        description.push(' ');
        description.push_str(own);
    }
    if !offer.conditions.is_empty() {
        description.push_str(&format!(" Accepted if {}.", offer.conditions.join(", or ")));
    }
    if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) {
        description.truncate(end);
        description.push('…');
    }
    json!({
        "name": tool, "title": event.r#type, "description": description,
        "inputSchema": schema::of_event(event.data.as_ref()), "outputSchema": schema::of_results(),
        "annotations": {"title": event.r#type, "readOnlyHint": false, "idempotentHint": false, "openWorldHint": true},
    })
}
