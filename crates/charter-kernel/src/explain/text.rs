//! The messages of a refusal, rendered from its details when it is shown: what was refused, why,
//! and what to do. No record contains a message, so the wording may change.

use serde_json::Value as Json;

use super::RefusalContext;
use super::authority::{authority, nearest, sender_has};
use super::expression::expression_error;
use super::rules::rule_sentence;
use crate::refusal::{
    Candidate, CandidateDetails, Cause, Code, Explanation, ExpressionError, LedgerDetails, RefusalDetails,
};
use crate::schema::{Misfit, MisfitDetails};
use crate::step::{Note, NoteKind};

impl RefusalDetails {
    /// Renders the refusal for people. Needs the fields of the record and, for the messages of
    /// rules, the charter.
    #[must_use]
    pub fn explain(&self, ctx: &RefusalContext<'_>) -> Explanation {
        let candidates: Vec<Candidate> = self.candidates.iter().map(|c| candidate(c, ctx)).collect();
        Explanation {
            code: self.code,
            message: self.message(&candidates, ctx),
            rule: self.rule.clone(),
            candidates,
            misfits: self.misfits.iter().map(Misfit::from).collect(),
            interlock: self.interlock.clone(),
            legal: self.legal.clone(),
        }
    }

    fn message(&self, candidates: &[Candidate], ctx: &RefusalContext<'_>) -> String {
        if let Some(cause) = &self.cause {
            return self.cause_message(cause, ctx);
        }
        let name = ctx.event.as_ref();
        match self.code {
            Code::Reserved => format!("`{name}` is a platform event and cannot be sent from outside"),
            Code::UnknownEvent => {
                let declared = ctx.machine.map(|m| m.definition.events.keys().map(String::as_str));
                let near = declared.and_then(|declared| charter_expr::nearest(name, declared));
                let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                format!("the charter declares no event `{name}`{near}")
            }
            Code::Paused if name == "charter.pause" => "the run is already paused".to_string(),
            Code::Paused => "the run is paused; an operator can resume it with `charter.resume`".to_string(),
            Code::Authority if !self.roles.is_empty() => {
                format!("`{name}` may be sent only by {}; {}", or(&self.roles), sender_has(ctx.by))
            }
            Code::Schema => {
                let what = match (&self.rule, ctx.invocation) {
                    (Some(rule), _) => rule_sentence(rule, &self.read, ctx),
                    (None, Some(id)) => format!("the output of `{id}` does not match its schema"),
                    (None, None) if name == "charter.start" => {
                        "the input does not match the charter's `input` schema".to_string()
                    }
                    (None, None) => format!("the data of `{name}` does not match its schema"),
                };
                format!("{what}{}", first_misfit(&self.misfits))
            }
            Code::Unreserved if ctx.machine.is_some_and(|m| !m.has_key(name)) => {
                format!("the host names a unique key, and events of the type `{name}` have none")
            }
            Code::Unhandled => {
                // What is legal is so for some actor: this one has no transition for the event.
                let others = self.legal.iter().filter(|legal| **legal != name);
                let others = others.map(String::as_str).collect::<Vec<_>>().join(", ");
                let legal = match (self.legal.iter().any(|legal| *legal == name), others.is_empty()) {
                    (false, true) => "the sender may not send any event now".to_string(),
                    (false, false) => format!("legal now: {others}"),
                    (true, true) => "another actor takes it".to_string(),
                    (true, false) => format!("another actor takes it; also legal now: {others}"),
                };
                // A chart without states is a state itself, and has no name.
                let state = match ctx.state.iter().all(|state| state.is_empty()) {
                    true => "has no states".to_owned(),
                    false => format!("is in {}", quoted(&ctx.state)),
                };
                format!("no transition for `{name}` while `{}` {state}; {legal}", ctx.to)
            }
            code => {
                let of_rule = |c: &&Candidate| c.failed == code && c.rule == self.rule;
                let decided = match code {
                    Code::Authority => nearest(&self.candidates, self.rule.as_deref()).and_then(|i| candidates.get(i)),
                    _ => candidates.iter().find(of_rule),
                };
                let decided = decided.or_else(|| candidates.iter().find(|c| c.failed == code));
                match (decided, &self.rule) {
                    (Some(candidate), _) => candidate.message.clone(),
                    (None, Some(rule)) => rule_sentence(rule, &self.read, ctx),
                    (None, None) => general(code).to_string(),
                }
            }
        }
    }

    fn cause_message(&self, cause: &Cause, ctx: &RefusalContext<'_>) -> String {
        let interlock = self.interlock.as_deref().unwrap_or_default();
        match cause {
            Cause::Size { limit } => format!(
                "the data is larger than {limit} bytes (`limits.data`); store large values elsewhere and send their digest"
            ),
            Cause::PrincipalId { limit } => {
                format!("the id of the sender is longer than {limit} bytes; use a shorter name, or its digest")
            }
            Cause::Depth { limit } => format!("the data is nested deeper than {limit} levels"),
            Cause::Time => "the time of the event is outside the years 1 to 9999".to_string(),
            Cause::Number { at } => format!(
                "the data has an integer beyond 2^53-1 at `{at}`, which JSON readers round; send it as a string"
            ),
            Cause::Microsteps { limit } => format!(
                "the event takes more than {limit} microsteps (`limits.microsteps`); look for transitions that trigger each other"
            ),
            Cause::Actions { limit } => format!("the event runs more than {limit} actions"),
            Cause::Fuel { limit, work } => format!(
                "the event costs more than {limit} units of fuel (`limits.fuel`), exceeded by {}; let it do less, or raise the limit",
                work.name()
            ),
            Cause::Bytes { limit, work } => format!(
                "the event builds more than {limit} bytes (`limits.bytes`), exceeded by {}; keep large values elsewhere and use their digests, or raise the limit",
                work.name()
            ),
            Cause::Assertion { expression, error: None, .. } => {
                format!("interlock `{interlock}`: `{expression}` would be false")
            }
            Cause::Assertion { expression, error: Some(error), .. } => {
                let error = ExpressionError { expression: None, ..error.clone() };
                format!("interlock `{interlock}`: `{expression}` could not be evaluated: {}", expression_error(&error))
            }
            Cause::Table { actor, state, given, given_states, allowed } => {
                let allowed = match allowed.is_empty() {
                    true => "which allows no state".to_string(),
                    false => format!("which allows only {}", quoted(allowed)),
                };
                let given_states = quoted(given_states);
                format!(
                    "interlock `{interlock}`: `{actor}` would be in `{state}` while `{given}` is in {given_states}, {allowed}"
                )
            }
            Cause::Taken { .. } | Cause::Key { .. } => super::key::message(cause, &ctx.event),
            Cause::NotPaused => "the run is not paused, so there is nothing to resume".to_string(),
            Cause::Permit { kind, key } => {
                format!("another transition of this step took the last use of the `{kind}` `{key}`")
            }
            Cause::Unhandled { event, error } => {
                format!("`{event}` was raised and no transition handles it: {}", fault_message(error))
            }
            Cause::Finished { actor: None, status } => format!("the run is {status} and accepts no more events"),
            Cause::Finished { actor: Some(actor), status } => {
                format!("the actor `{actor}` is {status} and accepts no more events")
            }
            Cause::Actors { known } => {
                format!("the run has no actor `{}`; its actors are {}", ctx.to, quoted(known))
            }
            Cause::Changed { last } => match ctx.expected_seq {
                Some(seen) if seen > *last => {
                    format!("the sender expects record {seen} to be the last one, but the last one is {last}")
                }
                Some(seen) => format!(
                    "the sender expects record {seen} to be the last one, but record {last} has changed the run since; look at the run and send again"
                ),
                None => general(Code::Stale).to_string(),
            },
            Cause::IdReused { id, seq } => format!("the id `{id}` was used for another event, in record {seq}"),
        }
    }
}

fn candidate(c: &CandidateDetails, ctx: &RefusalContext<'_>) -> Candidate {
    // A field that does not exist has no value, not even null, so its path is not shown.
    let missing = c.error.as_ref().is_some_and(|e| matches!(e.error.as_str(), "no-such-field" | "no-such-key"));
    Candidate {
        transition: c.transition.clone(),
        failed: c.failed,
        rule: c.rule.clone(),
        expression: c.expression.clone(),
        does_not_hold: c.error.is_none() && matches!(c.failed, Code::Guard | Code::PermitScope),
        read: c.read.iter().filter(|(_, v)| !missing || !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect(),
        message: candidate_message(c, ctx),
    }
}

fn candidate_message(c: &CandidateDetails, ctx: &RefusalContext<'_>) -> String {
    if c.failed == Code::Authority {
        return authority(c, ctx.by);
    }
    let reason = match (c.failed, &c.ledger, &c.approval) {
        (Code::Guard, ..) => guard(c),
        (Code::Stale, _, Some(approval)) => match (&approval.sent, &approval.current, &c.error) {
            (_, None, Some(error)) => {
                format!("the value to approve could not be evaluated: {}", expression_error(error))
            }
            (None, ..) => "an approval must name the digest of what it approves: add `digest` to the data".to_string(),
            (Some(sent), current, _) => format!(
                "the approval is for {sent}, but the value to approve is {} now; look at it and approve again",
                current.as_deref().unwrap_or("unknown")
            ),
        },
        (Code::Rule, ..) => String::new(),
        (code, Some(ledger), _) => requirement(code, ledger, c),
        (code, ..) => general(code).to_string(),
    };
    match &c.rule {
        None => reason,
        Some(rule) if reason.is_empty() => rule_sentence(rule, &c.read, ctx),
        Some(rule) => format!("{}: {reason}", rule_sentence(rule, &c.read, ctx)),
    }
}

fn guard(c: &CandidateDetails) -> String {
    let called = match (&c.guard, &c.expression) {
        (Some(name), _) => format!("guard `{name}`"),
        (None, Some(expression)) => format!("`{expression}`"),
        (None, None) => "the guard".to_string(),
    };
    match &c.error {
        None => format!("{called} does not hold"),
        Some(error) => {
            let expression = error.expression.clone().filter(|_| c.guard.is_some());
            let error = ExpressionError { expression, ..error.clone() };
            format!("{called} could not be evaluated and so does not hold: {}", expression_error(&error))
        }
    }
}

fn requirement(code: Code, ledger: &LedgerDetails, c: &CandidateDetails) -> String {
    let kind = &ledger.kind;
    if let Some(error) = c.error.as_ref().filter(|_| ledger.key.is_none()) {
        return format!("the key of the `{kind}` could not be evaluated: {}", expression_error(error));
    }
    let key = ledger.key.as_deref().unwrap_or_default();
    match code {
        // The data would choose the key.
        Code::PermitMissing if ledger.key.is_none() => format!("there is no `{kind}` that can be used"),
        Code::ObligationMissing if ledger.key.is_none() => format!("no `{kind}` is open"),
        Code::PermitMissing => format!("there is no `{kind}` `{key}`"),
        Code::PermitRevoked => format!("the `{kind}` `{key}` was revoked"),
        Code::PermitExpired => format!("the `{kind}` `{key}` has expired"),
        Code::PermitExhausted => format!("the `{kind}` `{key}` has no uses left"),
        Code::PermitScope => format!(
            "the `{kind}` `{key}` does not cover this: `{}` does not hold",
            c.expression.as_deref().unwrap_or_default()
        ),
        Code::ObligationMissing => format!("no `{kind}` `{key}` is open"),
        _ => format!("`{kind}` still open: {}", quoted(&ledger.open)),
    }
}

/// Renders why an action failed, from the `error` of its event: the kernel's own errors have a
/// `reason`, other errors have a message.
fn fault_message(error: &Json) -> String {
    let text = |key: &str| match error.get(key) {
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let Some(reason) = error.get("reason").and_then(Json::as_str) else {
        return match error.get("message").and_then(Json::as_str) {
            Some(message) => message.to_string(),
            None => match (error, text("code")) {
                (Json::String(cut), _) => cut.clone(),
                (Json::Null, _) => "it has no data".to_owned(),
                (_, code) if code.is_empty() => error.to_string(),
                (_, code) => code,
            },
        };
    };
    let name = text("name");
    match reason {
        "expression" => {
            let failed = serde_json::from_value(error.clone()).ok();
            failed.map_or_else(|| "an expression could not be evaluated".into(), |e| expression_error(&e))
        }
        "too-many-timers" => format!("more than {} timers (`limits.timers`)", text("limit")),
        "too-many-actors" => format!("more than {} actors (`limits.actors`)", text("limit")),
        "too-many-generations" => format!("machines start machines more than {} levels deep", text("limit")),
        "invalid-actor-id" => format!("invalid actor id `{name}`"),
        "actor-exists" => format!("there is already an actor `{name}`"),
        "invocation-exists" => format!("an invocation `{name}` is already running"),
        "stop-itself" => "an actor cannot stop itself; let it reach a final state".to_string(),
        "no-spawned-actor" => format!("there is no spawned actor `{name}` to stop"),
        "no-machine" => format!("there is no machine `{name}`"),
        "input" => {
            let misfits: Vec<MisfitDetails> =
                error.get("misfits").and_then(|m| serde_json::from_value(m.clone()).ok()).unwrap_or_default();
            format!("the input of `{name}` does not match its schema{}", first_misfit(&misfits))
        }
        "fraction" => format!("cannot store {} in `{name}{}`, which holds whole numbers", text("value"), text("at")),
        "assign" => match error.get("length") {
            Some(length) => {
                format!(
                    "cannot assign inside `{name}`: index {} is out of range for a list of length {length}",
                    text("key")
                )
            }
            None => {
                format!("cannot assign inside `{name}`: no key {} in a value of type {}", text("key"), text("type"))
            }
        },
        "event-processor" => format!("there is no event processor `{name}`; use `scxml`"),
        "delayed-internal" => "an event for the internal queue cannot be delayed".to_string(),
        "invalid-target" => format!("`{name}` is not a target that an event can be sent to"),
        "session-ended" => format!("the session `{name}` has ended"),
        "no-actor" => format!("there is no actor `{name}` in this run"),
        "no-parent" => "the actor has no parent".to_string(),
        "no-session" => format!("there is no session `{name}`"),
        "uses" => "`uses` must be a whole number of at least 1".to_string(),
        "already-granted" => format!("the permit `{}` `{name}` was granted before; use another key", text("kind")),
        "no-permit" => format!("there is no permit `{}` `{name}` to revoke", text("kind")),
        "already-opened" => {
            format!("the obligation `{}` `{name}` was opened before; use another key", text("kind"))
        }
        "not-open" => format!("the obligation `{}` `{name}` is not open", text("kind")),
        _ => text("message"),
    }
}

impl Note {
    /// Describes what happened, in one sentence.
    #[must_use]
    pub fn message(&self) -> String {
        self.kind.message()
    }
}

impl NoteKind {
    /// Describes what happened, in one sentence.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            NoteKind::Guard(error) => {
                format!("a guard could not be evaluated and so does not hold: {}", expression_error(error))
            }
            NoteKind::Failed { event, error } => format!("`{event}` was raised: {}", fault_message(error)),
            NoteKind::Unhandled { event, from } => format!("no transition for `{event}`, sent by `{from}`"),
            NoteKind::TimerRefused { message } => format!("a timer was refused: {message}"),
        }
    }
}

pub(crate) fn first_misfit(misfits: &[MisfitDetails]) -> String {
    match misfits.first() {
        None => String::new(),
        Some(m) if m.at.is_empty() => format!(": {}", m.message()),
        Some(m) => format!(": at `{}`: {}", m.at, m.message()),
    }
}

pub(super) fn quoted(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|w| format!("`{}`", w.as_ref())).collect::<Vec<_>>().join(", ")
}

pub(super) fn or(words: &[String]) -> String {
    words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(" or ")
}

/// Returns the general meaning of a code, for refusals without further details.
fn general(code: Code) -> &'static str {
    match code {
        Code::TooLarge => "the event is too large",
        Code::CharterMismatch => "the snapshot belongs to another charter or to another version of it",
        Code::Reserved => "events of this type come from the platform only",
        Code::UnknownEvent => "the charter declares no such event",
        Code::Finished => "the run has ended",
        Code::Paused => "the run is paused",
        Code::UnknownActor => "the run has no such actor",
        Code::Stale => "the run has changed since the sender looked at it",
        Code::Authority => "the sender does not have the roles",
        Code::Schema => "the data does not match its schema",
        Code::Taken => "a run has the key of this event already",
        Code::Unreserved => "the event has a key that is unique across runs, and this host does not look up such keys",
        Code::Unhandled => "no transition for this event now",
        Code::Guard => "a guard does not hold",
        Code::Rule => "a rule of the charter forbids it",
        Code::PermitMissing => "there is no such permit",
        Code::PermitRevoked => "the permit was revoked",
        Code::PermitExpired => "the permit has expired",
        Code::PermitExhausted => "the permit has no uses left",
        Code::PermitScope => "the permit does not cover this",
        Code::ObligationMissing => "no such obligation is open",
        Code::ObligationOpen => "an obligation is still open",
        Code::Execution => "an action failed and no transition handles the error",
        Code::Runaway => "the event takes too many steps",
        Code::TooCostly => "the event costs too much",
        Code::Interlock => "an interlock between the actors would not hold",
    }
}
