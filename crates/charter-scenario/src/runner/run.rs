//! Runs one scenario, step by step, until it ends or a step fails.

use charter_expr::nearest;
use charter_format::scenario::{Act, Computed, Refusal, Scenario, ScenarioFile, Sender, Sending, Step, Tick, What};
use charter_format::{Diagnostic, Severity, Span};
use charter_kernel::definition::Delay;
use charter_kernel::{Actor, Event, Explanation, Machine, Principal};
use serde_json::{Value as Json, json};

use super::cover::{Cover, Reached};
use super::matching::{names, show};
use super::scope::{EvalFailure, EvalView, Expressions};
use super::{codes, expect};
use crate::session::{Session, SessionEvent, StepOutcome};

/// Upper limit for the steps of one scenario, counting repetitions.
const MAX_STEPS: usize = 100_000;

/// The result of running a scenario.
#[derive(Debug)]
pub struct ScenarioResult {
    /// How many steps ran.
    pub steps: usize,
    /// The first step that failed, and why.
    pub failure: Option<Diagnostic>,
}

/// Why a step failed.
pub(crate) struct StepFailure {
    pub(crate) code: &'static str,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

pub(crate) struct Runner<'a> {
    pub(crate) file: &'a ScenarioFile,
    pub(crate) scenario: &'a Scenario,
    pub(crate) expressions: &'a Expressions,
    pub(crate) machine: &'a Machine,
    pub(crate) session: Session<'a>,
    cover: &'a mut Cover,
    /// The effects of the last step, as a list.
    pub(crate) effects: Json,
    run: Json,
    steps: usize,
}

/// Runs one scenario of a file.
pub fn run(
    file: &ScenarioFile,
    scenario: &Scenario,
    expressions: &Expressions,
    machine: &Machine,
    cover: &mut Cover,
) -> ScenarioResult {
    let mut steps = 0;
    let failure = match begin(file, scenario, expressions, machine, cover) {
        Ok(Some(mut runner)) => {
            let done = runner.steps(&scenario.steps);
            steps = runner.steps;
            done.err()
        }
        Ok(None) => None,
        Err(fault) => Some(fault),
    };
    let diagnostic =
        |fault: StepFailure| file.diagnostic(Severity::Error, fault.code, fault.span, fault.message, fault.help);
    ScenarioResult { steps, failure: failure.map(diagnostic) }
}

/// Starts the run; `None` if the start is refused and expected to be.
fn begin<'a>(
    file: &'a ScenarioFile,
    scenario: &'a Scenario,
    expressions: &'a Expressions,
    machine: &'a Machine,
    cover: &'a mut Cover,
) -> Result<Option<Runner<'a>>, StepFailure> {
    let input = match &scenario.input {
        None => json!({}),
        Some(computed) => literal(computed).ok_or_else(|| StepFailure {
            code: codes::SCENARIO,
            span: computed.span,
            message: "the input of a run cannot be computed".into(),
            help: Some("write it as a literal".into()),
        })?,
    };
    match (Session::start(machine, "run", input, scenario.at), &scenario.refused) {
        (Ok((session, outcome)), None) => {
            cover.take(outcome.taken.iter().copied());
            let how = || Reached { file: file.name.clone(), scenario: scenario.name.clone(), line: 0 };
            cover.reach(session.snapshot(), how);
            Ok(Some(Runner {
                file,
                scenario,
                expressions,
                machine,
                effects: Json::Array(outcome.effects),
                run: json!({"id": "run", "charter": machine.definition().id}),
                session,
                cover,
                steps: 0,
            }))
        }
        (Ok(_), Some((span, refusal))) => Err(StepFailure {
            code: codes::NOT_REFUSED,
            span: *span,
            message: format!("the run starts; expected the start to be refused with `{}`", refusal.code),
            help: None,
        }),
        (Err(explanation), Some((span, refusal))) => {
            check_refusal("the start", refusal, &explanation, *span)?;
            cover.refuse(&explanation);
            Ok(None)
        }
        (Err(explanation), None) => Err(StepFailure {
            code: codes::UNEXPECTED_REFUSAL,
            span: scenario.span,
            message: format!("the start is refused ({}): {}", explanation.code, explanation.message),
            help: None,
        }),
    }
}

fn literal(computed: &Computed) -> Option<Json> {
    match &computed.template {
        charter_kernel::definition::Template::Literal(value) => Some(value.clone()),
        _ => None,
    }
}

impl<'a> Runner<'a> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), StepFailure> {
        for step in steps {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(StepFailure {
                    code: codes::SCENARIO,
                    span: step.span,
                    message: format!("the scenario has more than {MAX_STEPS} steps"),
                    help: Some("reduce `times`".into()),
                });
            }
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), StepFailure> {
        match &step.act {
            Act::Send(sending) => self.send(sending, step)?,
            Act::Refused(sending, refusal) => self.refused(sending, refusal, step)?,
            Act::Expect(expectation) => return expect::check(self, expectation),
            Act::Tick(tick) => self.tick(tick, step)?,
            Act::Restore => {}
            Act::Repeat { times, steps } => {
                for _ in 0..*times {
                    self.steps(steps)?;
                }
                return Ok(());
            }
        }
        let (file, scenario) = (self.file, self.scenario);
        self.cover.reach(self.session.snapshot(), || Reached {
            file: file.name.clone(),
            scenario: scenario.name.clone(),
            line: line_of(&file.source, step.span.start),
        });
        // A snapshot equals its round trip through JSON: checked after every step of every
        // scenario.
        let restored = self.session.restore();
        restored.map(drop).map_err(|error| StepFailure {
            code: codes::SCENARIO,
            span: step.span,
            message: error.to_string(),
            help: Some("this is a bug in Charter, not in the scenario: please report it".into()),
        })
    }

    fn send(&mut self, sending: &Sending, step: &Step) -> Result<(), StepFailure> {
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

    fn refused(&mut self, sending: &Sending, refusal: &Refusal, step: &Step) -> Result<(), StepFailure> {
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

    fn tick(&mut self, tick: &Tick, step: &Step) -> Result<(), StepFailure> {
        let failure = |code, message: String, help| StepFailure { code, span: step.span, message, help };
        let now = self.session.at();
        let until = match tick {
            Tick::Until(at) => *at,
            Tick::For(delay) => {
                let ms = self.duration(delay).map_err(|(message, help)| failure(codes::SCENARIO, message, help))?;
                now.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX))
            }
        };
        if until < now {
            let message = format!("this time is in the past: it is {} already", crate::timestamp::text(now));
            return Err(failure(codes::SCENARIO, message, None));
        }
        let outcome = self.session.tick(until);
        let outcome = outcome.map_err(|e| failure(codes::EXPECTATION, e.to_string(), None))?;
        if let Some(explanation) = &outcome.refusal {
            let message = format!("a timer is refused ({}): {}", explanation.code, explanation.message);
            return Err(failure(codes::UNEXPECTED_REFUSAL, message, None));
        }
        if outcome.timers_refused > 0 {
            let notes: Vec<String> = outcome.notes.iter().map(|n| n.message()).collect();
            return Err(failure(codes::UNEXPECTED_REFUSAL, notes.join("; "), None));
        }
        self.record(outcome);
        Ok(())
    }

    fn duration(&self, delay: &Delay) -> Result<u64, (String, Option<String>)> {
        match delay {
            Delay::Ms(ms) => Ok(*ms),
            Delay::Name(name) => {
                let delays = &self.machine.definition().delays;
                match delays.get(name) {
                    Some(Delay::Ms(ms)) => Ok(*ms),
                    Some(_) => Err((
                        format!("the delay `{name}` is computed, so its duration is not known here"),
                        Some("write the duration, such as `72h`".into()),
                    )),
                    None => {
                        let near = nearest(name, delays.keys().map(String::as_str));
                        let near = near.map(|near| format!("did you mean `{near}`?"));
                        Err((format!("unknown delay `{name}`"), near))
                    }
                }
            }
            Delay::Cel(_) => {
                Err(("a tick cannot be computed".into(), Some("write the duration, such as `72h`".into())))
            }
        }
    }

    fn record(&mut self, outcome: StepOutcome<'_>) {
        self.cover.take(outcome.taken.iter().copied());
        self.effects = Json::Array(outcome.effects);
    }

    fn apply(&mut self, sending: &Sending, step: &Step) -> Result<StepOutcome<'a>, StepFailure> {
        let value = |runner: &Self, part: &Option<Computed>| match part {
            Some(computed) => runner.value(computed, sending.to.as_deref()).map(Some),
            None => Ok(None),
        };
        let event = match &sending.what {
            What::Event { kind, data } => {
                Event::External { r#type: kind.clone(), data: value(self, data)?.unwrap_or_default() }
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
            What::Event { .. } => self.principal(&sending.sender, step.span)?,
            _ => Principal::system(),
        };
        Ok(self.session.apply(SessionEvent {
            event,
            to: sending.to.clone(),
            by,
            at: sending.at,
            expected_seq: sending.expected_seq,
        }))
    }

    /// A sender with its roles.
    pub(crate) fn principal(&self, sender: &Sender, span: Span) -> Result<Principal, StepFailure> {
        let known = &self.scenario.principals;
        let roles = match (&sender.roles, known.get(&sender.id)) {
            (Some(roles), _) | (None, Some(roles)) => roles.clone(),
            // An anonymous sender.
            (None, None) if sender.id.is_empty() || known.is_empty() => Vec::new(),
            (None, None) => {
                let near = nearest(&sender.id, known.keys().map(String::as_str));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "add it there, or give its `roles` in this step".into(),
                };
                return Err(StepFailure {
                    code: codes::SCENARIO,
                    span,
                    message: format!("unknown principal `{}`: it is not listed under `principals`", sender.id),
                    help: Some(help),
                });
            }
        };
        Ok(Principal { id: sender.id.clone(), roles })
    }

    /// A value of the scenario, evaluated for an actor.
    pub(crate) fn value(&self, computed: &Computed, actor: Option<&str>) -> Result<Json, StepFailure> {
        let value = self.expressions.value(computed, self.view(actor));
        value.map_err(|failed: EvalFailure| StepFailure {
            code: codes::SCENARIO,
            span: match failed.span {
                Some(bytes) => self.file.span_within(&failed.at, bytes),
                None => self.file.span(&failed.at),
            },
            message: failed.message,
            help: failed.help,
        })
    }

    /// The values that a condition reads, for the help of a message.
    pub(crate) fn reads(&self, condition: &Computed, actor: &str) -> Option<String> {
        let reads = self.expressions.reads(condition, self.view(Some(actor)));
        let words = reads.iter().map(|(path, v)| format!("`{path}` is {}", show(v)));
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    fn view(&self, actor: Option<&str>) -> EvalView<'_> {
        let snapshot = self.session.snapshot();
        EvalView {
            snapshot,
            actor: snapshot.actor(actor.unwrap_or("root")),
            now: self.session.at(),
            effects: &self.effects,
            run: &self.run,
            none: &Json::Null,
        }
    }

    /// The ids of the actors of the run.
    pub(crate) fn actor_ids(&self) -> Vec<String> {
        let actors = self.session.snapshot().actors();
        actors.map(Actor::id).map(str::to_owned).collect()
    }
}

/// Compares a refusal with the expected one.
fn check_refusal(what: &str, expected: &Refusal, explanation: &Explanation, span: Span) -> Result<(), StepFailure> {
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

pub(crate) fn line_of(source: &str, byte: usize) -> usize {
    let before = source.as_bytes().get(..byte).unwrap_or_default();
    before.iter().filter(|b| **b == b'\n').count() + 1
}
