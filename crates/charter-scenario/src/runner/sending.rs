//! Steps that send an event or an answer and compare the verdict with the expected one.

use charter_expr::nearest;
use charter_format::Span;
use charter_format::scenario::{Computed, ExpectedRefusal, Scenario, ScenarioStep, Sender, Sending, What};
use charter_kernel::{Event, Explanation, Principal, Timestamp};
use serde_json::json;

use super::codes;
use super::matching::names;
use super::run::{Runner, StepFailure};
use crate::session::{SessionEvent, StepOutcome};

impl<'a> Runner<'a> {
    /// Sends an event or an answer that must be accepted.
    pub(super) fn send(&mut self, sending: &Sending, step: &ScenarioStep) -> Result<(), StepFailure> {
        let what = name_of(&sending.what);
        let outcome = self.apply(sending, step)?;
        let failure = |code, message, help| StepFailure { code, span: step.span, message, help };
        if let Some(explanation) = &outcome.refusal {
            let message = format!("{what} is refused ({}): {}", explanation.code, explanation.message);
            return Err(failure(codes::UNEXPECTED_REFUSAL, message, legal_now(explanation)));
        }
        if outcome.verdict != sending.verdict {
            let message = format!("{what} is {}; expected {}", verdict(outcome.verdict), verdict(sending.verdict));
            let help = self.open_invocations(&outcome);
            return Err(failure(codes::EXPECTATION, message, help));
        }
        self.record(outcome);
        Ok(())
    }

    /// Sends an event or an answer that must be refused.
    pub(super) fn refused(
        &mut self,
        sending: &Sending,
        refusal: &ExpectedRefusal,
        step: &ScenarioStep,
    ) -> Result<(), StepFailure> {
        let what = name_of(&sending.what);
        let outcome = self.apply(sending, step)?;
        let Some(explanation) = &outcome.refusal else {
            return Err(StepFailure {
                code: codes::NOT_REFUSED,
                span: step.span,
                message: format!("{what} is {}; expected a refusal with `{}`", verdict(outcome.verdict), refusal.code),
                help: self.open_invocations(&outcome),
            });
        };
        check_refusal(&what, refusal, explanation, step.span)?;
        self.cover.refuse(explanation);
        self.effects = json!([]);
        Ok(())
    }

    fn open_invocations(&self, outcome: &StepOutcome<'_>) -> Option<String> {
        let open = self.session.snapshot().invocations().filter(|(_, i)| !i.is_machine());
        let open: Vec<String> = open.map(|(_, i)| i.id.to_string()).collect();
        (outcome.verdict == "late").then(|| format!("open invocations: {}", names(open.iter().map(String::as_str))))
    }

    fn apply(&mut self, sending: &Sending, step: &ScenarioStep) -> Result<StepOutcome<'a>, StepFailure> {
        let value = |runner: &Self, part: &Option<Computed>| match part {
            Some(computed) => runner.value(computed, sending.to.as_deref()).map(Some),
            None => Ok(None),
        };
        let event = match &sending.what {
            What::Event { kind, data } => {
                let data = value(self, data)?.unwrap_or_else(|| self.machine.absent_data(kind));
                Event::External { r#type: kind.clone(), data }
            }
            What::Done { actor, output } => Event::Done {
                invocation: actor.clone(),
                effect: None,
                output: value(self, output)?.unwrap_or_default(),
            },
            What::Failed { actor, error } => Event::Failed {
                invocation: actor.clone(),
                effect: None,
                error: value(self, error)?.unwrap_or_else(|| json!({"code": "error", "message": "no reason given"})),
            },
        };
        let by = match &sending.what {
            // Nobody is named: the actor itself answers.
            What::Done { .. } | What::Failed { .. } if sending.sender == Sender::default() => Principal::system(),
            _ => self.principal(&sending.sender, step.span)?,
        };
        Ok(self.session.apply(SessionEvent {
            event,
            to: sending.to.clone(),
            by,
            at: sending.at.map(Timestamp),
            expected_seq: sending.expected_seq,
            taken_by: sending.taken_by.clone(),
        }))
    }

    /// Returns the principal for a sender, with its roles.
    pub(crate) fn principal(&self, sender: &Sender, span: Span) -> Result<Principal, StepFailure> {
        known_principal(self.scenario, sender, span)
    }
}

/// Returns the principal for a sender, with its roles.
pub(super) fn known_principal(scenario: &Scenario, sender: &Sender, span: Span) -> Result<Principal, StepFailure> {
    let known = &scenario.principals;
    let is_listed = sender.id.is_empty() || known.is_empty() || known.contains_key(&sender.id);
    if is_listed || sender.roles.is_some() {
        let by = scenario.principal(sender);
        return match by.check_sender() {
            Ok(()) => Ok(by),
            Err(e) => Err(StepFailure { code: codes::SCENARIO, span, message: e.to_string(), help: None }),
        };
    }
    let help = match nearest(&sender.id, known.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "add it there, or give its `roles` in this step".into(),
    };
    Err(StepFailure {
        code: codes::SCENARIO,
        span,
        message: format!("unknown principal `{}`: it is not listed under `principals`", sender.id),
        help: Some(help),
    })
}

/// Compares a refusal with the expected one.
pub(super) fn check_refusal(
    what: &str,
    expected: &ExpectedRefusal,
    explanation: &Explanation,
    span: Span,
) -> Result<(), StepFailure> {
    let failure = |message| Err(StepFailure { code: codes::EXPECTATION, span, message, help: legal_now(explanation) });
    if explanation.code.word() != expected.code {
        return failure(format!(
            "{what} is refused with `{}`; expected `{}`: {}",
            explanation.code, expected.code, explanation.message
        ));
    }
    if expected.rule.is_some() && expected.rule != explanation.rule {
        return failure(format!(
            "{what} is refused by {}; expected rule `{}`: {}",
            explanation.rule.as_ref().map_or("no rule".into(), |rule| format!("rule `{rule}`")),
            expected.rule.as_deref().unwrap_or_default(),
            explanation.message
        ));
    }
    match &expected.message {
        Some(part) if !explanation.message.contains(part.as_str()) => {
            failure(format!("the message does not contain `{part}`: {}", explanation.message))
        }
        _ => Ok(()),
    }
}

fn legal_now(explanation: &Explanation) -> Option<String> {
    let none = explanation.legal.is_empty() || explanation.message.contains("legal now");
    (!none).then(|| format!("legal for this sender now: {}", names(explanation.legal.iter().map(String::as_str))))
}

fn name_of(what: &What) -> String {
    match what {
        What::Event { kind, .. } => format!("`{kind}`"),
        What::Done { actor, .. } => format!("the result of `{actor}`"),
        What::Failed { actor, .. } => format!("the error of `{actor}`"),
    }
}

fn verdict(word: &str) -> &str {
    match word {
        "vote" => "a vote",
        other => other,
    }
}
