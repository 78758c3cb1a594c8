//! The methods that change something, for controllers.

use charter_kernel::{EffectId, Principal};
use charter_run::{EventInput, Fault, Input};
use ic_cdk::update;
use serde_json::{Value as Json, json};

use super::{authorized, limited, within};
use crate::api::{Error, MAX_ID_BYTES, NewSkill, Projection, Receipt, TurnEnd, TurnsQuery, WakeArgs};
use crate::host::{self, drive, failed, settle, with};
use crate::platform::with_sql;
use crate::view;

/// Creates the event of a caller. `id` is the event id that the caller has chosen.
fn event(what: &str, by: Principal, data: Json, id: Option<String>) -> Result<Input, Error> {
    if let Some(id) = &id {
        limited("the event id", &[id], MAX_ID_BYTES)?;
        if id.is_empty() {
            return Err(Error::Denied { message: "the event id is empty; choose one or leave it out".into() });
        }
    }
    Ok(Input::Event(EventInput { id, ..EventInput::new(what, data, by) }))
}

/// Gives the automaton an input that does not start a turn.
fn give(input: Input) -> Result<Receipt, Error> {
    let given = host::give(input);
    settle();
    let (record, repeated) = given?;
    Ok(Receipt {
        seq: record.seq,
        hash: record.hash.to_string(),
        state: record.state.iter().map(ToString::to_string).collect(),
        repeated,
    })
}

/// Sends an event that does not start a turn.
fn change(what: &str, by: Principal, data: Json, id: Option<String>) -> Result<Receipt, Error> {
    give(event(what, by, data, id)?)
}

/// Starts a turn and answers when it has ended. The turn continues even if the caller stops
/// waiting.
#[update]
async fn wake(args: WakeArgs) -> Result<TurnEnd, Error> {
    let by = authorized()?;
    let reason = args.reason.as_deref().unwrap_or("by hand");
    let input = args.input.as_deref();
    within("reason and input", &[reason, input.unwrap_or_default()])?;
    let mut data = json!({"reason": reason});
    if let (Some(input), Some(map)) = (input, data.as_object_mut()) {
        map.insert("input".into(), input.into());
    }
    let given = host::give(event("WakeRequested", by, data, args.id)?);
    let (record, repeated) = match given {
        Ok(given) => given,
        Err(e) => {
            settle();
            return Err(e);
        }
    };
    let number = match repeated {
        true => begun(record.seq),
        false => Ok(with(|c| c.automaton.stable.view().turn.as_ref().map(|t| t.number))),
    };
    drive().await;
    ended(number?)
}

/// Returns the number of the turn that an earlier wake has begun: the first one that ended after
/// its record, or the one in progress.
fn begun(seq: u64) -> Result<Option<u64>, Error> {
    let (has_ended, in_progress) = with(|c| {
        let view = c.automaton.stable.view();
        let has_ended = view.last_turn.as_ref().is_some_and(|last| last.seq > seq);
        (has_ended, view.turn.as_ref().map(|turn| turn.number))
    });
    if !has_ended {
        return Ok(in_progress);
    }
    let number = with(|c| with_sql(|sql| c.projection.first_turn_after(sql, seq))).map_err(failed)?;
    let message = || format!("the turn of record {seq} has ended, but the projection lacks it; call `turns` later");
    number.map(Some).ok_or_else(|| Error::Failed { message: message() })
}

/// Returns the end of a turn that is not necessarily the last one.
fn ended(number: Option<u64>) -> Result<TurnEnd, Error> {
    let message = |message: &str| Error::Failed { message: message.into() };
    let Some(number) = number else {
        return Err(message("the turn has not begun"));
    };
    let last = with(|c| c.automaton.stable.view().last_turn.clone());
    if let Some(last) = last.filter(|t| t.number == number) {
        return Ok(view::turn_end(&last));
    }
    let query = TurnsQuery { after: number.checked_sub(1), ..TurnsQuery::default() };
    let found = with(|c| with_sql(|sql| c.projection.turns(sql, &query, 1)));
    let found = found.map_err(failed)?.into_iter().find(|t| t.turn == number);
    let turn = found.ok_or_else(|| message("the turn has not ended; call `turns` later"))?;
    Ok(TurnEnd {
        number,
        id: turn.id,
        outcome: turn.outcome,
        reply: turn.reply,
        failure: turn.failure,
        began: turn.began,
        ended: turn.ended,
        duration_ms: turn.duration_ms,
        seq: turn.seq,
    })
}

/// Puts the automaton to sleep. `id`, here and in other methods, is the event id: a repeated call
/// with the same id changes nothing and returns the receipt of the first one.
#[update]
fn sleep(id: Option<String>) -> Result<Receipt, Error> {
    change("SleepRequested", authorized()?, json!({}), id)
}

/// Sets whether a timer wakes the automaton.
#[update]
fn set_loop(enabled: bool, id: Option<String>) -> Result<Receipt, Error> {
    change("SetLoop", authorized()?, json!({"enabled": enabled}), id)
}

/// Resets a fault after a controller has looked at it.
#[update]
fn reset_fault(id: Option<String>) -> Result<Receipt, Error> {
    change("ResetFault", authorized()?, json!({}), id)
}

/// Changes the soul, from the next turn on.
#[update]
fn update_soul(text: String, id: Option<String>) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("the soul", &[&text])?;
    change("UpdateSoul", by, json!({"text": text}), id)
}

/// Changes a setting; the keys of the soul and the system are protected.
#[update]
fn config_set(key: String, value: String, id: Option<String>) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("key and value", &[&key, &value])?;
    change("SetConfig", by, json!({"key": key, "value": value}), id)
}

/// Installs a skill, new or in a new version.
#[update]
fn skill_install(skill: NewSkill, id: Option<String>) -> Result<Receipt, Error> {
    let by = authorized()?;
    let version = skill.version.as_deref();
    let parts = [skill.name.as_str(), &skill.description, &skill.instructions, version.unwrap_or_default()];
    within("the skill", &parts)?;
    let mut data = json!({
        "name": skill.name,
        "description": skill.description,
        "instructions": skill.instructions,
    });
    if let Some(map) = data.as_object_mut() {
        if let Some(enabled) = skill.enabled {
            map.insert("enabled".into(), enabled.into());
        }
        if let Some(version) = version {
            map.insert("version".into(), version.into());
        }
    }
    change("InstallSkill", by, data, id)
}

/// Sets whether a skill is part of the context of a turn.
#[update]
fn skill_enable(name: String, enabled: bool, id: Option<String>) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("the name", &[&name])?;
    change("EnableSkill", by, json!({"name": name, "enabled": enabled}), id)
}

/// Answers a task. `output` is JSON and must match the schema of the task; if it does not, the
/// answer is refused and the task remains open.
#[update]
fn complete(task: String, output: String) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("the output", &[&output])?;
    let output = charter_expr::strict_json::from_str(&output)
        .map_err(|e| Error::Failed { message: format!("the output is not valid JSON: {e}") })?;
    give(Input::Settled { effect: task_of(&task)?, outcome: Ok(output), by })
}

/// Declines a task: its invocation fails with the code `declined`.
#[update]
fn decline(task: String, reason: String) -> Result<Receipt, Error> {
    let by = authorized()?;
    within("the reason", &[&reason])?;
    let outcome = Err(Fault::declined(&reason, &by).json());
    give(Input::Settled { effect: task_of(&task)?, outcome, by })
}

/// Parses the id of a task of this run.
fn task_of(task: &str) -> Result<EffectId, Error> {
    let effect = EffectId::parse(task);
    let effect = effect.filter(|effect| with(|c| effect.text(c.automaton.run().id()) == task));
    effect.ok_or_else(|| Error::NotFound { message: format!("no open task `{}`", view::shortened(task)) })
}

/// Drops the SQL projection and rebuilds it from the log, in portions.
#[update]
fn replay() -> Result<Projection, Error> {
    authorized()?;
    host::replay()?;
    super::queries::projection()
}
