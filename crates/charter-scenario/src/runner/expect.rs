//! The checks of an `expect` step.

use std::collections::BTreeSet;

use charter_format::Span;
use charter_format::scenario::Expectation;
use charter_kernel::Actor;
use serde_json::Value as Json;

use super::codes;
use super::matching::{difference, names, show};
use super::run::{Runner, StepFailure};

/// Checks all expectations of a step; the first mismatch is the failure.
pub(crate) fn check(runner: &Runner<'_>, expect: &Expectation) -> Result<(), StepFailure> {
    let at = |key: &str| expect.spans.get(key).copied().unwrap_or_default();
    let id = expect.actor.as_deref().unwrap_or("root");
    let snapshot = runner.session.snapshot();
    let Some(actor) = snapshot.actor(id) else {
        let ids = runner.actor_ids();
        return failure(
            at("actor"),
            format!("the run has no actor `{id}`"),
            Some(format!("its actors: {}", names(ids.iter().map(String::as_str)))),
        );
    };
    if let Some(expected) = &expect.state {
        state(actor, expected, at("state"))?;
    }
    if let Some(expected) = &expect.status {
        let found = match &expect.actor {
            Some(_) => actor.status(),
            None => snapshot.status(),
        };
        if found.word() != expected {
            let message = format!("the status is `{}`; expected `{expected}`", found.word());
            return failure(at("status"), message, None);
        }
    }
    let part = |computed: &charter_format::scenario::Computed, found: Option<&Json>, name: &str| {
        let expected = runner.value(computed, Some(id))?;
        match difference(&expected, found, name) {
            Some(message) => failure(computed.span, message, None),
            None => Ok(()),
        }
    };
    for (name, computed) in &expect.context {
        part(computed, actor.variable(name), &format!("context.{name}"))?;
    }
    if let Some(computed) = &expect.output {
        let output = match &expect.actor {
            Some(_) => actor.output(),
            None => snapshot.output(),
        };
        part(computed, output, "output")?;
    }
    if let Some(computed) = &expect.ledger {
        let found = snapshot.ledger().map(|ledger| {
            // Every value that CEL can read in the ledger can be converted to JSON.
            charter_expr::Value::object(ledger).to_json().unwrap_or_default()
        });
        part(computed, found.as_ref(), "ledger")?;
    }
    if let Some(expected) = &expect.invocations {
        let open = actor.invocations().filter(|i| !i.is_machine());
        let found: Vec<&str> = open.map(|i| i.id.as_ref()).collect();
        same_names("invocations", expected, &found, at("invocations"))?;
    }
    if let Some(expected) = &expect.actors {
        let ids = runner.actor_ids();
        let found: Vec<&str> = ids.iter().map(String::as_str).skip(1).collect();
        same_names("actors", expected, &found, at("actors"))?;
    }
    if let Some((sender, expected)) = &expect.legal {
        let principal = runner.principal(sender, at("legal"))?;
        let legal = runner.machine.legal(snapshot, &principal, runner.session.at());
        let mine = legal.iter().filter(|l| expect.actor.is_none() || l.to == id);
        let found: Vec<&str> = mine.map(|l| l.r#type.as_str()).collect();
        same_names("legal events", expected, &found, at("legal"))?;
    }
    if let Some(expected) = expect.stuck
        && runner.machine.is_stuck(snapshot) != expected
    {
        let message = match expected {
            true => "the run is not stuck; expected it to be",
            false => "the run is stuck: no timer, no invocation, no legal event",
        };
        return failure(at("stuck"), message.into(), None);
    }
    effects(runner, expect, id, at("effects"))?;
    for condition in &expect.assert {
        match runner.value(condition, Some(id))? {
            Json::Bool(true) => {}
            Json::Bool(false) => {
                let reads = runner.reads(condition, id);
                return failure(condition.span, "the condition is false".into(), reads);
            }
            other => {
                let message = format!("expected a boolean, found {}", show(&other));
                return failure(condition.span, message, None);
            }
        }
    }
    Ok(())
}

fn failure<T>(span: Span, message: String, help: Option<String>) -> Result<T, StepFailure> {
    Err(StepFailure { code: codes::EXPECTATION, span, message, help })
}

/// Checks that every expected state is active, and that every active atomic state is one of them or
/// inside one of them.
fn state(actor: &Actor, expected: &[String], span: Span) -> Result<(), StepFailure> {
    let active: Vec<&str> = actor.active().collect();
    let inside =
        |path: &str, name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let missing = expected.iter().any(|name| !active.contains(&name.as_str()));
    let more = actor.state().any(|path| !expected.iter().any(|name| inside(path, name)));
    if missing || more {
        let message =
            format!("the state is {}; expected {}", names(actor.state()), names(expected.iter().map(String::as_str)));
        return failure(span, message, None);
    }
    Ok(())
}

/// Compares names as sets.
fn same_names(what: &str, expected: &[String], found: &[&str], span: Span) -> Result<(), StepFailure> {
    let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    let found: BTreeSet<&str> = found.iter().copied().collect();
    if expected == found {
        return Ok(());
    }
    let message = format!("{what}: {}; expected {}", names(found.iter().copied()), names(expected.iter().copied()));
    failure(span, message, None)
}

fn effects(runner: &Runner<'_>, expect: &Expectation, id: &str, span: Span) -> Result<(), StepFailure> {
    let Some(expected) = &expect.effects else {
        return Ok(());
    };
    let found = runner.effects.as_array().map(Vec::as_slice).unwrap_or_default();
    if expected.len() != found.len() {
        let kinds: Vec<String> = found
            .iter()
            .map(|e| {
                let word = |key: &str| e.get(key).and_then(Json::as_str);
                let what = word("src").or(word("type")).or(word("invocation"));
                format!("{} {}", word("kind").unwrap_or_default(), what.unwrap_or_default()).trim_end().to_owned()
            })
            .collect();
        let message = format!(
            "the last step has {} effect{}; expected {}",
            found.len(),
            if found.len() == 1 { "" } else { "s" },
            expected.len()
        );
        let help = format!("effects of the last step: {}", names(kinds.iter().map(String::as_str)));
        return failure(span, message, Some(help));
    }
    for (i, (computed, found)) in expected.iter().zip(found).enumerate() {
        let expected = runner.value(computed, Some(id))?;
        if let Some(message) = difference(&expected, Some(found), &format!("effects[{i}]")) {
            return failure(computed.span, message, None);
        }
    }
    Ok(())
}
