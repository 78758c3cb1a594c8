//! Calls of tools: each is an event that the run judges like any other, and the model gets the
//! result.

use std::time::Duration;

use charter_actors::{Call, Fault};
use charter_kernel::EffectId;
use serde_json::{Map, Value as Json, json};

use crate::codes;
use crate::kept_round::Place;
use crate::tools::ToolResult;

/// How often a call looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);
/// The code of the fault of a host that does not take an event.
const NOT_SENT: &str = "send";
/// Records that are read at a time.
const PAGE: usize = 64;

/// What a call of a tool gave: for the model, and whether it failed.
pub(crate) struct Acted {
    pub(crate) content: Json,
    pub(crate) failed: bool,
    pub(crate) repeated: bool,
}

impl Acted {
    pub(crate) fn of(self, call: crate::tools::ToolCall) -> ToolResult {
        ToolResult { call, content: self.content, failed: self.failed, repeated: self.repeated }
    }
}

/// Sends an event, and waits for the answers of the invocations that its step starts. The same call
/// in a later attempt, or after a restart, gets the first result.
///
/// # Errors
/// The event was not recorded, or the run no longer waits for the answer of the model.
pub(crate) async fn act(
    call: &Call,
    place: Place,
    event: &str,
    data: Json,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Acted, Fault> {
    // An event before this one may have left the state that waits for the answer.
    if !go_on() || !host_waits(call)? {
        return Err(not_awaited());
    }
    let key = place.key(event, &data);
    let mut updates = call.updates();
    let delivery = match call.send(&key, None, event, data).await {
        Ok(delivery) => delivery,
        // Such as an event beyond a limit of the host, which has no record.
        Err(fault) if fault.code == NOT_SENT && !fault.retryable => {
            return Ok(Acted { content: json!({"error": fault.message}), failed: true, repeated: false });
        }
        Err(fault) => return Err(fault),
    };
    if let Some(why) = &delivery.refusal {
        let content = json!({"refused": why.code, "message": why.message});
        return Ok(Acted { content, failed: true, repeated: delivery.repeated });
    }
    let unreadable = |e: charter_actors::StoreError| Fault::new("journal", e.to_string()).retryable();
    let host = call.host();
    let records = host.records(&call.run, delivery.seq, 1).map_err(unreadable)?;
    let record = records.first().ok_or_else(|| Fault::new("journal", "the record of the event is missing"))?;
    let text = |effect: &Json, key: &str| effect.get(key).and_then(Json::as_str).map(str::to_owned);
    let of_kind = |kind: &'static str| {
        record.effects.iter().zip(0u32..).filter(move |(e, _)| text(e, "kind").as_deref() == Some(kind))
    };
    let emitted: Vec<Json> = of_kind("emit").map(|(e, _)| json!({"type": e["type"], "data": e["data"]})).collect();
    let mut open: Vec<(EffectId, String)> = of_kind("invoke")
        .map(|(e, index)| (EffectId { seq: record.seq, index }, text(e, "invocation").unwrap_or_default()))
        .collect();
    let mut answers = Map::new();
    // Where the actor is after the event, and then after the last answer: what follows later is not
    // part of the result, which a repeated attempt must get again.
    let (to, mut state) = (record.to.clone(), record.state.clone());
    let (mut failed, mut from) = (false, record.seq.saturating_add(1));
    while !open.is_empty() {
        let page = host.records(&call.run, from, PAGE).map_err(unreadable)?;
        for record in &page {
            from = record.seq.saturating_add(1);
            let answered = |(effect, _): &(EffectId, String)| record.answers == Some(effect.text(&call.run));
            if let Some((_, name)) = open.iter().position(answered).map(|at| open.swap_remove(at)) {
                if record.to == to {
                    state.clone_from(&record.state);
                }
                let data = &record.event.data;
                let error = data.get("error").filter(|_| data.get("output").is_none());
                failed |= error.is_some();
                answers.insert(name, error.map_or_else(|| json!({"output": data["output"]}), |e| json!({"error": e})));
            }
        }
        if page.len() == PAGE || open.is_empty() {
            continue;
        }
        let snapshot = host.snapshot(&call.run)?;
        if snapshot.seq() >= from {
            continue;
        }
        let waits = |effect: EffectId| {
            snapshot.holds_answer(effect) || snapshot.invocations().any(|(_, invocation)| invocation.effect == effect)
        };
        for (_, name) in open.extract_if(.., |(effect, _)| !waits(*effect)) {
            failed = true;
            answers.insert(name, json!({"ended": "the run no longer waits for it"}));
        }
        if call.left().is_zero() || !go_on() {
            return Err(not_awaited());
        }
        if !open.is_empty() {
            let _ = tokio::time::timeout(LOOK, updates.next()).await;
        }
    }
    let further = [("emitted", json!(emitted), emitted.is_empty()), ("answers", json!(answers), answers.is_empty())];
    let mut content = Map::from_iter([("accepted".into(), true.into()), ("state".into(), json!(state))]);
    content.extend(further.into_iter().filter(|(.., empty)| !empty).map(|(key, value, _)| (key.to_owned(), value)));
    Ok(Acted { content: Json::Object(content), failed, repeated: delivery.repeated })
}

/// Whether the run still waits for the answer of the model.
fn host_waits(call: &Call) -> Result<bool, Fault> {
    let snapshot = call.host().snapshot(&call.run)?;
    Ok(snapshot.invocations().any(|(_, invocation)| invocation.effect == call.effect_id))
}

fn not_awaited() -> Fault {
    Fault::new(codes::CANCELLED, "the run no longer waits for the answer")
}
