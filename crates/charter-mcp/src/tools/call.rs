//! `tools/call`.

use charter_journal::Verdict;
use charter_kernel::{Code, Envelope, Explanation};
use charter_runtime::{RuntimeError, SendEvent, new_run_id};
use charter_scenario::overview;
use serde_json::{Map, Value as Json, json};

use super::answer::{Answer, advice, refusal};
use super::{STATIC, schema};
use crate::endpoint::{Endpoint, failed};
use crate::look::{Look, OF_HOOKS};
use crate::message::RpcError;

/// `tools/call`.
pub(crate) async fn call(endpoint: &Endpoint, params: &Map<String, Json>) -> Result<Map<String, Json>, RpcError> {
    let name = params.get("name").and_then(Json::as_str);
    let name = name.ok_or_else(|| RpcError::params("`params.name` must be the name of a tool"))?;
    let none = Map::new();
    let arguments = match params.get("arguments") {
        None | Some(Json::Null) => &none,
        Some(Json::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::params("`params.arguments` must be an object")),
    };
    let answer = match name {
        name if endpoint.tools.has_static() && STATIC.contains(&name) => always(endpoint, name, arguments).await,
        name => match endpoint.names.event(name).filter(|_| endpoint.tools.has_events()) {
            Some(kind) => of_event(endpoint, kind, arguments).await,
            None => {
                let name = name.chars().take(100).collect::<String>();
                return Err(RpcError::params(format!(
                    "unknown tool `{}`; `tools/list` lists them",
                    name.escape_debug()
                )));
            }
        },
    };
    let (answer, look) = match answer {
        Ok(answered) => answered,
        Err(Failed::Arguments(what)) => (Answer::error(what), endpoint.look().await.map_err(|e| failed(&e))?),
        Err(Failed::Host(error)) => return Err(failed(&error)),
    };
    Ok(answer.result(&look))
}

/// Why a tool could not do its work.
enum Failed {
    /// Its arguments are wrong: a sentence for the model.
    Arguments(String),
    Host(RuntimeError),
}

impl From<RuntimeError> for Failed {
    fn from(error: RuntimeError) -> Failed {
        Failed::Host(error)
    }
}

async fn always(endpoint: &Endpoint, name: &str, arguments: &Map<String, Json>) -> Result<(Answer, Look), Failed> {
    let known: &[&str] = match name {
        "send" => &["type", "data", "expected_seq", "to", "id"],
        "why_not" => &["type", "data", "to"],
        _ => &[],
    };
    if let Some(unknown) = arguments.keys().find(|key| !known.contains(&key.as_str())) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let unknown = unknown.chars().take(100).collect::<String>();
        return Err(Failed::Arguments(format!(
            "`{name}` has no argument `{}`; its arguments are: {known}.",
            unknown.escape_debug()
        )));
    }
    match name {
        "send" => {
            let expected_seq = match arguments.get("expected_seq") {
                None | Some(Json::Null) => None,
                Some(seq) => Some(seq.as_u64().ok_or_else(|| {
                    Failed::Arguments(
                        "`expected_seq` must be the `seq` of an earlier result: a whole number.".to_owned(),
                    )
                })?),
            };
            let kind = kind(arguments)?;
            let event = SendEvent {
                run: endpoint.run.clone(),
                to: text(arguments, "to")?,
                data: arguments.get("data").cloned().unwrap_or_else(|| endpoint.machine().absent_data(&kind)),
                r#type: kind,
                by: endpoint.by.clone(),
                id: text(arguments, "id")?,
                expected_seq,
            };
            send(endpoint, event).await
        }
        "why_not" => why_not(endpoint, arguments).await,
        "legal" => {
            let look = endpoint.look().await?;
            let answer = Answer { schemas: true, ..Answer::new(look.next_step()) };
            Ok((answer, look))
        }
        _ => {
            let look = endpoint.look().await?;
            let state = look.state().join(", ");
            let message =
                format!("The run is {} in the state {state}. {}", look.snapshot().status().word(), look.next_step());
            Ok((Answer::new(message).with("details", details(&look)), look))
        }
    }
}

/// The run as `status` and its resource show it, beyond what every result has.
pub(crate) fn details(look: &Look) -> Json {
    let mut details = overview::json(look.snapshot());
    details.remove("status");
    details.remove("state");
    details.insert("working".to_owned(), json!(look.view.working));
    details.insert("dry".to_owned(), look.view.dry.into());
    Json::Object(details)
}

fn text(arguments: &Map<String, Json>, name: &str) -> Result<Option<String>, Failed> {
    match arguments.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Failed::Arguments(format!("`{name}` must be text."))),
    }
}

fn kind(arguments: &Map<String, Json>) -> Result<String, Failed> {
    text(arguments, "type")?.ok_or_else(|| {
        Failed::Arguments("`type` is missing: the type of an event, as `legal` lists it. Nothing was sent.".to_owned())
    })
}

async fn of_event(endpoint: &Endpoint, kind: &str, arguments: &Map<String, Json>) -> Result<(Answer, Look), Failed> {
    let declared = endpoint.machine().definition().events.get(kind).and_then(|event| event.data.as_ref());
    let data = match schema::is_flat(declared) {
        true => Json::Object(arguments.clone()),
        false => match arguments.get("data") {
            Some(data) if arguments.len() == 1 => data.clone(),
            _ => return Err(Failed::Arguments("this tool has one argument, `data`. Nothing was sent.".to_owned())),
        },
    };
    // The one actor that takes it now; if none does, the refusal is recorded.
    let look = endpoint.look().await?;
    let mut takers = look.offers.iter().filter(|offer| offer.event.r#type == kind);
    let to = match (takers.next(), takers.next()) {
        (Some(one), None) => Some(one.event.to.clone()),
        (Some(_), Some(_)) => {
            return Err(Failed::Arguments(format!(
                "several actors take `{kind}` now: use `send`, with `to`. Nothing was sent."
            )));
        }
        _ => None,
    };
    let event = SendEvent {
        run: endpoint.run.clone(),
        to,
        r#type: kind.to_owned(),
        data,
        by: endpoint.by.clone(),
        id: None,
        expected_seq: None,
    };
    send(endpoint, event).await
}

async fn send(endpoint: &Endpoint, mut event: SendEvent) -> Result<(Answer, Look), Failed> {
    // So that a host that was lost meanwhile does not record it a second time.
    event.id.get_or_insert_with(new_run_id);
    let kind = event.r#type.clone();
    if OF_HOOKS.contains(&kind.as_str()) {
        let look = endpoint.look().await?;
        let message = format!(
            "`{kind}` was not recorded: it comes from the hook of your client. Use the tool itself, and the hook asks. {}",
            look.next_step()
        );
        return Ok((Answer::error(message).with("accepted", false), look));
    }
    let done = match endpoint.backend.send(event).await {
        Ok(done) => done,
        // The host did not accept it: there is no record.
        Err(error) => {
            let look = endpoint.look().await?;
            let message = format!("`{}` was not recorded: {error}. {}", kind.escape_debug(), look.next_step());
            return Ok((Answer::error(message).with("accepted", false), look));
        }
    };
    let look = endpoint.look().await?;
    let record = &done.record;
    let refused = done.is_refused();
    let answer = match record.explanation(Some(look.machine())).filter(|_| refused) {
        Some(reason) => {
            let code = reason.code.word();
            let advice = advice(&reason, &look);
            let message = format!("`{}` was refused as record {} ({code}): {advice}", kind.escape_debug(), record.seq);
            Answer::error(message).with("refusal", refusal(&reason))
        }
        None => {
            let what = match record.verdict {
                Verdict::Vote => "was counted as a vote",
                Verdict::Ignored => "was accepted and changes nothing",
                _ => "was accepted",
            };
            let (seq, state) = (record.seq, look.state().join(", "));
            Answer::new(format!(
                "`{kind}` {what} as record {seq}; the run is in the state {state}. {}",
                look.next_step()
            ))
        }
    };
    let answer = answer.with("accepted", !refused).with("record", record.seq).with("repeated", done.repeated);
    Ok((answer, look))
}

/// Explains an event without sending it.
async fn why_not(endpoint: &Endpoint, arguments: &Map<String, Json>) -> Result<(Answer, Look), Failed> {
    let (kind, to, data) = (kind(arguments)?, text(arguments, "to")?, arguments.get("data"));
    let look = endpoint.look().await?;
    let wanted = to.as_deref().unwrap_or("root");
    let is_it = |event: &str, actor: &str| event == kind && (to.is_none() || actor == wanted);
    let offered = look.offers.iter().find(|offer| is_it(&offer.event.r#type, &offer.event.to));
    let (machine, snapshot) = (look.machine(), look.snapshot());
    let reason: Option<Explanation> = match (data, offered) {
        (None, Some(_)) => None,
        (None, None) => {
            let not = machine.not_legal(snapshot, &endpoint.by, look.now);
            let found = not.into_iter().find(|event| is_it(&event.r#type, &event.to));
            found.map(|event| event.reason).or_else(|| tried(endpoint, &look, &kind, to.as_deref(), None))
        }
        (Some(data), _) => tried(endpoint, &look, &kind, to.as_deref(), Some(data)),
    };
    let shown = kind.chars().take(200).collect::<String>();
    let shown = shown.escape_debug();
    let answer = match reason {
        Some(reason) => {
            let message = format!("`{shown}` would be refused ({}): {}", reason.code.word(), advice(&reason, &look));
            Answer::new(message).with("would_be_accepted", false).with("refusal", refusal(&reason))
        }
        None if data.is_none() && offered.is_some_and(|offer| offer.event.depends_on_data) => {
            let conditions = offered.map(|offer| offer.conditions.join(", or ")).unwrap_or_default();
            let conditions = if conditions.is_empty() { String::new() } else { format!(": {conditions}") };
            Answer::new(format!(
                "`{shown}` is legal now; its data can still decide{conditions}. Give `data` to try it."
            ))
        }
        None => {
            Answer::new(format!("`{shown}` would be accepted now. Nothing was sent.")).with("would_be_accepted", true)
        }
    };
    Ok((answer, look))
}

/// Why the kernel would refuse an event, whatever its data is or with this data; nothing is
/// recorded.
fn tried(endpoint: &Endpoint, look: &Look, kind: &str, to: Option<&str>, data: Option<&Json>) -> Option<Explanation> {
    let (machine, snapshot) = (look.machine(), look.snapshot());
    let seq = snapshot.seq().saturating_add(1);
    let sent = data.cloned().unwrap_or_else(|| machine.absent_data(kind));
    let mut envelope = Envelope::event(seq, kind, sent, endpoint.by.clone(), look.now);
    envelope.to = to.map(Into::into);
    let refused = match data {
        Some(_) => machine.step(snapshot, &envelope),
        None => machine.step_checked(snapshot, &envelope),
    };
    let refused = refused.err()?;
    let reason = machine.explain(Some(snapshot), &envelope, &refused);
    // Whether a unique key is taken is known to the host only.
    (reason.code != Code::Unreserved).then_some(reason)
}
