//! Kind `scripted`: deterministic answers from a file or from the charter itself, for tests,
//! examples and offline work.

use charter_kernel::definition::ActorDecl;
use charter_kernel::{Millis, Timestamp};
use serde_json::{Value as Json, json};

use super::script::{Act, Ending, OnRefusal, Script, ScriptContext, ScriptError, ScriptedEvent};
use crate::call::Call;
use crate::clock::BoxFuture;
use crate::error::ConfigError;
use crate::executor::{Beside, Executor, Fault, Outcome};
use crate::folder::Folder;
use crate::host::{RunUpdate, RunUpdates};
use crate::kept::NamedFile;

/// Kind `scripted`. Configuration: `answers`, either a list or the name of a file next to the
/// charter. The file contains a list, or one list per actor name. With `as: ROLE`, the actor may
/// also send events to its run, like any other principal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scripted;

impl Executor for Scripted {
    fn check(&self, name: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        super::check_keys(actor, &["answers"])?;
        read_script(name, actor, folder).map(drop)
    }

    fn files(&self, _: &str, actor: &ActorDecl, _: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        let file = actor.config.get("answers").and_then(Json::as_str);
        Ok(file.map(|file| NamedFile::Read(file.to_owned())).into_iter().collect())
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(play(call))
    }
}

fn read_script(name: &str, actor: &ActorDecl, folder: &Folder) -> Result<Script, ConfigError> {
    let invalid = |file: &str, why: &dyn std::fmt::Display| ConfigError::Other(format!("`{file}`: {why}"));
    match actor.config.get("answers") {
        Some(Json::String(file)) => {
            let text = folder.read(file)?;
            let value = charter_format::value(&text, file).map_err(|e| invalid(file, &e))?;
            let answers = match &value {
                Json::Object(by_actor) => {
                    by_actor.get(name).ok_or_else(|| invalid(file, &format!("no answers for `{name}`")))?
                }
                list => list,
            };
            Script::read(answers).map_err(|e| invalid(file, &format!("`{name}`: {e}")))
        }
        Some(answers) => Script::read(answers).map_err(|e| invalid("answers", &e)),
        None => Err(ConfigError::missing("answers", "a list of answers, or the name of a file with one")),
    }
}

impl From<ScriptError> for Fault {
    fn from(error: ScriptError) -> Fault {
        Fault::new("config", error.to_string())
    }
}

async fn play(call: Call) -> Result<Outcome, Fault> {
    // This reads a file and, for an answer that depends on earlier calls, the journal.
    let (call, found) = super::blocking(move || {
        let script = read_script(call.name(), call.actor(), call.folder())?;
        let run = json!({"id": call.run.as_ref()});
        let context = ScriptContext { input: &call.input, run: &run, attempt: call.attempt, item: None };
        let found = script.find(&context, || call.earlier())?.cloned();
        Ok((call, found))
    })
    .await?;
    let Some(act) = found else {
        let message = format!("the script of `{}` has no answer (left) for this input", call.name());
        return Err(Fault::new("script", &message));
    };
    let run = json!({"id": call.run.as_ref()});
    let context = ScriptContext { input: &call.input, run: &run, attempt: call.attempt, item: None };
    send_all(&call, &act, &context).await?;
    pause(&call, act.after).await;
    match &act.result {
        Ending::Nothing => Ok(Outcome::Done(json!({}))),
        Ending::Output(output) => Ok(Outcome::Done(output.value(&context)?)),
        Ending::Error { code, message, retryable } => {
            let fault = Fault::new(code, message);
            Err(if *retryable { fault.retryable() } else { fault })
        }
        Ending::Never => {
            call.clock().sleep_until(Timestamp::MAX).await;
            Err(Fault::new("timeout", "the script never answers"))
        }
    }
}

async fn pause(call: &Call, length: Millis) {
    if length > Millis(0) {
        call.clock().sleep_until(call.clock().now().saturating_add(length)).await;
    }
}

/// Sends the events of an answer, in order.
async fn send_all(call: &Call, act: &Act, context: &ScriptContext<'_>) -> Result<(), Fault> {
    let mut number = 0u32;
    for event in &act.events {
        let items = match &event.each {
            None => vec![None],
            Some(each) => match each.value(context)? {
                Json::Array(items) => items.into_iter().map(Some).collect(),
                other => {
                    let message = format!("`each` of `{}`: expected a list, found `{other}`", event.r#type);
                    return Err(Fault::new("config", &message));
                }
            },
        };
        for item in items {
            let context = ScriptContext { item: item.as_ref(), ..*context };
            number = number.saturating_add(1);
            send(call, event, &context, number).await?;
        }
    }
    Ok(())
}

async fn send(call: &Call, event: &ScriptedEvent, context: &ScriptContext<'_>, number: u32) -> Result<(), Fault> {
    if let Some(when) = &event.when
        && when.value(context)? != Json::Bool(true)
    {
        return Ok(());
    }
    let to = match event.to.as_ref().map(|to| to.value(context)).transpose()? {
        None | Some(Json::Null) => None,
        Some(Json::String(to)) => Some(to),
        Some(other) => {
            let message = format!("`to` of `{}`: expected the id of an actor, found `{other}`", event.r#type);
            return Err(Fault::new("config", &message));
        }
    };
    let data = event.data.as_ref().map(|d| d.value(context)).transpose()?.unwrap_or_else(|| json!({}));
    pause(call, event.after).await;
    let mut updates = call.updates();
    let mut tries = 0u32;
    loop {
        // The same key would return the same refusal, so each try uses a new key.
        let key = if tries == 0 { format!("event/{number}") } else { format!("event/{number}/{tries}") };
        let delivery = call.send(&key, to.clone(), &event.r#type, data.clone()).await?;
        let Some(refusal) = &delivery.refusal else {
            return Ok(());
        };
        match event.refused {
            OnRefusal::Ignore => return Ok(()),
            OnRefusal::Fail => {
                let message = format!("`{}` was refused ({}): {}", event.r#type, refusal.code, refusal.message);
                return Err(Fault::new("refused", &message).with("refusal", refusal.code.word()));
            }
            OnRefusal::Wait => {}
        }
        tries = tries.saturating_add(1);
        // A repeated refusal was recorded before a restart; the run may have changed since.
        if !delivery.repeated {
            changed(call, updates.as_mut(), delivery.snapshot_seq.unwrap_or(0)).await?;
        }
    }
}

/// Waits until the run is past a snapshot.
async fn changed(call: &Call, updates: &mut dyn RunUpdates, seen: u64) -> Result<(), Fault> {
    loop {
        tokio::select! {
            biased;
            update = updates.next() => match update {
                Some(RunUpdate::Recorded(Some(snapshot))) if snapshot.seq() > seen => return Ok(()),
                Some(RunUpdate::Missed) => return Ok(()),
                Some(_) => {}
                None => return Err(Fault::new("send", "the host is shutting down")),
            },
            // Sleep, so that a virtual clock does not count this actor as active.
            () = call.clock().sleep_until(Timestamp::MAX) => {}
        }
    }
}
