//! Kind `scripted`: answers from a file or from the charter itself, the same every time. For tests, for examples, for working offline.

use charter_kernel::definition::ActorDecl;
use serde_json::{Value as Json, json};

use super::script::{Act, Ending, Refused, Script, Sent, Sight};
use crate::call::{Call, Executor, Fault, Outcome};
use crate::charter::Folder;
use crate::clock::BoxFuture;

/// Kind `scripted`. Configuration: `answers` (a list, or the name of a file beside the charter with a list, or with one list for each
/// actor by its name). With `as: ROLE` it may also send events to its run, as every other principal does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scripted;

impl Executor for Scripted {
    fn check(&self, name: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), String> {
        super::known(&actor.config, &["answers"])?;
        script(name, actor, folder).map(drop)
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(play(call))
    }
}

fn script(name: &str, actor: &ActorDecl, folder: &Folder) -> Result<Script, String> {
    match actor.config.get("answers") {
        Some(Json::String(file)) => {
            let text = folder.read(file)?;
            let value = charter_format::value(&text, file).map_err(|e| format!("`{file}`: {e}"))?;
            let answers = match &value {
                Json::Object(by_actor) => {
                    by_actor.get(name).ok_or_else(|| format!("`{file}` has no answers for `{name}`"))?
                }
                list => list,
            };
            Script::read(answers).map_err(|why| format!("`{file}`, `{name}`: {why}"))
        }
        Some(answers) => Script::read(answers).map_err(|why| format!("`answers`: {why}")),
        None => Err("`answers` is missing: a list of answers, or the name of a file with one".into()),
    }
}

fn broken(why: String) -> Fault {
    Fault::new("config", &why)
}

async fn play(call: Call) -> Result<Outcome, Fault> {
    let script = script(call.name(), call.actor(), call.folder()).map_err(broken)?;
    let run = json!({"id": call.run.as_ref()});
    let sight = Sight { input: &call.input, run: &run, attempt: call.attempt, item: None };
    let turn = || call.earlier().map_err(|f| f.message);
    let Some(act) = script.find(&sight, turn).map_err(broken)? else {
        let message = format!("the script of `{}` has no answer (left) for this input", call.name());
        return Err(Fault::new("script", &message));
    };
    send_all(&call, act, &sight).await?;
    if act.after > 0 {
        call.clock().sleep_until(call.clock().now().saturating_add(act.after)).await;
    }
    match &act.result {
        Ending::Nothing => Ok(Outcome::Done(json!({}))),
        Ending::Output(output) => output.value(&sight).map(Outcome::Done).map_err(broken),
        Ending::Error { code, message, retryable } => {
            let fault = Fault::new(code, message);
            Err(if *retryable { fault.retryable() } else { fault })
        }
        Ending::Never => {
            call.clock().sleep_until(i64::MAX).await;
            Err(Fault::new("timeout", "the script never answers"))
        }
    }
}

/// Sends its events, in order.
async fn send_all(call: &Call, act: &Act, sight: &Sight<'_>) -> Result<(), Fault> {
    let mut number = 0u32;
    for event in &act.events {
        let items = match &event.each {
            None => vec![None],
            Some(each) => match each.value(sight).map_err(broken)? {
                Json::Array(items) => items.into_iter().map(Some).collect(),
                other => {
                    return Err(broken(format!("`each` of `{}` is a list, not `{other}`", event.r#type)));
                }
            },
        };
        for item in items {
            let sight = Sight { input: sight.input, run: sight.run, attempt: sight.attempt, item: item.as_ref() };
            number = number.saturating_add(1);
            send(call, event, &sight, number).await?;
        }
    }
    Ok(())
}

async fn send(call: &Call, event: &Sent, sight: &Sight<'_>, number: u32) -> Result<(), Fault> {
    if let Some(when) = &event.when
        && when.value(sight).map_err(broken)? != Json::Bool(true)
    {
        return Ok(());
    }
    let to = match event.to.as_ref().map(|to| to.value(sight)).transpose().map_err(broken)? {
        None | Some(Json::Null) => None,
        Some(Json::String(to)) => Some(to),
        Some(other) => {
            return Err(broken(format!("`to` of `{}` is the id of an actor, not `{other}`", event.r#type)));
        }
    };
    let data = event.data.as_ref().map(|d| d.value(sight)).transpose().map_err(broken)?.unwrap_or_else(|| json!({}));
    if event.after > 0 {
        call.clock().sleep_until(call.clock().now().saturating_add(event.after)).await;
    }
    let mut news = call.subscribe();
    let mut tries = 0u32;
    loop {
        // A try that was refused has its answer for ever; the next one is another event.
        let key = if tries == 0 { format!("event/{number}") } else { format!("event/{number}/{tries}") };
        let receipt = call
            .send(&key, to.clone(), &event.r#type, data.clone())
            .await
            .map_err(|e| Fault::new("send", &e.to_string()))?;
        let Some(refusal) = receipt.refusal() else {
            return Ok(());
        };
        match event.refused {
            Refused::Ignore => return Ok(()),
            Refused::Fail => {
                let message = format!("`{}` was refused ({}): {}", event.r#type, refusal.code, refusal.message);
                return Err(Fault::new("refused", &message).with("refusal", refusal.code.word()));
            }
            Refused::Wait => {}
        }
        tries = tries.saturating_add(1);
        if receipt.repeated {
            // Refused before a restart; what has happened since is not known here.
            continue;
        }
        let seen = receipt.snapshot.as_ref().map_or(0, charter_kernel::Snapshot::seq);
        let changed = |h: &crate::RuntimeEvent| matches!(h, crate::RuntimeEvent::Recorded(r) if r.snapshot.as_ref().is_some_and(|s| s.seq() > seen));
        loop {
            tokio::select! {
                biased;
                next = news.next() => match next {
                    Some(h) if changed(&h) || matches!(h, crate::RuntimeEvent::Missed(_)) => break,
                    Some(_) => {}
                    None => return Err(Fault::new("send", "the host is shutting down")),
                },
                // Waiting is not working.
                () = call.clock().sleep_until(i64::MAX) => {}
            }
        }
    }
}
